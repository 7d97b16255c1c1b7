"""Exp3 for the standard game: exponential weights, where the arm played is the arm seen."""

import math
from dataclasses import dataclass
from typing import NamedTuple

from ..base.arrays import Floats, Words
from ..base.validation import set_number
from ..kernels.argmin import lowest_of
from ..kernels.dispatch import Functions
from ..kernels.jit import compiled
from ..kernels.random.sampling import draw_one, total
from ..kernels.state import ARMS, ROUND, Layout, State
from .base import Policy

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

    Auer, P., Cesa-Bianchi, N., Freund, Y. and Schapire, R. E. (2002). The nonstochastic multiarmed
    bandit problem. SIAM Journal on Computing 32(1). Their Exp3 counts rewards, mixes in uniform
    draws and is tuned for a horizon. This is the later form for losses, which needs none of that:
    Bubeck, S. and Cesa-Bianchi, N. (2012). Regret analysis of stochastic and nonstochastic
    multi-armed bandit problems, theorem 3.1. Its anytime rate is $c = 1$, and its regret bound is
    $2 \sqrt{T K \ln K}$.

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
