"""Call the functions of the library.

Every function takes one argument, the address of a *block* of 64-bit words, and returns a status.
The words are its arguments in order: a number is one word, an array its address and its lengths.
The words after them take the results. The arrays of a learner do not move, so it fills a block once
and then writes at most three numbers per call. A foreign call with a dozen arguments would take
microseconds.
"""

from collections.abc import Callable, Iterable, Iterator
from ctypes import addressof, c_char, c_double, c_int64, c_void_p
from struct import Struct
from typing import Any, NamedTuple

import numpy as np

FEW_ARMS = 1_000  # up to this many arms, a learner's calls keep the interpreter lock

_Ints = c_int64 * 32  # room for a learner's two blocks
_DECISION = Struct("qqdd")
WORD_BYTES = 8
DECISION_WORDS = _DECISION.size // WORD_BYTES
_OBSERVATION = Struct("qdd")
FORMAT = 3  # of blocks and of the manifest; code of another format is not called

_INT = (int, np.integer)
_NUMBER = (int, float, np.integer, np.floating)

# The kinds of arrays: a letter for the element type, a digit for the number of dimensions.
_TYPES = {"f": np.dtype(np.float64), "i": np.dtype(np.int64), "u": np.dtype(np.uint64)}
ARRAYS = {
    f"{letter}{lengths}": (dtype, lengths) for letter, dtype in _TYPES.items() for lengths in (1, 2)
}
NUMBERS = {"int": _INT, "float": _NUMBER, "bool": (bool, np.bool_)}


class Signature(NamedTuple):
    """The kinds of a function's arguments and results, with tuples flattened."""

    takes: tuple[str, ...]
    returns: tuple[str, ...]


class UnsuitedError(TypeError):
    """Arguments that the machine code cannot take, such as an array that is not contiguous."""


def flattened(arguments: Iterable[Any]) -> Iterator[Any]:
    """The arguments, with tuples flattened."""
    for argument in arguments:
        if isinstance(argument, tuple):
            yield from flattened(argument)
        else:
            yield argument


def words_of(kind: str) -> int:
    """The number of words that an argument takes in a block."""
    return 1 + ARRAYS[kind][1] if kind in ARRAYS else 1


class NativeFunction:
    """A function of the library. Call it like the compiled function that it was built from."""

    def __init__(
        self, name: str, call: Callable[[c_void_p], int], holding_lock: Any, signature: Signature
    ) -> None:
        self.__name__ = self.__qualname__ = name
        self.signature = signature
        self.call = call
        self.holding_lock = holding_lock  # the same call, without releasing the interpreter lock
        self._words = sum(map(words_of, signature.takes)) + len(signature.returns)

    def __repr__(self) -> str:
        return f"<machine code of {self.__name__}>"

    def prepared(self, *arguments: Any) -> "Prepared":
        """A call with all arguments but the last, which is a whole number, as the result is."""
        flat = list(flattened((*arguments, 0)))
        block = self._filled(flat)
        return Prepared(block.ints, self.holding_lock, block.address, flat)

    def __call__(self, *arguments: Any) -> Any:
        """Fill a block, call the function, and read the results."""
        # The block points into these, so they must outlive the call.
        flat = list(flattened(arguments))
        block = self._filled(flat)
        if self.call(block.address):
            raise _failed(self.__name__)
        return self._result(block)

    def _filled(self, flat: list[Any]) -> "_Block":
        """A block with the arguments."""
        kinds = self.signature.takes
        block = _Block(self._words)
        ints = block.ints
        at = 0
        if len(flat) != len(kinds):
            raise UnsuitedError(
                f"{self.__name__}: takes {len(kinds)} numbers and arrays, not {len(flat)}"
            )
        for kind, value in zip(kinds, flat, strict=True):
            if kind in ARRAYS:
                dtype, lengths = ARRAYS[kind]
                is_array = isinstance(value, np.ndarray) and value.ndim == lengths
                if not is_array or (value.dtype is not dtype and value.dtype != dtype):
                    wanted = f"an array of {lengths} dimensions of {dtype}"
                    raise UnsuitedError(f"{self.__name__}: takes {wanted}")
                flags = value.flags
                if not flags.c_contiguous or not flags.aligned:
                    raise UnsuitedError(f"{self.__name__}: takes arrays that are contiguous")
                if flags.writeable:
                    ints[at] = _own_address(value)
                else:
                    ints[at] = value.__array_interface__["data"][0]
                for length in value.shape:
                    at += 1
                    ints[at] = length
            elif not isinstance(value, NUMBERS[kind]):
                raise UnsuitedError(f"{self.__name__}: takes {kind}, not {type(value).__name__}")
            elif kind == "float":
                block.floats[at] = float(value)
            else:
                ints[at] = int(value)
            at += 1
        return block

    def _result(self, block: "_Block") -> Any:
        """What a call returned, from the end of its block: nothing, a value, or a tuple."""
        returns = self.signature.returns
        start = self._words - len(returns)
        values = tuple(
            block.floats[start + k]
            if kind == "float"
            else _bool_or_int(kind, block.ints[start + k])
            for k, kind in enumerate(returns)
        )
        if not values:
            return None
        return values[0] if len(values) == 1 else values


