"""FTPL's round in O(log K) draws and O(sqrt K) moves of memory, for very many arms.

Both arms are drawn with exactly the laws of the round in `ftpl`. What it does not know is sum q, and
so the propensity of the arm explored: a decision carries an unbiased estimate of its inverse.
"""

import math
from typing import NamedTuple

from ..arrays import Floats, Words
from ..kernels.compiled import compiled
from ..kernels.dispatch import Functions
from ..kernels.ranking import move_in_tiers, sort_arms
from ..kernels.sampling import pareto_leader
from ..kernels.state import ARMS, ROUND, SHARED_SCALARS, Layout, State
from ..kernels.strata import Surrogate, draw_rank, draw_sum, fill_envelope, surrogate_at
from ..kernels.tiers import Tiers, arm_at, tiers_of, value_at

# The numbers of these scalars and rows are those of the dense round, so that one state can hold either.
SCALE, ETA, ENVELOPE_SUM, STRATA = range(len(SHARED_SCALARS), len(SHARED_SCALARS) + 4)
ESTIMATES, RANKED, RANK_LIMIT, ENVELOPE = range(4)
ORDER, HEADS = range(2)


class Params(NamedTuple):
    """The parameters as compiled code takes them."""

    alpha: float
    c: float


@compiled
def tiers_in(state: State) -> Tiers:
    """The arms in rank order."""
    return tiers_of(state.floats[RANKED], state.ints[ORDER], state.ints[HEADS])


@compiled
def surrogate_of(alpha: float, state: State) -> Surrogate:
    """Q at the present learning rate."""
    ranked, eta = tiers_in(state), state.scalars[ETA]
    return Surrogate(ranked, state.floats[RANK_LIMIT], value_at(ranked, 0), eta, 0.5 * (alpha + 1.0))


@compiled
def refresh_strata(alpha: float, state: State) -> None:
    """Compute eta_t and the envelope of q; they stay until the next observation."""
    scalars = state.scalars
    scalars[ETA] = scalars[SCALE] / math.sqrt(scalars[ROUND])
    strata, whole = fill_envelope(surrogate_of(alpha, state), state.floats[ENVELOPE])
    scalars[STRATA] = strata
    scalars[ENVELOPE_SUM] = whole


@compiled
def init_strata(alpha: float, c: float, state: State) -> None:
    """Rank the arms, no ring turned, and tabulate rank ** (-(alpha + 1) / (2 alpha))."""
    state.scalars[SCALE] = c * state.scalars[ARMS] ** (1.0 / alpha - 0.5)
    exponent = (alpha + 1.0) / (2.0 * alpha)
    for k in range(state.floats.shape[1]):
        state.floats[RANK_LIMIT, k] = (k + 1.0) ** -exponent
    state.ints[HEADS] = 0
    sort_arms(state.floats[ESTIMATES], state.floats[RANKED], state.ints[ORDER])
    refresh_strata(alpha, state)


@compiled
def decide_strata(alpha: float, state: State, stream: Words) -> tuple[int, int, float, float]:
    """The perturbed leader, an arm drawn from p = q / sum q, and sum q estimated apart from that draw."""
    tiers, q = tiers_in(state), surrogate_of(alpha, state)
    envelope = state.floats[ENVELOPE, : int(state.scalars[STRATA])]
    exploit = pareto_leader(tiers, state.scalars[ETA], alpha, stream)
    explore = draw_rank(q, envelope, state.scalars[ENVELOPE_SUM], stream)
    weight = draw_sum(q, envelope, stream) / surrogate_at(q, explore)
    return arm_at(tiers, exploit), arm_at(tiers, explore), weight, math.nan


@compiled
def update_strata(alpha: float, state: State, arm: int, weight: float, loss: float) -> None:
    """Add the importance-weighted loss to the explored arm's estimate and restore the rank order."""
    before = state.floats[ESTIMATES, arm]
    after = before + weight * loss
    state.floats[ESTIMATES, arm] = after
    if after != before:
        move_in_tiers(tiers_in(state), arm, before, after)
    refresh_strata(alpha, state)


@compiled
def fill_exploration_law(alpha: float, state: State, law: Floats) -> None:
    """The exact law, which takes one pass over all arms."""
    q = surrogate_of(alpha, state)
    whole = 0.0
    for rank in range(len(law)):
        share = surrogate_at(q, rank)
        law[arm_at(q.ranked, rank)] = share
        whole += share
    for arm in range(len(law)):
        law[arm] /= whole


@compiled
def init(params: Params, state: State) -> None:
    """As `init_strata`."""
    init_strata(params.alpha, params.c, state)


@compiled
def decide(params: Params, state: State, stream: Words) -> tuple[int, int, float, float]:
    """As `decide_strata`."""
    return decide_strata(params.alpha, state, stream)


@compiled
def update(params: Params, state: State, arm: int, weight: float, loss: float) -> None:
    """As `update_strata`."""
    update_strata(params.alpha, state, arm, weight, loss)


LAYOUT = Layout(
    scalars=("scale", "eta", "envelope_sum", "strata"),
    floats=("estimates", "ranked", "rank_limit", "envelope"),
    ints=("order", "heads"),
    learned=("estimates",),
)
FUNCTIONS = Functions(init, decide, update)
