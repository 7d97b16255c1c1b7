"""The baselines of the ladder, and the law of exploration that they depend on.

The baselines have a *soft gate*, a bound on how much one observation may take off an arm's
estimate. The gate is computed in the state in which a loss arrives, for the law by which its arm
was explored.
"""

import math

from ...base.arrays import Floats, Words
from ...kernels.jit import compiled
from ...kernels.random.stream import below
from ...kernels.state import ROUND, State
from .means import LEADERS_SHARE
from .state import ALL_ARMS, BEST, NO_ARMS, SOME_ARMS, START, N, R, S


@compiled
def surrogate_share(state: State) -> float:
    """The factor of the surrogates: what the shares of the best arms and the even share leave."""
    scalars = state.scalars
    even = scalars[S.even_share] * state.floats.shape[1]
    share: float = (1.0 - even - scalars[S.mixed]) / scalars[S.surrogate_sum]
    return share


@compiled
def extra_share(state: State, arm: int) -> float:
    """The probability that an arm is explored as one of the best, or because it was never seen."""
    scalars = state.scalars
    mixed = scalars[S.mixed]
    share = 0.0
    if mixed == 0.0:
        return 0.0
    for place in range(BEST):
        if scalars[S.leader + place] == arm:
            share += mixed * scalars[S.leader_share + place]
    if scalars[S.unseen] > 0.0 and state.floats[R.inverse_counts, arm] == 0.0:
        others = mixed if scalars[S.leader] < 0.0 else mixed * (1.0 - LEADERS_SHARE)
        share = others / scalars[S.unseen]
    return share


@compiled
def draw_best(state: State, mark: float, stream: Words) -> int:
    """One of the best arms; an unseen arm in the challengers' place, while there are any."""
    scalars = state.scalars
    if scalars[S.leader] >= 0.0 and mark <= scalars[S.leader_share]:
        return int(scalars[S.leader])
    if scalars[S.unseen] == 0.0:
        place = 0
        while place < BEST - 1 and mark > scalars[S.leader_share + place]:
            mark -= scalars[S.leader_share + place]
            place += 1
        return int(scalars[S.leader + place])
    skip = below(int(scalars[S.unseen]), stream)
    arm = 0
    inverses = state.floats[R.inverse_counts]
    while inverses[arm] > 0.0 or skip > 0:
        if inverses[arm] == 0.0:
            skip -= 1
        arm += 1
    return arm


@compiled
def fill_baselines(state: State) -> None:
    """Fill the law p of exploration, and the baselines b of the soft gate.

    b_i = min(B, least + p_i * (1 + rate * gap) / (2 * rate)).

    The rate is the first rung's. One observation then takes at most half of an arm's own gap, plus
    1 / (2 * rate), off its estimate.
    """
    floats = state.floats
    scalars = state.scalars
    order = state.ints[N.order]
    ranked = floats[R.ranked]
    surrogate = floats[R.surrogate]
    baseline = floats[R.baseline]
    bound = floats[R.bound]
    law = floats[R.law]
    mean = START + scalars[S.rise]
    half_unit = 0.5 / scalars[S.eta]
    least = min(scalars[S.least], mean)
    is_first = scalars[ROUND] <= 1.0
    if scalars[S.largest] == 0.0:  # no surprise yet, so no unit to measure falls in
        half_unit = math.inf
    if is_first:
        mean = least = 0.0  # see `update`
    lowest = ranked[0]
    share = surrogate_share(state)
    even = scalars[S.even_share]
    for k in range(len(order)):
        fall = half_unit + 0.5 * (ranked[k] - lowest)
        bound[k] = min(mean, least + (share * surrogate[k] + even) * fall)
    for k in range(len(order)):
        baseline[order[k]] = bound[k]
        law[order[k]] = share * surrogate[k] + even
    highest = largest_of(bound)
    if scalars[S.mixed] > 0.0:
        highest = max(highest, _lift_best(state, mean, half_unit, lowest))
    scalars[S.highest] = highest
    scalars[S.covered] = NO_ARMS if is_first else ALL_ARMS
    scalars[S.drift] = shortfall(bound, surrogate, highest)
    scalars[S.origin] = scalars[S.version]


@compiled
def largest_of(values: Floats) -> float:
    """The largest value above 0, in four lanes, so that no comparison waits for another."""
    a = b = c = d = 0.0
    in_lanes = len(values) - len(values) % 4
    for k in range(0, in_lanes, 4):
        a = max(values[k], a)
        b = max(values[k + 1], b)
        c = max(values[k + 2], c)
        d = max(values[k + 3], d)
    for k in range(in_lanes, len(values)):
        a = max(values[k], a)
    return max(max(a, b), max(c, d))


