"""FTPL: the paper's policy. No convex optimisation, no resampling."""

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Self

import numpy as np

from ..base.arrays import Floats, Ints
from ..base.validation import one_of, set_number
from ..kernels.compose import Composed
from ..kernels.laws import leader, leader_tiered
from ..kernels.laws.leader_tiered import BASELINE, COVERED, COVERED_ARMS, fill_exploration_law
from ..kernels.laws.winner_law import pareto_winner_law
from ..kernels.random.keyed import Keyed, keyed_leader
from ..kernels.state import State
from .base import Policy
from .composed import BRANCHING, ComposedPolicy

RANKINGS = ("improved", "sorting", "strata", "auto")

# The number of arms from which ranking "auto" uses strata. Strata are faster but do not know their propensities. With
# centred losses they give a baseline to the first 64 ranks only, which costs regret with a thousand arms or more, so
# "auto" changes only where the dense round takes ten times as long.
MANY_ARMS = 1_024
MANY_CENTRED = 4_096


@dataclass(frozen=True, repr=False)
class FTPL(ComposedPolicy):
    r"""Follow the perturbed leader, with exploration from surrogate probabilities.

    With $\hat L$ the summed loss estimates, $u_i = \hat L_i - \min_k \hat L_k$, $\sigma_i$ the rank of arm $i$ (1 for the
    smallest estimate) and $\eta_t = c K^{1/\alpha - 1/2} / \sqrt{t}$, each round

    - exploits $i_t = \arg\min_i (u_i - r_i / \eta_t)$, with $r_i$ independent Pareto($\alpha$) on $[1, \infty)$;
    - explores $j_t \sim p$, with $p_i \propto q_i = \min(1 / (1 + \eta_t u_i), \sigma_i^{-1/\alpha})^{(\alpha + 1) / 2}$;
    - learns $\hat L_{j_t} \leftarrow \hat L_{j_t} + \ell / p_{j_t}$, where $\ell$ is the loss seen.

    For $\alpha > 1$, expected regret against each fixed arm is $O(\sqrt{KT})$ for any adversary (theorem 3.1). For $\alpha \in (2, 3]$, it is constant
    in $T$ in the stochastically constrained regime (theorem 3.2).

    Kim, C., Lee, J. and Oh, M. (2026). Follow-the-perturbed-leader for decoupled bandits: best-of-both-worlds and
    practicality. ICML. Equations (5) to (7), algorithm 1.

    The options of the last five rows are ours, and shared by all composed policies (docs/beyond.md). `Ladder` is our policy.

    Args:
        alpha: shape of the Pareto perturbations, above 1 (and below 1e9, where they are nearly constant).
        c: scale of the learning rate, above 0.
        ranking: how to rank the arms. "improved" moves the one arm whose estimate changed; "sorting" sorts all arms each
            round; both make the same decisions. "strata" is for thousands of arms or more: it looks at about $\log K$ of
            them, and its `propensity` is None, because $\sum q$ is known only as an unbiased estimate. "auto" is
            "strata" from 1,024 arms on (from 4,096 on with any of our options).
        ties: how arms with equal estimates are ranked. "shared": each has the mean $q$ of their ranks, so all are
            explored equally often, and the theorems still hold. "numbered": the lower number comes first.
        estimator: "importance", as in the paper, or "centred": losses are compared with their running mean $B_t$.
        c_exploit: scale of the rate at which the leader is perturbed, above 0; None for c.
        kappa: for "centred": only arms with $p_i \ge \kappa \eta_t$ are compared with $B_t$, the others with 0; above 0.
        lam: for "centred": how fast the running mean moves, from 0 to below 1.
        schedule: what lowers the rates: "rounds", as in the paper, or "losses", the spread of the losses seen.

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
    ranking: str = "improved"
    ties: str = "shared"
    estimator: str = "importance"
    c_exploit: float | None = None
    kappa: float = 0.1
    lam: float = 0.05
    schedule: str = "rounds"

    published_fields = ("alpha", "c", "ranking")

    def __post_init__(self) -> None:
        set_number(self, "alpha", 1.0, 1e9, "the default is 3")
        one_of("ranking", self.ranking, RANKINGS)
        one_of("ties", self.ties, ("shared", "numbered"))
        self._check_options()

    @classmethod
    def examples(cls) -> tuple[Self, ...]:
        return (
            cls(),
            cls(ranking="sorting"),
            cls(alpha=2.0, c=1.0),
            cls(alpha=1.3),
            cls(alpha=6.0, c=3.0, ranking="sorting"),
            cls(ranking="strata"),
            cls(alpha=1.3, ranking="strata"),
            cls(c=0.5, c_exploit=3.0),
            cls(estimator="centred"),
            cls(
                alpha=2.0, c=1.0, c_exploit=0.5, estimator="centred", ranking="sorting", kappa=0.4, lam=0.3
            ),
            cls(c=0.5, c_exploit=3.0, estimator="centred", ranking="strata", schedule="losses"),
            cls(alpha=2.0, c_exploit=1.0, estimator="centred", ranking="strata", kappa=0.3, lam=0.3),
        )  # fmt: skip

    @classmethod
    def forms(cls) -> tuple[Policy, ...]:
        return cls(), cls(ranking="strata")

    @property
    def branching(self) -> tuple[str, ...]:
        return ("alpha", *(() if self.ranking == "strata" else ("sorting",)), "sharing", *BRANCHING)

    @property
    def composed(self) -> Composed:
        """The perturbed leader, with all arms in one order or in strata; `at` resolves "auto"."""
        return leader_tiered.COMPOSED if self.ranking == "strata" else leader.COMPOSED

    @property
    def common_rows(self) -> int:
        """One, the table of rank limits; "strata" keeps it in the state."""
        return int(self.ranking != "strata")

    def law_params(self) -> dict[str, float]:
        shared = {"alpha": self.alpha, "sharing": float(self.ties == "shared")}
        if self.ranking == "strata":
            return shared
        return {**shared, "sorting": float(self.ranking == "sorting")}

    def at(self, arms: int) -> "FTPL":
        if self.ranking != "auto":
            return self
        many = arms >= (MANY_ARMS if self.published else MANY_CENTRED)
        return _ranked(self, "strata" if many else "improved")

    def baselines(self, state: State) -> tuple[Ints, Floats]:
        if self.ranking != "strata":
            return super().baselines(state)
        count = int(state.scalars[COVERED])
        return state.ints[COVERED_ARMS, :count].copy(), state.floats[BASELINE, :count].copy()

    def set_baselines(self, state: State, places: Ints, values: Floats) -> None:
        if self.ranking != "strata":
            super().set_baselines(state, places, values)
            return
        state.scalars[COVERED] = len(places)
        state.ints[COVERED_ARMS, : len(places)] = places
        state.floats[BASELINE, : len(places)] = values

    def exploitation_law(self, state: State) -> Floats:
        row = self.layout.row
        estimates = row(state, "estimates")
        eta = float(row(state, "eta_exploit")[0])
        return pareto_winner_law(eta * (estimates - estimates.min()), self.alpha)

    keyed_in_place = True

    def keyed(self, state: State) -> Keyed:
        row = self.layout.row
        return Keyed(keyed_leader, (row(state, "estimates"), row(state, "eta_exploit"), self.alpha))

    def exploration_law(self, state: State) -> Floats:
        law = np.empty(state.floats.shape[1])
        if self.ranking == "strata":
            fill_exploration_law(self.alpha, float(self.ties == "shared"), state, law)
            return law
        row = self.layout.row
        law[row(state, "order")] = row(state, "surrogate") / row(state, "surrogate_sum")
        return law


@lru_cache(maxsize=64)  # every decision among some arms needs it, and checking parameters takes time
def _ranked(policy: FTPL, ranking: str) -> FTPL:
    return replace(policy, ranking=ranking)
