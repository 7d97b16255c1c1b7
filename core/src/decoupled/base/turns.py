"""Objects that several threads, the handlers of signals and forked processes may use: one call at a time."""

import os
from collections.abc import Callable
from functools import wraps
from threading import Lock, get_ident, local
from typing import Any, Concatenate, ParamSpec, TypeVar, cast
from weakref import WeakValueDictionary

from ..errors import Message, ReentryError

_Arguments = ParamSpec("_Arguments")
_Places = ParamSpec("_Places")
_Result = TypeVar("_Result")
_Mine = TypeVar("_Mine", bound="TakesTurns")

NOBODY = 0  # is no thread's number
PATIENCE = 1.0  # seconds that a fork waits for a call in another thread


class TakesTurns:
    """An object whose methods marked with `in_turn` run one at a time.

    A call from another thread waits. A call from inside a call raises `ReentryError`: it comes from the handler of a
    signal, a finalizer or a callback, and would wait for itself.
    """

    def _open(self) -> None:
        """Let calls in, and stay usable in processes that are forked."""
        self._lock = Lock()
        self._owner = NOBODY
        self._has_failed = False  # whether a call is in progress, or the last one raised
        _forkable[id(self)] = self

    def _check_whole(self) -> None:
        """Make sure that a call which raised, or was interrupted, left the object as it should be; or raise an error."""

    def _forked(self, number: int) -> None:
        """Begin anew in a process that was forked, the parent's child of this number."""
        self._open()


def in_turn(
    method: Callable[Concatenate[_Mine, _Arguments], _Result],
) -> Callable[Concatenate[_Mine, _Arguments], _Result]:
    """Make a method of a `TakesTurns` run alone.

    >>> class Counter(TakesTurns):
    ...     def __init__(self):
    ...         self.count = 0
    ...         self._open()
    ...     @in_turn
    ...     def add(self):
    ...         self.count += 1
    >>> counter = Counter()
    >>> counter.add()
    >>> counter.count
    1
    """

    @in_turn_by_place
    @wraps(method)
    def run(self: _Mine, arguments: tuple[Any, ...], named: dict[str, Any]) -> _Result:
        return method(self, *arguments, **named)

    @wraps(method)
    def alone(self: _Mine, /, *arguments: _Arguments.args, **named: _Arguments.kwargs) -> _Result:
        return run(self, arguments, named)

    return alone


def in_turn_by_place(
    method: Callable[Concatenate[_Mine, _Places], _Result],
) -> Callable[Concatenate[_Mine, _Places], _Result]:
    """The same for a method whose arguments are given by place. A call takes a third less than that of `in_turn`."""
    call: Callable[..., _Result] = method

    @wraps(method)
    def alone(self: _Mine, /, *arguments: Any) -> _Result:
        thread = get_ident()
        if self._owner == thread:
            raise _reentry(method.__name__.lstrip("_"), type(self).__name__)
        with self._lock:
            # Python runs the handler of a signal after a call or where a function or a round of a loop begins. So this
            # assignment is made before any handler runs, and `finally` undoes it.
            try:
                self._owner = thread
                if self._has_failed:
                    self._check_whole()
                self._has_failed = True
                result = call(self, *arguments)
                self._has_failed = False
                return result
            finally:
                self._owner = NOBODY

    wrapped: Any = alone
    return cast(Callable[Concatenate[_Mine, _Places], _Result], wrapped)


def _reentry(call: str, kind: str) -> ReentryError:
    problem = f"{call}(): this thread is inside another call of the same {kind}, so it would wait for itself; "
    problem += "it was called by the handler of a signal, a finalizer or a callback"
    remedy = "in a handler, raise SystemExit or set a flag, and make the call where the loop ends"
    return ReentryError(Message(problem, remedy))


# Forks


class _Held(local):
    """The locks that a thread took before it forked."""

    def __init__(self) -> None:
        self.locks: list[Any] = []


_forkable: "WeakValueDictionary[int, TakesTurns]" = WeakValueDictionary()
_held = _Held()
_forks = 0


def _close() -> None:
    """Wait until nobody is inside: a call of another thread would stay half done in the child."""
    thread = get_ident()
    locks = [each._lock for each in _all() if each._owner != thread]
    _held.locks = [lock for lock in locks if lock.acquire(timeout=PATIENCE)]


def _in_parent() -> None:
    global _forks
    _forks += 1
    for lock in _held.locks:
        lock.release()
    _held.locks = []


def _in_child() -> None:
    for each in _all():
        each._forked(_forks)


def _all() -> list[TakesTurns]:
    return [each for found in _forkable.valuerefs() if (each := found()) is not None]


if hasattr(os, "register_at_fork"):  # not on Windows, which has no forks
    os.register_at_fork(before=_close, after_in_parent=_in_parent, after_in_child=_in_child)
