"""The ladder: our policy.

Several ways to exploit share one exploration, and a hedge learns how often to use each.
"""

from dataclasses import dataclass, field
from typing import Self, cast

import numpy as np
from numpy.typing import NDArray

from ...base.arrays import Floats, Ints
from ...base.validation import as_float, check_number, set_number
from ...errors import ParameterError
from ...kernels.random.keyed import Keyed
from ...kernels.state import ROUND, State
from ...kernels.winner_law import pareto_winner_law
from ...policy import Baselines
from ..base import Policy
from .kernels import FUNCTIONS
from .rungs import keyed_ladder, prepare_for
from .state import (
    ALL_ARMS,
    ALPHA,
    BY_MEAN,
    BY_RECENT_MEAN,
    GIVEN,
    KEPT,
    LAYOUT,
    MOST_RATES,
    MOST_RUNGS,
    NO_ARMS,
    NO_STATE,
    NOBODY,
    SOME_ARMS,
    START,
    Params,
    R,
    S,
)

# What a discount leaves alone: levels, units, the order of ties, and means, which forget with their
# counts.
_STAYING = (
    "rise",
    "least",
    "largest",
    "means",
    "centred_means",
    "precedence",
    "recent_fade",
    "version",
)


@dataclass(frozen=True, repr=False)
class Ladder(Policy):
    r"""Several exploitation rates, the *rungs*, on one set of estimates.

    A hedge learns how often to play each rung.

    What is exploited does not change what is seen, so all rungs share the exploration and the
    estimates $\hat L$, and the losses of all of them are estimated from the same observations. With
    $u_i = \hat L_i - \min_k \hat L_k$ and $\sigma_i$ the rank of arm $i$, each round

    - draws a rung by its weight $\pi_k$; rung $k$ exploits $\arg\min_i (u_i - r_i / (c_k
      \kappa_t))$ with Pareto(3) draws $r_i$; the rung on means exploits the arm with the smallest
      mean loss, and the rung with a memory the *recent leader*, the arm with the smallest mean of
      the last losses if those means predict better;
    - explores $j_t$ with probabilities $p = (1 - \gamma) ((1 - g) q / \sum q + g v) + \gamma / K$,
      where $q_i = \min(1 / (1 + c_1 \kappa_t u_i), \sigma_i^{-1/3})^2$, and $v$ has one half on the
      two leaders and one half on their challengers, the arms that are hardest to tell from them (on
      unseen arms while there are any);
    - learns $\hat L_i \leftarrow \hat L_i + b_i + 1[j_t = i] (\ell - b_i) / p_i$ for every arm $i$,
      where $b_i$ is at most a running mean of the losses seen, and so small that one observation
      takes at most half of an arm's own gap, plus $1 / (2 c_1 \kappa_t)$, off its estimate (the
      *soft gate*);
    - estimates each rung's loss, from which AdaHedge learns the weights $\pi$.

    The rates fall with the spread of the losses seen, $\kappa_t = K^{-1/6} / \sqrt{n_t}$, in units
    of the largest surprise so far. So decisions do not depend on the scale and level of the losses,
    and the first loss only sets the level. A round takes time in proportion to the number of arms;
    `FTPL(ranking="strata")` is faster with a million.

    Theorem T2 holds for any number of arms and feedback in the same round: the expected regret
    against each fixed arm is $O(\sqrt{KT})$ for every adversary that does not know the seed, and
    constant in $T$ in the stochastically constrained regime, where one arm is better than each
    other by a fixed gap or more in every round. docs/ladder.md defines the policy exactly and
    docs/ladder-proof.md has the proof; `theory.bounds.theorem_t2` is the bound.

    Args:
        rungs: the scales of the exploitation rates $c_k$: one to four increasing numbers above 0;
            exploration has the first.
        prior: how much each rung is trusted at first: a number above 0 for each, the last for the
            rung on means if there is one. Empty: all the same. The rung with a memory has
            `memory_prior`.
        hedge_rate: AdaHedge's learning rate is this number divided by its regret; above 0. The
            larger, the faster it learns.
        mean_rate: how fast the running mean of the losses moves, from 0 to below 1. At first it is
            a plain mean.
        least_spread: the least that a round adds to the spread, as a share of its unit, from 0 to
            below 1.
        top_two_share: the largest share $g$ of the exploration for the leaders and their
            challengers, in [0, 1). Their share grows with the weight of the rungs on means. With 0,
            there are no such rungs.
        top_two_floor: the least part of that share that they get, from 0 to below 1.
        uniform_share: the share $\gamma$ of the exploration that is even over all arms, from 0 to
            below 1. With 0, an arm that was bad for long and becomes good may never be seen again,
            and no bound holds.
        memory: how many losses, of all arms together, the recent means remember, at least 2. None:
            no rung with a memory, which can be better against somebody who punishes what was
            exploited lately.
        memory_prior: how much the rung with a memory is trusted at first, relative to all others
            together; above 0.

    >>> import decoupled as dc
    >>> learner = dc.Ladder().start(arms=4, seed=1)
    >>> for _ in range(100):
    ...     decision = learner.decide()
    ...     learner.observe(decision, loss=0.2 if decision.explore == 3 else 0.8)
    >>> learner.exploitation_probabilities().round(2).tolist()
    [0.0, 0.0, 0.0, 1.0]

    Parameters at their defaults are not printed; `to_dict()` has all of them:

    >>> dc.Ladder(), dc.Ladder().to_dict()["uniform_share"], dc.Ladder().to_dict()["prior"]
    (Ladder(), 0.02, [0.1, 0.15, 0.75])
    """

    rungs: tuple[float, ...] = field(default=(0.5, 8.0), metadata={"depth": 1})
    prior: tuple[float, ...] = field(default=(0.1, 0.15, 0.75), metadata={"depth": 1})
    hedge_rate: float = 3.0
    mean_rate: float = 0.15
    least_spread: float = 0.01
    top_two_share: float = 0.5
    top_two_floor: float = 0.2
    uniform_share: float = 0.02
    memory: float | None = field(default=100.0, metadata={"before": None})
    memory_prior: float = field(default=0.15, metadata={"before": 0.15})

    layout = LAYOUT
    params_type = Params
    functions = FUNCTIONS
    fading = tuple(name for name in LAYOUT.learned if name not in _STAYING)

    def __post_init__(self) -> None:
        for name in (
            "mean_rate",
            "least_spread",
            "top_two_share",
            "top_two_floor",
            "uniform_share",
        ):
            default = type(self).__dataclass_fields__[name].default
            number = check_number(
                name, getattr(self, name), f"the default is {default}", at_least=0.0, below=1.0
            )
            object.__setattr__(self, name, number)
        set_number(self, "hedge_rate", 0.0, 1e100, "the default is 3")
        set_number(self, "memory_prior", 1e-100, 1e100, "the default is 0.15")
        if self.memory is not None:
            remedy = "the default is 100, and None is for no memory"
            object.__setattr__(
                self,
                "memory",
                check_number("memory", self.memory, remedy, at_least=2.0, below=1e15),
            )
        self._check_rungs()
        self._check_prior()

    def _check_rungs(self) -> None:
        rungs = _numbers(self.rungs)
        if (
            rungs is None
            or not 1 <= len(rungs) <= MOST_RATES
            or list(rungs) != sorted(set(rungs))
            or not 0.0 < rungs[0] <= rungs[-1] < 1e100
        ):
            rule = f"must be 1 to {MOST_RATES} increasing numbers above 0 and below 1e+100"
            raise ParameterError.of("rungs", self.rungs, rule, "the default is (0.5, 8.0)")
        object.__setattr__(self, "rungs", rungs)

    def _check_prior(self) -> None:
        prior = _numbers(self.prior)
        count = len(self.rungs) + (self.top_two_share > 0.0)
        fits = prior is not None and len(prior) in (0, count)
        if not fits or not all(1e-100 < trust < 1e100 for trust in prior or ()):
            numbers = "a number" if count == 1 else f"{count} numbers"
            rule = (
                f"must be {numbers} above 1e-100 and below 1e+100, one for each rung, "
                "where top_two_share > 0 adds a last rung"
            )
            raise ParameterError.of("prior", self.prior, rule, "use () for equal ones")
        object.__setattr__(self, "prior", prior)

    def __repr__(self) -> str:
        return self._short_repr()

    @property
    def rung_count(self) -> int:
        """The number of rungs, with those on means."""
        return len(self.rung_names)

    @property
    def rung_names(self) -> tuple[str, ...]:
        """The rungs in order: their rates, "means", and "recent" for the one with a memory.

        >>> import decoupled as dc
        >>> dc.Ladder().rung_names
        ('0.5', '8', 'means', 'recent')
        """
        names = [f"{rate:g}" for rate in self.rungs]
        if self.top_two_share > 0.0:
            names.append("means")
            if self.memory is not None:
                names.append("recent")
        return tuple(names)

    def rung_weights(self, state: State) -> dict[str, float]:
        weights = state.scalars[S.rung_weight : S.rung_weight + self.rung_count].tolist()
        return dict(zip(self.rung_names, weights, strict=True))

    @classmethod
    def examples(cls) -> tuple[Self, ...]:
        return (
            cls(),
            cls(rungs=(0.5, 2.0, 8.0), prior=(1.0, 2.0, 3.0), hedge_rate=2.0, top_two_share=0.0),
            cls(
                rungs=(1.0,),
                prior=(),
                least_spread=0.1,
                mean_rate=0.3,
                top_two_floor=0.5,
                memory=10,
            ),
            cls(memory=None),
            cls(rungs=(2.0,), prior=(), top_two_share=0.0, uniform_share=0.0),
        )

    def params(self) -> Params:
        rates = [rate / self.rungs[0] for rate in self.rungs]
        if self.top_two_share > 0.0:
            rates.append(BY_MEAN)
        priors = list(self.prior or (1.0,) * len(rates))
        remembers = len(rates) < self.rung_count
        if remembers:
            rates.append(BY_RECENT_MEAN)
            priors.append(self.memory_prior * sum(priors))
        unused = [0.0] * (MOST_RUNGS - len(rates))
        sum_of_priors = sum(priors)
        return Params(
            c=self.rungs[0],
            mean_rate=self.mean_rate,
            least_spread=self.least_spread,
            hedge_rate=self.hedge_rate,
            top_two_share=self.top_two_share,
            top_two_floor=self.top_two_floor,
            uniform_share=self.uniform_share,
            recency=1.0 / cast(float, self.memory) if remembers else 0.0,
            rungs=len(rates),
            rates=tuple(rates + unused),
            priors=tuple(prior / sum_of_priors for prior in priors + unused),
        )

    def init_new_arms(self, state: State, first: int) -> None:
        super().init_new_arms(state, first)
        for name in self.layout.learned:  # nobody has seen them
            if name in self.layout.floats and name != "estimates":
                self.layout.row(state, name)[first:] = 0.0

    @property
    def baselines(self) -> Baselines:
        return LadderBaselines(self)

    def unknown(self, state: State) -> NDArray[np.bool_]:
        unseen: NDArray[np.bool_] = state.floats[R.counts] == 0.0  # baselines move all estimates
        return unseen

    # Laws

    def exploitation_law(self, state: State) -> Floats:
        """The mixture of the rungs' laws."""
        scalars = state.scalars
        estimates = state.floats[R.estimates]
        gaps = estimates - estimates.min()
        law = np.zeros(len(gaps))
        for rung in range(self.rung_count):
            weight = scalars[S.rung_weight + rung]
            rate = scalars[S.rung_rate + rung]
            if rate < 0.0:
                led_by = S.leader if rate == BY_MEAN else S.recent_leader
                leader = int(scalars[led_by])
                law += weight * (np.arange(len(gaps)) == leader if leader >= 0 else 1.0 / len(gaps))
            else:
                law += weight * pareto_winner_law(scalars[S.eta] * rate * gaps, ALPHA)
        return law

    keyed_in_place = True

    def keyed(self, state: State) -> Keyed:
        return Keyed(keyed_ladder, (state.scalars, state.floats, self.rung_count))

    def exploration_law(self, state: State) -> Floats:
        """The surrogates, with the shares of the best arms and of all."""
        law: Floats = state.floats[R.law].copy()
        return law


