"""Adaptive adversaries: losses computed from past plays, inside the compiled loop.

As with policies, an adversary registers its functions under the type of its parameter tuple, which selects them.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

from ..base.arrays import Floats, Ints
from .jit import add_functions
from .lazy_numba import overload


class Memory(NamedTuple):
    """An adversary's memory: two arrays of any length, zero at the start.

    Attributes:
        floats: numbers.
        ints: whole numbers.

    One that counts how often each of three arms was exploited:

    >>> import numpy as np
    >>> Memory(np.zeros(0), np.zeros(3, np.int64)).ints.tolist()
    [0, 0, 0]
    """

    floats: Floats
    ints: Ints


class AdversaryFunctions(NamedTuple):
    """The compiled functions of one adversary.

    Attributes:
        losses: `losses(params, memory, t, out)` fills the mean loss of every arm in round t = 0, 1, ...
        note: `note(params, memory, t, exploit)` records the arm exploited in that round.

    The arm exploited last costs more, as plain functions; decorate yours with `compiled`:

    >>> import numpy as np
    >>> def losses(params, memory, t, out):
    ...     for arm in range(len(out)):
    ...         out[arm] = 0.9 if memory.ints[0] == arm else 0.3
    >>> def note(params, memory, t, exploit):
    ...     memory.ints[0] = exploit
    >>> memory, out = Memory(np.zeros(0), np.zeros(1, np.int64)), np.zeros(3)
    >>> functions = AdversaryFunctions(losses, note)
    >>> functions.note((), memory, 0, 2)
    >>> functions.losses((), memory, 1, out)
    >>> out.tolist()
    [0.3, 0.3, 0.9]
    """

    losses: Callable[..., None]
    note: Callable[..., None]


_functions: dict[type, AdversaryFunctions] = {}


def register_adversary(params: type, functions: AdversaryFunctions) -> None:
    """Register an adversary's functions under the type of its parameter tuple."""
    add_functions(_functions, params, functions, "adversary")


def fill_losses(params: Any, memory: Memory, t: int, out: Floats) -> None:
    """Fill the mean losses of round t."""
    _functions[type(params)].losses(params, memory, t, out)


def note_play(params: Any, memory: Memory, t: int, exploit: int) -> None:
    """Record the arm exploited in round t."""
    _functions[type(params)].note(params, memory, t, exploit)


# Not `strict`, because a lambda cannot have the annotations of its overload.
@overload(fill_losses, strict=False)
def _fill_losses(params: Any, memory: Any, t: Any, out: Any) -> Any:
    losses = _functions[params.instance_class].losses
    return lambda params, memory, t, out: losses(params, memory, t, out)


@overload(note_play, strict=False)
def _note_play(params: Any, memory: Any, t: Any, exploit: Any) -> Any:
    note = _functions[params.instance_class].note
    return lambda params, memory, t, exploit: note(params, memory, t, exploit)
