"""FTPL: the paper's policy. No convex optimisation, no resampling."""

import math
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, cast

import numpy as np

from ..arrays import Floats, Words
from ..checks import number_in, one_of
from ..kernels.compiled import compiled
from ..kernels.dispatch import Functions
from ..kernels.powers import inverse_power
from ..kernels.ranking import move_arm, sort_arms
from ..kernels.sampling import categorical, pareto_leader, total
from ..kernels.state import ARMS, ROUND, SHARED_SCALARS, Layout, State
from ..kernels.weights import pareto_winner_law
from . import ftpl_strata
from .base import Policy
from .ftpl_strata import decide_strata, fill_exploration_law, init_strata, update_strata

SCALE, ETA, SURROGATE_SUM = range(len(SHARED_SCALARS), len(SHARED_SCALARS) + 3)
ESTIMATES, RANKED, RANK_LIMIT, SURROGATE = range(4)
ORDER = 0
MANY_ARMS = 512  # strata are faster from about 350 on, the dense round knows its propensities


class Params(NamedTuple):
    """The parameters as compiled code takes them."""

    alpha: float
    c: float
    sorting: float


@compiled
def refresh(params: Params, state: State) -> None:
    """Compute eta_t and the surrogates q in rank order; they stay until the next observation."""
    scalars = state.scalars
    eta = scalars[SCALE] / math.sqrt(scalars[ROUND])
    scalars[ETA] = eta
    floats = state.floats
    exponent = 0.5 * (params.alpha + 1.0)
    surrogates(floats[RANKED], floats[RANK_LIMIT], eta, exponent, floats[SURROGATE])
    scalars[SURROGATE_SUM] = total(floats[SURROGATE])


@compiled
def surrogates(ranked: Floats, limit: Floats, eta: float, exponent: float, out: Floats) -> None:
    """Q in rank order: (1 + eta * gap) ** -exponent, and no more than the rank allows."""
    lowest = ranked[0]
    done = 0
    if exponent == 2.0:
        # Divisions are the cost of a round with many arms, and one serves two: 1/x = y * (1 / (x * y)).
        # At 256 arms it makes a round a fifth faster.
        half = len(ranked) // 2
        for k in range(half):
            x = 1.0 + eta * (ranked[k] - lowest)
            y = 1.0 + eta * (ranked[k + half] - lowest)
            both = 1.0 / (x * y)
            out[k] = min((y * both) * (y * both), limit[k])
            out[k + half] = min((x * both) * (x * both), limit[k + half])
        done = 2 * half
    for k in range(done, len(ranked)):
        out[k] = min(inverse_power(eta * (ranked[k] - lowest), exponent), limit[k])


@compiled
def init(params: Params, state: State) -> None:
    """Rank the arms and tabulate rank ** (-(alpha + 1) / (2 alpha))."""
    state.scalars[SCALE] = params.c * state.scalars[ARMS] ** (1.0 / params.alpha - 0.5)
    exponent = (params.alpha + 1.0) / (2.0 * params.alpha)
    if state.floats[RANK_LIMIT, 0] != 1.0:  # powers are dear, and these stay as they are
        for k in range(state.floats.shape[1]):
            state.floats[RANK_LIMIT, k] = (k + 1.0) ** -exponent
    sort_arms(state.floats[ESTIMATES], state.floats[RANKED], state.ints[ORDER])
    refresh(params, state)


@compiled
def decide(params: Params, state: State, stream: Words) -> tuple[int, int, float, float]:
    """The perturbed leader, and an arm drawn from p = q / sum q."""
    eta, mass = state.scalars[ETA], state.scalars[SURROGATE_SUM]
    exploit = pareto_leader(state.floats[RANKED], eta, params.alpha, stream)
    explore = categorical(state.floats[SURROGATE], mass, stream)
    share = state.floats[SURROGATE, explore]
    return state.ints[ORDER, exploit], state.ints[ORDER, explore], mass / share, share / mass


@compiled
def update(params: Params, state: State, arm: int, weight: float, loss: float) -> None:
    """Add the importance-weighted loss to the explored arm's estimate and restore the rank order."""
    # The paper's section 4.1 speaks of the rank of i_t; the arm whose estimate moves is j_t.
    before = state.floats[ESTIMATES, arm]
    after = before + weight * loss
    state.floats[ESTIMATES, arm] = after
    if params.sorting > 0.0:
        sort_arms(state.floats[ESTIMATES], state.floats[RANKED], state.ints[ORDER])
    elif after != before:  # a loss of zero moves nothing
        move_arm(state.floats[RANKED], state.ints[ORDER], arm, before, after)
    refresh(params, state)


class AutoParams(NamedTuple):
    """The parameters where the number of arms chooses the round."""

    alpha: float
    c: float


@compiled
def init_auto(params: AutoParams, state: State) -> None:
    """As the faster round does."""
    if state.floats.shape[1] < MANY_ARMS:
        init(Params(params.alpha, params.c, 0.0), state)
    else:
        init_strata(params.alpha, params.c, state)


@compiled
def decide_auto(params: AutoParams, state: State, stream: Words) -> tuple[int, int, float, float]:
    """As the faster round does."""
    if state.floats.shape[1] < MANY_ARMS:
        return decide(Params(params.alpha, params.c, 0.0), state, stream)
    return decide_strata(params.alpha, state, stream)


@compiled
def update_auto(params: AutoParams, state: State, arm: int, weight: float, loss: float) -> None:
    """As the faster round does."""
    if state.floats.shape[1] < MANY_ARMS:
        update(Params(params.alpha, params.c, 0.0), state, arm, weight, loss)
    else:
        update_strata(params.alpha, state, arm, weight, loss)


