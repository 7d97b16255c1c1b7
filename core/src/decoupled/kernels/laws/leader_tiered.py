"""The perturbed leader for very many arms: a round takes O(log K) draws and O(sqrt K) moves of memory.

Both arms have exactly the laws of `leader`. This version does not compute sum q, so it does not know the propensity of
the explored arm: a decision carries an unbiased estimate of its inverse.
"""

import math
from typing import Any

from ...base.arrays import Floats, Words
from ..compose import ETA, ETA_EXPLOIT, OWN, Law, Rows, compose, params_type
from ..jit import compiled
from ..order.tier_lifts import lift_in_tiers
from ..order.tier_moves import move_in_tiers
from ..order.tiers import ROOM, Tiers, arm_at, fill_tiers, slot_bits
from ..random.sampling import pareto_leader
from ..random.stream import below
from ..state import ARMS, State
from .strata import Surrogate, draw_rank, draw_sum, fill_envelope, ranks_above, shared_surrogate, tie_at

ENVELOPE_SUM, STRATA, COVERED, BITS, BLOCKS = range(OWN, OWN + 5)
ESTIMATES, SPARE, RANK_LIMIT, ENVELOPE, BASELINE, FIRST_VALUES, VALUES = range(7)
SPARE_ARMS, COVERED_ARMS, SLOTS, FIRST_ARMS, GUIDE, STARTS, _, HELD = range(8)

# Only the first ranks can have a baseline: most of the variance is there, and a round lifts all of them.
MOST_COVERED = 64

Params = params_type(__name__, "alpha", "sharing")  # as in `leader`


@compiled
def tiers_in(state: State) -> Tiers:
    """The rows of the state as a tiered vector of the arms in rank order."""
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
def surrogate_of(alpha: float, sharing: float, state: State, tiers: Tiers) -> Surrogate:
    """The surrogates q at the current learning rate."""
    lowest, eta = tiers.first_values[0], state.scalars[ETA]
    exponent, power = 0.5 * (alpha + 1.0), limit_power(alpha)
    return Surrogate(tiers, state.floats[RANK_LIMIT], lowest, eta, exponent, power, sharing > 0.0)


@compiled
def limit_power(alpha: float) -> float:
    """The exponent of the rank limit: rank ** -power."""
    return (alpha + 1.0) / (2.0 * alpha)


@compiled
def init(params: Any, state: State) -> float:
    """Rank the arms and tabulate rank ** (-(alpha + 1) / (2 alpha))."""
    exponent = limit_power(params.alpha)
    if state.floats[RANK_LIMIT, 0] != 1.0:  # powers are slow, and these never change
        for k in range(state.floats.shape[1]):
            state.floats[RANK_LIMIT, k] = (k + 1.0) ** -exponent
    state.scalars[BITS] = slot_bits(state.floats.shape[1])
    fill_tiers(state.floats[ESTIMATES], tiers_in(state))
    scale: float = state.scalars[ARMS] ** (1.0 / params.alpha - 0.5)
    return scale


@compiled
def fill(params: Any, state: State, root: float, saved: bool) -> None:
    """Fill the envelope of q; the leader needs only the estimates."""
    q = surrogate_of(params.alpha, params.sharing, state, tiers_in(state))
    strata, whole = fill_envelope(q, state.floats[ENVELOPE])
    state.scalars[STRATA] = strata
    state.scalars[ENVELOPE_SUM] = whole


@compiled
def draw(params: Any, state: State, stream: Words) -> tuple[int, int, float, float]:
    """Draw the perturbed leader, an arm from p = q / sum q, and an independent estimate of sum q."""
    tiers = tiers_in(state)
    q = surrogate_of(params.alpha, params.sharing, state, tiers)
    envelope = state.floats[ENVELOPE, : int(state.scalars[STRATA])]
    exploit = pareto_leader(tiers, state.scalars[ETA_EXPLOIT], params.alpha, stream)
    rank = draw_rank(q, envelope, state.scalars[ENVELOPE_SUM], stream)
    whole = draw_sum(q, envelope, stream)
    first, end = tie_at(q, rank)
    share = shared_surrogate(q, first, end)
    if end - first > 1:
        rank = first + below(end - first, stream)
    return arm_at(tiers, exploit), arm_at(tiers, rank), whole / share, math.nan


@compiled
def learn(params: Any, state: State, arm: int, weight: float, loss: float) -> None:
    """Add b to the covered arms and (loss - b) / p to the explored arm, with the b of the decision."""
    floats, tiers, own = state.floats, tiers_in(state), 0.0
    if params.centred > 0.0:
        covered = int(state.scalars[COVERED])
        arms, lifts = state.ints[COVERED_ARMS], floats[BASELINE]
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


@compiled
def gate(params: Any, state: State, least: float, mean: float) -> None:
    """Give a baseline to the first ranks whose q is large enough."""
    scalars, tiers = state.scalars, tiers_in(state)
    # The envelope's sum is never below the sum that a decision draws. Using the drawn sum instead would make the set of
    # covered arms depend on the draw, and bias their estimates.
    bar = least * scalars[ENVELOPE_SUM]
    covered = ranks_above(surrogate_of(params.alpha, params.sharing, state, tiers), bar, MOST_COVERED)
    scalars[COVERED] = covered
    for rank in range(covered):
        state.ints[COVERED_ARMS, rank] = arm_at(tiers, rank)
        state.floats[BASELINE, rank] = mean


@compiled
def fill_exploration_law(alpha: float, sharing: float, state: State, law: Floats) -> None:
    """Fill the exact law in one pass over all arms."""
    q = surrogate_of(alpha, sharing, state, tiers_in(state))
    end, whole = 0, 0.0
    while end < len(law):
        first, end = tie_at(q, end)
        share = shared_surrogate(q, first, end)
        for rank in range(first, end):
            law[arm_at(q.ranked, rank)] = share
        whole += (end - first) * share
    for arm in range(len(law)):
        law[arm] /= whole


_FLOATS = "spare rank_limit envelope baseline first_values values values_2 values_3"
_INTS = "spare_arms covered_arms slots first_arms guide starts starts_2 held held_2 held_3"
ROWS = Rows(
    ("envelope_sum", "strata", "covered", "slot_bits", "blocks", "renewed"),
    tuple(_FLOATS.split()),
    tuple(_INTS.split()),
)
COMPOSED = compose(Law(ROWS, init, fill, draw, learn, gate), Params)
