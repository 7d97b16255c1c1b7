"""Restarts and discounts around the compiled functions of any policy.

The wrapped policy sees a part of the wrapper's state: the same rows, and the scalars from its own round on. So it
reads its round at the usual place, while the first scalar counts all observations.
"""

from collections import namedtuple
from threading import Lock
from typing import Any, NamedTuple

from ..base.arrays import Words
from .dispatch import Functions
from .jit import compiled, name_apart, translate
from .state import ARMS, EVENTS, ROUND, SECRET, SHARED_SCALARS, State

# The wrapper's scalars: the number of observations not yet forgotten, which is learned, and the shared scalars of the
# wrapped policy.
OWN_SCALARS = ("forgetting_kept", *(f"forgetting_{name}" for name in SHARED_SCALARS))
KEPT = len(SHARED_SCALARS)
START = KEPT + 1

NOTHING = 1e-300  # values that fade below this become 0: smaller numbers lose digits and are slow


class Fading(NamedTuple):
    """What a discount shrinks: the numbers of a policy's rows of floats and of its scalars."""

    rows: tuple[int, ...]
    scalars: tuple[int, ...] = ()


class Wrapped(NamedTuple):
    """The parameter type and functions of a wrapper, made once for each policy's parameter type."""

    params_type: Any
    functions: Functions


_one_at_a_time = Lock()
_made: dict[tuple[Any, ...], Wrapped] = {}


def wrapped(
    params_type: Any, inner: Functions, fading: Fading | None, home: tuple[str, str] | None
) -> Wrapped:
    """The parameter type and functions of a policy that restarts, or that discounts what `fading` lists.

    `home` is the module and name under which any process can import the parameter type. Without one, machine code is
    not cached on disk, because a process that loads it must find every type named in it.
    """
    key = (params_type, inner, fading, home)
    with _one_at_a_time:  # two types for the same wrapper would compile twice
        if key not in _made:
            _made[key] = _wrap(params_type, inner, fading, home)
        return _made[key]


def _wrap(
    params_type: Any, inner: Functions, fading: Fading | None, home: tuple[str, str] | None
) -> Wrapped:
    name_apart(params_type)  # the compiler may see it here before the policy itself has registered it
    apart = f"{params_type.__module__}.{params_type.__qualname__}.{len(_made)}"
    module, name = home or ("forgetting", apart)
    kind = namedtuple("Params", [*params_type._fields, "forgetting"], module=module)  # type: ignore[misc]
    kind.__qualname__ = name
    if fading is None:
        functions = _restarting(params_type, inner)
    else:
        functions = _discounting(params_type, inner, fading)
    for function in functions:  # with the parameter type, this makes their names in machine code unique
        function.__module__ = module
    made: Any = [translate(each, keep=False, counting=False) for each in functions]
    return Wrapped(kind, Functions(*made))


@compiled
def inside(state: State) -> State:
    """The state as the wrapped policy sees it, without a copy. Its events are those of the whole, which go on."""
    state.scalars[START + EVENTS] = state.scalars[EVENTS]
    return State(state.scalars[START:], state.floats, state.ints)


@compiled
def set_round(state: State) -> None:
    """Set the shared scalars of the wrapped policy."""
    state.scalars[START + ROUND] = 1.0 + state.scalars[KEPT]
    state.scalars[START + ARMS] = state.scalars[ARMS]
    state.scalars[START + SECRET] = state.scalars[SECRET]


@compiled
def clear(state: State) -> None:
    """Reset everything but the shared scalars to the start."""
    state.scalars[KEPT:] = 0.0
    state.floats[:] = 0.0
    state.ints[:] = 0


@compiled
def fade(row: Any, discount: float) -> None:
    """Multiply every number of a row by the discount."""
    for i in range(len(row)):
        shrunk = discount * row[i]
        row[i] = shrunk if abs(shrunk) > NOTHING else 0.0


def _common(params_type: Any, inner: Functions) -> tuple[Any, Any]:
    """`init` and `decide`, which restarts and discounts share."""
    inner_init, inner_decide, _ = inner

    def init(params: Any, state: State) -> None:
        set_round(state)
        inner_init(params_type(*params[:-1]), inside(state))

    def decide(params: Any, state: State, stream: Words) -> tuple[int, int, float, float]:
        return inner_decide(params_type(*params[:-1]), inside(state), stream)

    return init, decide


def _restarting(params_type: Any, inner: Functions) -> Functions:
    inner_init, _, inner_update = inner

    def update(params: Any, state: State, arm: int, weight: float, loss: float) -> None:
        known = params_type(*params[:-1])
        # An observation that would be forgotten at once is not learned.
        if state.scalars[KEPT] + 1.0 >= params[-1]:
            clear(state)
            set_round(state)
            inner_init(known, inside(state))
        else:
            state.scalars[KEPT] += 1.0
            set_round(state)
            inner_update(known, inside(state), arm, weight, loss)

    return Functions(*_common(params_type, inner), update)


def _discounting(params_type: Any, inner: Functions, fading: Fading) -> Functions:
    inner_init, _, inner_update = inner
    rows, scalars = fading.rows, (KEPT, *(START + number for number in fading.scalars))

    def update(params: Any, state: State, arm: int, weight: float, loss: float) -> None:
        known, discount = params_type(*params[:-1]), params[-1]
        state.scalars[START + ROUND] += 1.0
        inner_update(known, inside(state), arm, weight, loss)
        state.scalars[KEPT] += 1.0
        for number in scalars:
            state.scalars[number] *= discount
        for row in rows:
            fade(state.floats[row], discount)
        set_round(state)
        inner_init(known, inside(state))

    return Functions(*_common(params_type, inner), update)
