"""A learner's two calls of every round as built-in functions, written in C: `quick.c` of `decoupled.builder`.

In Python, a decision and its feedback take ten times as long as the machine code of the policy: for two foreign calls,
the lock, the id, the tuples and the dictionary of pending decisions. A built-in function does all this in one call. It
does only the plain case, and otherwise returns at once, with nothing changed, so that the methods in Python do it or say
what is wrong.

The functions take no lock of the learner. They hold the interpreter lock and run no Python code between looking at the
switch, which stops them while another call is inside, and the end. So to other threads, and to the handlers of signals,
each is a single step. An interpreter without that lock does not use them.
"""

import ctypes
import sys
import sysconfig
from collections.abc import Callable, Sequence
from ctypes import addressof
from functools import cache
from threading import Lock
from typing import Any, NamedTuple

from . import load
from .calls import FEW_ARMS, Blocks, NativeFunction

TAG = 64  # bytes; a longer tag is not quick
_NOARGS, _FASTCALL = 0x0004, 0x0080  # METH_NOARGS and METH_FASTCALL
_TP_NEW = 65  # Py_tp_new

# The functions and objects of the interpreter that quick.c uses, in its order.
FUNCTIONS = [
    "PyDict_DelItem",
    "PyDict_GetItemWithError",
    "PyDict_SetItem",
    "PyDict_Size",
    "PyErr_Occurred",
    "PyErr_SetString",
    "PyFloat_AsDouble",
    "PyFloat_FromDouble",
    "PyList_GetItem",
    "PyLong_AsLongLong",
    "PyLong_AsVoidPtr",
    "PyLong_FromLongLong",
    "PyObject_CallNoArgs",
    "PyObject_Type",
    "PySequence_GetItem",
    "PyTuple_GetItem",
    "PyTuple_New",
    "PyTuple_SetItem",
    "PyTuple_Size",
    "PyUnicode_FromStringAndSize",
    "Py_DecRef",
    "Py_IncRef",
]
_locked = Lock().locked  # quick.c asks it as well as the switch, and it is always free
_OBJECTS = (None, True, False, float, str, RuntimeError)


class _Method(ctypes.Structure):
    """PyMethodDef."""

    _fields_ = (
        ("name", ctypes.c_char_p),
        ("function", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    )


class Switch:
    """While it is `stopped`, the two calls do nothing, also in a thread that is about to make them."""

    stopped = True


class _Learner(ctypes.Structure, Switch):
    """The structure of the same name in quick.c."""

    _fields_ = (
        *((name, ctypes.c_void_p) for name in ("decide", "update", "decide_block", "update_block")),
        *((name, ctypes.c_void_p) for name in ("drawn", "observed", "round", "made", "sharing")),
        *((name, ctypes.c_int64) for name in ("limit", "has_baselines", "stopped", "tag_length")),
        *((name, ctypes.c_double) for name in ("low", "high")),
        *((name, ctypes.c_void_p) for name in ("pending", "names", "shared", "locked")),
        *((name, ctypes.c_void_p) for name in ("decision_type", "blank")),
        ("tag", ctypes.c_char * TAG),
    )


class QuickParts(NamedTuple):
    """The parts of a learner that the two functions read and change. None of them may be replaced."""

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


class QuickCalls(NamedTuple):
    """The plain calls of a learner."""

    decide: Callable[[], Any]  # returns None if it did nothing
    observe: Callable[[Any, Any], bool]  # takes a decision and a loss; returns False if it did nothing
    switch: Switch


NOT_QUICK = QuickCalls(lambda: None, lambda decision, loss: False, Switch())


def quick_calls(
    functions: Sequence[Any], arrays: tuple[Any, ...], stream: Any, parts: QuickParts
) -> QuickCalls:
    """The plain calls of a learner, given its entry points and their arrays; `NOT_QUICK` where they cannot be used."""
    methods = _methods()
    if methods is None or not _suited(functions, arrays, parts):
        return NOT_QUICK
    _, decide, update = functions
    blocks = Blocks(arrays, stream)
    tag, blank = f"{parts.tag}-".encode(), ((None,) * len(parts.decision._fields),)
    learner = _Learner(
        *(_address(decide.holding_lock), _address(update.holding_lock), blocks.first, blocks.second),
        *(blocks.first + blocks.drawn, blocks.first + blocks.observed),
        *(arrays[1][parts.round_at :].ctypes.data, addressof(parts.made), addressof(parts.sharing)),
        *(parts.limit, parts.has_baselines, True, len(tag), *parts.loss_range),
        *(id(each) for each in (parts.pending, parts.names, parts.shared, _locked)),
        *(id(parts.decision), id(blank), tag),
    )
    # The functions own this tuple, and with it everything that the structure points to.
    myself = (addressof(learner), learner, blocks, parts, blank)
    return QuickCalls(methods[0](myself), methods[1](myself), learner)


def _suited(functions: Sequence[Any], arrays: tuple[Any, ...], parts: QuickParts) -> bool:
    return (
        all(isinstance(each, NativeFunction) for each in functions)
        and arrays[2].shape[1] <= FEW_ARMS  # with more, other threads should run meanwhile
        and type(parts.names) in (list, range)  # their items are read without running Python code
        and len(parts.tag) < TAG - 1
        and parts.tag.isascii()
    )


@cache
def _methods() -> tuple[Callable[[Any], Any], Callable[[Any], Any]] | None:
    """Makers of the two functions for one learner, or None where they cannot be used."""
    library = load.library()
    if library is None or not _suited_interpreter():
        return None
    try:
        library.decoupled_quick_python(ctypes.byref(_python()))
        return (
            _maker(b"decide", library.decoupled_quick_decide, _NOARGS),
            _maker(b"observe", library.decoupled_quick_observe, _FASTCALL),
        )
    except AttributeError:  # an interpreter that does not export its functions
        return None


def _suited_interpreter() -> bool:
    return (
        sys.implementation.name == "cpython"
        and not sysconfig.get_config_var("Py_GIL_DISABLED")
        and sys.maxsize > 2**32  # quick.c takes 64-bit lengths
    )


def _python() -> Any:
    """The structure `Python` of quick.c."""
    api = ctypes.pythonapi
    get_slot = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_int)(("PyType_GetSlot", api))
    addresses = [
        *(_address(getattr(api, name)) for name in FUNCTIONS),
        get_slot(tuple, _TP_NEW),
        *map(id, _OBJECTS),
    ]
    return (ctypes.c_void_p * len(addresses))(*addresses)


def _maker(name: bytes, function: Any, flags: int) -> Callable[[Any], Any]:
    method = _Method(name, _address(function), flags, None)
    new = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p)(
        ("PyCFunction_NewEx", ctypes.pythonapi)
    )
    # The functions point to `method`, and this one keeps it.
    return lambda myself: new(addressof(method), myself, None)


def _address(function: Any) -> int:
    return ctypes.cast(function, ctypes.c_void_p).value or 0
