"""Objects that several threads, the handlers of signals and forked processes may use: one call at a time.

Python runs the handler of a signal in the main thread, after a call or where a function or a round of a loop begins, and
the handler may raise. So a lock that is taken by `with` is never left behind, and an assignment that comes first in
`with` or `finally` is made before any handler runs.
"""

import os
from collections.abc import Callable
from functools import wraps
from itertools import compress
from operator import methodcaller
from threading import Lock, get_ident, local
from typing import Any, Concatenate, ParamSpec, TypeVar
from weakref import WeakValueDictionary

from ..errors import Message, ReentryError

_Given = ParamSpec("_Given")
_Found = TypeVar("_Found")
_Mine = TypeVar("_Mine", bound="TakesTurns")
_One = TypeVar("_One")

NOBODY = 0  # is no thread's number
PATIENCE = 1.0  # seconds that a fork waits for a call in another thread


class TakesTurns:
    """An object whose methods marked with `in_turn` run one at a time.

    A call from another thread waits. A call from inside a call raises `ReentryError`: it comes from the handler of a
    signal, a finalizer or a callback, and would wait for itself.
    """

    def _open(self) -> None:
        """Let calls in, and stay usable in processes that are forked."""
        self._lock, self._owner = Lock(), NOBODY
        self._halfway = (
            False  # whether a call is in progress, or was interrupted and not made up for
        )
        _forkable[id(self)] = self

    def _recover(self) -> None:
        """Make up for a call that failed or was interrupted. If this is interrupted too, the next call repeats it."""

    def _forked(self, number: int) -> None:
        """Begin anew in a process that was forked, the parent's child of this number."""
        self._open()


def in_turn(
    method: Callable[Concatenate[_Mine, _Given], _Found],
) -> Callable[Concatenate[_Mine, _Given], _Found]:
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

    @in_turn_with
    @wraps(method)
    def run(self: _Mine, given: tuple[tuple[Any, ...], dict[str, Any]]) -> _Found:
        return method(self, *given[0], **given[1])

    @wraps(method)
    def alone(self: _Mine, /, *arguments: _Given.args, **named: _Given.kwargs) -> _Found:
        return run(self, (arguments, named))

    return alone


def in_turn_with(method: Callable[[_Mine, _One], _Found]) -> Callable[[_Mine, _One], _Found]:
    """The same for a method with one argument, which may be a tuple. A call takes a third less than that of `in_turn`."""

    @wraps(method)
    def alone(self: _Mine, given: _One, /) -> _Found:
        me = get_ident()
        if self._owner == me:
            raise _reentry(method.__name__.lstrip("_"), type(self).__name__)
        with self._lock:
            try:
                self._owner = me
                if self._halfway:
                    self._recover()
                self._halfway = True
                found = method(self, given)
                self._halfway = False
                return found
            finally:
                try:
                    if self._halfway:
                        self._recover()
                        self._halfway = False
                finally:
                    self._owner = NOBODY

    return alone


def _reentry(call: str, kind: str) -> ReentryError:
    problem = f"{call}(): this thread is inside another call of the same {kind}, so it would wait for itself; "
    problem += "it was called by the handler of a signal, a finalizer or a callback"
    remedy = "in a handler, raise SystemExit or set a flag, and make the call where the loop ends"
    return ReentryError(Message(problem, remedy))


# Forks


class _Held(local):
    """The locks that a thread asked for before it forked, and whether it got each."""

    def __init__(self) -> None:
        self.asked: list[Any] = []
        self.got: list[bool] = []


_forkable: "WeakValueDictionary[int, TakesTurns]" = WeakValueDictionary()
_held = _Held()
_forks = 0
# Called by `map`, so that no handler runs between taking a lock and noting that it is taken.
_take, _release = methodcaller("acquire", timeout=PATIENCE), methodcaller("release")


def _close() -> None:
    """Wait until nobody is inside: a call of another thread would stay half done in the child."""
    _held.asked = [each._lock for each in _all() if each._owner != get_ident()]
    _held.got = []
    _held.got.extend(map(_take, _held.asked))


def _in_parent() -> None:
    global _forks
    _forks += 1
    any(map(_release, compress(_held.asked, _held.got)))


def _in_child() -> None:
    for each in _all():
        each._forked(_forks)


def _all() -> list[TakesTurns]:
    return [each for found in _forkable.valuerefs() if (each := found()) is not None]


if hasattr(os, "register_at_fork"):  # not on Windows, which has no forks
    os.register_at_fork(before=_close, after_in_parent=_in_parent, after_in_child=_in_child)
