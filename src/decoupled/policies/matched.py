"""MatchedFTPL: FTPL with a learning rate that adapts to the exploration it causes."""

import math
from dataclasses import dataclass
from typing import NamedTuple, Self

import numpy as np

from ..base.arrays import Floats, Words
from ..base.validation import set_number
from ..kernels.dispatch import Functions
from ..kernels.jit import compiled
from ..kernels.laws.rank_limits import fill_limits, limited_surrogates
from ..kernels.laws.winner_law import pareto_winner_law
from ..kernels.order.ranked import move_arm, sort_arms
from ..kernels.random.sampling import categorical, pareto_leader, total
from ..kernels.state import ARMS, SHARED_SCALARS, Layout, State
from .base import Policy

# With beta_1 the inverse rate at the start, PASSED is (beta / beta_1) ** 2 - 1. It counts rounds, if rates fall with
# their square root, so it starts at 0 and a discount may shrink it.
PASSED, FIRST_ETA, ETA, SURROGATE_SUM = range(len(SHARED_SCALARS), len(SHARED_SCALARS) + 4)
ESTIMATES, RANKED, RANK_LIMIT, SURROGATE = range(4)
ORDER = 0


class Params(NamedTuple):
    """The parameters of the compiled code."""

    alpha: float
    kappa: float
    c: float


@compiled
def fill_surrogates(params: Params, state: State, sharing: float) -> None:
    """Fill q ** ((alpha + 1) / (2 alpha)) in rank order, at the current rate; tied arms may share theirs."""
    floats, exponent = state.floats, 0.5 * (params.alpha + 1.0)
    ranked, surrogate = floats[RANKED], floats[SURROGATE]
    limited_surrogates(floats, RANK_LIMIT, ranked, state.scalars[ETA], exponent, sharing, surrogate)


@compiled
def growth(params: Params, surrogate: Floats) -> float:
    """Compute z / h, as the docstring of `MatchedFTPL` defines them; 0 if h is 0, as with a single arm."""
    alpha, arms = params.alpha, len(surrogate)
    if arms == 1:
        return 0.0
    scale = params.kappa * total(surrogate) * (alpha - 1.0) / alpha
    exponent = 2.0 * (alpha - 1.0) / (alpha + 1.0)  # the surrogate to this power is q ** (1 - 1/alpha)
    if exponent == 1.0:  # alpha = 3: both sums without the leader are the same
        return scale
    rest = powers = 0.0
    for k in range(1, arms):
        rest += surrogate[k]
        powers += surrogate[k] ** exponent
    return scale * rest / powers if powers > 0.0 else 0.0


@compiled
def refresh(params: Params, state: State) -> None:
    """Derive the rate and the surrogates that exploration draws from."""
    scalars = state.scalars
    scalars[ETA] = scalars[FIRST_ETA] / math.sqrt(1.0 + scalars[PASSED])
    fill_surrogates(params, state, 1.0)
    scalars[SURROGATE_SUM] = total(state.floats[SURROGATE])


@compiled
def init(params: Params, state: State) -> None:
    """Rank the arms, tabulate what never changes, and derive the rest."""
    alpha = params.alpha
    fill_limits(state.floats, RANK_LIMIT, (alpha + 1.0) / (2.0 * alpha))
    sort_arms(state.floats[ESTIMATES], state.floats[RANKED], state.ints[ORDER])
    state.scalars[FIRST_ETA] = params.c * state.scalars[ARMS] ** (1.0 / alpha - 0.5)
    refresh(params, state)


@compiled
def decide(params: Params, state: State, stream: Words) -> tuple[int, int, float, float]:
    """Draw the perturbed leader and, from the surrogates, the arm to explore."""
    floats, order, mass = state.floats, state.ints[ORDER], state.scalars[SURROGATE_SUM]
    exploit = pareto_leader(floats[RANKED], state.scalars[ETA], params.alpha, stream)
    explore = categorical(floats[SURROGATE], mass, stream)
    share = floats[SURROGATE, explore]
    return order[exploit], order[explore], mass / share, share / mass


@compiled
def update(params: Params, state: State, arm: int, weight: float, loss: float) -> None:
    """Add the loss estimate, then lower the rate by what exploration is at the new estimates and the old rate."""
    floats, scalars = state.floats, state.scalars
    before = floats[ESTIMATES, arm]
    after = before + weight * loss
    floats[ESTIMATES, arm] = after
    if after != before:  # a loss of zero moves nothing
        move_arm(floats[RANKED], state.ints[ORDER], arm, before, after)
    fill_surrogates(params, state, 0.0)
    step = growth(params, floats[SURROGATE]) * scalars[ETA] * scalars[ETA]
    factor = min(2.0 ** (1.0 / params.alpha), 1.0 + step)
    scalars[PASSED] = (1.0 + scalars[PASSED]) * factor * factor - 1.0
    refresh(params, state)


