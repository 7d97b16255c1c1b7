"""FTPL with centred losses and two rates, where the number of arms chooses the round."""

from typing import NamedTuple

from ..arrays import Words
from ..kernels import centred
from ..kernels.compiled import compiled
from ..kernels.dispatch import Functions
from ..kernels.state import Layout, State
from . import ftpl_strata

# Strata give a baseline to the first 64 ranks alone, which costs regret with a thousand arms and more; from
# here on the dense round takes four times as long and more.
MANY_CENTRED = 4_096


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
    if state.floats.shape[1] < MANY_CENTRED:
        centred.init(dense(params), state)
    else:
        ftpl_strata.init(in_strata(params), state)


@compiled
def decide(params: Params, state: State, stream: Words) -> tuple[int, int, float, float]:
    """As the faster round does."""
    if state.floats.shape[1] < MANY_CENTRED:
        return centred.decide(dense(params), state, stream)
    return ftpl_strata.decide(in_strata(params), state, stream)


@compiled
def update(params: Params, state: State, arm: int, weight: float, loss: float) -> None:
    """As the faster round does."""
    if state.floats.shape[1] < MANY_CENTRED:
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
