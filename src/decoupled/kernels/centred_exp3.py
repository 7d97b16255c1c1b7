"""Exponential weights beyond the paper: centred losses, and a rate of its own for each of the two arms."""

import math
from typing import NamedTuple

from ..arrays import Words
from .centring import START, add_centred, set_baselines
from .compiled import compiled
from .dispatch import Functions
from .sampling import draw_both, total
from .softmax import exponential_weights
from .state import ARMS, ROUND, SHARED_SCALARS, Layout, State

SCALE, ETA, ETA_EXPLOIT, EXPLOIT_SUM, EXPLORE_SUM, RISE = range(
    len(SHARED_SCALARS), len(SHARED_SCALARS) + 6
)
ESTIMATES, EXPLOIT, EXPLORE, BASELINE, SPARE = range(5)


class Params(NamedTuple):
    """The parameters as compiled code takes them."""

    c: float
    c_exploit: float
    kappa: float  # infinite where nothing is centred: no arm passes the gate
    lam: float


@compiled
def refresh(params: Params, state: State) -> None:
    """Both laws, up to their sums, and every arm's baseline."""
    scalars, floats = state.scalars, state.floats
    root = scalars[SCALE] / math.sqrt(scalars[ROUND])
    eta, eta_exploit = params.c * root, params.c_exploit * root
    scalars[ETA], scalars[ETA_EXPLOIT] = eta, eta_exploit
    exponential_weights(floats[ESTIMATES], 0.5 * eta, floats[SPARE], floats[EXPLORE])
    exponential_weights(floats[ESTIMATES], 0.5 * eta_exploit, floats[EXPLOIT], floats[SPARE])
    scalars[EXPLOIT_SUM] = total(floats[EXPLOIT])
    scalars[EXPLORE_SUM] = total(floats[EXPLORE])
    mean, least = START + scalars[RISE], params.kappa * eta
    set_baselines(floats[EXPLORE], scalars[EXPLORE_SUM], least, mean, floats[BASELINE])


@compiled
def init(params: Params, state: State) -> None:
    """eta_t * sqrt(t) / c, then both laws."""
    state.scalars[SCALE] = 1.0 / math.sqrt(state.scalars[ARMS])
    refresh(params, state)


@compiled
def decide(params: Params, state: State, stream: Words) -> tuple[int, int, float, float]:
    """Two independent draws, from w and from p."""
    floats, scalars = state.floats, state.scalars
    return draw_both(floats[EXPLOIT], scalars[EXPLOIT_SUM], floats[EXPLORE], scalars[EXPLORE_SUM], stream)


@compiled
def update(params: Params, state: State, arm: int, weight: float, loss: float) -> None:
    """Add the centred loss, and move the running mean."""
    add_centred(state.floats[ESTIMATES], state.floats[BASELINE], arm, weight, loss)
    state.scalars[RISE] += params.lam * (loss - (START + state.scalars[RISE]))
    refresh(params, state)


LAYOUT = Layout(
    scalars=("scale", "eta", "eta_exploit", "exploit_sum", "explore_sum", "rise"),
    floats=("estimates", "exploit", "explore", "baseline", "spare"),
    learned=("estimates", "rise"),
)
FUNCTIONS = Functions(init, decide, update)
