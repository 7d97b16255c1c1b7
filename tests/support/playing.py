"""Rounds of any policy, played by one loop that is compiled once.

The loop calls a policy's entry points through pointers. They take the address of a block, as `decoupled.native.calls`
describes it. The machine code that ships is called as it is. Where there is none, as after an edit of a kernel, the
entry points are compiled.
"""

import ctypes
from functools import cache
from typing import Any, NamedTuple

import numba
import numpy as np

from decoupled.base.arrays import Floats, Ints, Words
from decoupled.builder.objects import types_of, wrap
from decoupled.kernels.state import State
from decoupled.native.calls import NativeFunction
from decoupled.policy import Definition

types: Any = numba.types  # untyped
ENTRY = types.int32(types.int64)  # from the address of a block to a status


class Played(NamedTuple):
    exploits: Ints
    explores: Ints
    weights: Floats
    propensities: Floats


def play(
    policy: Definition,
    state: State,
    stream: Words,
    rounds: int,
    losses: Floats | None = None,
    weight: float = 0.0,
) -> Played:
    """Decide `rounds` times, and learn where there are `losses`, a row for each round in turn.

    A `weight` above 0 replaces the decision's own.
    """
    entries, flat = policy.entries(), (policy.param_values(), *state)
    decide = _pointer(entries.decide, (*flat, stream))
    update = _pointer(entries.update, (*flat, 0, 1.0, 1.0))
    drawn, seen = _block((*flat, stream), 4), _block(flat, 3)
    table = np.empty((0, 0)) if losses is None else np.ascontiguousarray(np.atleast_2d(losses))
    arms, numbers = np.empty((2, rounds), np.int64), np.empty((2, rounds))
    assert _loop()(decide, update, drawn, seen, table, weight, arms, numbers), (
        "an entry point failed"
    )
    return Played(*arms, *numbers)


def _rounds(
    decide: Any,
    update: Any,
    drawn: Any,
    seen: Any,
    losses: Any,
    fixed: Any,
    arms: Any,
    numbers: Any,
) -> Any:
    # The decision is in the last words of one block, and the observation in those of the other.
    told, heard = drawn.view(np.float64), seen.view(np.float64)
    for t in range(arms.shape[1]):
        if decide(np.int64(drawn.ctypes.data)) != 0:
            return False
        arms[0, t], arms[1, t], numbers[0, t], numbers[1, t] = (
            drawn[-4],
            drawn[-3],
            told[-2],
            told[-1],
        )
        if len(losses) > 0:
            seen[-3], heard[-2] = arms[1, t], fixed if fixed > 0.0 else numbers[0, t]
            heard[-1] = losses[t % len(losses), arms[1, t]]
            if update(np.int64(seen.ctypes.data)) != 0:
                return False
    return True


@cache
def _loop() -> Any:
    njit: Any = numba.njit
    entry, words, table = types.FunctionType(ENTRY), types.int64[::1], types.float64[:, ::1]
    signature = types.boolean(
        entry, entry, words, words, table, types.float64, types.int64[:, ::1], types.float64[:, ::1]
    )
    return njit(signature, error_model="numpy")(_rounds)


class _Shipped(types.WrapperAddressProtocol):  # type: ignore[misc]
    """What Numba asks of a function that it did not compile: its address and its signature."""

    def __init__(self, function: NativeFunction) -> None:
        self.function = function

    def __wrapper_address__(self) -> int:
        address = ctypes.cast(self.function.call, ctypes.c_void_p).value  # type: ignore[arg-type]
        assert address is not None
        return address

    def signature(self) -> Any:
        return ENTRY


def _pointer(entry: Any, arguments: tuple[Any, ...]) -> Any:
    """An entry point, for arguments like these, as compiled code can call it."""
    if isinstance(entry, NativeFunction):
        return _Shipped(entry)
    njit: Any = numba.njit
    wrapper = njit(wrap(entry, types_of(arguments)).function)

    def call(address: Any) -> Any:
        wrapper(address)
        return 0

    return numba.cfunc(ENTRY, error_model="numpy")(call)


def _block(arrays: tuple[Any, ...], more: int) -> Ints:
    """A block with these arrays, and `more` words after them. The arrays must live as long as it is used."""
    words = [word for array in arrays for word in (array.ctypes.data, *array.shape)]
    return np.array([*words, *[0] * more], np.int64)
