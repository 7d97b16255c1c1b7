"""FTPL: the paper's policy. No convex optimisation, no resampling."""

from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from ..base.arrays import Floats, Ints
from ..base.validation import as_float, number_from, one_of, set_number
from ..errors import ParameterError, invalid_value
from ..kernels.compose import START, Composed
from ..kernels.dispatch import Functions
from ..kernels.laws import ladder, ladder_state, leader, leader_tiered
from ..kernels.laws.leader_tiered import BASELINE, COVERED, COVERED_ARMS, fill_exploration_law
from ..kernels.laws.winner_law import pareto_winner_law
from ..kernels.state import ROUND, Layout, State
from .base import Policy
from .composed import BRANCHING, ComposedPolicy

RANKINGS = ("improved", "sorting", "strata", "auto")

# The number of arms from which ranking "auto" uses strata. Strata are faster but do not know their propensities. With
# centred losses they give a baseline to the first 64 ranks only, which costs regret with a thousand arms or more, so
# "auto" changes only where the dense round takes ten times as long.
MANY_ARMS = 1_024
MANY_CENTRED = 4_096

FOLLOW_THE_LEADER = 1e100  # stands for an infinite rate, which has no place in JSON

# What strata do not have.
NO_LADDER: dict[str, Any] = {
    "gate": "hard",
    "theta": 0.0,
    "start_at": "half",
    "rungs": (),
    "prior": (),
    "mix": 0.0,
}


