"""FTPL: the paper's policy. No convex optimisation, no resampling."""

import math
from dataclasses import dataclass, fields, replace
from functools import lru_cache
from typing import Any, ClassVar, NamedTuple, Self, cast

import numpy as np

from ..arrays import Floats, Ints, Words
from ..checks import number_from, number_in, one_of
from ..kernels import centred
from ..kernels.compiled import compiled
from ..kernels.dispatch import Functions
from ..kernels.rank_limits import fill_limits, limited_surrogates
from ..kernels.ranking import move_arm, sort_arms
from ..kernels.sampling import categorical, pareto_leader, total
from ..kernels.state import ARMS, ROUND, SHARED_SCALARS, Layout, State
from ..kernels.weights import pareto_winner_law
from . import ftpl_strata
from .additions import Form, OfForm
from .base import Policy
from .ftpl_strata import BASELINE, COVERED, COVERED_ARMS, fill_exploration_law

SCALE, ETA, SURROGATE_SUM = range(len(SHARED_SCALARS), len(SHARED_SCALARS) + 3)
ESTIMATES, RANKED, RANK_LIMIT, SURROGATE = range(4)
ORDER = 0

PAPERS = ("alpha", "c", "ranking")  # the parameters of the paper's policy

# With ranking "auto", from so many arms on in strata. There the round is faster, but does not know its
# propensities; and with centred losses strata give a baseline to the first 64 ranks alone, which costs regret
# with a thousand arms and more, while the dense round takes four times as long from about here on.
MANY_ARMS = 768
MANY_CENTRED = 4_096


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
    limited_surrogates(floats, RANK_LIMIT, floats[RANKED], eta, exponent, floats[SURROGATE])
    scalars[SURROGATE_SUM] = total(floats[SURROGATE])


@compiled
def init(params: Params, state: State) -> None:
    """Rank the arms and tabulate rank ** (-(alpha + 1) / (2 alpha))."""
    state.scalars[SCALE] = params.c * state.scalars[ARMS] ** (1.0 / params.alpha - 0.5)
    exponent = (params.alpha + 1.0) / (2.0 * params.alpha)
    fill_limits(state.floats, RANK_LIMIT, exponent)
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


_DENSE = Form(
    Layout(
        scalars=("scale", "eta", "surrogate_sum"),
        floats=("estimates", "ranked", "rank_limit", "surrogate"),
        ints=("order",),
        learned=("estimates",),
    ),
    Params,
    Functions(init, decide, update),
)
_STRATA = Form(
    ftpl_strata.LAYOUT._replace(learned=("estimates",)), ftpl_strata.Params, ftpl_strata.FUNCTIONS
)
_PUBLISHED = {
    "improved": _DENSE,
    "sorting": _DENSE,
    "strata": _STRATA,
    "auto": _DENSE,  # until the number of arms is known: see FTPL.at
}
_CENTRED = Form(centred.LAYOUT, centred.Params, centred.FUNCTIONS)
_OURS = {
    "improved": _CENTRED,
    "sorting": _CENTRED,
    "strata": _STRATA._replace(layout=ftpl_strata.LAYOUT),
    "auto": _CENTRED,
}
_BY_LOSSES = {
    ranking: form._replace(layout=form.layout._replace(learned=(*form.layout.learned, "spread")))
    for ranking, form in _OURS.items()
}


