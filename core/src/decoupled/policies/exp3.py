"""Exp3: decoupled, the limit beta = 1 of Tsallis-INF, and for the standard game, with functions of its own."""

import math
from dataclasses import dataclass
from typing import NamedTuple, Self

from ..base.arrays import Floats, Words
from ..base.validation import set_number
from ..kernels.argmin import lowest_of
from ..kernels.compose import Composed
from ..kernels.dispatch import Functions
from ..kernels.jit import compiled
from ..kernels.laws import explicit
from ..kernels.random.sampling import draw_one, total
from ..kernels.state import ARMS, ROUND, Layout, State
from .base import Policy
from .composed import ExplicitPolicy


@dataclass(frozen=True, repr=False)
class Exp3(ExplicitPolicy):
    r"""Decoupled exponential weights (EXP3 in the paper's figures).

    With $\hat L$ the summed loss estimates and $\eta_t = c / \sqrt{K t}$, each round

    - exploits $i_t \sim w$, with $w_i \propto \exp(-\eta_t \hat L_i)$;
    - explores $j_t \sim p$, with $p_i \propto \sqrt{w_i}$;
    - learns $\hat L_{j_t} \leftarrow \hat L_{j_t} + \ell / p_{j_t}$, where $\ell$ is the loss seen.

    This is decoupled Tsallis-INF with $\beta = 1$ (section 2.2 of Kim, Lee and Oh, 2026). It is close to `AvnerExp3`, the
    policy of Avner, Mannor and Shamir (2012) (equation (3) of Kim, Lee and Oh, with $\gamma = 0$).

    Three options are ours and work as in `FTPL`: `estimator` "centred", with its parameters `kappa` and `lam`, a rate
    for exploitation with `c_exploit`, and `schedule` "losses".

    Args:
        c: scale of the learning rate, above 0.
        estimator: "importance", as published, or "centred".
        c_exploit: scale of the exploitation rate, above 0; None for c.
        kappa: for "centred": the gate, above 0.
        lam: for "centred": how fast the running mean of the losses moves, from 0 to below 1.
        schedule: "rounds" (the rates fall with the number of rounds, as published) or "losses".

    >>> import decoupled as dc
    >>> learner = dc.Exp3(c=4.0).start(arms=2, seed=1)
    >>> learner.replay([(0, 0.5, 1.0), (1, 0.5, 0.0)])
    2
    >>> learner.exploitation_probabilities().round(3).tolist()
    [0.037, 0.963]
    """

    c: float = 2.0
    estimator: str = "importance"
    c_exploit: float | None = None
    kappa: float = 0.1
    lam: float = 0.05
    schedule: str = "rounds"

    published_fields = ("c",)

    def __post_init__(self) -> None:
        self._check_options()

    @classmethod
    def examples(cls) -> tuple[Self, ...]:
        return cls(), cls(c=0.5), cls(c=1.0, c_exploit=4.0, estimator="centred", kappa=0.4, lam=0.3)

    @property
    def composed(self) -> Composed:
        return explicit.COMPOSED


LAYOUT = Layout(
    scalars=("scale", "weight_sum"), floats=("estimates", "weights"), learned=("estimates",)
)
S, R, N = LAYOUT.places()


class Params(NamedTuple):
    """The parameters of the compiled code."""

    c: float


@compiled
def refresh(state: State) -> None:
    """Fill the law, up to its sum. Using gaps keeps every exponent at or below 0."""
    floats = state.floats
    eta = state.scalars[S.scale] / math.sqrt(state.scalars[ROUND])
    lowest = lowest_of(floats[R.estimates])
    for i in range(floats.shape[1]):
        floats[R.weights, i] = math.exp(eta * (lowest - floats[R.estimates, i]))
    state.scalars[S.weight_sum] = total(floats[R.weights])


@compiled
def init(params: Params, state: State) -> None:
    """Compute eta_t * sqrt(t), then the law."""
    arms = state.scalars[ARMS]
    state.scalars[S.scale] = params.c * math.sqrt(math.log(arms) / arms)
    refresh(state)


@compiled
def decide(params: Params, state: State, stream: Words) -> tuple[int, int, float, float]:
    """Draw from w."""
    return draw_one(state.floats[R.weights], state.scalars[S.weight_sum], stream)


@compiled
def update(params: Params, state: State, arm: int, weight: float, loss: float) -> None:
    """Add the importance-weighted loss."""
    state.floats[R.estimates, arm] += weight * loss
    refresh(state)


@dataclass(frozen=True)
class CoupledExp3(Policy):
    r"""Exponential weights in the standard game, where the arm played is the arm seen.

    With $\hat L$ the summed loss estimates and $\eta_t = c \sqrt{\ln K / (K t)}$, each round

    - plays $I_t \sim w$, with $w_i \propto \exp(-\eta_t \hat L_i)$;
    - learns $\hat L_{I_t} \leftarrow \hat L_{I_t} + \ell / w_{I_t}$, where $\ell$ is the loss seen.

    Auer, P., Cesa-Bianchi, N., Freund, Y. and Schapire, R. E. (2002). The nonstochastic multiarmed bandit problem. SIAM
    Journal on Computing 32(1). Their Exp3 counts rewards, mixes in uniform draws and is tuned for a horizon. This is
    the later form for losses, which needs none of that: Bubeck, S. and Cesa-Bianchi, N. (2012). Regret analysis of
    stochastic and nonstochastic multi-armed bandit problems, theorem 3.1. Its anytime rate is $c = 1$, and its regret
    bound is $2 \sqrt{T K \ln K}$.

    Args:
        c: scale of the learning rate, above 0.

    >>> import decoupled as dc
    >>> learner = dc.CoupledExp3().start(arms=2, seed=1)
    >>> learner.replay([(0, 0.5, 1.0), (1, 0.5, 0.0)])
    2
    >>> learner.exploitation_probabilities().round(3).tolist()
    [0.336, 0.664]
    """

    c: float = 1.0

    layout = LAYOUT
    params_type = Params
    functions = Functions(init, decide, update)
    coupled = True

    def __post_init__(self) -> None:
        set_number(self, "c", 0.0, 1e100, "the default is 1")

    def exploitation_law(self, state: State) -> Floats:
        law: Floats = state.floats[R.weights] / state.scalars[S.weight_sum]
        return law
