"""The ladder's baselines, with the soft gate: at most so much may one observation take off an arm's estimate."""

import math

from ...base.arrays import Floats
from ..compose import START
from ..jit import compiled
from ..state import ROUND, State
from .ladder_means import extra_share, surrogate_share
from .ladder_state import (
    ALL_ARMS,
    BASELINE,
    BOUND,
    CHALLENGER,
    COVERED,
    DRIFT,
    ESTIMATES,
    ETA,
    EVEN_SHARE,
    HIGHEST,
    LARGEST,
    LEADER,
    LEAST,
    MIXED,
    NO_ARMS,
    ORDER,
    RANKED,
    RISE,
    SURROGATE,
    UNSEEN,
)


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
