"""FTPL's round in O(log K) draws and O(sqrt K) moves of memory, for very many arms.

Both arms are drawn with exactly the laws of the rounds in `ftpl` and `kernels.centred`. What it does not know
is sum q, and so the propensity of the arm explored: a decision carries an unbiased estimate of its inverse.
"""

import math
from typing import NamedTuple

from ..arrays import Floats, Words
from ..kernels.centred import MOST_SPREAD
from ..kernels.centring import START
from ..kernels.compiled import compiled
from ..kernels.dispatch import Functions
from ..kernels.sampling import pareto_leader
from ..kernels.state import ARMS, ROUND, SHARED_SCALARS, Layout, State
from ..kernels.strata import (
    Surrogate,
    draw_rank,
    draw_sum,
    draw_tied,
    fill_envelope,
    ranks_above,
    surrogate_at,
)
from ..kernels.tier_lifts import lift_in_tiers
from ..kernels.tier_moves import move_in_tiers
from ..kernels.tiers import ROOM, Tiers, arm_at, fill_tiers, slot_bits, value_at

# The numbers of these scalars and rows are those of the dense rounds, so that one state can hold either.
FIRST = len(SHARED_SCALARS)
SCALE, ETA, ENVELOPE_SUM, ETA_EXPLOIT, RISE, SPREAD, STRATA, COVERED, BITS, BLOCKS = range(
    FIRST, FIRST + 10
)
ESTIMATES, SPARE, RANK_LIMIT, ENVELOPE, BASELINE, FIRST_VALUES, VALUES = range(7)
SPARE_ARMS, COVERED_ARMS, SLOTS, FIRST_ARMS, GUIDE, STARTS, _, HELD = range(8)

# Only the first ranks can have a baseline: they are where most of the variance is, and a round lifts them all.
MOST_COVERED = 64


class Params(NamedTuple):
    """The parameters as compiled code takes them."""

    alpha: float
    c: float
    c_exploit: float
    kappa: float  # infinite where nothing is centred: no arm passes the gate
    lam: float
    by_losses: float  # above 0 where the losses set the pace of the rates, and not the rounds


@compiled
def tiers_in(state: State) -> Tiers:
    """The arms in rank order."""
    floats, ints, arms = state.floats, state.ints, state.floats.shape[1]
    return Tiers(
        floats[VALUES : VALUES + ROOM].reshape(ROOM * arms),
        ints[HELD : HELD + ROOM].reshape(ROOM * arms),
        ints[SLOTS],
        ints[STARTS : STARTS + 2].reshape(2 * arms),
        floats[FIRST_VALUES],
        ints[FIRST_ARMS],
        ints[GUIDE],
        state.scalars[BLOCKS : BLOCKS + 2],
        int(state.scalars[BITS]),
        arms,
    )


@compiled
def surrogate_of(alpha: float, state: State, tiers: Tiers) -> Surrogate:
    """Q at the present learning rate."""
    lowest, eta = tiers.first_values[0], state.scalars[ETA]
    return Surrogate(tiers, state.floats[RANK_LIMIT], lowest, eta, 0.5 * (alpha + 1.0))


@compiled
def refresh(params: Params, state: State, tiers: Tiers) -> None:
    """Compute both rates, the envelope of q and the baselines; they stay until the next observation."""
    scalars, floats = state.scalars, state.floats
    passed = 1.0 + scalars[SPREAD] if params.by_losses > 0.0 else scalars[ROUND]
    eta = scalars[SCALE] / math.sqrt(passed)
    scalars[ETA] = eta
    scalars[ETA_EXPLOIT] = eta * (params.c_exploit / params.c)
    q = surrogate_of(params.alpha, state, tiers)
    strata, whole = fill_envelope(q, floats[ENVELOPE])
    scalars[STRATA] = strata
    scalars[ENVELOPE_SUM] = whole
    # With the sum that a decision will draw in place of the envelope's, which is never below it, the arms
    # covered would depend on that draw, and their estimates be biased.
    covered = ranks_above(q, params.kappa * eta * whole, MOST_COVERED)
    scalars[COVERED] = covered
    for rank in range(covered):
        state.ints[COVERED_ARMS, rank] = arm_at(tiers, rank)
        floats[BASELINE, rank] = START + scalars[RISE]


