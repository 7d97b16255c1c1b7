"""A policy's entry points for a loop that is compiled once for all policies.

They take the address of a block, as `decoupled.native.calls` describes it. The machine code that ships is called as it
is. Where there is none, as after an edit of a kernel, the entry points are compiled.
"""

import ctypes
from typing import Any

import numba
import numpy as np

from decoupled.base.arrays import Ints
from decoupled.builder.wrappers import types_of, wrap
from decoupled.native.calls import NativeFunction

types: Any = numba.types  # untyped
ENTRY = types.int32(types.int64)  # from the address of a block to a status


class Shipped(types.WrapperAddressProtocol):  # type: ignore[misc]
    """What Numba asks of a function that it did not compile: its address and its signature."""

    def __init__(self, function: NativeFunction) -> None:
        self.function = function

    def __wrapper_address__(self) -> int:
        address = ctypes.cast(self.function.call, ctypes.c_void_p).value  # type: ignore[arg-type]
        assert address is not None
        return address

    def signature(self) -> Any:
        return ENTRY


def block_entry(entry: Any, arguments: tuple[Any, ...]) -> Any:
    """An entry point, for arguments like these, as a function of a block's address that compiled code can call."""
    if isinstance(entry, NativeFunction):
        return Shipped(entry)
    njit: Any = numba.njit
    wrapper = njit(wrap(entry, types_of(arguments)).function)

    def call(address: Any) -> Any:
        wrapper(address)
        return 0

    return numba.cfunc(ENTRY, error_model="numpy")(call)  # type: ignore[no-untyped-call]


def block(arrays: tuple[Any, ...], more: int) -> Ints:
    """A block with these arrays, and `more` words after them. The arrays must live as long as it is used."""
    words = [word for array in arrays for word in (array.ctypes.data, *array.shape)]
    return np.array([*words, *[0] * more], np.int64)
