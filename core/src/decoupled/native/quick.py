"""A learner's two calls of every round as built-in methods, written in C: `plain_round.c` of `decoupled.builder`.

In Python, a decision and its feedback take ten times as long as the machine code of the policy: for two foreign calls,
the lock, the id, the tuples and the dictionary of pending decisions. A built-in method does all this in one call. It
does only the plain case, and otherwise returns at once, with nothing changed, so that the methods in Python do it or say
what is wrong.

The methods take no lock of the learner. They hold the interpreter lock and run no Python code between looking at the
switch, which stops them while another call is inside, and the end. So to other threads, and to the handlers of signals,
each is a single step. An interpreter without that lock does not use them.
"""

import ctypes
import sys
import sysconfig
from collections.abc import Callable, Sequence
from functools import cache
from importlib.machinery import ExtensionFileLoader
from importlib.util import module_from_spec, spec_from_loader
from typing import Any, NamedTuple, Protocol

from . import load
from .calls import FEW_ARMS, Blocks, NativeFunction, Prepared

MODULE = "plain_round"
TAG = 64  # bytes; a longer tag is not quick


class Switch:
    """While it is `stopped`, the two calls do nothing, also in a thread that is about to make them."""

    stopped = True


class Switched(Protocol):
    """A `Switch`, or the C object that has one."""

    stopped: bool


class QuickParts(NamedTuple):
    """The parts of a learner that the two methods read and change. None of them may be replaced."""

    decision: Any  # the type of decisions, a named tuple
    round_at: int  # the place of the round in the scalars of the state
    names: Sequence[Any]
    loss_range: tuple[float, float]
    tag: str
    limit: int
    made: ctypes.c_int64
    pending: dict[str, Any]
    has_baselines: bool
    shared: list[Any]
    sharing: ctypes.c_int64
    keyed: "KeyedCalls | None"


class KeyedCalls(NamedTuple):
    """From a key to an arm: where its text goes, the hash of that, and the arm of the hash."""

    text: Any
    hash: Prepared
    serve: Prepared


class QuickCalls(NamedTuple):
    """The plain calls of a learner."""

    decide: Callable[..., Any]  # takes a key, or nothing; returns None if it did nothing
    observe: Callable[[Any, Any], bool]  # takes a decision and a loss; returns False if it did nothing
    switch: Switched


NOT_QUICK = QuickCalls(lambda *key: None, lambda decision, loss: False, Switch())
_NO_CALL = (0, bytearray(16))


def quick_calls(
    functions: Sequence[Any], arrays: tuple[Any, ...], stream: Any, parts: QuickParts
) -> QuickCalls:
    """The plain calls of a learner, given its entry points and their arrays; `NOT_QUICK` where they cannot be used."""
    extension = module()
    if extension is None or not _suited(functions, arrays, parts):
        return NOT_QUICK
    _, decide, update = functions
    blocks, keyed = Blocks(arrays, stream), parts.keyed
    round_now = arrays[1][parts.round_at : parts.round_at + 1]
    made = extension.Round(
        *(decide.address, update.address, blocks.ints, blocks.second - blocks.first),
        *(blocks.drawn, blocks.observed, round_now, parts.made, parts.sharing),
        *(parts.limit, parts.has_baselines, parts.loss_range, f"{parts.tag}-"),
        *(parts.pending, parts.names, parts.shared, parts.decision),
        *(((None,) * len(parts.decision._fields),), (blocks, keyed)),
        *(bytearray(8) if keyed is None else keyed.text,),
        *(_NO_CALL if keyed is None else keyed.hash[:2]),
        *(_NO_CALL if keyed is None else keyed.serve[:2]),
    )
    return QuickCalls(made.decide, made.observe, made)


def _suited(functions: Sequence[Any], arrays: tuple[Any, ...], parts: QuickParts) -> bool:
    return (
        all(isinstance(each, NativeFunction) for each in functions)
        and arrays[2].shape[1] <= FEW_ARMS  # with more, other threads should run meanwhile
        and type(parts.names) in (list, range)  # their items are read without running Python code
        and len(parts.tag) < TAG - 1
        and parts.tag.isascii()
    )


@cache
def module() -> Any:
    """The extension module, or None where there is none, or the interpreter does not suit it."""
    path = load.extension()
    if path is None or not _suited_interpreter():
        return None
    loader = ExtensionFileLoader(MODULE, str(path))
    try:
        found = module_from_spec(spec_from_loader(MODULE, loader))  # type: ignore[arg-type]
        loader.exec_module(found)
    except ImportError:  # of another interpreter
        return None
    return found


def _suited_interpreter() -> bool:
    return (
        sys.implementation.name == "cpython"
        and not sysconfig.get_config_var("Py_GIL_DISABLED")
        and sys.maxsize > 2**32  # plain_round.c takes 64-bit lengths
    )
