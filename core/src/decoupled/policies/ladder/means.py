"""The means of the ladder: its leaders, their challengers, and what a loss teaches.

The rung on means plays the leader by mean loss; part of the exploration goes to it and to its
challenger, the arm that is hardest to tell from it. This is the rule of `TopTwo`, for arms that
another law explores as well. The loops have no branches, since which arm is best so far cannot be
predicted: with eight arms that takes a third of the time.
"""

import math

import numpy as np

from ...base.arrays import Floats
from ...kernels.jit import compiled
from ...kernels.random.stream import hashed_unit, key_with, scrambled
from ...kernels.state import ROUND, SECRET, State
from .state import (
    INVERSE_VARIANCE,
    SCRATCH_COSTS,
    SCRATCH_RECENT_INVERSES,
    SCRATCH_RECENT_MEANS,
    Params,
    R,
    S,
)

LEADERS_SHARE = 0.5  # of what the leaders and their challengers are explored together
# The recent leader's part of what leaders have: at least, and by its rung's weight.
LEAST_RECENT, MORE_RECENT = 0.25, 0.5
CHALLENGERS_SHARE = 0.375  # that follows the same parts; the recent challenger has the rest
TRUST = 3.0  # so many losses does the mean of all losses count as among the recent ones
LEAST_WEIGHT = 0.1  # that an arm counts as seen of late
MARGIN = 3.0  # in squared deviations: by how much the recent means must have predicted better
ERROR_MEMORIES = 5.0  # over so many memories the errors are compared
LEAST_FADE = 1e-100  # of the common discount, before it goes into the arms' numbers
SLACK = 0.1  # in standard deviations of a loss: how much worse than the leader is as good
_PURPOSE_OF_ORDER = np.uint64(0x7072656365646573)  # apart from the secret's other uses


@compiled
def draw_precedence(state: State) -> None:
    """Let the secret give every arm that has none a place, once, in the order of tied arms."""
    scalars = state.scalars
    precedence = state.floats[R.precedence]
    key = key_with(scrambled(np.uint64(int(scalars[SECRET])) ^ _PURPOSE_OF_ORDER), scalars[ROUND])
    for arm in range(len(precedence)):
        if precedence[arm] == 0.0:
            precedence[arm] = hashed_unit(key, arm)


@compiled
def fill_masked_means(means: Floats, inverses: Floats, out: Floats) -> None:
    """Fill the means of the arms, infinite for one not yet seen.

    `inverses` has 1 / N, and 0 for an unseen arm.
    """
    for arm in range(len(out)):
        out[arm] = means[arm] if inverses[arm] > 0.0 else math.inf


@compiled
def fill_transport_costs(
    means: Floats, inverses: Floats, leader: int, slack: float, least: float, out: Floats
) -> None:
    """Fill (mean - leader's + slack)^2 / (1 / N + 1 / N_leader); it is infinite for the leader.

    The arm with the least is the challenger. All arms must have been seen. The root of the
    numerator is at least `least`.
    """
    slack_of_leader = slack - means[leader]
    inverse_count = inverses[leader]
    for arm in range(len(out)):
        gap = max(means[arm] + slack_of_leader, least)
        out[arm] = gap * gap / (inverses[arm] + inverse_count)
    out[leader] = math.inf


@compiled
def least_of(values: Floats) -> float:
    """The smallest value, in four lanes, so that comparisons need not wait for each other."""
    a = b = c = d = math.inf
    in_lanes = len(values) - len(values) % 4
    for k in range(0, in_lanes, 4):
        a = min(values[k], a)
        b = min(values[k + 1], b)
        c = min(values[k + 2], c)
        d = min(values[k + 3], d)
    for k in range(in_lanes, len(values)):
        a = min(values[k], a)
    return min(min(a, b), min(c, d))


@compiled
def count_equal(values: Floats, value: float) -> int:
    """How many places have a value."""
    count = 0
    for k in range(len(values)):
        count += values[k] == value
    return count


@compiled
def index_of(values: Floats, value: float) -> int:
    """The first place of a value that is there."""
    place = 0
    while values[place] != value:
        place += 1
    return place


@compiled
def find_best(params: Params, state: State) -> None:
    """Store the two leaders, by mean and recent, and their challengers; -1 where there is none.

    The recent leader is the leader by mean unless the recent means have predicted better, by a
    margin.
    """
    floats = state.floats
    scalars = state.scalars
    kind = 0 if scalars[S.raw_error] <= scalars[S.centred_error] else 1
    means = floats[R.means + kind]
    inverses = floats[R.inverse_counts]
    costs = floats[SCRATCH_COSTS]
    recent = floats[SCRATCH_RECENT_MEANS]
    recent_inverses = floats[SCRATCH_RECENT_INVERSES]
    fill_masked_means(means, inverses, costs)
    leader = argmin_by_precedence(state, costs)
    challenger = -1
    recent_leader = leader
    recent_challenger = -1
    is_trusted = False
    if leader >= 0 and scalars[S.unseen] == 0.0:
        spread = scalars[S.spread] / (INVERSE_VARIANCE * max(scalars[S.seen], 1.0))
        slack = SLACK * math.sqrt(spread)
        fill_transport_costs(means, inverses, leader, slack, -math.inf, costs)
        challenger = argmin_by_precedence(state, costs)
        if params.recency > 0.0:
            past = scalars[S.past_raw_error + kind]
            margin = MARGIN * past / max(scalars[S.error_count], 1.0)
            is_trusted = scalars[S.recent_raw_error + kind] + margin < past
            fill_recent_means(state, means, floats[R.recent_sums + kind], recent, recent_inverses)
            if is_trusted:
                recent_leader = argmin_by_precedence(state, recent)
            fill_transport_costs(recent, recent_inverses, recent_leader, slack, slack, costs)
            recent_challenger = argmin_by_precedence(state, costs)
    scalars[S.leader] = leader
    scalars[S.challenger] = challenger
    scalars[S.recent_leader] = recent_leader
    scalars[S.recent_challenger] = recent_challenger
    fill_best_shares(params, state, is_trusted)


