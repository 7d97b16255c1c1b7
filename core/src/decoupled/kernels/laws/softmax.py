"""Exponential weights: the two laws of Exp3."""

import math
from typing import Any

from ...base.arrays import Floats
from ..argmin import lowest_of
from ..compose import ETA, ETA_EXPLOIT, OWN, Law, Rows, compose, params_type
from ..jit import compiled
from ..state import ARMS, State
from .explicit import ESTIMATES, EXPLOIT, EXPLORE, MORE_FLOATS, SPARE, SUMS, add_up, draw, gate, learn

Params = params_type(__name__)


@compiled
def exponential_weights(estimates: Floats, half_rate: float, weights: Floats, roots: Floats) -> None:
    """Fill exp(-rate * gap) and its square root. Using gaps keeps every exponent at or below 0."""
    lowest = lowest_of(estimates)
    for i in range(len(estimates)):
        root = math.exp(half_rate * (lowest - estimates[i]))
        roots[i] = root
        weights[i] = root * root


@compiled
def init(params: Any, state: State) -> float:
    """One over the square root of the number of arms."""
    return 1.0 / math.sqrt(state.scalars[ARMS])


@compiled
def fill(params: Any, state: State, root: float, saved: bool) -> None:
    """Fill w, and the square root of w at the exploration rate, up to their sums."""
    floats, scalars = state.floats, state.scalars
    exponential_weights(floats[ESTIMATES], 0.5 * scalars[ETA], floats[EXPLOIT], floats[EXPLORE])
    if params.exploit_ratio != 1.0:
        exponential_weights(floats[ESTIMATES], 0.5 * scalars[ETA_EXPLOIT], floats[EXPLOIT], floats[SPARE])
    add_up(state, OWN)


ROWS = Rows(scalars=SUMS, floats=("exploit", "explore"), more_floats=MORE_FLOATS)
COMPOSED = compose(Law(ROWS, init, fill, draw, learn, gate), Params)
