"""Tsallis weights: the two laws of decoupled Tsallis-INF."""

import math
from typing import NamedTuple

from ...base.arrays import Floats
from ..compose import OWN, SCALE, Law, Rows, compose
from ..jit import compiled
from ..random.sampling import total
from ..state import ARMS, State
from .explicit import ESTIMATES, EXPLOIT, EXPLORE, MORE_FLOATS, SPARE, SUMS, add_up, draw, gate, learn
from .simplex import SOLVED, tsallis_excess, two_powers

EXCESS, EXCESS_EXPLOIT, STEPS = range(OWN + len(SUMS), OWN + len(SUMS) + 3)
GAPS = 3


class Params(NamedTuple):
    """The parameters as compiled code takes them."""

    scale_power: float  # 1/2 - beta
    rate: float  # 1 - beta
    exploit_power: float  # a = 1 / (1 - beta)
    explore_power: float  # a * (1 - beta/2)
    c: float
    exploit_ratio: float
    centred: float
    kappa: float
    lam: float
    by_losses: float


@compiled
def init(params: Params, state: State) -> float:
    """The number of arms to the power of 1/2 - beta."""
    scale: float = state.scalars[ARMS] ** params.scale_power
    return scale


@compiled
def fill(params: Params, state: State, root: float, saved: bool) -> None:
    """W, and w ** (1 - beta/2) at the rate of exploration; up to their sums."""
    floats, scalars = state.floats, state.scalars
    scalars[STEPS] = 0.0
    rate = params.rate * scalars[SCALE] / root
    solve_at(params, state, rate, EXCESS, saved, floats[EXPLOIT], floats[EXPLORE])
    if params.exploit_ratio != 1.0:
        rate *= params.exploit_ratio
        solve_at(params, state, rate, EXCESS_EXPLOIT, saved, floats[EXPLOIT], floats[SPARE])
    add_up(state)


@compiled
def solve_at(
    params: Params, state: State, rate: float, excess: int, saved: bool, first: Floats, second: Floats
) -> None:
    """Fill w and w ** (1 - beta/2) at one rate, by Newton from the last excess of that rate.

    A `saved` excess that solves the equation already is kept: then these are the very weights it had.
    """
    scalars, floats = state.scalars, state.floats
    a, b = params.exploit_power, params.explore_power
    lowest = math.inf
    for i in range(floats.shape[1]):
        lowest = min(lowest, floats[ESTIMATES, i])
    for i in range(floats.shape[1]):
        floats[GAPS, i] = rate * (floats[ESTIMATES, i] - lowest)
    if saved:
        two_powers(floats[GAPS], scalars[excess], a, b, first, second)
        if abs(total(first) - 1.0) <= SOLVED:
            return
    scalars[excess], steps = tsallis_excess(floats[GAPS], scalars[excess], a, first, second)
    scalars[STEPS] += steps
    two_powers(floats[GAPS], scalars[excess], a, b, first, second)


LAW = Law(
    Rows(
        scalars=(*SUMS, "excess", "excess_exploit", "steps"),
        floats=("exploit", "explore", "gaps"),
        more_floats=MORE_FLOATS,
        learned=("excess",),
        more_learned=("excess_exploit",),
    ),
    init,
    fill,
    draw,
    learn,
    gate,
)
COMPOSED = compose(LAW, Params)
