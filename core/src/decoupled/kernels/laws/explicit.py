"""What laws share that keep explicit weights of all arms, up to their sums."""

from typing import Any

from ...base.arrays import Words
from ..compose import OWN
from ..jit import compiled
from ..random.sampling import draw_both, total
from ..state import State

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
