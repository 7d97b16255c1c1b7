"""One call at a time for objects that threads, the handlers of signals and forks may use."""

import os
from collections.abc import Callable
from threading import Lock, get_ident, local
from traceback import extract_stack
from typing import TypeVar, TypeVarTuple
from weakref import WeakValueDictionary

from ..errors import Message, ReentryError

_Arguments = TypeVarTuple("_Arguments")
_Result = TypeVar("_Result")

NOBODY = 0  # is no thread's number
PATIENCE = 1.0  # seconds that a fork waits for a call in another thread


def _do_nothing(*_: object) -> None:
    """What an object does that needs nothing after a failed call or a fork."""


class Turns:
    """Runs the calls of one object one at a time.

    A call from another thread waits. A call from inside a call raises `ReentryError`: it comes from
    the handler of a signal, a finalizer or a callback, and would wait for itself.

    Args:
        kind: the name of the object's class, for that error.
        recover: called before the next call if one raised or was interrupted, and in a forked
            process. It makes sure that the object is as it should be, or raises an error.
        on_fork: called in a process that was forked, with the number of the fork.

    >>> turns = Turns("Counter")
    >>> counts = []
    >>> turns.run(counts.append, 1)
    >>> counts
    [1]
    """

    def __init__(
        self,
        kind: str,
        recover: Callable[[], object] = _do_nothing,
        on_fork: Callable[[int], object] = _do_nothing,
    ) -> None:
        self._kind = kind
        self._recover = recover
        self._on_fork = on_fork
        self._lock = Lock()
        self._owner = NOBODY
        self._needs_recovery = False  # whether a call is in progress, or the last one raised
        _turns_by_id[id(self)] = self

    def run(self, call: Callable[[*_Arguments], _Result], *arguments: *_Arguments) -> _Result:
        """Run a call alone.

        Args:
            call: the function to call.
            *arguments: what it takes.

        Returns:
            What the call returns.

        Raises:
            ReentryError: if this thread is inside another call of the same object.
        """
        thread = get_ident()
        if self._owner == thread:
            raise _reentry(self._kind)
        with self._lock:
            # Python runs the handler of a signal after a call, or where a function or a round of a
            # loop begins. So this assignment is made before any handler runs, and `finally`
            # undoes it.
            try:
                self._owner = thread
                if self._needs_recovery:
                    self._recover()
                self._needs_recovery = True
                result = call(*arguments)
                self._needs_recovery = False
                return result
            finally:
                self._owner = NOBODY

    # Forks

    def close(self) -> bool:
        """Let nobody in while this thread forks the process. Return whether to `reopen` after it.

        A call of another thread would stay half done in the child, so wait until nobody is inside.
        If this thread is inside itself, its call goes on in the child.
        """
        return self._owner != get_ident() and self._lock.acquire(timeout=PATIENCE)

    def reopen(self) -> None:
        """Let calls in again after `close`."""
        self._lock.release()

    def begin_in_child(self, number: int) -> None:
        """Begin anew in a process that was forked, the parent's child of this number."""
        self._lock = Lock()
        self._owner = NOBODY
        self._needs_recovery = True  # so that the next call does the rest
        self._on_fork(number)


def _reentry(kind: str) -> ReentryError:
    """The error of a call inside a call, with the name of the method that called `Turns.run`."""
    name = extract_stack(limit=3)[0].name.lstrip("_")
    problem = (
        f"{name}(): this thread is inside another call of the same {kind}, so it would wait for "
        "itself; it was called by the handler of a signal, a finalizer or a callback"
    )
    remedy = "in a handler, raise SystemExit or set a flag, and make the call where the loop ends"
    return ReentryError(Message(problem, remedy))


class _Closed(local):
    """What a thread closed before it forked."""

    def __init__(self) -> None:
        self.turns: list[Turns] = []


_turns_by_id: "WeakValueDictionary[int, Turns]" = WeakValueDictionary()
_closed = _Closed()
_forks = 0


def _all() -> list[Turns]:
    references = _turns_by_id.valuerefs()  # a copy, made in one step that no thread enters
    living = [reference() for reference in references]
    return [turns for turns in living if turns is not None]


def _close_all() -> None:
    _closed.turns = [turns for turns in _all() if turns.close()]


def _reopen_all() -> None:
    global _forks
    _forks += 1
    for turns in _closed.turns:
        turns.reopen()
    _closed.turns = []


def _begin_all_in_child() -> None:
    for turns in _all():
        turns.begin_in_child(_forks)


if hasattr(os, "register_at_fork"):  # not on Windows, which has no forks
    os.register_at_fork(
        before=_close_all, after_in_parent=_reopen_all, after_in_child=_begin_all_in_child
    )