@compiled
def init(params: Params, state: State) -> None:
    """Rank the arms and tabulate rank ** (-(alpha + 1) / (2 alpha))."""
    state.scalars[SCALE] = params.c * state.scalars[ARMS] ** (1.0 / params.alpha - 0.5)
    exponent = (params.alpha + 1.0) / (2.0 * params.alpha)
    if state.floats[RANK_LIMIT, 0] != 1.0:  # powers are dear, and these stay as they are
        for k in range(state.floats.shape[1]):
            state.floats[RANK_LIMIT, k] = (k + 1.0) ** -exponent
    state.scalars[BITS] = slot_bits(state.floats.shape[1])
    tiers = tiers_in(state)
    fill_tiers(state.floats[ESTIMATES], tiers)
    refresh(params, state, tiers)


@compiled
def decide(params: Params, state: State, stream: Words) -> tuple[int, int, float, float]:
    """The perturbed leader, an arm drawn from p = q / sum q, and sum q estimated apart from that draw."""
    tiers = tiers_in(state)
    q = surrogate_of(params.alpha, state, tiers)
    envelope = state.floats[ENVELOPE, : int(state.scalars[STRATA])]
    exploit = pareto_leader(tiers, state.scalars[ETA_EXPLOIT], params.alpha, stream)
    rank = draw_rank(q, envelope, state.scalars[ENVELOPE_SUM], stream)
    weight = draw_sum(q, envelope, stream) / surrogate_at(q, rank)
    explore = draw_tied(tiers, rank, stream)
    return arm_at(tiers, exploit), arm_at(tiers, explore), weight, math.nan


@compiled
def update(params: Params, state: State, arm: int, weight: float, loss: float) -> None:
    """Add b to the arms it covers and (loss - b) / p to the arm, with the b of the decision."""
    scalars, floats, tiers = state.scalars, state.floats, tiers_in(state)
    covered = int(scalars[COVERED])
    arms, lifts = state.ints[COVERED_ARMS], floats[BASELINE]
    own = 0.0
    for k in range(covered):
        if arms[k] == arm:
            own = lifts[k]
    spare, spare_arms = floats[SPARE], state.ints[SPARE_ARMS]
    lift_in_tiers(tiers, floats[ESTIMATES], arms, lifts, covered, spare, spare_arms)
    before = floats[ESTIMATES, arm]
    after = before + weight * (loss - own)
    floats[ESTIMATES, arm] = after
    if after != before:
        move_in_tiers(tiers, arm, before, after)
    surprise = loss - (START + scalars[RISE])
    if params.by_losses > 0.0:
        scalars[SPREAD] += MOST_SPREAD * surprise * surprise
    scalars[RISE] += params.lam * surprise
    refresh(params, state, tiers)


@compiled
def fill_exploration_law(alpha: float, state: State, law: Floats) -> None:
    """The exact law, which takes one pass over all arms."""
    q = surrogate_of(alpha, state, tiers_in(state))
    by_rank, arms = state.floats[SPARE], len(law)
    whole = 0.0
    for rank in range(arms):
        by_rank[rank] = surrogate_at(q, rank)
        whole += by_rank[rank]
    first = 0
    while first < arms:
        end, shared = first, 0.0
        while end < arms and value_at(q.ranked, end) == value_at(q.ranked, first):
            shared += by_rank[end]
            end += 1
        for rank in range(first, end):
            law[arm_at(q.ranked, rank)] = shared / (end - first) / whole
        first = end


LAYOUT = Layout(
    scalars=(
        *("scale", "eta", "envelope_sum", "eta_exploit", "rise", "spread", "strata", "covered"),
        *("slot_bits", "blocks", "renewed"),
    ),
    floats=(
        *("estimates", "spare", "rank_limit", "envelope", "baseline", "first_values"),
        *("values", "values_2", "values_3"),
    ),
    ints=(
        *("spare_arms", "covered_arms", "slots", "first_arms", "guide", "starts", "starts_2"),
        *("held", "held_2", "held_3"),
    ),
    learned=("estimates", "rise"),
)
FUNCTIONS = Functions(init, decide, update)