@dataclass(frozen=True, repr=False)
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
            the paper. With centred losses the first 64 ranks alone have a baseline. "auto" is "improved" below 768
            arms, below 4,096 with any of our additions, and "strata" from there on.
        estimator: "importance", the paper's, or "centred".
        c_exploit: scale of the rate at which the leader is perturbed, above 0; None for c.
        kappa: for "centred": the gate, above 0. No observation takes more than B_t / (kappa * eta_t) off an
            estimate.
        lam: for "centred": how fast the running mean of the losses moves, from 0 on and below 1.
        schedule: what the rates fall with: "rounds", the paper's, or "losses".

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

    presets = ("recommended",)
    published_form: ClassVar[Form] = _DENSE
    fading: ClassVar[tuple[str, ...] | None] = (
        "estimates",
        "spread",
    )  # the running mean forgets by itself
    branching = ("alpha", "sorting", "by_losses")
    layout: ClassVar[Layout] = cast(Any, OfForm("layout"))
    params_type: ClassVar[Any] = OfForm("params_type")
    functions: ClassVar[Functions] = cast(Any, OfForm("functions"))

    def __post_init__(self) -> None:
        def put(name: str, value: float) -> None:
            object.__setattr__(self, name, value)

        put("alpha", number_in("alpha", self.alpha, 1.0, 1e9, "the default is 3"))
        put("c", number_in("c", self.c, 0.0, 1e100, "the default is 2"))
        one_of("ranking", self.ranking, tuple(_PUBLISHED))
        one_of("estimator", self.estimator, ("importance", "centred"))
        if self.c_exploit is not None:
            put("c_exploit", number_in("c_exploit", self.c_exploit, 0.0, 1e100, "the default, None, is c"))
        put("kappa", number_in("kappa", self.kappa, 0.0, 1e100, "the default is 0.1"))
        put("lam", number_from("lam", self.lam, 0.0, 1.0, "the default is 0.05"))
        one_of("schedule", self.schedule, ("rounds", "losses"))

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
    def forms(cls) -> tuple[Policy, ...]:
        return cls(), cls(ranking="strata"), cls(estimator="centred")

    def __repr__(self) -> str:
        # The paper's parameters always, ours where they are set.
        told = [
            f"{field.name}={value!r}"
            for field in fields(self)
            if (value := getattr(self, field.name)) != field.default or field.name in PAPERS
        ]
        return f"{type(self).__qualname__}({', '.join(told)})"

    # The paper's own policy has compiled functions of its own, which the additions do not slow down.

    @property
    def published(self) -> bool:
        """Whether this is the paper's policy: importance weighting, one rate, which falls with the rounds."""
        ours = self.estimator == "centred" or self.schedule == "losses"
        return not ours and self.c_exploit in (None, self.c)

    @property
    def form(self) -> Form:
        """The state and the compiled functions that its parameters call for."""
        if self.published:
            return _PUBLISHED[self.ranking]
        return (_BY_LOSSES if self.schedule == "losses" else _OURS)[self.ranking]

    @property
    def common_rows(self) -> int:  # type: ignore[override]
        """The table of rank limits, which the rounds in strata keep in the state."""
        return int(self.ranking in ("improved", "sorting"))

    @property
    def baseline(self) -> str | None:  # type: ignore[override]
        """The row of baselines that a pending decision keeps."""
        return "baseline" if self.estimator == "centred" else None

    def at(self, arms: int) -> "FTPL":
        if self.ranking != "auto":
            return self
        many = arms >= (MANY_ARMS if self.published else MANY_CENTRED)
        return _ranked(self, "strata" if many else "improved")

    def params(self) -> Any:
        kind: Any = self.params_type
        given = {
            "alpha": self.alpha,
            "c": self.c,
            "sorting": float(self.ranking == "sorting"),
            "c_exploit": self.c if self.c_exploit is None else self.c_exploit,
            "kappa": self.kappa if self.estimator == "centred" else math.inf,
            "lam": 0.0 if self.published else self.lam,
            "by_losses": float(self.schedule == "losses"),
        }
        return kind(*(given[name] for name in kind._fields))

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
        estimates = state.floats[ESTIMATES]
        eta = float(self.layout.row(state, "eta" if self.published else "eta_exploit")[0])
        return pareto_winner_law(eta * (estimates - estimates.min()), self.alpha)

    def exploration_law(self, state: State) -> Floats:
        law = np.empty(state.floats.shape[1])
        if self.ranking == "strata":
            fill_exploration_law(self.alpha, state, law)
            return law
        law[state.ints[ORDER]] = state.floats[SURROGATE] / self.layout.row(state, "surrogate_sum")
        return law


@lru_cache(maxsize=64)  # asked for with every decision among some arms, and checking parameters takes time
def _ranked(policy: FTPL, ranking: str) -> FTPL:
    return replace(policy, ranking=ranking)