class Prepared(NamedTuple):
    """A call of machine code whose block is filled, except for its last argument."""

    block: Any
    function: Callable[[c_void_p], int]
    at: c_void_p
    owner: Any  # owns what the block points to

    def __call__(self, last: int) -> int:
        """Give the last argument and return the result; for one thread at a time."""
        self.block[-2] = last
        if self.function(self.at):
            raise _failed("key")
        result: int = self.block[-1]
        return result


def bound_entries(
    functions: tuple[NativeFunction, NativeFunction, NativeFunction],
    arrays: tuple[Any, ...],
    stream: Any,
) -> tuple[Callable[[], None], Callable[[], Any], Callable[[int, float, float], None]]:
    """A learner's three calls, `init`, `decide` and `update`, bound to its arrays.

    The arrays are not copied. Only one thread may use the calls at a time. The arrays come from a
    layout, so they are not checked.
    """
    # Two blocks, because different words follow the arrays: the stream and the decision, or the
    # observation.
    words = [word for array in arrays for word in (_own_address(array), *array.shape)]
    drawn = WORD_BYTES * (len(words) + 2)  # the byte where the decision is
    words += [_own_address(stream), len(stream), *[0] * DECISION_WORDS, *words]
    observed = WORD_BYTES * len(words)  # the byte where the observation goes
    ints = _Ints()
    ints[: len(words)] = words
    decision_block = c_void_p(addressof(ints))
    observation_block = c_void_p(addressof(ints) + drawn + WORD_BYTES * DECISION_WORDS)
    blocks = ints, arrays, stream  # the calls keep what the words point to
    read_decision = _DECISION.unpack_from
    write_observation = _OBSERVATION.pack_into
    # With few arms, releasing the interpreter lock would take longer than the call.
    _, _, floats, _ = arrays
    has_few_arms = floats.shape[1] <= FEW_ARMS
    call_init, call_decide, call_update = (
        function.holding_lock if has_few_arms else function.call for function in functions
    )

    def init(*, keep: object = blocks) -> None:
        if call_init(decision_block):
            raise _failed("init")

    def decide(*, keep: object = blocks) -> tuple[int, int, float, float]:
        if call_decide(decision_block):
            raise _failed("decide")
        return read_decision(ints, drawn)

    def update(arm: int, weight: float, loss: float, *, keep: object = blocks) -> None:
        write_observation(ints, observed, arm, weight, loss)
        if call_update(observation_block):
            raise _failed("update")

    return init, decide, update


def _own_address(array: Any) -> int:
    """The address of an array's memory; 0 if it is empty."""
    # For writable arrays only; four times as fast as the general way.
    return addressof(c_char.from_buffer(array)) if array.size else 0


def _failed(name: str) -> Exception:
    remedy = "set DECOUPLED_NATIVE=off to compile it here"
    return RuntimeError(f"{name}: the shipped machine code failed; {remedy}")


def _bool_or_int(kind: str, value: int) -> int | bool:
    return bool(value) if kind == "bool" else value


class _Block:
    """Words that can be read and written as whole numbers or floats."""

    def __init__(self, words: int) -> None:
        self.ints = (c_int64 * max(words, 1))()
        self.floats = (c_double * max(words, 1)).from_buffer(self.ints)
        self.address = c_void_p(addressof(self.ints))