class _Form(NamedTuple):
    """A state, and the functions over it."""

    layout: Layout
    params_type: type
    functions: Functions


_DENSE = _Form(
    Layout(
        scalars=("scale", "eta", "surrogate_sum"),
        floats=("estimates", "ranked", "rank_limit", "surrogate"),
        ints=("order",),
        learned=("estimates",),
    ),
    Params,
    Functions(init, decide, update),
)
_FORMS = {
    "improved": _DENSE,
    "sorting": _DENSE,
    "strata": _Form(ftpl_strata.LAYOUT, ftpl_strata.Params, ftpl_strata.FUNCTIONS),
    # The rows of the dense round, and what strata have beyond them.
    "auto": _Form(
        _DENSE.layout._replace(scalars=(*_DENSE.layout.scalars, "strata"), ints=("order", "heads")),
        AutoParams,
        Functions(init_auto, decide_auto, update_auto),
    ),
}


class _OfRanking:
    """An attribute of the class that each policy has according to its ranking."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __get__(self, policy: "FTPL | None", owner: type) -> Any:
        return getattr(_FORMS["improved" if policy is None else policy.ranking], self.name)


@dataclass(frozen=True)
class FTPL(Policy):
    """Follow the perturbed leader, with exploration from surrogate probabilities.

    With hat_L the summed loss estimates, u = hat_L - min(hat_L), rank 1 for the smallest hat_L, and
    eta_t = c * K ** (1/alpha - 1/2) / sqrt(t), each round

    - exploits  i_t = argmin_i (u_i - r_i / eta_t), r_i independent Pareto(alpha) on [1, inf);
    - explores  j_t ~ p_i proportional to q_i = min(1 / (1 + eta_t * u_i), rank_i ** (-1/alpha)) ** ((alpha + 1) / 2);
    - learns    hat_L[j_t] += loss / p_{j_t}.

    Regret is O(sqrt(K T)) against any adversary for alpha > 1, and constant in T in the stochastically
    constrained regime for alpha in (2, 3] (theorems 3.1 and 3.2).

    Kim, C., Lee, J. and Oh, M. (2026). Follow-the-perturbed-leader for decoupled bandits:
    best-of-both-worlds and practicality. ICML. Equations (5) to (7), algorithm 1.

    Args:
        alpha: shape of the Pareto perturbations, above 1 (and below 1e9, where they are all but constant).
        c: scale of the learning rate, above 0.
        ranking: how ranks are kept. "improved" moves the one arm whose estimate changed, "sorting"
            sorts all arms each round. Both make the same decisions from the same seed, in O(K) a round.
            "strata" looks at about log K arms and moves O(sqrt K) memory: for thousands of arms and
            more. It draws both arms with the same laws. Of sum q it knows only an unbiased estimate, at
            most 1.5 times too large and drawn apart from j_t, so `weight` is an unbiased 1 / p and
            `propensity` is None; estimates stay unbiased, with second moments within 1.5 times those of
            the paper. "auto" is "improved" below 512 arms and "strata" from there on.

    >>> import decoupled as dc
    >>> learner = dc.FTPL(alpha=3.0, c=2.0).start(arms=4, seed=1)
    >>> for _ in range(100):
    ...     decision = learner.decide()
    ...     learner.observe(decision, loss=0.2 if decision.explore == 3 else 0.8)
    >>> learner.exploitation_probabilities().round(2).tolist()
    [0.01, 0.0, 0.0, 0.99]

    A million arms, and rounds of some microseconds:

    >>> learner = dc.FTPL(ranking="strata").start(arms=1_000_000, seed=1)
    >>> decision = learner.decide()
    >>> learner.observe(decision, loss=1.0)
    >>> decision.propensity is None, bool(learner.estimates()[decision.explore] == decision.weight)
    (True, True)
    """

    alpha: float = 3.0
    c: float = 2.0
    ranking: str = "improved"

    layout: ClassVar[Layout] = cast(Any, _OfRanking("layout"))
    params_type: ClassVar[Any] = _OfRanking("params_type")
    functions: ClassVar[Functions] = cast(Any, _OfRanking("functions"))

    def __post_init__(self) -> None:
        alpha = number_in("alpha", self.alpha, 1.0, 1e9, "the default is 3")
        object.__setattr__(self, "alpha", alpha)
        object.__setattr__(self, "c", number_in("c", self.c, 0.0, 1e100, "the default is 2"))
        one_of("ranking", self.ranking, tuple(_FORMS))

    def params(self) -> Params | ftpl_strata.Params | AutoParams:
        if self.params_type is Params:
            return Params(self.alpha, self.c, float(self.ranking == "sorting"))
        kind: type[ftpl_strata.Params | AutoParams] = self.params_type
        return kind(self.alpha, self.c)

    def exploitation_law(self, state: State) -> Floats:
        estimates = state.floats[ESTIMATES]
        shifts = state.scalars[ETA] * (estimates - estimates.min())
        return pareto_winner_law(shifts, self.alpha)

    def exploration_law(self, state: State) -> Floats:
        law = np.empty(state.floats.shape[1])
        if self.ranking == "strata" or (self.ranking == "auto" and len(law) >= MANY_ARMS):
            fill_exploration_law(self.alpha, state, law)
            return law
        law[state.ints[ORDER]] = state.floats[SURROGATE] / state.scalars[SURROGATE_SUM]
        return law
