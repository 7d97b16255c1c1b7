"""FTPL for the standard game, where the arm played is the arm seen.

Geometric resampling estimates 1/w. A perturbed leader does not know its own probability w of
winning, but the number M of fresh draws until it wins again is geometric with mean 1/w. An arm of
rank s can win only if its perturbation is the largest of the first s, which by symmetry happens
once in s times. So M can be counted among such draws only, and s * M has mean 1/w as well.

A draw here does not perturb every arm. It takes the arm's own perturbation and one more number, and
compares that number with the chance that no rival exceeds the perturbation, one rival at a time
until the result is known. The count has the same law as if every perturbation were drawn (and, in
the conditional case, the arm's swapped with the largest of the first s), and nothing is stored.

Neu, G. and Bartok, G. (2016). Importance weighting without importance weights. JMLR 17(154).
Chen, B., Lee, J. and Honda, J. (2025). Geometric resampling in nearly linear time for
follow-the-perturbed-leader with best-of-both-worlds guarantee in bandit problems. ICML.
"""

import math
from dataclasses import dataclass
from typing import NamedTuple, Self

from ..base.arrays import Floats, Words
from ..base.validation import one_of, set_number, set_whole
from ..kernels.dispatch import Functions
from ..kernels.jit import compiled
from ..kernels.order.ranked import move_arm, rank_of, restore_order
from ..kernels.powers import inverse_power
from ..kernels.random.sampling import frechet_leader, inverse_root_excess, pareto_leader
from ..kernels.random.stream import uniform
from ..kernels.state import ARMS, ROUND, Layout, State
from ..kernels.winner_law import frechet_winner_law, pareto_winner_law
from .base import Policy


@compiled
def draws_until_win(
    ranked: Floats,
    rank: int,
    among: int,
    eta: float,
    alpha: float,
    pareto: bool,
    cap: float,
    stream: Words,
) -> float:
    """min(M, cap): fresh draws until the arm at `rank` (from 0) wins, including the winning draw.

    `among` is 1 for plain draws, or rank + 1 for draws in which the arm's perturbation is the
    largest up to its rank.
    """
    draws = 1.0
    while draws < cap:
        if pareto:
            won = _wins_pareto(ranked, rank, among, eta, alpha, stream)
        else:
            won = _wins_frechet(ranked, rank, among, eta, alpha, stream)
        if won:
            break
        draws += 1.0
    return draws


@compiled
def _wins_frechet(
    ranked: Floats, rank: int, among: int, eta: float, alpha: float, stream: Words
) -> bool:
    """Whether the arm at a rank wins a draw of Frechet perturbations; see `draws_until_win`."""
    # A perturbation is t ** (-1/alpha) with t exponential; the largest of several has the smallest
    # t.
    tail = -math.log(uniform(stream)) / among
    own = inverse_root_excess(tail, alpha)
    # All rivals stay behind with probability exp(-sum of their levels), given that `among - 1` of
    # them have t > tail.
    life = (among - 1) * tail - math.log(uniform(stream))
    for k in range(len(ranked)):
        if k != rank:
            excess = own + eta * (ranked[k] - ranked[rank])
            if excess <= -1.0:
                return False
            life -= inverse_power(excess, alpha)
            if not life >= 0.0:
                return False
    return True


@compiled
def _wins_pareto(
    ranked: Floats, rank: int, among: int, eta: float, alpha: float, stream: Words
) -> bool:
    """Whether the arm at a rank wins a draw of Pareto perturbations; see `draws_until_win`."""
    # A perturbation is t ** (-1/alpha) with t uniform.
    tail = uniform(stream)
    mark = uniform(stream)
    if among > 1:
        tail = -math.expm1(math.log(tail) / among)
        mark *= math.exp((among - 1) * math.log1p(-tail))
    own = inverse_root_excess(tail, alpha)
    chance = 1.0
    for k in range(len(ranked)):
        if k != rank:
            excess = own + eta * (ranked[k] - ranked[rank])
            if excess <= 0.0:
                return False
            chance *= 1.0 - inverse_power(excess, alpha)
            if not chance >= mark:
                return False
    return True


LAYOUT = Layout(
    scalars=("scale", "eta"),
    floats=("estimates", "ranked"),
    ints=("order",),
    learned=("estimates",),
)
S, R, N = LAYOUT.places()

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
    state.scalars[S.scale] = params.c * state.scalars[ARMS] ** (1.0 / params.alpha - 0.5)
    state.scalars[S.eta] = state.scalars[S.scale] / math.sqrt(state.scalars[ROUND])
    restore_order(state.floats[R.estimates], state.floats[R.ranked], state.ints[N.order])


