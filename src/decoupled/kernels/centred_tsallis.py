"""Tsallis weights beyond the paper: centred losses, and a rate of its own for each of the two arms."""

import math
from typing import NamedTuple

from ..arrays import Floats, Words
from .centring import START, add_centred, set_baselines
from .compiled import compiled
from .dispatch import Functions
from .sampling import draw_both, total
from .simplex import SOLVED, tsallis_excess, two_powers
from .state import ARMS, ROUND, SHARED_SCALARS, Layout, State

SCALE, ETA, ETA_EXPLOIT, EXCESS, EXCESS_EXPLOIT, EXPLOIT_SUM, EXPLORE_SUM, STEPS, RISE = range(
    len(SHARED_SCALARS), len(SHARED_SCALARS) + 9
)
ESTIMATES, GAPS, EXPLOIT, EXPLORE, BASELINE, SPARE = range(6)


class Params(NamedTuple):
    """The parameters as compiled code takes them."""

    c: float
    scale_power: float  # 1/2 - beta
    rate: float  # 1 - beta
    exploit_power: float  # a = 1 / (1 - beta)
    explore_power: float  # a * (1 - beta/2)
    c_exploit: float
    kappa: float  # infinite where nothing is centred: no arm passes the gate
    lam: float


@compiled
def solve_at(
    params: Params, state: State, eta: float, excess: int, saved: bool, first: Floats, second: Floats
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
        floats[GAPS, i] = params.rate * eta * (floats[ESTIMATES, i] - lowest)
    if saved:
        two_powers(floats[GAPS], scalars[excess], a, b, first, second)
        if abs(total(first) - 1.0) <= SOLVED:
            return
    scalars[excess], steps = tsallis_excess(floats[GAPS], scalars[excess], a, first, second)
    scalars[STEPS] += steps
    two_powers(floats[GAPS], scalars[excess], a, b, first, second)


@compiled
def refresh(params: Params, state: State, saved: bool) -> None:
    """Both laws, up to their sums, and every arm's baseline."""
    scalars, floats = state.scalars, state.floats
    root = scalars[SCALE] / math.sqrt(scalars[ROUND])
    eta, eta_exploit = params.c * root, params.c_exploit * root
    scalars[ETA], scalars[ETA_EXPLOIT], scalars[STEPS] = eta, eta_exploit, 0.0
    solve_at(params, state, eta, EXCESS, saved, floats[SPARE], floats[EXPLORE])
    solve_at(params, state, eta_exploit, EXCESS_EXPLOIT, saved, floats[EXPLOIT], floats[SPARE])
    scalars[EXPLOIT_SUM] = total(floats[EXPLOIT])
    scalars[EXPLORE_SUM] = total(floats[EXPLORE])
    mean, least = START + scalars[RISE], params.kappa * eta
    set_baselines(floats[EXPLORE], scalars[EXPLORE_SUM], least, mean, floats[BASELINE])


@compiled
def init(params: Params, state: State) -> None:
    """eta_t * sqrt(t) / c, then both laws."""
    state.scalars[SCALE] = state.scalars[ARMS] ** params.scale_power
    refresh(params, state, True)


@compiled
def decide(params: Params, state: State, stream: Words) -> tuple[int, int, float, float]:
    """Two independent draws, from w and from p."""
    floats, scalars = state.floats, state.scalars
    return draw_both(floats[EXPLOIT], scalars[EXPLOIT_SUM], floats[EXPLORE], scalars[EXPLORE_SUM], stream)


@compiled
def update(params: Params, state: State, arm: int, weight: float, loss: float) -> None:
    """Add the centred loss, move the running mean, and solve again."""
    add_centred(state.floats[ESTIMATES], state.floats[BASELINE], arm, weight, loss)
    state.scalars[RISE] += params.lam * (loss - (START + state.scalars[RISE]))
    refresh(params, state, False)


LAYOUT = Layout(
    scalars=(
        "scale",
        "eta",
        "eta_exploit",
        "excess",
        "excess_exploit",
        "exploit_sum",
        "explore_sum",
        "steps",
        "rise",
    ),
    floats=("estimates", "gaps", "exploit", "explore", "baseline", "spare"),
    learned=("estimates", "excess", "excess_exploit", "rise"),
)
FUNCTIONS = Functions(init, decide, update)