@dataclass(frozen=True, repr=False)
class FTPL(ComposedPolicy):
    r"""Follow the perturbed leader, with exploration from surrogate probabilities.

    With $\hat L$ the summed loss estimates, $u_i = \hat L_i - \min_k \hat L_k$, $\sigma_i$ the rank of arm $i$ (1 for the
    smallest estimate) and $\eta_t = c K^{1/\alpha - 1/2} / \sqrt{t}$, each round

    - exploits $i_t = \arg\min_i (u_i - r_i / \eta_t)$, with $r_i$ independent Pareto($\alpha$) on $[1, \infty)$;
    - explores $j_t \sim p$, with $p_i \propto q_i = \min(1 / (1 + \eta_t u_i), \sigma_i^{-1/\alpha})^{(\alpha + 1) / 2}$;
    - learns $\hat L_{j_t} \leftarrow \hat L_{j_t} + \ell / p_{j_t}$, where $\ell$ is the loss seen.

    For $\alpha > 1$, regret is $O(\sqrt{KT})$ against any adversary (theorem 3.1). For $\alpha \in (2, 3]$, it is constant
    in $T$ in the stochastically constrained regime (theorem 3.2).

    Kim, C., Lee, J. and Oh, M. (2026). Follow-the-perturbed-leader for decoupled bandits: best-of-both-worlds and
    practicality. ICML. Equations (5) to (7), algorithm 1.

    The other options are ours (docs/beyond.md). With `c_exploit`, the leader is perturbed at its own rate, with
    `c_exploit` instead of `c`. With the estimator "centred", every arm has a baseline $b_i$,

    - learns $\hat L_i \leftarrow \hat L_i + b_i + 1[j_t = i] (\ell - b_i) / p_i$ for every arm $i$,

    where $b_i$ is at most $B_t$, a running mean of the losses seen: $B \leftarrow B + \lambda (\ell - B)$, starting from
    1/2. The estimate is unbiased, because $b$ is fixed before the draw. The gate limits $b_i$ where $p_i$ is small, so
    that no lucky draw of a bad arm makes it the leader:

    - gate "hard": $b_i = B_t$ for arms with $p_i \ge \kappa \eta_t$, and 0 for the others;
    - gate "soft": $b_i = \min(B_t, p_i (1 / \eta_t + u_i) / 2)$, with the rate $\eta_t$ of the first rung. One observation
      then takes at most half of an arm's own gap, plus $1 / (2 \eta_t)$, off its estimate.

    A pending decision keeps the $b$ of its own round; `replay` uses $b = 0$, and with the soft gate the $b$ of the moment.

    With the schedule "losses", the rates fall with the spread of the losses seen instead of the number of rounds,

    - $\eta_t = c K^{1/\alpha - 1/2} / \sqrt{1 + \theta (t - 1) + V_t}$, with $V_t = 4 \sum (\ell - b)^2$ over the losses seen,

    where each loss is compared with the baseline before it: $B$ with the hard gate, the $b$ of its arm with the soft one,
    which also adds a small term for arms whose $b$ is below $B$. A loss that is 0 or 1 like a fair coin adds a whole round
    to $V_t$, and a loss close to its baseline adds almost nothing.

    With `rungs`, the policy is a *ladder*: what is exploited does not change what is seen, so several exploitation
    rates, the rungs, share the same exploration and estimates. The losses of all rungs are estimated from the same
    observations, and AdaHedge learns how often to play each. With `mix` above 0 there is one more rung, which exploits
    the arm with the smallest mean loss, and a share $g$ of the exploration goes half to that arm and half to its
    challenger, the arm that is hardest to tell from it (to unseen arms while there are any):

    - explores $j_t$ with probabilities $(1 - g) p + g v$, where $v$ has one half on each of these two, and $g$ is `mix`
      times the weight of the last rung, or times `floor` if that is larger.

    What is proved for it (docs/ladder.md): with the soft gate, `start_at="half"` and `mix=0`, regret is
    $O(\sqrt{KT})$ against any adversary, whatever the rungs above the first are, as long as `c` is at most the first. It
    is bounded for all $T$ in the stochastically constrained regime with rates by rounds, or by losses with `theta` above 0. No proof covers
    the hard gate, `mix`, `start_at="first"` or late feedback. `FTPL.recommended()` uses the soft gate and all of these
    options, so it has no proved bound itself.

    Args:
        alpha: shape of the Pareto perturbations, above 1 (and below 1e9, where they are nearly constant).
        c: scale of the learning rate, above 0.
        ranking: how to rank the arms. "improved" moves the one arm whose estimate changed; "sorting" sorts all arms
            each round. Both make the same decisions from the same seed, in $O(K)$ a round. "strata" looks at about
            $\log K$ arms and moves $O(\sqrt{K})$ memory, for thousands of arms or more. It draws both arms with the same laws, but
            knows $\sum q$ only as an unbiased estimate, at most 1.5 times too large and independent of $j_t$. So
            `weight` is an unbiased $1 / p$ and `propensity` is None. Estimates stay unbiased, with second moments within 1.5 times
            those of the paper. With centred losses only the first 64 ranks have a baseline. "auto" is "improved" below
            1,024 arms (below 4,096 with any of our options), and "strata" from there on. The soft gate needs
            "improved" or "auto"; in strata, "auto" has the hard gate and the one rate c_exploit in place of a ladder.
        estimator: "importance", as in the paper, or "centred".
        c_exploit: scale of the rate at which the leader is perturbed, above 0; None for c. `rungs` replaces it.
        kappa: for the hard gate, above 0. No observation lowers an estimate by more than $B_t / (\kappa \eta_t)$.
        lam: for "centred": how fast the running mean of the losses moves, from 0 to below 1.
        schedule: what lowers the rates: "rounds", as in the paper, or "losses".
        ties: how arms with equal estimates are ranked. "shared": each has the mean $q$ of the ranks that they occupy
            together, so all are explored equally often, as at the start. The theorems still hold, since that mean is at
            least the $q$ of the last of those ranks and $\sum q$ is the same. "numbered": the lower number comes first, as
            the paper's rule says literally; then the first of four fresh arms is explored with probability 0.40 and the
            last with 0.16.
        gate: for "centred": what limits the baselines of arms that are rarely explored, "hard" or "soft". Everything
            below needs "soft", which goes with the rankings "improved" and "auto". From 4,096 arms on, "auto" has the
            hard gate and none of what is below.
        theta: for the schedule "losses": what a round adds to the spread at least, from 0 to below 1.
        start_at: where the running mean starts. "half": at 1/2, for losses in [0, 1]. "first": at the first loss, which
            teaches nothing else. Then $B$ moves by max(lam, 1 / number of losses), the gate counts from the least loss
            seen, and $4 r^2$, for the largest surprise $r$, is the unit of the spread in place of 1, so that the decisions do not
            depend on the scale and level of the losses.
        rungs: the scales of the exploitation rates, like c_exploit: at most 4, increasing, above 0. The last may be
            infinite, stored as 1e100, which follows the leader without perturbations. Empty for the one rate c_exploit.
        prior: how much each rung is trusted at first: one number above 0 for each rung, the last for the means if mix
            is above 0. Empty for equal ones.
        boldness: how soon the weights follow the rungs' estimated losses, above 0.
        mix: the largest share of the exploration for the leader by mean and its challenger, from 0 to below 1. 0: no
            such rung.
        floor: which part of that share they have at least, from 0 to below 1.

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
    estimator: str = "importance"
    c_exploit: float | None = None
    kappa: float = 0.1
    lam: float = 0.05
    schedule: str = "rounds"
    ties: str = "shared"
    gate: str = "hard"
    theta: float = 0.0
    start_at: str = "half"
    rungs: tuple[float, ...] = field(default=(), metadata={"depth": 1})
    prior: tuple[float, ...] = field(default=(), metadata={"depth": 1})
    boldness: float = 3.0
    mix: float = 0.0
    floor: float = 0.2

    presets = ("recommended",)
    published_fields = ("alpha", "c", "ranking")
    before: ClassVar[dict[str, Any]] = {"ties": "numbered"}

    def __post_init__(self) -> None:
        set_number(self, "alpha", 1.0, 1e9, "the default is 3")
        one_of("ranking", self.ranking, RANKINGS)
        one_of("ties", self.ties, ("shared", "numbered"))
        self._check_options()
        self._check_ladder()

    def _check_ladder(self) -> None:
        one_of("gate", self.gate, ("hard", "soft"))
        one_of("start_at", self.start_at, ("half", "first"))
        for name, default in (("theta", "0"), ("mix", "0"), ("floor", "0.2")):
            number = number_from(name, getattr(self, name), 0.0, 1.0, f"the default is {default}")
            object.__setattr__(self, name, number)
        set_number(self, "boldness", 0.0, 1e100, "the default is 3")
        self._check_rungs()
        self._check_prior()
        if self.gate == "soft":
            self._check_soft()
            return
        for name in ("theta", "start_at", "rungs", "prior", "mix"):
            if getattr(self, name) != NO_LADDER[name]:
                remedy = 'add gate="soft" and estimator="centred", or leave it out'
                raise ParameterError(
                    invalid_value(name, getattr(self, name), "needs the soft gate", remedy)
                )

    def _check_rungs(self) -> None:
        rungs = _numbers(self.rungs)
        good = (
            rungs is not None
            and len(rungs) <= ladder_state.MOST_RATES
            and list(rungs) == sorted(set(rungs))
        )
        if rungs is None or not good or not all(rate > 0.0 for rate in rungs):
            rule = f"must be at most {ladder_state.MOST_RATES} increasing numbers above 0, of which the last may be infinite"
            raise ParameterError(invalid_value("rungs", self.rungs, rule, "try (0.5, 8.0)"))
        object.__setattr__(self, "rungs", tuple(min(rate, FOLLOW_THE_LEADER) for rate in rungs))

    def _check_prior(self) -> None:
        prior, count = _numbers(self.prior), self._rung_count()
        good = (
            prior is not None and len(prior) in (0, count) and all(1e-100 < each < 1e100 for each in prior)
        )
        if not good:
            many = "a number" if count == 1 else f"{count} numbers"
            rule = f"must be {many} above 1e-100 and below 1e+100, one for each rung, where mix > 0 adds a last rung"
            raise ParameterError(invalid_value("prior", self.prior, rule, "leave it out for equal ones"))
        object.__setattr__(self, "prior", prior)

    def _check_soft(self) -> None:
        if self.estimator != "centred":
            rule = "is a gate of the centred estimator"
            raise ParameterError(invalid_value("gate", self.gate, rule, 'add estimator="centred"'))
        if self.ranking not in ("improved", "auto"):
            rule = "does not go with the soft gate, which lifts arms by different amounts"
            raise ParameterError(
                invalid_value("ranking", self.ranking, rule, 'use "improved" or "auto", or gate="hard"')
            )

    def _rung_count(self) -> int:
        return max(1, len(self.rungs)) + (self.mix > 0.0)

    @classmethod
    def recommended(cls) -> Self:
        """The ladder, with one setting for all instances: three rungs, centred losses, rates that fall with their spread.

        It was tuned on randomly drawn instances (`decoupled.paper.family`) and on made-up tables, and tested on others;
        see "Beyond the paper" in the documentation. From 4,096 arms on it has the hard gate and the one rate `c_exploit`, as version 0.1.0
        had for all numbers of arms (except that lam was 0.1):
        `FTPL(c=0.5, ranking="auto", estimator="centred", c_exploit=3.0, lam=0.1, schedule="losses")`.

        >>> import decoupled as dc
        >>> dc.FTPL.recommended().rungs
        (0.5, 8.0)
        """
        return cls(
            alpha=3.0, c=0.5, ranking="auto", estimator="centred", c_exploit=3.0, lam=0.15, schedule="losses",
            gate="soft", theta=0.01, start_at="first", rungs=(0.5, 8.0), prior=(0.1, 0.15, 0.75), mix=0.5,
        )  # fmt: skip

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
            cls(estimator="centred", gate="soft", c_exploit=3.0),
            cls(
                alpha=2.5, c=0.5, estimator="centred", gate="soft", theta=0.1, schedule="losses",
                rungs=(0.5, 2.0, np.inf), prior=(1.0, 2.0, 3.0), boldness=2.0,
            ),
            cls.recommended(),
        )  # fmt: skip

    @classmethod
    def forms(cls) -> tuple[Policy, ...]:
        return cls(), cls(ranking="strata"), cls(estimator="centred", gate="soft")

    @property
    def layout(self) -> Layout:
        return ladder_state.LAYOUT if self.gate == "soft" else super().layout

    @property
    def params_type(self) -> Any:
        return ladder_state.Params if self.gate == "soft" else super().params_type

    @property
    def functions(self) -> Functions:
        return ladder.FUNCTIONS if self.gate == "soft" else super().functions

    @property
    def branching(self) -> tuple[str, ...]:
        if self.gate == "soft":
            return ("alpha", "sharing", "by_losses", "from_first", "rungs", "mix")
        return ("alpha", *(() if self.ranking == "strata" else ("sorting",)), "sharing", *BRANCHING)

    @property
    def fading(self) -> tuple[str, ...] | None:
        if self.gate != "soft":
            return super().fading
        kept = ("rise", "least", "largest", "means", "centred_means")  # means forget with their counts
        return tuple(name for name in ladder_state.LAYOUT.learned if name not in kept)

    @property
    def any_baseline(self) -> bool:
        return self.gate == "soft"

    def to_dict(self) -> dict[str, Any]:
        return {
            **super().to_dict(),
            "rungs": list(self.rungs),
            "prior": list(self.prior),
        }  # JSON has no tuples

    def params(self) -> Any:
        if self.gate != "soft":
            return super().params()
        one = self.c if self.c_exploit is None else self.c_exploit
        rates = [
            rate / self.c if rate < FOLLOW_THE_LEADER else ladder_state.FOLLOW
            for rate in self.rungs or (one,)
        ]
        rates += [-1.0] * (self.mix > 0.0)
        priors = list(self.prior or (1.0,) * len(rates))
        empty = [0.0] * (ladder_state.MOST_RUNGS - len(rates))
        return self.params_type(
            alpha=self.alpha,
            sharing=float(self.ties == "shared"),
            c=self.c,
            lam=self.lam,
            by_losses=float(self.schedule == "losses"),
            theta=self.theta,
            from_first=float(self.start_at == "first"),
            boldness=self.boldness,
            mix=self.mix,
            floor=self.floor,
            rungs=len(rates),
            **{f"rate_{m}": rate for m, rate in enumerate(rates + empty)},
            **{f"prior_{m}": prior / sum(priors) for m, prior in enumerate(priors + empty)},
        )

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

    def among(self, arms: int, whole: int) -> "FTPL":
        if self.gate == "soft" and self.at(whole).gate != "soft":
            return _plain(self).at(arms)  # strata know nothing of the ladder
        return self.at(arms)

    def init_form(self, state: State, known: tuple[str, ...]) -> None:
        """After strata: every arm counts as seen once, with the mean loss that its estimate says."""
        rounds = state.scalars[ROUND] - 1.0
        if self.gate != "soft" or "counts" in known or rounds <= 0.0:
            return
        row = self.layout.row
        means = np.clip(row(state, "estimates") / rounds, 0.0, 1.0)
        row(state, "counts")[:] = 1.0
        row(state, "means")[:] = means
        row(state, "centred_means")[:] = means - means.mean()
        row(state, "seen")[:] = rounds
        row(state, "largest")[:] = 0.5  # so that the rates are those of strata

    def init_new_arms(self, state: State, first: int) -> None:
        super().init_new_arms(state, first)
        if self.gate == "soft":
            for name in ("counts", "means", "centred_means"):  # nobody has seen them
                self.layout.row(state, name)[first:] = 0.0

    def baselines(self, state: State) -> tuple[Ints, Floats]:
        if self.gate == "soft":
            known = self.start_at == "half" or state.scalars[ROUND] > 1.0
            arms = np.arange(state.floats.shape[1] if known else 0)
            return arms, state.floats[ladder_state.BASELINE, arms]
        if self.ranking != "strata":
            return super().baselines(state)
        count = int(state.scalars[COVERED])
        return state.ints[COVERED_ARMS, :count].copy(), state.floats[BASELINE, :count].copy()

    def set_baselines(self, state: State, places: Ints, values: Floats) -> None:
        if self.gate == "soft":
            super().set_baselines(state, places, values)
            state.scalars[ladder_state.HIGHEST] = values.max(initial=0.0)
            everyone = len(places) == state.floats.shape[1]
            state.scalars[ladder_state.COVERED] = (
                ladder_state.ALL_ARMS if everyone else ladder_state.SOME_ARMS
            )
            return
        if self.ranking != "strata":
            super().set_baselines(state, places, values)
            return
        state.scalars[COVERED] = len(places)
        state.ints[COVERED_ARMS, : len(places)] = places
        state.floats[BASELINE, : len(places)] = values

    def clear_baselines(self, state: State) -> None:
        if self.gate == "soft":
            state.scalars[ladder_state.COVERED] = (
                ladder_state.NO_ARMS
            )  # the update fills in those of its own round
        else:
            super().clear_baselines(state)

    def unknown(self, state: State) -> NDArray[np.bool_]:
        if self.gate != "soft":
            return super().unknown(state)
        unseen: NDArray[np.bool_] = (
            state.floats[ladder_state.COUNTS] == 0.0
        )  # baselines move the estimates of all arms
        return unseen

    def most_predicted(self, state: State) -> Floats:
        """The bound of the soft gate, least + p_i * (1 + rate * gap) / (2 * rate); see `fill_baselines`."""
        if self.gate != "soft":
            return super().most_predicted(state)
        scalars, estimates = state.scalars, state.floats[ladder_state.ESTIMATES]
        least, unit = 0.0, 1.0 / (scalars[ladder_state.ETA] * scalars[ladder_state.RATE])
        if self.start_at == "first":
            least = min(scalars[ladder_state.LEAST], START + scalars[ladder_state.RISE])
            unit = np.inf if scalars[ladder_state.LARGEST] == 0.0 else unit
        most: Floats = least + 0.5 * self.exploration_law(state) * (unit + estimates - estimates.min())
        return most

    def exploitation_law(self, state: State) -> Floats:
        row = self.layout.row
        estimates = row(state, "estimates")
        if self.gate == "soft":
            return self._laddered_law(state, estimates - estimates.min())
        eta = float(row(state, "eta_exploit")[0])
        return pareto_winner_law(eta * (estimates - estimates.min()), self.alpha)

    def _laddered_law(self, state: State, gaps: Floats) -> Floats:
        """The mixture of the rungs' laws."""
        scalars, law = state.scalars, np.zeros(len(gaps))
        leader, tied = int(scalars[ladder_state.LEADER]), gaps == 0.0
        for rung in range(self._rung_count()):
            weight, rate = scalars[ladder_state.WEIGHT + rung], scalars[ladder_state.RATE + rung]
            if rate < 0.0:
                law += weight * (np.arange(len(gaps)) == leader if leader >= 0 else 1.0 / len(gaps))
            elif rate == ladder_state.FOLLOW:
                law += weight * tied / np.count_nonzero(tied)
            else:
                law += weight * pareto_winner_law(scalars[ladder_state.ETA] * rate * gaps, self.alpha)
        return law

    def exploration_law(self, state: State) -> Floats:
        law = np.empty(state.floats.shape[1])
        if self.ranking == "strata":
            fill_exploration_law(self.alpha, float(self.ties == "shared"), state, law)
            return law
        row = self.layout.row
        law[row(state, "order")] = row(state, "surrogate") / row(state, "surrogate_sum")
        if self.gate == "soft":
            self._mix_two_best(state, law)
        return law

    def _mix_two_best(self, state: State, law: Floats) -> None:
        """Give their share of the exploration to the leader by mean and to its challenger or the unseen arms."""
        scalars = state.scalars
        mixed, leader, challenger = (
            scalars[ladder_state.MIXED],
            int(scalars[ladder_state.LEADER]),
            int(scalars[ladder_state.CHALLENGER]),
        )
        law *= 1.0 - mixed
        if mixed == 0.0:
            return
        others = mixed
        if leader >= 0:
            others = mixed * (1.0 - ladder_state.LEADERS_SHARE)
            law[leader] += mixed - others
        unseen = self.layout.row(state, "counts") == 0.0
        if unseen.any():
            law[unseen] += others / np.count_nonzero(unseen)
        else:
            law[leader if challenger < 0 else challenger] += others


# Every decision among some arms needs these two, and checking parameters takes time.


@lru_cache(maxsize=64)
def _ranked(policy: FTPL, ranking: str) -> FTPL:
    return replace(policy, ranking=ranking, **(NO_LADDER if ranking == "strata" else {}))


@lru_cache(maxsize=64)
def _plain(policy: FTPL) -> FTPL:
    return replace(policy, **NO_LADDER)


def _numbers(values: object) -> tuple[float, ...] | None:
    """The values as numbers, of which any may be infinite; None if one is not a number."""
    if not isinstance(values, (list, tuple, np.ndarray)):
        return None
    numbers = [np.inf if isinstance(each, float) and each == np.inf else as_float(each) for each in values]
    return None if None in numbers else tuple(each for each in numbers if each is not None)
