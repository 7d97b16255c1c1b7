"""Tsallis weights: the two laws of decoupled Tsallis-INF."""

from typing import Any

from ...base.arrays import Floats
from ..argmin import fill_gaps
from ..compose import OWN, SCALE, Law, Rows, compose, params_type
from ..jit import compiled
from ..random.sampling import total
from ..state import ARMS, State
from .explicit import ESTIMATES, EXPLOIT, EXPLORE, MORE_FLOATS, SPARE, SUMS, add_up, draw, gate, learn
from .simplex import SOLVED, tsallis_excess, two_powers

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