def _numbers(values: object) -> tuple[float, ...] | None:
    """The values as numbers; None if one is not a number."""
    if not isinstance(values, (list, tuple, np.ndarray)):
        return None
    numbers = []
    for value in values:
        number = as_float(value)
        if number is None:
            return None
        numbers.append(number)
    return tuple(numbers)


class LadderBaselines(Baselines):
    """The baselines of a ladder: any are accepted, and a pending decision keeps its law."""

    are_free = True
    keep_law = True

    def __init__(self, policy: Ladder) -> None:
        super().__init__(policy.layout, "baseline", KEPT)
        self._policy = policy

    def read(self, state: State) -> tuple[Ints, Floats]:
        count = state.floats.shape[1] if state.scalars[ROUND] > 1.0 else 0
        return np.arange(count), state.floats[R.baseline, :count].copy()

    def write(self, state: State, places: Ints, values: Floats) -> None:
        super().write(state, places, values)
        has_all_arms = len(places) == state.floats.shape[1]
        state.scalars[S.highest] = values.max(initial=0.0)
        state.scalars[S.covered] = ALL_ARMS if has_all_arms else SOME_ARMS
        state.scalars[S.judged] = NOBODY
        state.scalars[S.origin] = GIVEN

    def clear(self, state: State) -> None:
        state.scalars[S.covered] = NO_ARMS  # the update fills in those of its own round
        state.scalars[S.origin] = GIVEN

    def recall_law(self, state: State, places: Ints, chances: Floats, *, is_same: bool) -> None:
        law = state.floats[R.law]
        law[:] = -1.0
        law[places] = chances
        if not is_same:
            state.scalars[S.origin] = NO_STATE

    def prepare(self, state: State, arm: int) -> None:
        if self._policy.rung_count > 1 and state.scalars[ROUND] > 1.0:
            prepare_for(self._policy.params(), state, arm)

    def largest(self, state: State) -> Floats:
        """The bound of the soft gate: least + p_i * (1 + rate * gap) / (2 * rate).

        See `fill_baselines`.
        """
        scalars = state.scalars
        estimates = state.floats[R.estimates]
        law = self._policy.exploration_law(state)
        least = min(scalars[S.least], START + scalars[S.rise])
        unit = np.inf if scalars[S.largest] == 0.0 else 1.0 / scalars[S.eta]
        most: Floats = least + 0.5 * law * (unit + estimates - estimates.min())
        return most
