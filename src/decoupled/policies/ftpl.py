"""FTPL: the paper's policy. No convex optimisation, no resampling."""

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, ClassVar, Self

import numpy as np

from ..base.arrays import Floats, Ints
from ..base.validation import number_in, one_of
from ..kernels.compose import Composed
from ..kernels.laws import leader, leader_tiered
from ..kernels.laws.leader_tiered import BASELINE, COVERED, COVERED_ARMS, fill_exploration_law
from ..kernels.laws.winner_law import pareto_winner_law
from ..kernels.state import State
from .base import Policy
from .composed import ComposedPolicy

RANKINGS = ("improved", "sorting", "strata", "auto")

# With ranking "auto", from so many arms on in strata. There the round is faster, but does not know its
# propensities; and with centred losses strata give a baseline to the first 64 ranks alone, which costs regret
# with a thousand arms and more, while the dense round takes ten times as long from about here on.
MANY_ARMS = 1_024
MANY_CENTRED = 4_096


@dataclass(frozen=True, repr=False)
class FTPL(ComposedPolicy):
    """Follow the perturbed leader, with exploration from surrogate probabilities.

    With hat_L the summed loss estimates, u = hat_L - min(hat_L), rank 1 for the smallest hat_L, and
    eta_t = c * K ** (1/alpha - 1/2) / sqrt(t), each round

    - exploits  i_t = argmin_i (u_i - r_i / eta_t), r_i independent Pareto(alpha) on [1, inf);
    - explores  j_t ~ p_i proportional to q_i = min(1 / (1 + eta_t * u_i), rank_i ** (-1/alpha)) ** ((alpha + 1) / 2);
    - learns    hat_L[j_t] += loss / p_{j_t}.

    Regret is O(sqrt(K T)) against any adversary for alpha > 1, and constant in T in the stochastically
    constrained regime for alpha in (2, 3] (theorems 1 and 2).

    Kim, C., Lee, J. and Oh, M. (2026). Follow-the-perturbed-leader for decoupled bandits:
    best-of-both-worlds and practicality. ICML. Equations (5) to (7), algorithm 1.

    Three things go beyond the paper, and are ours. With `c_exploit` the leader is perturbed at a rate of
    its own, c_exploit in place of c. With estimator "centred" every arm has a baseline,

    - learns    hat_L_i += b_i + 1[j_t = i] * (loss - b_i) / p_i for every arm i,

    where b_i = B_t for arms with p_i >= kappa * eta_t and 0 for the others, and B_t is a running mean of
    the losses seen: B += lam * (loss - B), from 1/2. The estimate is unbiased, because b is fixed before
    the draw. A pending decision keeps the b of its own round; `replay` takes b = 0.
    With schedule "losses" both rates fall with the spread of the losses seen, and not with the rounds,

    - eta_t = c * K ** (1/alpha - 1/2) / sqrt(1 + V_t), V_t = 4 * sum of (loss - B)^2,

    each loss held against the B before it. A loss that is 0 or 1 like a fair coin adds a whole round to
    V_t, and one that is close to B next to nothing.
    `FTPL.recommended()` has all three, with values chosen once for all instances.

    Args:
        alpha: shape of the Pareto perturbations, above 1 (and below 1e9, where they are all but constant).
        c: scale of the learning rate, above 0.
        ranking: how ranks are kept. "improved" moves the one arm whose estimate changed, "sorting"
            sorts all arms each round. Both make the same decisions from the same seed, in O(K) a round.
            "strata" looks at about log K arms and moves O(sqrt K) memory: for thousands of arms and
            more. It draws both arms with the same laws. Of sum q it knows only an unbiased estimate, at
            most 1.5 times too large and drawn apart from j_t, so `weight` is an unbiased 1 / p and
            `propensity` is None; estimates stay unbiased, with second moments within 1.5 times those of
            the paper. With centred losses the first 64 ranks alone have a baseline. "auto" is "improved" below 1,024
            arms, below 4,096 with any of our additions, and "strata" from there on.
        estimator: "importance", the paper's, or "centred".
        c_exploit: scale of the rate at which the leader is perturbed, above 0; None for c.
        kappa: for "centred": the gate, above 0. No observation takes more than B_t / (kappa * eta_t) off an
            estimate.
        lam: for "centred": how fast the running mean of the losses moves, from 0 on and below 1.
        schedule: what the rates fall with: "rounds", the paper's, or "losses".
        ties: which rank arms with equal estimates have. "shared": each has the mean q of the ranks that they
            take together, so that all are explored equally often, as at the start; the theorems hold as before,
            since that mean is at least q at the last of those ranks and sum q is the same. "numbered": the
            lower number first, the paper's rule read literally, with which the first of four fresh arms is
            explored with probability 0.40 and the last with 0.16.

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
    estimator: str = "importance"
    c_exploit: float | None = None
    kappa: float = 0.1
    lam: float = 0.05
    schedule: str = "rounds"
    ties: str = "shared"

    presets = ("recommended",)
    published_fields = ("alpha", "c", "ranking")
    branching = ("alpha", "sorting", "sharing", *ComposedPolicy.branching)
    before: ClassVar[dict[str, Any]] = {"ties": "numbered"}

    def __post_init__(self) -> None:
        alpha = number_in("alpha", self.alpha, 1.0, 1e9, "the default is 3")
        object.__setattr__(self, "alpha", alpha)
        one_of("ranking", self.ranking, RANKINGS)
        one_of("ties", self.ties, ("shared", "numbered"))
        self._check_options()

    @classmethod
    def recommended(cls) -> Self:
        """Centred losses and two rates that fall with their spread, with one setting for every number of arms, horizon and regime.

        It was chosen on instances that were drawn for the purpose (`decoupled.paper.family`), and tested on others:
        see docs/beyond.md.

        >>> import decoupled as dc
        >>> dc.FTPL.recommended()
        FTPL(alpha=3.0, c=0.5, ranking='auto', estimator='centred', c_exploit=3.0, lam=0.1, schedule='losses')
        """
        return cls(
            alpha=3.0,
            c=0.5,
            ranking="auto",
            estimator="centred",
            c_exploit=3.0,
            kappa=0.1,
            lam=0.1,
            schedule="losses",
        )

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
            cls.recommended(),
        )

    @classmethod
    def forms(cls) -> tuple[Policy, ...]:
        return cls(), cls(ranking="strata")

    @property
    def composed(self) -> Composed:
        """The perturbed leader, with all arms in one order or in strata; "auto" is settled by `at`."""
        return leader_tiered.COMPOSED if self.ranking == "strata" else leader.COMPOSED

    @property
    def common_rows(self) -> int:
        """The table of rank limits, which the rounds in strata keep in the state."""
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

    def exploration_law(self, state: State) -> Floats:
        law = np.empty(state.floats.shape[1])
        if self.ranking == "strata":
            fill_exploration_law(self.alpha, float(self.ties == "shared"), state, law)
            return law
        row = self.layout.row
        law[row(state, "order")] = row(state, "surrogate") / row(state, "surrogate_sum")
        return law


@lru_cache(maxsize=64)  # asked for with every decision among some arms, and checking parameters takes time
def _ranked(policy: FTPL, ranking: str) -> FTPL:
    return replace(policy, ranking=ranking)
