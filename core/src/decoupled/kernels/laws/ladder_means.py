"""The rung on means: the leader by mean loss, its challenger, and what they are explored.

Two means of each arm are kept: of its losses, and of its losses less the running mean of all losses at the time. If the
level of all losses moves, arms seen at different times compare only by the second; if not, the first has less noise.
Whichever has predicted losses better so far is used.
"""

import math

from ...base.arrays import Floats, Words
from ..compose import MOST_SPREAD
from ..jit import compiled
from ..random.stream import below
from ..state import State
from .ladder_state import (
    BASELINE,
    CENTRED,
    CENTRED_ERROR,
    CHALLENGER,
    COUNTS,
    EVEN_SHARE,
    INVERSES,
    LEADER,
    LEADERS_SHARE,
    MEANS,
    MIXED,
    PRECEDENCE,
    RAW_ERROR,
    SEEN,
    SLACK,
    SPREAD,
    SURROGATE_SUM,
    UNSEEN,
)
from .two_best import count_of_value, fill_costs, fill_seen_means, least_of, place_of_value


@compiled
def find_two_best(state: State) -> None:
    """Store the leader by mean and its challenger (-1 if there is none)."""
    floats, scalars = state.floats, state.scalars
    means = floats[MEANS if scalars[RAW_ERROR] <= scalars[CENTRED_ERROR] else CENTRED]
    inverses, spare = floats[INVERSES], floats[BASELINE]  # the baselines are filled after this
    fill_seen_means(means, inverses, spare)
    leader, challenger = arm_with_least(state, spare), -1
    if leader >= 0 and scalars[UNSEEN] == 0.0:
        spread = scalars[SPREAD] / (MOST_SPREAD * max(scalars[SEEN], 1.0))
        fill_costs(means, inverses, leader, SLACK * math.sqrt(spread), spare)
        challenger = arm_with_least(state, spare)
    scalars[LEADER], scalars[CHALLENGER] = leader, challenger


@compiled
def arm_with_least(state: State, values: Floats) -> int:
    """The arm with the smallest value, of several the one that precedes the others; -1 if all are infinite."""
    least, precedence = least_of(values), state.floats[PRECEDENCE]
    if least == math.inf:
        return -1
    found = place_of_value(values, least)
    if count_of_value(values, least) > 1:
        for arm in range(found + 1, len(values)):
            if values[arm] == least and precedence[arm] < precedence[found]:
                found = arm
    return found


@compiled
def surrogate_share(state: State) -> float:
    """By what the surrogates are multiplied: they share what the two best and the even share leave."""
    scalars = state.scalars
    even = scalars[EVEN_SHARE] * state.floats.shape[1]
    share: float = (1.0 - even - scalars[MIXED]) / scalars[SURROGATE_SUM]
    return share


@compiled
def extra_share(state: State, arm: int) -> float:
    """The probability that an arm is explored as one of the two best, or because it was never seen."""
    scalars = state.scalars
    mixed, leader = scalars[MIXED], int(scalars[LEADER])
    if mixed == 0.0:
        return 0.0
    others = mixed if leader < 0 else mixed * (1.0 - LEADERS_SHARE)
    share = 0.0
    if arm == leader:
        share = mixed * LEADERS_SHARE
        if scalars[UNSEEN] == 0.0 and scalars[CHALLENGER] < 0.0:
            share = mixed  # a single arm
    elif scalars[UNSEEN] > 0.0:
        if state.floats[INVERSES, arm] == 0.0:
            share = others / scalars[UNSEEN]
    elif arm == int(scalars[CHALLENGER]):
        share = others
    return share


@compiled
def one_of_two(state: State, mark: float, stream: Words) -> int:
    """The leader by mean or its challenger; an unseen arm in its place, while there are any."""
    scalars = state.scalars
    leader = int(scalars[LEADER])
    if leader >= 0 and (mark <= LEADERS_SHARE or (scalars[UNSEEN] == 0.0 and scalars[CHALLENGER] < 0.0)):
        return leader
    if scalars[UNSEEN] == 0.0:
        return int(scalars[CHALLENGER])
    skip, arm = below(int(scalars[UNSEEN]), stream), 0
    inverses = state.floats[INVERSES]
    while inverses[arm] > 0.0 or skip > 0:
        if inverses[arm] == 0.0:
            skip -= 1
        arm += 1
    return arm


@compiled
def note_loss(state: State, arm: int, loss: float, mean: float) -> None:
    """Add a loss to the two means of its arm, and the errors with which they predicted it."""
    floats, scalars = state.floats, state.scalars
    raw, centred = loss - floats[MEANS, arm], loss - mean - floats[CENTRED, arm]
    if floats[COUNTS, arm] > 0.0:
        scalars[RAW_ERROR] += raw * raw
        scalars[CENTRED_ERROR] += centred * centred
    else:
        scalars[UNSEEN] -= 1.0
    count = floats[COUNTS, arm] + 1.0
    inverse = 1.0 / count
    floats[COUNTS, arm], floats[INVERSES, arm] = count, inverse
    floats[MEANS, arm] += raw * inverse
    floats[CENTRED, arm] += centred * inverse
