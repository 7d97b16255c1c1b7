"""Explicit weights of all arms, up to their sums: what such laws share, and the exponential weights of Exp3."""

import math
from typing import Any

from ...base.arrays import Floats, Words
from ..argmin import lowest_of
from ..compose import ETA, ETA_EXPLOIT, OWN, Law, Rows, compose, params_type
from ..jit import compiled
from ..random.sampling import draw_both, total
from ..state import ARMS, State

SUMS = ("exploit_sum", "explore_sum")
EXPLOIT_SUM, EXPLORE_SUM = OWN, OWN + 1
ESTIMATES, EXPLOIT, EXPLORE = range(3)

# After a law's own rows, and only if losses are centred or the rates differ.
MORE_FLOATS = ("baseline", "spare")
BASELINE, SPARE = -2, -1


@compiled
def add_up(state: State, sums: int) -> None:
    """Store the sums of both rows of weights in the scalar `sums` and the next."""
    state.scalars[sums] = total(state.floats[EXPLOIT])
    state.scalars[sums + 1] = total(state.floats[EXPLORE])


@compiled
def draw_weighted(state: State, sums: int, stream: Words) -> tuple[int, int, float, float]:
    """Draw from w and from p, independently."""
    floats, scalars = state.floats, state.scalars
    return draw_both(floats[EXPLOIT], scalars[sums], floats[EXPLORE], scalars[sums + 1], stream)


@compiled
def draw(params: Any, state: State, stream: Words) -> tuple[int, int, float, float]:
    """Draw from w and from p, independently."""
    return draw_weighted(state, EXPLOIT_SUM, stream)


@compiled
def learn(params: Any, state: State, arm: int, weight: float, loss: float) -> None:
    """Add loss / p to the arm; if losses are centred, add (loss - b) / p to it and b to all arms."""
    estimates = state.floats[ESTIMATES]
    if params.centred > 0.0:
        baseline = state.floats[BASELINE]
        estimates[arm] += weight * (loss - baseline[arm])
        for i in range(len(estimates)):
            estimates[i] += baseline[i]
    else:
        estimates[arm] += weight * loss


@compiled
def gate(params: Any, state: State, least: float, mean: float) -> None:
    """Give the baseline `mean` to arms explored with probability `least` or more, and 0 to the others."""
    explore, baseline = state.floats[EXPLORE], state.floats[BASELINE]
    bar = least * state.scalars[EXPLORE_SUM]
    for i in range(len(explore)):
        baseline[i] = mean if explore[i] >= bar else 0.0


Params = params_type(__name__)


@compiled
def exponential_weights(
    estimates: Floats, half_rate: float, weights: Floats, roots: Floats
) -> None:
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
        exponential_weights(
            floats[ESTIMATES], 0.5 * scalars[ETA_EXPLOIT], floats[EXPLOIT], floats[SPARE]
        )
    add_up(state, OWN)


ROWS = Rows(scalars=SUMS, floats=("exploit", "explore"), more_floats=MORE_FLOATS)
COMPOSED = compose(Law(ROWS, init, fill, draw, learn, gate), Params)
