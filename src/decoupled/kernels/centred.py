"""The perturbed leader beyond the paper: centred losses, and a rate of its own for each of the two arms.

The published form is with its policy, and is not slowed down by this one.
"""

import math
from typing import NamedTuple

from ..arrays import Words
from .centring import START
from .compiled import compiled
from .dispatch import Functions
from .lifting import lift_arms
from .rank_limits import fill_limits, limited_surrogates
from .ranking import move_arm, sort_arms
from .sampling import categorical, pareto_leader, total
from .state import ARMS, ROUND, SHARED_SCALARS, Layout, State

SCALE, ETA, SURROGATE_SUM, ETA_EXPLOIT, RISE, SPREAD = range(len(SHARED_SCALARS), len(SHARED_SCALARS) + 6)
ESTIMATES, RANKED, RANK_LIMIT, SURROGATE, BASELINE, SPARE = range(6)
ORDER, SPARE_ORDER = range(2)

MOST_SPREAD = 4.0  # one over the largest variance of a loss: a fair coin's loss counts as a whole round


class Params(NamedTuple):
    """The parameters as compiled code takes them."""

    alpha: float
    c: float
    sorting: float
    c_exploit: float
    kappa: float  # infinite where nothing is centred: no arm passes the gate
    lam: float
    by_losses: float  # above 0 where the losses set the pace of the rates, and not the rounds


@compiled
def refresh(params: Params, state: State) -> None:
    """Compute both rates, the surrogates q in rank order, and every arm's baseline."""
    scalars, floats, order = state.scalars, state.floats, state.ints[ORDER]
    passed = 1.0 + scalars[SPREAD] if params.by_losses > 0.0 else scalars[ROUND]
    root = scalars[SCALE] / math.sqrt(passed)
    eta = params.c * root
    scalars[ETA] = eta
    scalars[ETA_EXPLOIT] = params.c_exploit * root
    exponent = 0.5 * (params.alpha + 1.0)
    limited_surrogates(floats, RANK_LIMIT, floats[RANKED], eta, exponent, floats[SURROGATE])
    mass = total(floats[SURROGATE])
    scalars[SURROGATE_SUM] = mass
    mean, least = START + scalars[RISE], params.kappa * eta * mass
    for k in range(len(order)):
        floats[BASELINE, order[k]] = mean if floats[SURROGATE, k] >= least else 0.0


@compiled
def init(params: Params, state: State) -> None:
    """Rank the arms and tabulate rank ** (-(alpha + 1) / (2 alpha))."""
    state.scalars[SCALE] = state.scalars[ARMS] ** (1.0 / params.alpha - 0.5)
    exponent = (params.alpha + 1.0) / (2.0 * params.alpha)
    fill_limits(state.floats, RANK_LIMIT, exponent)
    sort_arms(state.floats[ESTIMATES], state.floats[RANKED], state.ints[ORDER])
    refresh(params, state)


@compiled
def decide(params: Params, state: State, stream: Words) -> tuple[int, int, float, float]:
    """The perturbed leader at its own rate, and an arm drawn from p = q / sum q."""
    scalars, floats = state.scalars, state.floats
    mass = scalars[SURROGATE_SUM]
    exploit = pareto_leader(floats[RANKED], scalars[ETA_EXPLOIT], params.alpha, stream)
    explore = categorical(floats[SURROGATE], mass, stream)
    share = floats[SURROGATE, explore]
    return state.ints[ORDER, exploit], state.ints[ORDER, explore], mass / share, share / mass


@compiled
def update(params: Params, state: State, arm: int, weight: float, loss: float) -> None:
    """Add (loss - b) / p to the arm and b to all, with the b of the decision, and restore the order."""
    floats, order = state.floats, state.ints[ORDER]
    before = floats[ESTIMATES, arm]
    after = before + weight * (loss - floats[BASELINE, arm])
    if params.sorting > 0.0:
        floats[ESTIMATES, arm] = after
        for i in range(floats.shape[1]):
            floats[ESTIMATES, i] += floats[BASELINE, i]
        sort_arms(floats[ESTIMATES], floats[RANKED], order)
    else:
        if after != before:
            move_arm(floats[RANKED], order, arm, before, after)
        lift_arms(
            floats[ESTIMATES],
            floats[BASELINE],
            floats[RANKED],
            order,
            floats[SPARE],
            state.ints[SPARE_ORDER],
        )
    surprise = loss - (START + state.scalars[RISE])
    if params.by_losses > 0.0:
        state.scalars[SPREAD] += MOST_SPREAD * surprise * surprise
    state.scalars[RISE] += params.lam * surprise
    refresh(params, state)


LAYOUT = Layout(
    scalars=("scale", "eta", "surrogate_sum", "eta_exploit", "rise", "spread"),
    floats=("estimates", "ranked", "rank_limit", "surrogate", "baseline", "spare"),
    ints=("order", "spare_order"),
    learned=("estimates", "rise"),
)
FUNCTIONS = Functions(init, decide, update)
