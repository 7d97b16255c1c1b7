"""The compiled functions of `CentredFTPL`, for arms in one rank order."""

import math
from typing import NamedTuple

from ...base.arrays import Words
from ...kernels.dispatch import Functions
from ...kernels.jit import compiled
from ...kernels.order.ranked import lift_arms, move_arm, restore_order, sort_arms
from ...kernels.random.sampling import categorical, pareto_leader, total
from ...kernels.state import ARMS, ROUND, Layout, State
from ...kernels.surrogates import fill_limits, limited_surrogates

START = 0.5  # initial value of the running mean of the losses: the middle of their range
INVERSE_VARIANCE = 4.0  # one over the largest variance of a loss, so a fair coin counts as a round

LAYOUT = Layout(
    scalars=(
        "scale",
        "eta",  # the rate of exploration
        "eta_exploit",
        "rise",  # of the running mean of the losses, above START
        "spread",
        "surrogate_sum",
    ),
    floats=("estimates", "ranked", "rank_limit", "surrogate", "baseline", "spare"),
    ints=("order", "spare_order"),
    learned=("estimates", "rise"),
)
S, R, N = LAYOUT.places()


class Params(NamedTuple):
    """The parameters of the compiled code."""

    alpha: float
    c: float
    is_sorting: bool  # all arms each round
    is_sharing: bool  # tied arms share what their ranks allow
    exploit_ratio: float
    gate: float
    mean_rate: float
    has_schedule: bool  # the rates fall with the spread of the losses, not with the rounds


@compiled
def refresh(params: Params, state: State) -> None:
    """Compute both rates, the surrogates q in rank order, and the baselines of arms in the gate."""
    floats = state.floats
    scalars = state.scalars
    order = state.ints[N.order]
    passed = 1.0 + scalars[S.spread] if params.has_schedule else scalars[ROUND]
    eta = scalars[S.scale] / math.sqrt(passed)
    scalars[S.eta] = eta
    scalars[S.eta_exploit] = eta * params.exploit_ratio
    exponent = 0.5 * (params.alpha + 1.0)
    ranked = floats[R.ranked]
    surrogate = floats[R.surrogate]
    limited_surrogates(floats, R.rank_limit, ranked, eta, exponent, params.is_sharing, surrogate)
    scalars[S.surrogate_sum] = total(surrogate)
    mean = START + scalars[S.rise]
    least = params.gate * eta * scalars[S.surrogate_sum]
    for k in range(len(order)):
        floats[R.baseline, order[k]] = mean if surrogate[k] >= least else 0.0


@compiled
def init(params: Params, state: State) -> None:
    """Rank the arms, and tabulate rank ** (-(alpha + 1) / (2 alpha))."""
    floats = state.floats
    fill_limits(floats, R.rank_limit, (params.alpha + 1.0) / (2.0 * params.alpha))
    restore_order(floats[R.estimates], floats[R.ranked], state.ints[N.order])
    state.scalars[S.scale] = params.c * state.scalars[ARMS] ** (1.0 / params.alpha - 0.5)
    refresh(params, state)


@compiled
def decide(params: Params, state: State, stream: Words) -> tuple[int, int, float, float]:
    """Draw the perturbed leader at its own rate, and an arm from p = q / sum q."""
    floats = state.floats
    order = state.ints[N.order]
    q_sum = state.scalars[S.surrogate_sum]
    leader = pareto_leader(floats[R.ranked], state.scalars[S.eta_exploit], params.alpha, stream)
    rank = categorical(floats[R.surrogate], q_sum, stream)
    q = floats[R.surrogate, rank]
    propensity = q / q_sum
    return order[leader], order[rank], q_sum / q, propensity


@compiled
def update(params: Params, state: State, arm: int, weight: float, loss: float) -> None:
    """Add (loss - b) / p to the arm and b to all arms, and move the running mean and the spread."""
    scalars = state.scalars
    add_losses(params, state, arm, weight, loss)
    surprise = loss - (START + scalars[S.rise])
    if params.has_schedule:
        scalars[S.spread] += INVERSE_VARIANCE * surprise * surprise
    scalars[S.rise] += params.mean_rate * surprise
    refresh(params, state)


@compiled
def add_losses(params: Params, state: State, arm: int, weight: float, loss: float) -> None:
    """Add the centred loss estimates and restore the rank order."""
    floats = state.floats
    order = state.ints[N.order]
    estimates = floats[R.estimates]
    baseline = floats[R.baseline]
    before = estimates[arm]
    after = before + weight * (loss - baseline[arm])
    estimates[arm] = after
    if params.is_sorting:
        for i in range(len(estimates)):
            estimates[i] += baseline[i]
        sort_arms(estimates, floats[R.ranked], order)
        return
    if after != before:
        move_arm(floats[R.ranked], order, arm, before, after)
    spare_order = state.ints[N.spare_order]
    lift_arms(estimates, baseline, floats[R.ranked], order, floats[R.spare], spare_order)


FUNCTIONS = Functions(init, decide, update)