@dataclass(frozen=True)
class MatchedFTPL(Policy):
    r"""FTPL at a rate that adapts: it falls faster while many arms are explored. For comparison with `FTPL`.

    With $\hat L$ the summed loss estimates, $u_i = \hat L_i - \min_k \hat L_k$, $\sigma_i$ the rank of arm $i$ (1 for the
    leader), $\eta = 1 / \beta$ and $q_i = \min((1 + u_i / \beta)^{-\alpha}, 1 / \sigma_i)$, each round

    - exploits $i_t = \arg\min_i (u_i - \beta r_i)$, with $r_i$ independent Pareto($\alpha$) on $[1, \infty)$;
    - explores $j_t \sim p$, with $p_i \propto q_i^{(\alpha + 1) / (2 \alpha)}$;
    - learns $\hat L_{j_t} \leftarrow \hat L_{j_t} + \ell / p_{j_t}$, where $\ell$ is the loss seen, and then, with $q$ of the
      new $\hat L$ and the old $\beta$, $\beta \leftarrow \min(2^{1/\alpha} \beta, \beta + z / (\beta h))$, where
      $h = \frac{\alpha}{\alpha - 1} \sum_{\sigma_i > 1} q_i^{1 - 1/\alpha}$ and
      $z = \kappa \sum_i q_i^{(\alpha + 1) / (2 \alpha)} \sum_{\sigma_i > 1} q_i^{(\alpha + 1) / (2 \alpha)}$.

    It starts from $\beta = K^{1/2 - 1/\alpha} / c$, which is the first rate of `FTPL`. If $h = 0$, $\beta$ stays.

    At $\alpha = 3$ both sums without the leader are the same, so $\beta$ grows by $\frac{2}{3} \kappa \sum_i q_i^{2/3} / \beta$.
    That sum is between 1, if one arm is far ahead, and $3 K^{1/3}$, if all are level.

    Lee, J., Honda, J., Ito, S. and Kim, C. (2026). Adaptive learning rates with surrogate probability for
    follow-the-perturbed-leader. COLT. Theirs is the idea: the rate of FTPL with Pareto perturbations follows a stability
    $z$ and a penalty $h$ that are computed from surrogate probabilities. *This policy is our reading, not theirs.* Their
    game is the standard one; $z$ with the exploration of the decoupled game, $\kappa$ and the start value are ours, and
    their bounds are not claimed for it. The laws are those of Kim, Lee and Oh (2026), as in `FTPL`.

    Arms with equal estimates are explored equally often, as with `FTPL(ties="shared")`. With `Forgetting`, a discount
    shrinks $(\beta / \beta_1)^2 - 1$, which takes the place of the number of rounds.

    Args:
        alpha: shape of the Pareto perturbations, above 1 (and below 1e9, where they are nearly constant).
        kappa: how fast the rate falls, above 0. It was chosen at alpha = 3.
        c: scale of the first learning rate, above 0.

    >>> import decoupled as dc
    >>> learner = dc.MatchedFTPL().start(arms=4, seed=1)
    >>> for _ in range(100):
    ...     decision = learner.decide()
    ...     learner.observe(decision, loss=0.2 if decision.explore == 3 else 0.8)
    >>> learner.exploitation_probabilities().round(2).tolist()
    [0.0, 0.0, 0.0, 0.99]
    >>> 1 / learner.diagnostics()["eta"] > 2.0
    True
    """

    alpha: float = 3.0
    kappa: float = 0.3
    c: float = 2.0

    layout = Layout(
        scalars=("passed", "first_eta", "eta", "surrogate_sum"),
        floats=("estimates", "ranked", "rank_limit", "surrogate"),
        ints=("order",),
        learned=("estimates", "passed"),
    )
    params_type = Params
    functions = Functions(init, decide, update)
    fading = ("estimates", "passed")
    branching = ("alpha",)
    common_rows = 1

    def __post_init__(self) -> None:
        set_number(self, "alpha", 1.0, 1e9, "the default is 3")
        set_number(self, "kappa", 0.0, 1e100, "the default is 0.3")
        set_number(self, "c", 0.0, 1e100, "the default is 2")

    @classmethod
    def examples(cls) -> tuple[Self, ...]:
        return cls(), cls(alpha=1.5, kappa=0.6, c=1.0), cls(alpha=6.0, kappa=2.0)

    def params(self) -> Params:
        return Params(self.alpha, self.kappa, self.c)

    def exploitation_law(self, state: State) -> Floats:
        estimates = state.floats[ESTIMATES]
        return pareto_winner_law(state.scalars[ETA] * (estimates - estimates.min()), self.alpha)

    def exploration_law(self, state: State) -> Floats:
        law = np.empty(state.floats.shape[1])
        law[state.ints[ORDER]] = state.floats[SURROGATE] / state.scalars[SURROGATE_SUM]
        return law