@compiled
def shortfall(bound: Floats, surrogate: Floats, highest: float) -> float:
    """The sum of q^2 * (highest - bound), in four lanes."""
    a = b = c = d = 0.0
    in_lanes = len(bound) - len(bound) % 4
    for k in range(0, in_lanes, 4):
        a += surrogate[k] * surrogate[k] * (highest - bound[k])
        b += surrogate[k + 1] * surrogate[k + 1] * (highest - bound[k + 1])
        c += surrogate[k + 2] * surrogate[k + 2] * (highest - bound[k + 2])
        d += surrogate[k + 3] * surrogate[k + 3] * (highest - bound[k + 3])
    for k in range(in_lanes, len(bound)):
        a += surrogate[k] * surrogate[k] * (highest - bound[k])
    return (a + b) + (c + d)


@compiled
def _lift_best(state: State, mean: float, half_unit: float, lowest: float) -> float:
    """Raise law and baselines of arms that are explored more often than their surrogates say.

    Return the highest baseline.

    An arm that is several of the best is raised once, by the sum of its shares: else one
    observation could take too much off its estimate.
    """
    scalars = state.scalars
    highest = 0.0
    if scalars[S.unseen] > 0.0:
        for arm in range(state.floats.shape[1]):
            highest = max(highest, _lift(state, arm, mean, half_unit, lowest))
        return highest
    for place in range(BEST):
        arm = int(scalars[S.leader + place])
        is_first = True
        for earlier in range(place):
            is_first = is_first and scalars[S.leader + earlier] != arm
        if arm >= 0 and is_first:
            highest = max(highest, _lift(state, arm, mean, half_unit, lowest))
    return highest


@compiled
def _lift(state: State, arm: int, mean: float, half_unit: float, lowest: float) -> float:
    """Raise one arm's law and baseline, and return the baseline."""
    floats = state.floats
    share = extra_share(state, arm)
    if share > 0.0:
        floats[R.law, arm] += share
        share *= half_unit + 0.5 * (floats[R.estimates, arm] - lowest)
    lifted: float = min(mean, floats[R.baseline, arm] + share)
    floats[R.baseline, arm] = lifted
    return lifted


@compiled
def cover(state: State, law: Floats, absent: float) -> None:
    """Fill the baselines of the soft gate for the law by which a decision explored.

    That law may be another state's.

    An arm that the decision could not choose has a negative chance there, and is charged `absent`,
    the loss.
    """
    floats = state.floats
    scalars = state.scalars
    order = state.ints[N.order]
    ranked = floats[R.ranked]
    baseline = floats[R.baseline]
    surrogate = floats[R.surrogate]
    mean = START + scalars[S.rise]
    half_unit = 0.5 / scalars[S.eta]
    least = min(scalars[S.least], mean)
    lowest = ranked[0]
    if scalars[S.largest] == 0.0:  # no surprise yet, so no unit to measure falls in
        half_unit = math.inf
    highest = 0.0
    has_all_arms = True
    for k in range(len(order)):
        arm = order[k]
        if law[arm] < 0.0:
            baseline[arm] = absent
            has_all_arms = False
        else:
            baseline[arm] = min(mean, least + law[arm] * (half_unit + 0.5 * (ranked[k] - lowest)))
            highest = max(highest, baseline[arm])
    drift = 0.0
    for k in range(len(order)):
        if law[order[k]] >= 0.0:
            drift += surrogate[k] * surrogate[k] * (highest - baseline[order[k]])
    scalars[S.highest] = highest
    scalars[S.drift] = drift
    scalars[S.covered] = ALL_ARMS if has_all_arms else SOME_ARMS


@compiled
def limit_fall(state: State, arm: int, weight: float) -> None:
    """Lower the baseline of an arm that another law explored, so that the gate holds."""
    floats = state.floats
    scalars = state.scalars
    least = min(scalars[S.least], START + scalars[S.rise])
    half_unit = 0.5 / scalars[S.eta]
    gap = floats[R.estimates, arm] - floats[R.ranked, 0]
    if weight > 0.0 and scalars[S.largest] > 0.0:
        most = least + (half_unit + 0.5 * gap) / weight
        floats[R.baseline, arm] = min(floats[R.baseline, arm], most)
