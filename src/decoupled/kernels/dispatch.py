"""From a policy's parameters to its compiled functions, resolved at compile time.

A policy registers three functions under the type of its parameter tuple. `init`, `decide` and `update` below call
the functions registered for the type of `params`. Compiled code picks them by type, so the choice costs nothing at
run time and the machine code can be cached on disk.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

from numba.extending import overload
from numba.np.unsafe import ndarray

from ..base.arrays import Floats, Ints, Words
from .jit import add_functions, is_ours, translate
from .state import ROUND, State


class Functions(NamedTuple):
    """The compiled functions of one policy.

    `init(params, state)` fills every derived row from the learned ones (zero at the start).
    `decide(params, state, stream)` returns (exploit, explore, weight, propensity) and changes only the
    stream; an unknown propensity is NaN. `update(params, state, arm, weight, loss)` learns.
    """

    init: Callable[..., None]
    decide: Callable[..., tuple[int, int, float, float]]
    update: Callable[..., None]


_functions: dict[type, Functions] = {}
_fixed_tuple: Any = ndarray.to_fixed_tuple


def register(params: type, functions: Functions) -> None:
    """Register a policy's functions under the type of its parameter tuple."""
    add_functions(_functions, params, functions, "policy")


def init(params: Any, state: State) -> None:
    """Derive every row that is not learned."""
    _functions[type(params)].init(params, state)


def decide(params: Any, state: State, stream: Words) -> tuple[int, int, float, float]:
    """Draw the arm to exploit and the arm to explore."""
    return _functions[type(params)].decide(params, state, stream)


def update(params: Any, state: State, arm: int, weight: float, loss: float) -> None:
    """Advance the round and learn the loss of an explored arm."""
    state.scalars[ROUND] += 1.0
    _functions[type(params)].update(params, state, arm, weight, loss)


# Not `strict`, because a lambda cannot have the annotations of its overload.
@overload(init, strict=False)
def _init(params: Any, state: Any) -> Any:
    function = _functions[params.instance_class].init
    return lambda params, state: function(params, state)


@overload(decide, strict=False)
def _decide(params: Any, state: Any, stream: Any) -> Any:
    function = _functions[params.instance_class].decide
    return lambda params, state, stream: function(params, state, stream)


@overload(update)
def _update(params: Any, state: Any, arm: Any, weight: Any, loss: Any) -> Any:
    function = _functions[params.instance_class].update

    def implementation(params: Any, state: Any, arm: Any, weight: Any, loss: Any) -> Any:
        state.scalars[ROUND] += 1.0
        function(params, state, arm, weight, loss)

    return implementation


class Entries(NamedTuple):
    """The calls a learner makes. They take flat arrays, because a named tuple costs a microsecond a call."""

    init: Callable[[Floats, Floats, Floats, Ints], None]
    decide: Callable[[Floats, Floats, Floats, Ints, Words], tuple[int, int, float, float]]
    update: Callable[[Floats, Floats, Floats, Ints, int, float, float], None]


def entries(params: Any) -> Entries:
    """Compile the entry points for one type of parameter tuple."""
    fields = len(params._fields)
    keep = is_ours(params, *_functions[params])

    def init_entry(values: Floats, scalars: Floats, floats: Floats, ints: Ints) -> None:
        init(params(*_fixed_tuple(values, fields)), State(scalars, floats, ints))

    def decide_entry(
        values: Floats, scalars: Floats, floats: Floats, ints: Ints, stream: Words
    ) -> tuple[int, int, float, float]:
        known = params(*_fixed_tuple(values, fields))
        return decide(known, State(scalars, floats, ints), stream)

    def update_entry(
        values: Floats, scalars: Floats, floats: Floats, ints: Ints, arm: int, weight: float, loss: float
    ) -> None:
        known = params(*_fixed_tuple(values, fields))
        update(known, State(scalars, floats, ints), arm, weight, loss)

    calls: Any = (init_entry, decide_entry, update_entry)
    for entry in calls:  # their names and argument types are the same for every policy: see name_apart
        entry.__qualname__ = f"{entry.__name__}.{params.__module__}.{params.__qualname__}"
    return Entries(*(translate(entry, keep, counting=False, inline=False) for entry in calls))
