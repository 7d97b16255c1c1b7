"""Exponential weights: EXP3's two laws."""

import math
from typing import NamedTuple

from ...base.arrays import Floats
from ..compose import ETA, ETA_EXPLOIT, Law, Rows, compose
from ..jit import compiled
from ..state import ARMS, State
from .explicit import ESTIMATES, EXPLOIT, EXPLORE, MORE_FLOATS, SPARE, SUMS, add_up, draw, gate, learn


class Params(NamedTuple):
    """The parameters as compiled code takes them."""

    c: float
    exploit_ratio: float
    centred: float
    kappa: float
    lam: float
    by_losses: float


@compiled
def exponential_weights(estimates: Floats, half_rate: float, weights: Floats, roots: Floats) -> None:
    """Fill exp(-rate * gap) and its square root, from the gaps: no exponent is ever positive."""
    lowest = math.inf
    for i in range(len(estimates)):
        lowest = min(lowest, estimates[i])
    for i in range(len(estimates)):
        root = math.exp(half_rate * (lowest - estimates[i]))
        roots[i] = root
        weights[i] = root * root


@compiled
def init(params: Params, state: State) -> float:
    """One over the root of the number of arms."""
    return 1.0 / math.sqrt(state.scalars[ARMS])


@compiled
def fill(params: Params, state: State, root: float, saved: bool) -> None:
    """W, and the square root of what w is at the rate of exploration; up to their sums."""
    floats, scalars = state.floats, state.scalars
    exponential_weights(floats[ESTIMATES], 0.5 * scalars[ETA], floats[EXPLOIT], floats[EXPLORE])
    if params.exploit_ratio != 1.0:
        exponential_weights(floats[ESTIMATES], 0.5 * scalars[ETA_EXPLOIT], floats[EXPLOIT], floats[SPARE])
    add_up(state)


LAW = Law(
    Rows(
        scalars=SUMS,
        floats=("exploit", "explore"),
        more_floats=MORE_FLOATS,
    ),
    init,
    fill,
    draw,
    learn,
    gate,
)
COMPOSED = compose(LAW, Params)
