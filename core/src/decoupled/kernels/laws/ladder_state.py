"""The state and the parameters of the ladder, and what follows from them: the leader by mean, and the baselines.

The rung on means plays the leader by mean loss; part of the exploration goes to it and to its challenger, the arm that is
hardest to tell from it. This is the rule of `TopTwo`, for arms that another law explores as well. The loops have no
branches, since which arm is best so far cannot be predicted: with eight arms that takes a third of the time.

Two means of each arm are kept: of its losses, and of its losses less the running mean of all losses at the time. If the
level of all losses moves, arms seen at different times compare only by the second; if not, the first has less noise.
Whichever has predicted losses better so far is used.

Baselines have a soft gate: at most so much may one observation take off an arm's estimate.
"""

import math
from collections import namedtuple
from typing import Any

import numpy as np

from ...base.arrays import Floats, Words
from ..compose import MOST_SPREAD, START
from ..jit import compiled
from ..random.stream import below, hashed_unit, key_with, scrambled
from ..state import EVENTS, ROUND, SECRET, SHARED_SCALARS, Layout, State

ALPHA = 3.0  # of the Pareto perturbations
MOST_RATES = 4
MOST_RUNGS = MOST_RATES + 1  # the last one plays the leader by mean
LEADERS_SHARE = 0.5  # of what the leader by mean and its challenger are explored together
SLACK = 0.1  # in standard deviations of a loss: how much worse than the leader is as good
ALL_ARMS, SOME_ARMS, NO_ARMS = 1.0, 0.0, -1.0  # which arms have a baseline of the decision's own
NOBODY = -1.0  # no arm is prepared for judging
_PURPOSE_OF_ORDER = np.uint64(0x7072656365646573)  # apart from the secret's other uses
TINY = 1e-24  # in place of a largest surprise of 0, so that rates are finite

ESTIMATES, RANKED, RANK_LIMIT, SURROGATE, BASELINE, COUNTS, MEANS, CENTRED, INVERSES, BOUND = range(10)
PRECEDENCE = 10  # of arms with equal means the one with the least comes first
FLOATS = (
    *("estimates", "ranked", "rank_limit", "surrogate", "baseline"),
    *("counts", "means", "centred_means", "inverse_counts", "bound", "precedence"),
)
ORDER = 0


def _numbered(name: str) -> tuple[str, ...]:
    return tuple(f"{name}_{number}" for number in range(MOST_RUNGS))


LEARNED_SCALARS = (
    *("rise", "seen", "least", "largest", "spread", "spread_floor", "raw_error", "centred_error"),
    "hedge_regret",
    *_numbered("rung_loss"),
)
DERIVED_SCALARS = (
    *("scale", "drift_scale", "eta", "surrogate_sum", "mixed", "leader", "challenger", "unseen"),
    *(
        "even_share",
        "highest",
        "drift",
        "covered",
        "hedge_sum",
        "judged",
        *_numbered("rung_weight"),
        *_numbered("rung_prior"),
        *_numbered("rung_rate"),
    ),
    *_numbered("rung_step"),
    *_numbered("rung_chance"),
    *_numbered("rung_offset"),
)
SCALARS = (*LEARNED_SCALARS, *DERIVED_SCALARS)
(RISE, SEEN, LEAST, LARGEST, SPREAD, SPREAD_FLOOR, RAW_ERROR, CENTRED_ERROR, REGRET) = range(
    len(SHARED_SCALARS), len(SHARED_SCALARS) + 9
)
LOSS = REGRET + 1
(SCALE, DRIFT_SCALE, ETA, SURROGATE_SUM, MIXED, LEADER, CHALLENGER, UNSEEN, EVEN_SHARE, HIGHEST) = range(
    LOSS + MOST_RUNGS, LOSS + MOST_RUNGS + 10
)
DRIFT, COVERED, HEDGE_SUM, JUDGED = range(HIGHEST + 1, HIGHEST + 5)
WEIGHT = JUDGED + 1
PRIOR = WEIGHT + MOST_RUNGS
RATE = PRIOR + MOST_RUNGS  # as multiples of the rate of exploration; negative for the leader by mean
STEP = RATE + MOST_RUNGS
CHANCE = STEP + MOST_RUNGS  # of the explored arm under a rung, given the draws of its rivals
OFFSET = CHANCE + MOST_RUNGS  # of a rung's loss, whatever the loss of the explored arm

