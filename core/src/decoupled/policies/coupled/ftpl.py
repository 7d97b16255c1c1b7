"""FTPL for the standard game, where geometric resampling estimates 1/w."""

import math
from dataclasses import dataclass
from typing import NamedTuple, Self

from ...base.arrays import Floats, Words
from ...base.validation import one_of, set_number, set_whole
from ...kernels.dispatch import Functions
from ...kernels.jit import compiled
from ...kernels.laws.resampling import draws_until_win
from ...kernels.laws.winner_law import frechet_winner_law, pareto_winner_law
from ...kernels.order.ranked import move_arm, rank_of, sort_arms
from ...kernels.random.sampling import frechet_leader, pareto_leader
from ...kernels.state import ARMS, ROUND, SHARED_SCALARS, Layout, State
from ..base import Policy

SCALE, ETA = range(len(SHARED_SCALARS), len(SHARED_SCALARS) + 2)
ESTIMATES, RANKED = range(2)
ORDER = 0

DEFAULT_CAP = 1_000_000


class Params(NamedTuple):
    """The parameters of the compiled code."""

    alpha: float
    c: float
    pareto: float
    conditional: float
    cap: float


@compiled
def init(params: Params, state: State) -> None:
    """Rank the arms."""
    state.scalars[SCALE] = params.c * state.scalars[ARMS] ** (1.0 / params.alpha - 0.5)
    state.scalars[ETA] = state.scalars[SCALE] / math.sqrt(state.scalars[ROUND])
    sort_arms(state.floats[ESTIMATES], state.floats[RANKED], state.ints[ORDER])


@compiled
def decide(params: Params, state: State, stream: Words) -> tuple[int, int, float, float]:
    """Draw the perturbed leader, and estimate 1/w from the same state, so that feedback may be late."""
    ranked, eta = state.floats[RANKED], state.scalars[ETA]
    pareto = params.pareto > 0.0
    if pareto:
        rank = pareto_leader(ranked, eta, params.alpha, stream)
    else:
        rank = frechet_leader(ranked, eta, params.alpha, stream)
    among = rank + 1 if params.conditional > 0.0 else 1
    draws = draws_until_win(ranked, rank, among, eta, params.alpha, pareto, params.cap, stream)
    arm = state.ints[ORDER, rank]
    return arm, arm, among * draws, math.nan


@compiled
def update(params: Params, state: State, arm: int, weight: float, loss: float) -> None:
    """Add the weighted loss and restore the rank order."""
    before = state.floats[ESTIMATES, arm]
    after = before + weight * loss
    state.floats[ESTIMATES, arm] = after
    if after != before:
        move_arm(state.floats[RANKED], state.ints[ORDER], arm, before, after)
    state.scalars[ETA] = state.scalars[SCALE] / math.sqrt(state.scalars[ROUND])


@compiled
def draws_made(params: Params, state: State, arm: int, weight: float) -> float:
    """The number of draws behind a decision's weight, given the state in which it was made."""
    if params.conditional > 0.0:
        rank = rank_of(state.floats[RANKED], state.ints[ORDER], state.floats[ESTIMATES, arm], arm, 0)
        return weight / (rank + 1)
    return weight


