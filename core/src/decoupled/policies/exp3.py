"""Exp3, decoupled: exponential weights, the limit beta = 1 of Tsallis-INF."""

import math
from dataclasses import dataclass
from typing import NamedTuple, Self

from ..base.arrays import Floats, Words
from ..base.validation import set_number
from ..kernels.argmin import lowest_of
from ..kernels.dispatch import Functions
from ..kernels.jit import compiled
from ..kernels.random.sampling import draw_both, total
from ..kernels.state import ARMS, ROUND, Layout, State
from .explicit import EXPLICIT_SUMS, ExplicitLaws

LAYOUT = Layout(
    scalars=("scale", *EXPLICIT_SUMS),
    floats=("estimates", "exploit", "explore"),
    learned=("estimates",),
)
S, R, _ = LAYOUT.places()


class Params(NamedTuple):
    """The parameters of the compiled code."""

    c: float


@compiled
def exponential_weights(
    estimates: Floats, half_rate: float, weights: Floats, roots: Floats
) -> None:
    """Fill w_i = exp(-rate * gap_i), up to its sum, and its square root; no exponent is above 0."""
    lowest = lowest_of(estimates)
    for i in range(len(estimates)):
        root = math.exp(half_rate * (lowest - estimates[i]))
        roots[i] = root
        weights[i] = root * root


@compiled
def refresh(state: State) -> None:
    """Compute eta_t = c / sqrt(K t), then w_t and p_t up to their sums: equation (3), gamma = 0."""
    floats = state.floats
    scalars = state.scalars
    eta = scalars[S.scale] / math.sqrt(scalars[ROUND])
    exponential_weights(floats[R.estimates], 0.5 * eta, floats[R.exploit], floats[R.explore])
    scalars[S.exploit_sum] = total(floats[R.exploit])
    scalars[S.explore_sum] = total(floats[R.explore])


@compiled
def init(params: Params, state: State) -> None:
    """Compute eta_t * sqrt(t) = c / sqrt(K), then the laws."""
    state.scalars[S.scale] = params.c * (1.0 / math.sqrt(state.scalars[ARMS]))
    refresh(state)


@compiled
def decide(params: Params, state: State, stream: Words) -> tuple[int, int, float, float]:
    """Draw i_t ~ w_t and j_t ~ p_t, independently of each other."""
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
    """Add loss / p_t to the estimate of the explored arm j_t."""
    state.floats[R.estimates, arm] += weight * loss
    refresh(state)


@dataclass(frozen=True)
class Exp3(ExplicitLaws):
    r"""Decoupled exponential weights (EXP3 in the paper's figures).

    With $\hat L$ the summed loss estimates and $\eta_t = c / \sqrt{K t}$, each round

    - exploits $i_t \sim w$, with $w_i \propto \exp(-\eta_t \hat L_i)$;
    - explores $j_t \sim p$, with $p_i \propto \sqrt{w_i}$;
    - learns $\hat L_{j_t} \leftarrow \hat L_{j_t} + \ell / p_{j_t}$, where $\ell$ is the loss seen.

    This is decoupled Tsallis-INF with $\beta = 1$ (section 2.2 of Kim, Lee and Oh, 2026). It is
    close to `AvnerExp3`, the policy of Avner, Mannor and Shamir (2012) (equation (3) of Kim, Lee
    and Oh, with $\gamma = 0$).

    Args:
        c: scale of the learning rate, above 0.

    >>> import decoupled as dc
    >>> learner = dc.Exp3(c=4.0).start(arms=2, seed=1)
    >>> learner.replay([(0, 0.5, 1.0), (1, 0.5, 0.0)])
    2
    >>> learner.exploitation_probabilities().round(3).tolist()
    [0.037, 0.963]
    """

    c: float = 2.0

    layout = LAYOUT
    params_type = Params
    functions = Functions(init, decide, update)

    def __post_init__(self) -> None:
        set_number(self, "c", 0.0, 1e100, "the default is 2")

    @classmethod
    def examples(cls) -> tuple[Self, ...]:
        return cls(), cls(c=0.5)
