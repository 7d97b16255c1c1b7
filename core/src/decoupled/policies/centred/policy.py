"""FTPL with centred losses, two rates, and rates that may follow the losses."""

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, ClassVar, Self

import numpy as np

from ...base.arrays import Floats, Ints
from ...base.validation import check_number, one_of, set_number
from ...kernels.dispatch import Functions
from ...kernels.random.keyed import Keyed, keyed_leader
from ...kernels.state import Layout, State
from ...kernels.winner_law import pareto_winner_law
from ...policy import Baselines
from .. import strata
from ..base import Policy
from ..ftpl import RANKINGS
from .kernels import FUNCTIONS, LAYOUT, N, Params, R, S

# The number of arms from which ranking "auto" uses strata. They give a baseline to the first 64
# ranks only, which costs regret with a thousand arms or more, so "auto" changes only where the
# dense round takes ten times as long.
MANY_ARMS = 4_096


@dataclass(frozen=True, repr=False)
class CentredFTPL(Policy):
    r"""FTPL with losses that are compared with their mean, and a rate for each of the two arms.

    With $\hat L$ the summed loss estimates, $u_i = \hat L_i - \min_k \hat L_k$, $\sigma_i$ the rank
    of arm $i$, $B_t$ the running mean of the losses seen, $\eta_t = c K^{1/\alpha - 1/2} /
    \sqrt{n_t}$ and $\eta'_t$ the same with `exploit_c`, each round

    - exploits $i_t = \arg\min_i (u_i - r_i / \eta'_t)$, with $r_i$ independent Pareto($\alpha$) on
      $[1, \infty)$;
    - explores $j_t \sim p$, with $p_i \propto \min(1 / (1 + \eta_t u_i),
      \sigma_i^{-1/\alpha})^{(\alpha + 1) / 2}$;
    - learns $\hat L_i \leftarrow \hat L_i + b_i + 1[j_t = i] (\ell - b_i) / p_i$ for every arm $i$,
      where $\ell$ is the loss seen, and $b_i = B_t$ for arms with $p_i \ge g \eta_t$ (the *gate*),
      0 for the others.

    Both arms are drawn as in `FTPL`, at rates of their own, so exploitation commits while
    exploration stays broad. The estimates are unbiased, because $b$ is fixed before the draw.
    `Ladder` is better still: docs/beyond.md compares them.

    Args:
        alpha: shape of the Pareto perturbations, above 1 (and below 1e9, where they are nearly
            constant).
        c: scale of the rate of exploration, above 0.
        exploit_c: scale of the rate of exploitation, above 0; None for c.
        gate: $g$: arms explored with less than this many times the rate have no baseline; above 0.
        mean_rate: how fast the running mean of the losses moves, from 0 to below 1.
        schedule: what lowers the rates: "rounds", so that $n_t = t$, or "losses", the spread of the
            losses seen.
        ranking: how the arms are kept in rank order, as in `FTPL`. "strata" gives a baseline to the
            first 64 ranks only, so "auto" is "strata" from 4,096 arms on.
        ties: how arms with equal estimates are ranked, as in `FTPL`: "shared" or "numbered".

    >>> import decoupled as dc
    >>> learner = dc.CentredFTPL(c=0.5, exploit_c=3.0).start(arms=4, seed=1)
    >>> for _ in range(100):
    ...     decision = learner.decide()
    ...     learner.observe(decision, loss=0.2 if decision.explore == 3 else 0.8)
    >>> learner.exploitation_probabilities().round(2).tolist()
    [0.0, 0.0, 0.0, 1.0]

    Parameters at their defaults are not printed:

    >>> learner.policy
    CentredFTPL(c=0.5, exploit_c=3.0)
    """

    alpha: float = 3.0
    c: float = 2.0
    exploit_c: float | None = None
    gate: float = 0.1
    mean_rate: float = 0.05
    schedule: str = "rounds"
    ranking: str = "auto"
    ties: str = "shared"

    keyed_in_place = True
    # The running mean forgets by itself.
    fading: ClassVar[tuple[str, ...]] = ("estimates", "spread")

    def __post_init__(self) -> None:
        set_number(self, "alpha", 1.0, 1e9, "the default is 3")
        set_number(self, "c", 0.0, 1e100, "the default is 2")
        if self.exploit_c is not None:
            set_number(self, "exploit_c", 0.0, 1e100, "the default, None, is c")
        set_number(self, "gate", 0.0, 1e100, "the default is 0.1")
        mean_rate = check_number(
            "mean_rate", self.mean_rate, "the default is 0.05", at_least=0.0, below=1.0
        )
        object.__setattr__(self, "mean_rate", mean_rate)
        one_of("schedule", self.schedule, ("rounds", "losses"))
        one_of("ranking", self.ranking, RANKINGS)
        one_of("ties", self.ties, ("shared", "numbered"))

    def __repr__(self) -> str:
        return self._short_repr()

    @classmethod
    def examples(cls) -> tuple[Self, ...]:
        return (
            cls(),
            cls(c=0.5, exploit_c=3.0, mean_rate=0.1, schedule="losses", ranking="improved"),
            cls(alpha=2.0, c=1.0, exploit_c=0.5, gate=0.4, mean_rate=0.3, ranking="sorting"),
            cls(c=0.5, exploit_c=3.0, schedule="losses", ranking="strata"),
            cls(alpha=2.0, exploit_c=1.0, gate=0.3, mean_rate=0.3, ranking="strata"),
        )

    @classmethod
    def forms(cls) -> tuple[Self, ...]:
        return cls(), cls(ranking="strata")

    def at(self, arms: int) -> "CentredFTPL":
        if self.ranking != "auto":
            return self
        return _ranked(self, "strata" if arms >= MANY_ARMS else "improved")

    @property
    def layout(self) -> Layout:
        return _layout(in_strata=self.ranking == "strata", by_losses=self.schedule == "losses")

    @property
    def params_type(self) -> Any:
        return strata.Params if self.ranking == "strata" else Params

    @property
    def functions(self) -> Functions:
        return strata.FUNCTIONS if self.ranking == "strata" else FUNCTIONS

    @property
    def baselines(self) -> Baselines:
        kind = StrataBaselines if self.ranking == "strata" else Baselines
        return kind(self.layout, "baseline")

    def params(self) -> Any:
        exploit_ratio = 1.0 if self.exploit_c is None else self.exploit_c / self.c
        is_sharing = self.ties == "shared"
        has_schedule = self.schedule == "losses"
        if self.ranking == "strata":
            return strata.Params(
                alpha=self.alpha,
                c=self.c,
                is_sharing=is_sharing,
                exploit_ratio=exploit_ratio,
                is_centred=True,
                gate=self.gate,
                mean_rate=self.mean_rate,
                has_schedule=has_schedule,
            )
        return Params(
            alpha=self.alpha,
            c=self.c,
            is_sorting=self.ranking == "sorting",
            is_sharing=is_sharing,
            exploit_ratio=exploit_ratio,
            gate=self.gate,
            mean_rate=self.mean_rate,
            has_schedule=has_schedule,
        )

    def exploitation_law(self, state: State) -> Floats:
        estimates = self.layout.row(state, "estimates")
        rate = float(self.layout.row(state, "eta_exploit")[0])
        return pareto_winner_law(rate * (estimates - estimates.min()), self.alpha)

    def exploration_law(self, state: State) -> Floats:
        if self.ranking == "strata":
            return strata.exploration_law(self.params(), state)
        law = np.empty(state.floats.shape[1])
        law[state.ints[N.order]] = state.floats[R.surrogate] / state.scalars[S.surrogate_sum]
        return law

    def keyed(self, state: State) -> Keyed:
        row = self.layout.row
        return Keyed(keyed_leader, (row(state, "estimates"), row(state, "eta_exploit"), self.alpha))


class StrataBaselines(Baselines):
    """The baselines of arms in strata, as a list of arms and values, since most arms have none."""

    def read(self, state: State) -> tuple[Ints, Floats]:
        count = int(state.scalars[strata.S.covered])
        arms: Ints = state.ints[strata.N.covered_arms, :count].copy()
        values: Floats = state.floats[strata.R.baseline, :count].copy()
        return arms, values

    def write(self, state: State, places: Ints, values: Floats) -> None:
        state.scalars[strata.S.covered] = len(places)
        state.ints[strata.N.covered_arms, : len(places)] = places
        state.floats[strata.R.baseline, : len(places)] = values


@lru_cache(maxsize=4)  # every row that is read needs the layout
def _layout(*, in_strata: bool, by_losses: bool) -> Layout:
    """The rows of a form, and which are learned with a schedule."""
    learned = ("estimates", "rise", "spread") if by_losses else ("estimates", "rise")
    return (strata.LAYOUT if in_strata else LAYOUT)._replace(learned=learned)


@lru_cache(maxsize=64)  # every decision among some arms needs it, and checking takes time
def _ranked(policy: CentredFTPL, ranking: str) -> CentredFTPL:
    """The same policy with another ranking."""
    return replace(policy, ranking=ranking)
