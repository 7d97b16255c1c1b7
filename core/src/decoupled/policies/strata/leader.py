"""The perturbed leader for very many arms.

A round takes O(log K) draws and O(sqrt K) moves of memory.

Both arms have exactly the laws of FTPL. This version does not compute sum q, so it does not know
the propensity of the explored arm: a decision carries an unbiased estimate of its inverse. `FTPL`
runs it with one rate and no baselines, `CentredFTPL` with all of its options.
"""

import math
from typing import NamedTuple

import numpy as np

from ...base.arrays import Floats, Words
from ...kernels.dispatch import Functions
from ...kernels.jit import compiled
from ...kernels.order.tiers import (
    ROOM,
    Tiers,
    arm_at,
    fill_tiers,
    lift_in_tiers,
    move_in_tiers,
    slot_bits,
)
from ...kernels.random.sampling import pareto_leader
from ...kernels.random.stream import below
from ...kernels.state import ARMS, ROUND, Layout, State, vector
from ...kernels.surrogates import fill_limits
from .surrogate import (
    Surrogate,
    draw_rank,
    draw_sum,
    fill_envelope,
    ranks_above,
    shared_surrogate,
    tie_at,
)

START = 0.5  # initial value of the running mean of the losses: the middle of their range
INVERSE_VARIANCE = 4.0  # one over the largest variance of a loss, so a fair coin counts as a round

# Only the first ranks can have a baseline: most of the variance is there, and a round lifts all of
# them.
MOST_COVERED = 64

LAYOUT = Layout(
    scalars=(
        "scale",
        "eta",  # the rate of exploration
        "eta_exploit",
        "rise",  # of the running mean of the losses, above START
        "spread",
        "envelope_sum",
        "strata",
        "covered",
        "slot_bits",
        "blocks",
        "renewed",
    ),
    floats=(
        "estimates",
        "spare",
        "rank_limit",
        "envelope",
        "baseline",
        "first_values",
        *vector("values", ROOM),
    ),
    ints=(
        "spare_arms",
        "covered_arms",
        "slots",
        "first_arms",
        "guide",
        *vector("starts", 2),
        *vector("held", ROOM),
    ),
    learned=("estimates",),
)
S, R, N = LAYOUT.places()


class Params(NamedTuple):
    """The parameters of the compiled code. Those with a default are options of `CentredFTPL`."""

    alpha: float
    c: float
    is_sharing: bool  # tied arms share what their ranks allow
    exploit_ratio: float = 1.0
    is_centred: bool = False
    gate: float = 0.0
    mean_rate: float = 0.0
    has_schedule: bool = False  # the rates fall with the spread of the losses


@compiled
def tiers_in(state: State) -> Tiers:
    """The rows of the state as a tiered vector of the arms in rank order."""
    scalars = state.scalars
    floats = state.floats
    ints = state.ints
    arms = floats.shape[1]
    return Tiers(
        values=floats[R.values : R.values + ROOM].reshape(ROOM * arms),
        arms=ints[N.held : N.held + ROOM].reshape(ROOM * arms),
        slots=ints[N.slots],
        starts=ints[N.starts : N.starts + 2].reshape(2 * arms),
        first_values=floats[R.first_values],
        first_arms=ints[N.first_arms],
        guide=ints[N.guide],
        counts=scalars[S.blocks : S.blocks + 2],
        bits=int(scalars[S.slot_bits]),
        length=arms,
    )


@compiled
def surrogate_of(params: Params, state: State, tiers: Tiers) -> Surrogate:
    """The surrogates q at the current learning rate."""
    return Surrogate(
        ranked=tiers,
        limit=state.floats[R.rank_limit],
        lowest=tiers.first_values[0],
        eta=state.scalars[S.eta],
        exponent=0.5 * (params.alpha + 1.0),
        power=limit_power(params.alpha),
        is_sharing=params.is_sharing,
    )


@compiled
def limit_power(alpha: float) -> float:
    """The exponent of the rank limit: rank ** -power."""
    return (alpha + 1.0) / (2.0 * alpha)


@compiled
def refresh(params: Params, state: State) -> None:
    """Compute the rates, fill the envelope of q, and give baselines.

    The leader needs only the estimates.
    """
    scalars = state.scalars
    passed = 1.0 + scalars[S.spread] if params.has_schedule else scalars[ROUND]
    eta = scalars[S.scale] / math.sqrt(passed)
    scalars[S.eta] = eta
    scalars[S.eta_exploit] = eta * params.exploit_ratio
    q = surrogate_of(params, state, tiers_in(state))
    strata, mass = fill_envelope(q, state.floats[R.envelope])
    scalars[S.strata] = strata
    scalars[S.envelope_sum] = mass
    if params.is_centred:
        fill_baselines(params, state, params.gate * eta, START + scalars[S.rise])


