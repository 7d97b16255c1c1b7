"""FTPL with centred losses and two rates, where the number of arms chooses the round."""

from typing import NamedTuple

from ..arrays import Words
from ..kernels import centred
from ..kernels.compiled import compiled
from ..kernels.dispatch import Functions
from ..kernels.state import Layout, State
from . import ftpl_strata
from .ftpl_strata import MANY_ARMS


class Params(NamedTuple):
    """The parameters as compiled code takes them."""

    alpha: float
    c: float
    c_exploit: float
    kappa: float
    lam: float
    by_losses: float


@compiled
def dense(params: Params) -> centred.Params:
    """The parameters of the round for few arms."""
    return centred.Params(
        params.alpha, params.c, 0.0, params.c_exploit, params.kappa, params.lam, params.by_losses
    )


@compiled
def in_strata(params: Params) -> ftpl_strata.Params:
    """The parameters of the round for many."""
    return ftpl_strata.Params(
        params.alpha, params.c, params.c_exploit, params.kappa, params.lam, params.by_losses
    )


@compiled
def init(params: Params, state: State) -> None:
    """As the faster round does."""
    if state.floats.shape[1] < MANY_ARMS:
        centred.init(dense(params), state)
    else:
        ftpl_strata.init(in_strata(params), state)


@compiled
def decide(params: Params, state: State, stream: Words) -> tuple[int, int, float, float]:
    """As the faster round does."""
    if state.floats.shape[1] < MANY_ARMS:
        return centred.decide(dense(params), state, stream)
    return ftpl_strata.decide(in_strata(params), state, stream)


@compiled
def update(params: Params, state: State, arm: int, weight: float, loss: float) -> None:
    """As the faster round does."""
    if state.floats.shape[1] < MANY_ARMS:
        centred.update(dense(params), state, arm, weight, loss)
    else:
        ftpl_strata.update(in_strata(params), state, arm, weight, loss)


def either(few: Layout, many: Layout) -> Layout:
    """The rows of the round for few arms, and what the round for many has beyond them."""
    return few._replace(
        scalars=few.scalars + many.scalars[len(few.scalars) :],
        floats=few.floats + many.floats[len(few.floats) :],
        ints=few.ints + many.ints[len(few.ints) :],
    )


FUNCTIONS = Functions(init, decide, update)