@compiled
def fill_recent_means(
    state: State, means: Floats, sums: Floats, recent: Floats, inverses: Floats
) -> None:
    """Fill the recent means, and 1 / (weight + LEAST_WEIGHT).

    In a recent mean, the mean of all losses counts as TRUST losses.
    """
    weights = state.floats[R.recent_weight]
    fade = state.scalars[S.recent_fade]
    for arm in range(len(weights)):
        weight = fade * weights[arm]
        trusted_weight = weight + TRUST
        seen_weight = weight + LEAST_WEIGHT
        both = 1.0 / (trusted_weight * seen_weight)  # one division serves two inverses
        recent[arm] = (fade * sums[arm] + TRUST * means[arm]) * (seen_weight * both)
        inverses[arm] = trusted_weight * both


@compiled
def fill_best_shares(params: Params, state: State, is_trusted: bool) -> None:
    """Fill the shares of the best arms; a trusted recent leader has the recent challenger."""
    scalars = state.scalars
    last = S.rung_weight + params.rungs - 1
    by_mean = LEADERS_SHARE
    recent = 0.0
    challenging = 1.0 - LEADERS_SHARE
    recent_challenging = 0.0
    if scalars[S.recent_challenger] >= 0.0:
        weight = scalars[last - 1] + scalars[last]
        of_recent = LEAST_RECENT + (MORE_RECENT * scalars[last] / weight if weight > 0.0 else 0.0)
        by_mean = LEADERS_SHARE * (1.0 - of_recent)
        recent = LEADERS_SHARE * of_recent
        challenging = CHALLENGERS_SHARE * (1.0 - of_recent if is_trusted else 1.0)
        recent_challenging = 1.0 - LEADERS_SHARE - challenging
    elif scalars[S.challenger] < 0.0:  # a single arm, or unseen ones, which have the other half
        challenging = 0.0
        by_mean = 1.0 if scalars[S.unseen] == 0.0 else LEADERS_SHARE
    scalars[S.leader_share] = by_mean
    scalars[S.challenger_share] = challenging
    scalars[S.recent_leader_share] = recent
    scalars[S.recent_challenger_share] = recent_challenging


@compiled
def argmin_by_precedence(state: State, values: Floats) -> int:
    """The arm with the smallest value, or -1 if all are infinite.

    Of several, it is the one that precedes the others.
    """
    least = least_of(values)
    precedence = state.floats[R.precedence]
    if least == math.inf:
        return -1
    first = index_of(values, least)
    if count_equal(values, least) > 1:
        for arm in range(first + 1, len(values)):
            if values[arm] == least and precedence[arm] < precedence[first]:
                first = arm
    return first


@compiled
def note_loss(state: State, arm: int, loss: float, mean: float) -> None:
    """Add a loss to the two means of its arm, and the errors with which they predicted it."""
    floats = state.floats
    scalars = state.scalars
    raw = loss - floats[R.means, arm]
    centred = loss - mean - floats[R.centred_means, arm]
    if floats[R.counts, arm] > 0.0:
        scalars[S.raw_error] += raw * raw
        scalars[S.centred_error] += centred * centred
    else:
        scalars[S.unseen] -= 1.0
    count = floats[R.counts, arm] + 1.0
    inverse = 1.0 / count
    floats[R.counts, arm] = count
    floats[R.inverse_counts, arm] = inverse
    floats[R.means, arm] += raw * inverse
    floats[R.centred_means, arm] += centred * inverse


@compiled
def note_recent_loss(state: State, arm: int, loss: float, mean: float, recency: float) -> None:
    """Before `note_loss`, add a loss to the recent memory, and to the errors of the arm's means."""
    floats = state.floats
    scalars = state.scalars
    fade = scalars[S.recent_fade]
    if floats[R.counts, arm] > 0.0:
        scale = 1.0 / (fade * floats[R.recent_weight, arm] + TRUST)
        kept = 1.0 - recency / ERROR_MEMORIES
        for kind in range(2):
            seen_loss = loss - kind * mean
            past = seen_loss - floats[R.means + kind, arm]
            sums = fade * floats[R.recent_sums + kind, arm] + TRUST * floats[R.means + kind, arm]
            recent = seen_loss - sums * scale
            scalars[S.past_raw_error + kind] = kept * scalars[S.past_raw_error + kind] + past * past
            scalars[S.recent_raw_error + kind] = (
                kept * scalars[S.recent_raw_error + kind] + recent * recent
            )
        scalars[S.error_count] = kept * scalars[S.error_count] + 1.0
    fade *= 1.0 - recency
    if fade < LEAST_FADE:
        for row in range(R.recent_weight, R.recent_centred_sums + 1):
            for other in range(floats.shape[1]):
                floats[row, other] *= fade
        fade = 1.0
    scalars[S.recent_fade] = fade
    inverse = 1.0 / fade
    floats[R.recent_weight, arm] += inverse
    floats[R.recent_sums, arm] += loss * inverse
    floats[R.recent_centred_sums, arm] += (loss - mean) * inverse