@compiled
def fill_baselines(params: Params, state: State, least: float, mean: float) -> None:
    """Give the baseline `mean` to the first ranks whose q is large enough."""
    scalars = state.scalars
    tiers = tiers_in(state)
    # The envelope's sum is never below the sum that a decision draws. Using the drawn sum instead
    # would make the set of covered arms depend on the draw, and bias their estimates.
    bar = least * scalars[S.envelope_sum]
    q = surrogate_of(params, state, tiers)
    covered = ranks_above(q, bar, MOST_COVERED)
    scalars[S.covered] = covered
    for rank in range(covered):
        state.ints[N.covered_arms, rank] = arm_at(tiers, rank)
        state.floats[R.baseline, rank] = mean


@compiled
def init(params: Params, state: State) -> None:
    """Rank the arms, and tabulate rank ** (-(alpha + 1) / (2 alpha))."""
    floats = state.floats
    scalars = state.scalars
    fill_limits(floats, R.rank_limit, limit_power(params.alpha))
    scalars[S.slot_bits] = slot_bits(floats.shape[1])
    fill_tiers(floats[R.estimates], tiers_in(state))
    scalars[S.scale] = params.c * scalars[ARMS] ** (1.0 / params.alpha - 0.5)
    refresh(params, state)


@compiled
def decide(params: Params, state: State, stream: Words) -> tuple[int, int, float, float]:
    """Draw the perturbed leader, an arm from p = q / sum q, and an estimate of sum q."""
    scalars = state.scalars
    tiers = tiers_in(state)
    q = surrogate_of(params, state, tiers)
    envelope = state.floats[R.envelope, : int(scalars[S.strata])]
    leader = pareto_leader(tiers, scalars[S.eta_exploit], params.alpha, stream)
    rank = draw_rank(q, envelope, scalars[S.envelope_sum], stream)
    mass = draw_sum(q, envelope, stream)
    first, end = tie_at(q, rank)
    share = shared_surrogate(q, first, end)
    if end - first > 1:
        rank = first + below(end - first, stream)
    return arm_at(tiers, leader), arm_at(tiers, rank), mass / share, math.nan


@compiled
def update(params: Params, state: State, arm: int, weight: float, loss: float) -> None:
    """Add b to the covered arms, and (loss - b) / p to the explored arm.

    Each b is the baseline of the decision.
    """
    scalars = state.scalars
    floats = state.floats
    tiers = tiers_in(state)
    own = 0.0
    if params.is_centred:
        covered = int(scalars[S.covered])
        arms = state.ints[N.covered_arms]
        lifts = floats[R.baseline]
        for k in range(covered):
            if arms[k] == arm:
                own = lifts[k]
        spare_arms = state.ints[N.spare_arms]
        lift_in_tiers(tiers, floats[R.estimates], arms, lifts, covered, floats[R.spare], spare_arms)
    before = floats[R.estimates, arm]
    after = before + weight * (loss - own)
    floats[R.estimates, arm] = after
    if after != before:
        move_in_tiers(tiers, arm, before, after)
    surprise = loss - (START + scalars[S.rise])
    if params.has_schedule:
        scalars[S.spread] += INVERSE_VARIANCE * surprise * surprise
    scalars[S.rise] += params.mean_rate * surprise
    refresh(params, state)


FUNCTIONS = Functions(init, decide, update)


@compiled
def fill_exploration_law(params: Params, state: State, law: Floats) -> None:
    """Fill the exact law in one pass over all arms."""
    q = surrogate_of(params, state, tiers_in(state))
    end = 0
    mass = 0.0
    while end < len(law):
        first, end = tie_at(q, end)
        share = shared_surrogate(q, first, end)
        for rank in range(first, end):
            law[arm_at(q.ranked, rank)] = share
        mass += (end - first) * share
    for arm in range(len(law)):
        law[arm] /= mass


def exploration_law(params: Params, state: State) -> Floats:
    """The exact probability with which each arm is explored."""
    law = np.empty(state.floats.shape[1])
    fill_exploration_law(params, state, law)
    return law
