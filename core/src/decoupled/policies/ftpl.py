"""FTPL: the paper's policy, which needs no convex optimisation and no resampling.

The functions of this file keep all arms in one rank order. With thousands of arms, those of
`strata` take over.
"""

import math
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, NamedTuple, Self

import numpy as np

from ..base.arrays import Floats, Words
from ..base.validation import one_of, set_number
from ..kernels.dispatch import Functions
from ..kernels.jit import compiled
from ..kernels.order.ranked import move_arm, restore_order, sort_arms
from ..kernels.random.keyed import Keyed, keyed_leader
from ..kernels.random.sampling import categorical, pareto_leader, total
from ..kernels.state import ARMS, ROUND, Layout, State
from ..kernels.surrogates import fill_limits, limited_surrogates
from ..kernels.winner_law import pareto_winner_law
from . import strata
from .base import Policy

RANKINGS = ("auto", "improved", "sorting", "strata")

# The number of arms from which ranking "auto" uses strata. They are faster but do not know their
# propensities.
MANY_ARMS = 1_024

LAYOUT = Layout(
    scalars=("scale", "eta", "surrogate_sum"),
    floats=("estimates", "ranked", "rank_limit", "surrogate"),
    ints=("order",),
    learned=("estimates",),
)
S, R, N = LAYOUT.places()


class Params(NamedTuple):
    """The parameters of the compiled code."""

    alpha: float
    c: float
    is_sorting: bool  # all arms each round
    is_sharing: bool  # tied arms share what their ranks allow


@compiled
def refresh(params: Params, state: State) -> None:
    """Compute eta_t = c K^(1/alpha - 1/2) / sqrt(t), then q_t of (7) in rank order, and its sum."""
    floats = state.floats
    scalars = state.scalars
    eta = scalars[S.scale] / math.sqrt(scalars[ROUND])
    exponent = 0.5 * (params.alpha + 1.0)
    ranked = floats[R.ranked]
    surrogate = floats[R.surrogate]
    limited_surrogates(floats, R.rank_limit, ranked, eta, exponent, params.is_sharing, surrogate)
    scalars[S.eta] = eta
    scalars[S.surrogate_sum] = total(surrogate)


@compiled
def init(params: Params, state: State) -> None:
    """Rank the arms, and tabulate sigma ** (-(alpha + 1) / (2 alpha)), the rank's part of (7)."""
    floats = state.floats
    fill_limits(floats, R.rank_limit, (params.alpha + 1.0) / (2.0 * params.alpha))
    restore_order(floats[R.estimates], floats[R.ranked], state.ints[N.order])
    state.scalars[S.scale] = params.c * state.scalars[ARMS] ** (1.0 / params.alpha - 0.5)
    refresh(params, state)


@compiled
def decide(params: Params, state: State, stream: Words) -> tuple[int, int, float, float]:
    """Draw i_t of equation (5) and j_t ~ p_t = q_t / sum q_t: lines 4 to 6 of algorithm 1."""
    floats = state.floats
    order = state.ints[N.order]
    q_sum = state.scalars[S.surrogate_sum]
    exploited_rank = pareto_leader(floats[R.ranked], state.scalars[S.eta], params.alpha, stream)
    explored_rank = categorical(floats[R.surrogate], q_sum, stream)
    q = floats[R.surrogate, explored_rank]
    propensity = q / q_sum
    return order[exploited_rank], order[explored_rank], q_sum / q, propensity


@compiled
def update(params: Params, state: State, arm: int, weight: float, loss: float) -> None:
    """Add loss / p_t to the estimate of j_t: line 7 of algorithm 1. Then restore the rank order."""
    # Section 4.1 writes i_t here, but the estimate that moves is that of the explored arm j_t. All
    # other ranks change by at most one.
    floats = state.floats
    order = state.ints[N.order]
    before = floats[R.estimates, arm]
    after = before + weight * loss
    floats[R.estimates, arm] = after
    if params.is_sorting:
        sort_arms(floats[R.estimates], floats[R.ranked], order)
    elif after != before:  # a loss of zero moves nothing
        move_arm(floats[R.ranked], order, arm, before, after)
    refresh(params, state)