@compiled
def decide(params: Params, state: State, stream: Words) -> tuple[int, int, float, float]:
    """Draw the perturbed leader.

    The estimate of 1/w comes from the same state, so that feedback may be late.
    """
    ranked = state.floats[R.ranked]
    eta = state.scalars[S.eta]
    pareto = params.pareto > 0.0
    if pareto:
        rank = pareto_leader(ranked, eta, params.alpha, stream)
    else:
        rank = frechet_leader(ranked, eta, params.alpha, stream)
    among = rank + 1 if params.conditional > 0.0 else 1
    draws = draws_until_win(ranked, rank, among, eta, params.alpha, pareto, params.cap, stream)
    arm = state.ints[N.order, rank]
    return arm, arm, among * draws, math.nan


@compiled
def update(params: Params, state: State, arm: int, weight: float, loss: float) -> None:
    """Add the weighted loss and restore the rank order."""
    before = state.floats[R.estimates, arm]
    after = before + weight * loss
    state.floats[R.estimates, arm] = after
    if after != before:
        move_arm(state.floats[R.ranked], state.ints[N.order], arm, before, after)
    state.scalars[S.eta] = state.scalars[S.scale] / math.sqrt(state.scalars[ROUND])


@compiled
def draws_made(params: Params, state: State, arm: int, weight: float) -> float:
    """The number of draws behind a decision's weight, given the state in which it was made."""
    if params.conditional > 0.0:
        rank = rank_of(
            state.floats[R.ranked], state.ints[N.order], state.floats[R.estimates, arm], arm, 0
        )
        return weight / (rank + 1)
    return weight


@dataclass(frozen=True)
class CoupledFTPL(Policy):
    r"""Follow the perturbed leader in the standard game, where the arm played is the arm seen.

    With $\hat L$ the summed loss estimates and $\eta_t = c K^{1/\alpha - 1/2} / \sqrt{t}$, each
    round

    - plays $I_t = \arg\min_i (\hat L_i - r_i / \eta_t)$, with $r_i$ independent Frechet($\alpha$)
      on $(0, \infty)$ or Pareto($\alpha$) on $[1, \infty)$;
    - learns $\hat L_{I_t} \leftarrow \hat L_{I_t} + \ell W$, where $\ell$ is the loss seen, $W$
      estimates $1/w$, and $w$ is the probability of playing $I_t$.

    $w$ has no closed form, so the policy resamples $W$ when it decides. $W$ is the decision's
    `weight` and its propensity is None, so feedback may be late. "geometric" redraws all
    perturbations until $I_t$ wins again; $W = M$ is the number of draws, about $K$ a round.
    "conditional" redraws them given that $I_t$ has the largest perturbation of the $s$ arms that
    rank no worse; $W = s M$, with about $1 + 1/2 + \dots + 1/K$ draws a round. Both have mean
    $1/w$, and the conditional one varies less. A `cap` on $M$ limits the time of a decision and
    makes the estimate slightly too small: the mean of $\min(M, k)$, for a cap $k$, is $(1 - (1 -
    w)^k) / w$, with $s w$ for $w$ in the conditional case.

    Frechet with $\alpha = 2$ and "geometric": Honda, J., Ito, S. and Tsuchiya, T. (2023).
    Follow-the-perturbed-leader achieves best-of-both-worlds for bandit problems. ALT. Pareto and
    similar perturbations: Lee, J., Honda, J., Ito, S. and Oh, M. (2024).
    Follow-the-perturbed-leader with Frechet-type tail distributions. COLT. "conditional": Chen, B.,
    Lee, J. and Honda, J. (2025). Geometric resampling in nearly linear time for
    follow-the-perturbed-leader with best-of-both-worlds guarantee in bandit problems. ICML. Their
    experiments use $c = 2$. The factor of $K$, which is 1 at $\alpha = 2$, is our reading of Lee et
    al., and the cap is ours.

    Args:
        perturbation: "frechet" or "pareto".
        resampling: "geometric" or "conditional".
        alpha: shape of the perturbations, above 1 (and below 1e9, where they are nearly constant).
        c: scale of the learning rate, above 0.
        cap: the largest number of draws; None for no limit, so a decision may take any time. At the
            default, the weight of an arm with a chance of 1 in 145,000 is 0.1 % too low on average;
            rarer arms lose more.

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

    layout = LAYOUT
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
        return Params(
            alpha=self.alpha,
            c=self.c,
            pareto=float(self.perturbation == "pareto"),
            conditional=float(self.resampling == "conditional"),
            cap=math.inf if self.cap is None else float(self.cap),
        )

    def exploitation_law(self, state: State) -> Floats:
        estimates = state.floats[R.estimates]
        shifts = state.scalars[S.eta] * (estimates - estimates.min())
        law = pareto_winner_law if self.perturbation == "pareto" else frechet_winner_law
        return law(shifts, self.alpha)
