"""Adaptive adversaries: losses computed from past plays, inside the compiled loop.

As with policies, an adversary registers its functions under the type of its parameter tuple, and the
choice is made when the loop is compiled.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

from ..base.arrays import Floats, Ints
from ..errors import ParameterError
from ..native import load
from .jit import name_apart
from .numba_later import overload


class Memory(NamedTuple):
    """What an adversary remembers: two arrays of any length, zero at the start."""

    floats: Floats
    ints: Ints


class AdversaryFunctions(NamedTuple):
    """The compiled functions of one adversary.

    `losses(params, memory, t, out)` fills the mean loss of every arm in round t = 0, 1, ...;
    `note(params, memory, t, exploit)` remembers what was exploited in it.
    """

    losses: Callable[..., None]
    note: Callable[..., None]


_functions: dict[type, AdversaryFunctions] = {}


def register_adversary(params: type, functions: AdversaryFunctions) -> None:
    """Tie a parameter tuple's type to the functions of its adversary."""
    if _functions.setdefault(params, functions) != functions:
        raise ParameterError(
            f"params_type = {params.__module__}.{params.__qualname__}: belongs to another adversary's functions; "
            "give this adversary a Params of its own"
        )
    name_apart(params)
    load.admit(params, functions)


def fill_losses(params: Any, memory: Memory, t: int, out: Floats) -> None:
    """The mean losses of round t."""
    _functions[type(params)].losses(params, memory, t, out)


def note_play(params: Any, memory: Memory, t: int, exploit: int) -> None:
    """Remember what was exploited in round t."""
    _functions[type(params)].note(params, memory, t, exploit)


@overload(fill_losses)
def _fill_losses(params: Any, memory: Any, t: Any, out: Any) -> Any:
    function = _functions[params.instance_class].losses

    def implementation(params: Any, memory: Any, t: Any, out: Any) -> Any:
        function(params, memory, t, out)

    return implementation


@overload(note_play)
def _note_play(params: Any, memory: Any, t: Any, exploit: Any) -> Any:
    function = _functions[params.instance_class].note

    def implementation(params: Any, memory: Any, t: Any, exploit: Any) -> Any:
        function(params, memory, t, exploit)

    return implementation