# What a pending decision keeps beside its baselines: the explored arm and what its rungs are judged with.
KEPT = ("judged", *_numbered("rung_chance"), *_numbered("rung_offset"))

LAYOUT = Layout(
    scalars=SCALARS,
    floats=FLOATS,
    ints=("order",),
    learned=("estimates", "counts", "means", "centred_means", "precedence", *LEARNED_SCALARS),
)

# Rates are multiples of c, and -1 stands for the leader by mean.
PARAMS = (
    *("c", "mean_rate", "least_spread", "hedge_rate", "top_two_share", "top_two_floor"),
    "uniform_share",
    *("rungs", "rate_0", "rate_1", "rate_2", "rate_3", "rate_4"),
    *("prior_0", "prior_1", "prior_2", "prior_3", "prior_4"),
)
Params: Any = namedtuple("Params", PARAMS)  # type: ignore[misc]


@compiled
def event_key(state: State) -> np.uint64:
    """A key for the judge's draws, from the seed's secret, the event and what was learned.

    No two events have one: the draws of a decision must be news to the weights that learn from it, also if the state is
    that of another decision, of another segment, or of before a restart. (A record of a log has half an event.)
    """
    scalars = state.scalars
    key = scrambled(scrambled(np.uint64(int(scalars[SECRET]))) ^ np.uint64(int(2.0 * scalars[EVENTS])))
    return key_with(key_with(key, START + scalars[RISE]), scalars[SPREAD])


@compiled
def draw_precedence(state: State) -> None:
    """Give every arm that has none a place in the order in which arms tie. The secret draws it, once."""
    scalars, precedence = state.scalars, state.floats[PRECEDENCE]
    key = key_with(scrambled(np.uint64(int(scalars[SECRET])) ^ _PURPOSE_OF_ORDER), scalars[ROUND])
    for arm in range(len(precedence)):
        if precedence[arm] == 0.0:
            precedence[arm] = hashed_unit(key, arm)


@compiled
def fill_seen_means(means: Floats, inverses: Floats, out: Floats) -> None:
    """Fill the means of the arms, infinite for one not yet seen; `inverses` has 1 / N, and 0 for an unseen arm."""
    for arm in range(len(out)):
        out[arm] = means[arm] if inverses[arm] > 0.0 else math.inf


@compiled
def fill_costs(means: Floats, inverses: Floats, leader: int, slack: float, out: Floats) -> None:
    """Fill (mean - leader's + slack)^2 / (1 / N + 1 / N_leader) for each arm, infinite for the leader.

    The arm with the least is the challenger. All arms must have been seen.
    """
    edge, share = slack - means[leader], inverses[leader]
    for arm in range(len(out)):
        lag = means[arm] + edge
        out[arm] = lag * lag / (inverses[arm] + share)
    out[leader] = math.inf


@compiled
def least_of(values: Floats) -> float:
    """The smallest value, in four lanes, so that comparisons need not wait for each other."""
    a = b = c = d = math.inf
    whole = len(values) - len(values) % 4
    for k in range(0, whole, 4):
        a = min(values[k], a)
        b = min(values[k + 1], b)
        c = min(values[k + 2], c)
        d = min(values[k + 3], d)
    for k in range(whole, len(values)):
        a = min(values[k], a)
    return min(min(a, b), min(c, d))


@compiled
def count_of_value(values: Floats, value: float) -> int:
    """How many places have a value."""
    count = 0
    for k in range(len(values)):
        count += values[k] == value
    return count


@compiled
def place_of_value(values: Floats, value: float) -> int:
    """The first place of a value that is there."""
    place = 0
    while values[place] != value:
        place += 1
    return place


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


