"""Tsallis weights: the point of the simplex that Tsallis-INF chooses, and the two laws of its decoupled form.

With a = 1 / (1 - beta), gaps u and rate = (1 - beta) * eta, the weights are w_i = (1 + rate * u_i + x) ** -a, where the
excess x solves S(x) = sum_i w_i = 1. It lies in [0, K ** (1/a) - 1] for any estimates and is small if a is large, so no
digits are lost to rounding. The Lagrange multiplier itself would be min(L) - (1 + x) / rate.
"""

import math
from typing import Any

from ...base.arrays import Floats
from ..argmin import fill_gaps
from ..compose import OWN, SCALE, Law, Rows, compose, params_type
from ..jit import compiled
from ..powers import inverse_power
from ..random.sampling import total
from ..state import ARMS, State
from .explicit import (
    ESTIMATES,
    EXPLOIT,
    EXPLORE,
    MORE_FLOATS,
    SPARE,
    SUMS,
    add_up,
    draw,
    gate,
    learn,
)

SOLVED = 1e-12  # weights whose sum is this close to 1 are a solution
_LAST_STEP = 1e-8
_MOST_STEPS = 200


@compiled
def two_powers(
    gaps: Floats, excess: float, a: float, b: float, first: Floats, second: Floats
) -> None:
    """Fill (1 + gap + x) ** -a and (1 + gap + x) ** -b."""
    done = 0
    if a == 3.0 and (b == 4.0 or b == 2.0):
        # One division serves two arms, 1/x = y * (1 / (x * y)), and the loop handles four at a time: twice as fast.
        half = len(gaps) // 2
        for i in range(half):
            x = 1.0 + (gaps[i] + excess)
            y = 1.0 + (gaps[i + half] + excess)
            both = 1.0 / (x * y)
            x, y = y * both, x * both  # now the inverses
            first[i] = x * x * x
            first[i + half] = y * y * y
            second[i] = first[i] * x if b == 4.0 else x * x
            second[i + half] = first[i + half] * y if b == 4.0 else y * y
        done = 2 * half
    for i in range(done, len(gaps)):
        first[i] = inverse_power(gaps[i] + excess, a)
        second[i] = inverse_power(gaps[i] + excess, b)


@compiled
def tsallis_excess(
    gaps: Floats, start: float, a: float, weights: Floats, slopes: Floats
) -> tuple[float, int]:
    """Solve S(x) = 1 by safeguarded Newton from any start. Return the root and the number of steps.

    Newton works on S(x) ** (-1/a), which is increasing, concave and nearly straight (exactly straight if all gaps are
    equal or one arm has all the weight). From the left of the root it climbs without overshooting; a step from the
    right lands on the left, and the bracket catches it. The rows are work space; S has slope -a * sum(slopes).
    """
    highest = math.expm1(math.log(float(len(gaps))) / a)
    excess = min(max(start, 0.0), highest)
    for step in range(1, _MOST_STEPS + 1):
        two_powers(gaps, excess, a, a + 1.0, weights, slopes)
        mass = total(weights)
        move = mass * math.expm1(math.log(mass) / a) / total(slopes)
        excess = min(max(excess + move, 0.0), highest)
        # The error after a step is of the order of the step squared, so this step was the last one needed.
        if a * abs(move) <= _LAST_STEP * (1.0 + excess):
            return excess, step
    return excess, _MOST_STEPS


EXCESS, EXCESS_EXPLOIT, STEPS = range(OWN + len(SUMS), OWN + len(SUMS) + 3)
GAPS = 3

# 1/2 - beta, 1 - beta, a = 1 / (1 - beta), and a * (1 - beta/2).
Params = params_type(__name__, "scale_power", "rate", "exploit_power", "explore_power")


@compiled
def init(params: Any, state: State) -> float:
    """The number of arms to the power of 1/2 - beta."""
    scale: float = state.scalars[ARMS] ** params.scale_power
    return scale


@compiled
def fill(params: Any, state: State, root: float, saved: bool) -> None:
    """Fill w, and w ** (1 - beta/2) at the exploration rate, up to their sums."""
    floats, scalars = state.floats, state.scalars
    scalars[STEPS] = 0.0
    rate = params.rate * scalars[SCALE] / root
    solve_at(params, state, rate, EXCESS, saved, floats[EXPLOIT], floats[EXPLORE])
    if params.exploit_ratio != 1.0:
        rate *= params.exploit_ratio
        solve_at(params, state, rate, EXCESS_EXPLOIT, saved, floats[EXPLOIT], floats[SPARE])
    add_up(state, OWN)


@compiled
def solve_at(
    params: Any, state: State, rate: float, excess: int, saved: bool, first: Floats, second: Floats
) -> None:
    """Fill w and w ** (1 - beta/2) at one rate, by Newton from the last excess of that rate.

    A `saved` excess that already solves the equation is kept, so that loading a state changes no bit of the weights.
    """
    scalars, gaps = state.scalars, state.floats[GAPS]
    a, b = params.exploit_power, params.explore_power
    fill_gaps(state.floats[ESTIMATES], rate, gaps)
    if saved:
        two_powers(gaps, scalars[excess], a, b, first, second)
        if abs(total(first) - 1.0) <= SOLVED:
            return
    scalars[excess], steps = tsallis_excess(gaps, scalars[excess], a, first, second)
    scalars[STEPS] += steps
    two_powers(gaps, scalars[excess], a, b, first, second)


ROWS = Rows(
    scalars=(*SUMS, "excess", "excess_exploit", "steps"),
    floats=("exploit", "explore", "gaps"),
    more_floats=MORE_FLOATS,
    learned=("excess",),
    more_learned=("excess_exploit",),
)
COMPOSED = compose(Law(ROWS, init, fill, draw, learn, gate), Params)
