"""One round for many policies: a law, an estimator and rates.

A *law* gives two distributions over arms, from estimates and two rates. What all laws share is here, once: the
schedule of the rates, the running mean of the losses, and the order of one update. Options are parameters of
the compiled code, so that each law is compiled once for all of them; a branch that always goes one way costs
a processor nothing, and a GPU has it settled when it compiles (see `specialise`).
"""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

from ..base.arrays import Words
from .dispatch import Functions
from .jit import translate
from .state import ROUND, SHARED_SCALARS, State

START = 0.5  # of the running mean of the losses: the middle of their range
MOST_SPREAD = 4.0  # one over the largest variance of a loss: a fair coin's loss counts as a whole round

# The scalars that every composed policy keeps; a law's own come after them. The rates are eta for what is
# explored and eta_exploit for what is exploited, `rise` is the running mean less START, `spread` is V_t.
SCALARS = ("scale", "eta", "eta_exploit", "rise", "spread")
SCALE, ETA, ETA_EXPLOIT, RISE, SPREAD = range(len(SHARED_SCALARS), len(SHARED_SCALARS) + len(SCALARS))
OWN = SPREAD + 1  # the first scalar of a law's own


class Rows(NamedTuple):
    """The names of what a law keeps, beside the estimates."""

    scalars: tuple[str, ...] = ()
    floats: tuple[str, ...] = ()
    ints: tuple[str, ...] = ()

    # What it keeps only where losses are centred or the two rates differ.
    more_floats: tuple[str, ...] = ()
    more_ints: tuple[str, ...] = ()

    # What of these is learned; what follows from the estimates is not.
    learned: tuple[str, ...] = ()
    more_learned: tuple[str, ...] = ()


class Law(NamedTuple):
    """Two distributions over arms, given estimates and two rates, as compiled functions.

    All take the parameters and the state, whose first row of floats holds the estimates.
    """

    rows: Rows

    # (params, state) -> K ** something: what the rates are multiplied by beside c. Derives what depends on the
    # estimates and not on the rates.
    init: Callable[..., float]

    # (params, state, root, saved): fill both distributions at the rates in the scalars, where root is what
    # the schedule divides by. `saved` says that the state was saved with what solves for them.
    fill: Callable[..., None]

    # (params, state, stream) -> (exploit, explore, weight, propensity).
    draw: Callable[..., tuple[int, int, float, float]]

    # (params, state, arm, weight, loss): add to the estimates, centred or not, with the baselines in the state.
    learn: Callable[..., None]

    # (params, state, least, mean): give the baseline `mean` to arms explored with probability `least` or more.
    gate: Callable[..., None]


class Composed(NamedTuple):
    """A law, and the compiled functions of its policies with the type of their parameters."""

    law: Law
    params_type: Any
    functions: Functions


def compose(law: Law, params_type: Any) -> Composed:
    """The rounds of a law; the type of the parameters has the law's own fields and the options."""
    start, fill, draw, learn, gate = law.init, law.fill, law.draw, law.learn, law.gate
    module = params_type.__module__

    def refresh(params: Any, state: State, saved: bool) -> None:
        scalars = state.scalars
        passed = 1.0 + scalars[SPREAD] if params.by_losses > 0.0 else scalars[ROUND]
        root = math.sqrt(passed)
        eta = scalars[SCALE] / root
        scalars[ETA] = eta
        scalars[ETA_EXPLOIT] = eta * params.exploit_ratio
        fill(params, state, root, saved)
        if params.centred > 0.0:
            gate(params, state, params.kappa * eta, START + scalars[RISE])

    refreshed = _translated(refresh, module)

    def init(params: Any, state: State) -> None:
        state.scalars[SCALE] = params.c * start(params, state)
        refreshed(params, state, True)

    def decide(params: Any, state: State, stream: Words) -> tuple[int, int, float, float]:
        return draw(params, state, stream)

    def update(params: Any, state: State, arm: int, weight: float, loss: float) -> None:
        learn(params, state, arm, weight, loss)
        surprise = loss - (START + state.scalars[RISE])
        if params.by_losses > 0.0:
            state.scalars[SPREAD] += MOST_SPREAD * surprise * surprise
        state.scalars[RISE] += params.lam * surprise
        refreshed(params, state, False)

    functions = Functions(*(_translated(each, module) for each in (init, decide, update)))
    return Composed(law, params_type, functions)


def _translated(function: Any, module: str) -> Any:
    # Machine code on disk is that of the loops and calls that these are copied into. In it functions are told
    # apart by the names of their modules and of the types they take.
    function.__module__ = module
    return translate(function, keep=False, counting=False)