@compiled
def fill_baselines(state: State) -> None:
    """Fill b_i = min(B, least + p_i * (1 + rate * gap) / (2 * rate)), the soft gate at the first rung's rate.

    One observation then takes at most half of an arm's own gap, plus 1 / (2 * rate), off its estimate.
    """
    floats, scalars, order = state.floats, state.scalars, state.ints[ORDER]
    ranked, surrogate, baseline, bound = floats[RANKED], floats[SURROGATE], floats[BASELINE], floats[BOUND]
    mean, half_unit = START + scalars[RISE], 0.5 / scalars[ETA]
    least, unknown = min(scalars[LEAST], mean), scalars[ROUND] <= 1.0
    if scalars[LARGEST] == 0.0:  # no surprise yet, so no unit to measure falls in
        half_unit = math.inf
    if unknown:
        mean = least = 0.0  # see `update`
    lowest = ranked[0]
    share, even = surrogate_share(state), scalars[EVEN_SHARE]
    for k in range(len(order)):
        fall = half_unit + 0.5 * (ranked[k] - lowest)
        bound[k] = min(mean, least + (share * surrogate[k] + even) * fall)
    for k in range(len(order)):
        baseline[order[k]] = bound[k]
    highest = largest_of(bound)
    if scalars[MIXED] > 0.0:
        highest = max(highest, _lift_two_best(state, mean, half_unit, lowest))
    scalars[HIGHEST], scalars[COVERED] = highest, NO_ARMS if unknown else ALL_ARMS
    scalars[DRIFT] = shortfall(bound, surrogate, highest)


@compiled
def largest_of(values: Floats) -> float:
    """The largest value above 0, in four lanes, so that comparisons need not wait for each other."""
    a = b = c = d = 0.0
    whole = len(values) - len(values) % 4
    for k in range(0, whole, 4):
        a = max(values[k], a)
        b = max(values[k + 1], b)
        c = max(values[k + 2], c)
        d = max(values[k + 3], d)
    for k in range(whole, len(values)):
        a = max(values[k], a)
    return max(max(a, b), max(c, d))


@compiled
def shortfall(bound: Floats, surrogate: Floats, highest: float) -> float:
    """The sum of q^2 * (highest - bound), in four lanes."""
    a = b = c = d = 0.0
    whole = len(bound) - len(bound) % 4
    for k in range(0, whole, 4):
        a += surrogate[k] * surrogate[k] * (highest - bound[k])
        b += surrogate[k + 1] * surrogate[k + 1] * (highest - bound[k + 1])
        c += surrogate[k + 2] * surrogate[k + 2] * (highest - bound[k + 2])
        d += surrogate[k + 3] * surrogate[k + 3] * (highest - bound[k + 3])
    for k in range(whole, len(bound)):
        a += surrogate[k] * surrogate[k] * (highest - bound[k])
    return (a + b) + (c + d)


@compiled
def _lift_two_best(state: State, mean: float, half_unit: float, lowest: float) -> float:
    """Raise the baselines of arms that are explored more often than their surrogates say; return the highest."""
    floats, scalars = state.floats, state.scalars
    estimates, baseline = floats[ESTIMATES], floats[BASELINE]
    highest = 0.0
    if scalars[UNSEEN] > 0.0:
        for arm in range(floats.shape[1]):
            more = extra_share(state, arm)
            if more > 0.0:
                more *= half_unit + 0.5 * (estimates[arm] - lowest)
            baseline[arm] = min(mean, baseline[arm] + more)
            highest = max(highest, baseline[arm])
        return highest
    for arm in (int(scalars[LEADER]), int(scalars[CHALLENGER])):
        if arm >= 0:
            more = extra_share(state, arm) * (half_unit + 0.5 * (estimates[arm] - lowest))
            baseline[arm] = min(mean, baseline[arm] + more)
            highest = max(highest, baseline[arm])
    return highest


@compiled
def limit_fall(state: State, arm: int, weight: float) -> None:
    """Lower the baseline of an arm that was not explored by this state's law, so that the gate holds for its weight."""
    floats, scalars = state.floats, state.scalars
    least = min(scalars[LEAST], START + scalars[RISE])
    half_unit = 0.5 / scalars[ETA]
    gap = floats[ESTIMATES, arm] - floats[RANKED, 0]
    if weight > 0.0 and scalars[LARGEST] > 0.0:
        floats[BASELINE, arm] = min(floats[BASELINE, arm], least + (half_unit + 0.5 * gap) / weight)