@dataclass(frozen=True, repr=False)
class FTPL(Policy):
    r"""Follow the perturbed leader, with exploration from surrogate probabilities.

    With $\hat L$ the summed loss estimates, $u_i = \hat L_i - \min_k \hat L_k$, $\sigma_i$ the rank
    of arm $i$ (1 for the smallest estimate) and $\eta_t = c K^{1/\alpha - 1/2} / \sqrt{t}$, each
    round

    - exploits $i_t = \arg\min_i (u_i - r_i / \eta_t)$, with $r_i$ independent Pareto($\alpha$) on
      $[1, \infty)$;
    - explores $j_t \sim p$, with $p_i \propto q_i = \min(1 / (1 + \eta_t u_i),
      \sigma_i^{-1/\alpha})^{(\alpha + 1) / 2}$;
    - learns $\hat L_{j_t} \leftarrow \hat L_{j_t} + \ell / p_{j_t}$, where $\ell$ is the loss seen.

    For $\alpha > 1$, expected regret against each fixed arm is $O(\sqrt{KT})$ for any adversary
    (theorem 3.1). For $\alpha \in (2, 3]$, it is constant in $T$ in the stochastically constrained
    regime (theorem 3.2).

    Kim, C., Lee, J. and Oh, M. (2026). Follow-the-perturbed-leader for decoupled bandits:
    best-of-both-worlds and practicality. ICML. Equations (5) to (7), algorithm 1.

    `CentredFTPL` is the same with centred losses and two rates, and `Ladder` is our policy
    (docs/beyond.md).

    Args:
        alpha: shape of the Pareto perturbations, above 1 (and below 1e9, where they are nearly
            constant).
        c: scale of the learning rate, above 0.
        ranking: how the arms are kept in rank order; every ranking draws from the same two laws.
            "sorting" sorts all arms each round (algorithm 1); "improved" moves the one arm whose
            estimate changed (section 4.1), and makes the same decisions. "strata" is ours, for
            thousands of arms or more: it looks at about $\log K$ of them, and its `propensity` is
            None, because $\sum q$ is known only as an unbiased estimate. "auto" is "strata" from
            1,024 arms on, and "improved" below.
        ties: how arms with equal estimates are ranked. "shared": each has the mean $q$ of their
            ranks, so all are explored equally often, and the theorems still hold. "numbered": the
            lower number comes first.

    >>> import decoupled as dc
    >>> learner = dc.FTPL(alpha=3.0, c=2.0).start(arms=4, seed=1)
    >>> for _ in range(100):
    ...     decision = learner.decide()
    ...     learner.observe(decision, loss=0.2 if decision.explore == 3 else 0.8)
    >>> learner.exploitation_probabilities().round(2).tolist()
    [0.01, 0.0, 0.0, 0.99]

    With a million arms, a round takes a few microseconds:

    >>> learner = dc.FTPL(ranking="strata").start(arms=1_000_000, seed=1)
    >>> decision = learner.decide()
    >>> learner.observe(decision, loss=1.0)
    >>> decision.propensity is None, bool(learner.estimates()[decision.explore] == decision.weight)
    (True, True)
    """

    alpha: float = 3.0
    c: float = 2.0
    ranking: str = "auto"
    ties: str = "shared"

    keyed_in_place = True

    def __post_init__(self) -> None:
        set_number(self, "alpha", 1.0, 1e9, "the default is 3")
        set_number(self, "c", 0.0, 1e100, "the default is 2")
        one_of("ranking", self.ranking, RANKINGS)
        one_of("ties", self.ties, ("shared", "numbered"))

    def __repr__(self) -> str:
        return self._short_repr(("alpha", "c", "ranking"))

    @classmethod
    def examples(cls) -> tuple[Self, ...]:
        return (
            cls(),
            cls(ranking="sorting"),
            cls(alpha=2.0, c=1.0, ranking="improved"),
            cls(alpha=1.3, ranking="improved"),
            cls(alpha=6.0, c=3.0, ranking="sorting"),
            cls(ranking="strata"),
            cls(alpha=1.3, ranking="strata"),
        )

    @classmethod
    def forms(cls) -> tuple[Self, ...]:
        return cls(), cls(ranking="strata")

    def at(self, arms: int) -> "FTPL":
        if self.ranking != "auto":
            return self
        return _ranked(self, "strata" if arms >= MANY_ARMS else "improved")

    @property
    def layout(self) -> Layout:
        return strata.LAYOUT if self.ranking == "strata" else LAYOUT

    @property
    def params_type(self) -> Any:
        return strata.Params if self.ranking == "strata" else Params

    @property
    def functions(self) -> Functions:
        return strata.FUNCTIONS if self.ranking == "strata" else FUNCTIONS

    def params(self) -> Any:
        is_sharing = self.ties == "shared"
        if self.ranking == "strata":
            return strata.Params(alpha=self.alpha, c=self.c, is_sharing=is_sharing)
        return Params(
            alpha=self.alpha,
            c=self.c,
            is_sorting=self.ranking == "sorting",
            is_sharing=is_sharing,
        )

    def exploitation_law(self, state: State) -> Floats:
        """The law w_t of equation (6), by numerical integration."""
        estimates = self.layout.row(state, "estimates")
        eta = float(self._exploitation_rate(state)[0])
        return pareto_winner_law(eta * (estimates - estimates.min()), self.alpha)

    def exploration_law(self, state: State) -> Floats:
        """The law p_t of equation (7), by arm."""
        if self.ranking == "strata":
            return strata.exploration_law(self.params(), state)
        law = np.empty(state.floats.shape[1])
        law[state.ints[N.order]] = state.floats[R.surrogate] / state.scalars[S.surrogate_sum]
        return law

    def keyed(self, state: State) -> Keyed:
        estimates = self.layout.row(state, "estimates")
        return Keyed(keyed_leader, (estimates, self._exploitation_rate(state), self.alpha))

    def _exploitation_rate(self, state: State) -> Floats:
        """A view of the rate at which the leader is perturbed."""
        name = "eta_exploit" if self.ranking == "strata" else "eta"
        rate: Floats = self.layout.row(state, name)
        return rate


FUNCTIONS = Functions(init, decide, update)


@lru_cache(maxsize=64)  # every decision among some arms needs it, and checking takes time
def _ranked(policy: FTPL, ranking: str) -> FTPL:
    """The same policy with another ranking."""
    return replace(policy, ranking=ranking)
