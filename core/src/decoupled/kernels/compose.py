"""One round for many policies: a law, an estimator and rates.

A *law* gives two distributions over arms, from estimates and two rates. This module holds what all laws share: the
schedule of the rates, the running mean of the losses, and the order of one update. Options are parameters of the
compiled code, so each law compiles once for all of them. A branch that always goes the same way costs a CPU nothing,
and a GPU has it resolved at compile time (see `lazy_numba.pinned`).
"""

import math
from collections import namedtuple
from collections.abc import Callable
from typing import Any, NamedTuple

from ..base.arrays import Words
from .dispatch import Functions
from .jit import translate
from .state import ROUND, SHARED_SCALARS, State

START = 0.5  # initial value of the running mean of the losses: the middle of their range
MOST_SPREAD = (
    4.0  # one over the largest variance of a loss, so a fair coin's loss counts as a whole round
)

# The scalars that every composed policy keeps; a law's own follow. `eta` is the rate of exploration, `eta_exploit` that
# of exploitation, `rise` the running mean less START, and `spread` is V_t.
SCALARS = ("scale", "eta", "eta_exploit", "rise", "spread")
SCALE, ETA, ETA_EXPLOIT, RISE, SPREAD = range(
    len(SHARED_SCALARS), len(SHARED_SCALARS) + len(SCALARS)
)
OWN = SPREAD + 1  # the first scalar of a law's own

# The parameters of compiled code that every composed policy has, after those of its law.
OPTIONS = ("c", "exploit_ratio", "centred", "kappa", "lam", "by_losses")


def params_type(module: str, *own: str) -> Any:
    """The parameter type of a law: its own parameters, then the shared options. Name it `Params` in `module`."""
    return namedtuple("Params", (*own, *OPTIONS), module=module)


class Rows(NamedTuple):
    """The names of what a law keeps beside the estimates."""

    scalars: tuple[str, ...] = ()
    floats: tuple[str, ...] = ()
    ints: tuple[str, ...] = ()

    # Rows it keeps only if losses are centred or the two rates differ.
    more_floats: tuple[str, ...] = ()
    more_ints: tuple[str, ...] = ()

    # Which of these are learned. Everything else follows from the estimates.
    learned: tuple[str, ...] = ()
    more_learned: tuple[str, ...] = ()


class Law(NamedTuple):
    """Two distributions over arms, given estimates and two rates, as compiled functions.

    All take the parameters and the state, whose first row of floats holds the estimates.
    """

    rows: Rows

    # (params, state) -> the power of K by which the rates are scaled, beside c. Derives what depends on the estimates
    # and not on the rates.
    init: Callable[..., float]

    # (params, state, root, saved): fill both distributions at the rates in the scalars; the schedule divides by `root`.
    # If `saved`, the state holds a solution from an earlier run.
    fill: Callable[..., None]

    # (params, state, stream) -> (exploit, explore, weight, propensity).
    draw: Callable[..., tuple[int, int, float, float]]

    # (params, state, arm, weight, loss): add to the estimates, centred or not, with the baselines in the state.
    learn: Callable[..., None]

    # (params, state, least, mean): give the baseline `mean` to arms explored with probability `least` or more.
    gate: Callable[..., None]


class Composed(NamedTuple):
    """A law, the parameter type of its policies, and their compiled functions."""

    law: Law
    params_type: Any
    functions: Functions


def compose(law: Law, params_type: Any) -> Composed:
    """Build the compiled functions of a law's policies; `params_type` is from the function of that name."""
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
    # Only the loops and entry points that inline these functions are cached on disk. Machine code there tells functions
    # apart by the names of their modules and argument types.
    function.__module__ = module
    return translate(function, keep=False, counting=False)