@dataclass(frozen=True)
class CoupledFTPL(Policy):
    r"""Follow the perturbed leader in the standard game, where the arm played is the arm seen.

    With $\hat L$ the summed loss estimates and $\eta_t = c K^{1/\alpha - 1/2} / \sqrt{t}$, each round

    - plays $I_t = \arg\min_i (\hat L_i - r_i / \eta_t)$, with $r_i$ independent Frechet($\alpha$) on $(0, \infty)$ or
      Pareto($\alpha$) on $[1, \infty)$;
    - learns $\hat L_{I_t} \leftarrow \hat L_{I_t} + \ell W$, where $\ell$ is the loss seen, $W$ estimates $1/w$, and $w$ is
      the probability of playing $I_t$.

    $w$ has no closed form, so the policy resamples $W$ when it decides. $W$ is the decision's `weight` and its propensity is
    None, so feedback may be late. "geometric" redraws all perturbations until $I_t$ wins again; $W = M$ is the number
    of draws, about $K$ a round. "conditional" redraws them given that $I_t$ has the largest perturbation of the $s$ arms
    that rank no worse; $W = s M$, with about $1 + 1/2 + \dots + 1/K$ draws a round. Both have mean $1/w$, and the conditional
    one varies less. A `cap` on $M$ limits the time of a decision and makes the estimate slightly too small: the mean of
    $\min(M, k)$, for a cap $k$, is $(1 - (1 - w)^k) / w$, with $s w$ for $w$ in the conditional case.

    Frechet with $\alpha = 2$ and "geometric": Honda, J., Ito, S. and Tsuchiya, T. (2023). Follow-the-perturbed-leader
    achieves best-of-both-worlds for bandit problems. ALT. Pareto and similar perturbations: Lee, J., Honda, J., Ito, S.
    and Oh, M. (2024). Follow-the-perturbed-leader with Frechet-type tail distributions. COLT. "conditional": Chen, B.,
    Lee, J. and Honda, J. (2025). Geometric resampling in nearly linear time for follow-the-perturbed-leader with
    best-of-both-worlds guarantee in bandit problems. ICML. Their experiments use $c = 2$. The factor of $K$, which is 1 at
    $\alpha = 2$, is our reading of Lee et al., and the cap is ours.

    Args:
        perturbation: "frechet" or "pareto".
        resampling: "geometric" or "conditional".
        alpha: shape of the perturbations, above 1 (and below 1e9, where they are nearly constant).
        c: scale of the learning rate, above 0.
        cap: the largest number of draws; None for no limit, and then a decision may take any time. At the default, the
            weight of an arm with a chance of 1 in 145,000 is 0.1 % too low on average; rarer arms lose more.

    >>> import decoupled as dc
    >>> learner = dc.CoupledFTPL().start(arms=["a", "b", "c"], seed=1)
    >>> decision = learner.decide()
    >>> decision.exploit == decision.explore, decision.propensity, decision.weight
    (True, None, 2.0)
    >>> learner.observe(decision, loss=0.3)
    >>> dc.CoupledFTPL(perturbation="pareto", resampling="conditional").label
    "CoupledFTPL(perturbation='pareto', resampling='conditional')"
    """

    perturbation: str = "frechet"
    resampling: str = "geometric"
    alpha: float = 2.0
    c: float = 2.0
    cap: int | None = DEFAULT_CAP

    layout = Layout(
        scalars=("scale", "eta"), floats=("estimates", "ranked"), ints=("order",), learned=("estimates",)
    )
    params_type = Params
    functions = Functions(init, decide, update)
    coupled = True

    def __post_init__(self) -> None:
        one_of("perturbation", self.perturbation, ("frechet", "pareto"))
        one_of("resampling", self.resampling, ("geometric", "conditional"))
        set_number(self, "alpha", 1.0, 1e9, "the default is 2")
        set_number(self, "c", 0.0, 1e100, "the default is 2")
        if self.cap is not None:
            set_whole(self, "cap", 1, f"the default is {DEFAULT_CAP}, and None is no limit")

    @classmethod
    def examples(cls) -> tuple[Self, ...]:
        return (
            cls(),
            cls(resampling="conditional"),
            cls(perturbation="pareto", cap=None),
            cls(perturbation="pareto", resampling="conditional", alpha=3.0, c=1.0, cap=None),
        )

    def params(self) -> Params:
        pareto, conditional = float(self.perturbation == "pareto"), float(self.resampling == "conditional")
        cap = math.inf if self.cap is None else float(self.cap)
        return Params(self.alpha, self.c, pareto, conditional, cap)

    def exploitation_law(self, state: State) -> Floats:
        estimates = state.floats[ESTIMATES]
        shifts = state.scalars[ETA] * (estimates - estimates.min())
        law = pareto_winner_law if self.perturbation == "pareto" else frechet_winner_law
        return law(shifts, self.alpha)
