"""The decoupled Exp3 of Avner, Mannor and Shamir, with a tuning that is safe for any losses."""

import math
from dataclasses import dataclass
from typing import NamedTuple, Self

from ..base.arrays import Words
from ..base.validation import check_number, known_horizon
from ..kernels.dispatch import Functions
from ..kernels.jit import compiled
from ..kernels.random.sampling import draw_both, total
from ..kernels.state import ARMS, ROUND, Layout, State
from .exp3 import exponential_weights
from .explicit import EXPLICIT_SUMS, ExplicitLaws

LAYOUT = Layout(
    scalars=EXPLICIT_SUMS, floats=("estimates", "exploit", "explore"), learned=("estimates",)
)
S, R, _ = LAYOUT.places()


class Params(NamedTuple):
    """The parameters of the compiled code."""

    horizon: float  # 0 if unknown
    mixing: float


@compiled
def learning_rate(params: Params, state: State) -> float:
    """The learning rate eta_t, which is constant if the horizon is known."""
    arms = state.scalars[ARMS]
    if params.horizon > 0.0:
        return math.sqrt(2.0 * math.log(arms) / (arms * params.horizon))
    return math.sqrt(math.log(arms) / (arms * state.scalars[ROUND]))


@compiled
def mix(mixing: float, state: State) -> None:
    """Mix w with the uniform law; p is the square root of the result."""
    exploit = state.floats[R.exploit]
    explore = state.floats[R.explore]
    kept = (1.0 - mixing) / total(exploit)
    for i in range(len(exploit)):
        exploit[i] = kept * exploit[i] + mixing / len(exploit)
        explore[i] = math.sqrt(exploit[i])


@compiled
def init(params: Params, state: State) -> None:
    """Compute both laws, up to their sums."""
    floats = state.floats
    half_rate = 0.5 * learning_rate(params, state)
    exponential_weights(floats[R.estimates], half_rate, floats[R.exploit], floats[R.explore])
    if params.mixing > 0.0:
        mix(params.mixing, state)
    state.scalars[S.exploit_sum] = total(floats[R.exploit])
    state.scalars[S.explore_sum] = total(floats[R.explore])


@compiled
def decide(params: Params, state: State, stream: Words) -> tuple[int, int, float, float]:
    """Draw from w and from p, independently."""
    floats = state.floats
    scalars = state.scalars
    return draw_both(
        floats[R.exploit],
        scalars[S.exploit_sum],
        floats[R.explore],
        scalars[S.explore_sum],
        stream,
    )


@compiled
def update(params: Params, state: State, arm: int, weight: float, loss: float) -> None:
    """Add the importance-weighted loss."""
    state.floats[R.estimates, arm] += weight * loss
    init(params, state)


@dataclass(frozen=True)
class AvnerExp3(ExplicitLaws):
    r"""Decoupled exponential weights that know the horizon.

    With $\hat L$ the summed loss estimates and $\gamma$ = `mixing`, each round

    - exploits $i_t \sim w$, with $w_i = (1 - \gamma) g_i / \sum_k g_k + \gamma / K$ and $g_i =
      \exp(-\eta \hat L_i)$;
    - explores $j_t \sim p$, with $p_i \propto \sqrt{w_i}$, which minimises the variance $\sum_i w_i
      / p_i$;
    - learns $\hat L_{j_t} \leftarrow \hat L_{j_t} + \ell / p_{j_t}$, where $\ell$ is the loss seen.

    The laws are published: Avner, O., Mannor, S. and Shamir, O. (2012). Decoupling exploration and
    exploitation in multi-armed bandits. ICML; equation (3) of Kim, Lee and Oh (2026). Their tuning
    of $\eta$ and $\gamma$ differs by regime, and we know it only in part. The tuning here is ours
    and safe for any losses: $\gamma = 0$, and

    - with a horizon $T$, $\eta = \sqrt{2 \ln K / (K T)}$. Since $\sum_i w_i / p_i \le K$, regret is
      at most $\ln K / \eta + \eta K T / 2 = \sqrt{2 K T \ln K}$;
    - without a horizon, $\eta_t = \sqrt{\ln K / (K t)}$. Falling rates give regret of at most
      $\ln K / \eta_T + \frac{K}{2} \sum_t \eta_t \le 2 \sqrt{K T \ln K}$ at every $T$, and no other
      multiple of $1 / \sqrt{t}$ makes that bound smaller. This is `Exp3` with $c = \sqrt{\ln K}$.

    Args:
        horizon: the number of rounds $T$, or None if unknown. Past the horizon the policy keeps its
            rate.
        mixing: $\gamma$, from 0 to below 1. It adds at most $\gamma T$ to these bounds, and keeps
            every $w_i \ge \gamma / K$.

    >>> import decoupled as dc
    >>> learner = dc.AvnerExp3(horizon=100).start(arms=2, seed=1)
    >>> learner.replay([(0, 0.5, 1.0), (1, 0.5, 0.0)])
    2
    >>> learner.exploitation_probabilities().round(3).tolist()
    [0.458, 0.542]
    """

    horizon: int | None = None
    mixing: float = 0.0

    layout = LAYOUT
    params_type = Params
    functions = Functions(init, decide, update)

    def __post_init__(self) -> None:
        object.__setattr__(self, "horizon", known_horizon(self.horizon))
        object.__setattr__(
            self,
            "mixing",
            check_number("mixing", self.mixing, "the default is 0", at_least=0.0, below=1.0),
        )

    @classmethod
    def examples(cls) -> tuple[Self, ...]:
        return cls(), cls(horizon=300), cls(horizon=40, mixing=0.1)

    def params(self) -> Params:
        return Params(float(self.horizon or 0), self.mixing)
