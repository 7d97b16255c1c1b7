"""The perturbed leader: FTPL's two laws, with the arms kept in rank order."""

from typing import Any

from ...base.arrays import Words
from ..compose import ETA, ETA_EXPLOIT, OWN, Law, Rows, compose, params_type
from ..jit import compiled
from ..order.ranked import lift_arms, move_arm, sort_arms
from ..random.sampling import categorical, pareto_leader, total
from ..state import ARMS, State
from .surrogates import fill_limits, limited_surrogates

SURROGATE_SUM = OWN
ESTIMATES, RANKED, RANK_LIMIT, SURROGATE, BASELINE, SPARE = range(6)
ORDER, SPARE_ORDER = range(2)


# With `sorting` above 0 all arms are sorted each round; with `sharing` above 0 tied arms share what their ranks allow.
Params = params_type(__name__, "alpha", "sorting", "sharing")


@compiled
def init(params: Any, state: State) -> float:
    """Rank the arms and tabulate rank ** (-(alpha + 1) / (2 alpha))."""
    exponent = (params.alpha + 1.0) / (2.0 * params.alpha)
    fill_limits(state.floats, RANK_LIMIT, exponent)
    sort_arms(state.floats[ESTIMATES], state.floats[RANKED], state.ints[ORDER])
    scale: float = state.scalars[ARMS] ** (1.0 / params.alpha - 0.5)
    return scale


@compiled
def fill(params: Any, state: State, root: float, saved: bool) -> None:
    """Fill the surrogates q in rank order; the leader needs only the estimates."""
    floats, eta = state.floats, state.scalars[ETA]
    exponent = 0.5 * (params.alpha + 1.0)
    limited_surrogates(
        floats, RANK_LIMIT, floats[RANKED], eta, exponent, params.sharing, floats[SURROGATE]
    )
    state.scalars[SURROGATE_SUM] = total(floats[SURROGATE])


@compiled
def draw(params: Any, state: State, stream: Words) -> tuple[int, int, float, float]:
    """Draw the perturbed leader at its own rate, and an arm from p = q / sum q."""
    floats, mass = state.floats, state.scalars[SURROGATE_SUM]
    exploit = pareto_leader(floats[RANKED], state.scalars[ETA_EXPLOIT], params.alpha, stream)
    explore = categorical(floats[SURROGATE], mass, stream)
    share = floats[SURROGATE, explore]
    return state.ints[ORDER, exploit], state.ints[ORDER, explore], mass / share, share / mass


@compiled
def learn(params: Any, state: State, arm: int, weight: float, loss: float) -> None:
    """Add the loss estimate and restore the rank order."""
    # The paper's section 4.1 names the rank of i_t; the arm whose estimate moves is j_t.
    floats, order = state.floats, state.ints[ORDER]
    before = floats[ESTIMATES, arm]
    if params.centred > 0.0:
        after = before + weight * (loss - floats[BASELINE, arm])
    else:
        after = before + weight * loss
    floats[ESTIMATES, arm] = after
    if params.sorting > 0.0:
        if params.centred > 0.0:
            for i in range(floats.shape[1]):
                floats[ESTIMATES, i] += floats[BASELINE, i]
        sort_arms(floats[ESTIMATES], floats[RANKED], order)
        return
    if after != before:  # a loss of zero moves nothing
        move_arm(floats[RANKED], order, arm, before, after)
    if params.centred > 0.0:
        estimates, lifts, spare = floats[ESTIMATES], floats[BASELINE], floats[SPARE]
        lift_arms(estimates, lifts, floats[RANKED], order, spare, state.ints[SPARE_ORDER])


@compiled
def gate(params: Any, state: State, least: float, mean: float) -> None:
    """Give a baseline to every arm whose p is large enough."""
    floats, order = state.floats, state.ints[ORDER]
    bar = least * state.scalars[SURROGATE_SUM]
    for k in range(len(order)):
        floats[BASELINE, order[k]] = mean if floats[SURROGATE, k] >= bar else 0.0


ROWS = Rows(
    scalars=("surrogate_sum",),
    floats=("ranked", "rank_limit", "surrogate"),
    ints=("order",),
    more_floats=("baseline", "spare"),
    more_ints=("spare_order",),
)
COMPOSED = compose(Law(ROWS, init, fill, draw, learn, gate), Params)
