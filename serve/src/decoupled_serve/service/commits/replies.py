"""Replies: the answers to calls, which other threads and event loops wait for."""

import asyncio
import logging
import threading
from collections.abc import Callable, Generator, Sequence
from contextlib import suppress
from typing import Any, Generic, TypeAlias, TypeVar

from ...fair_threads import resting

T = TypeVar("T")
Loop: TypeAlias = asyncio.AbstractEventLoop
Call: TypeAlias = tuple[Callable[[Any], None], Any]  # a function, and its argument

_log = logging.getLogger(__name__)


class Reply(Generic[T]):
    """The answer to a call, once its effect is on disk. `result()` waits for it in a thread, and `await` on an event loop."""

    __slots__ = ("_done", "_error", "_value", "_waiters")

    def __init__(self) -> None:
        self._done = False
        self._value: Any = None
        self._error: BaseException | None = None
        self._waiters: list[threading.Event | tuple[Loop, Call]] = []

    def done(self) -> bool:
        """Whether the answer has arrived."""
        return self._done

    def result(self, timeout: float | None = None) -> T:
        """Wait for the answer and return it, or raise its error."""
        self.exception(timeout)
        return self._answer()

    def exception(self, timeout: float | None = None) -> BaseException | None:
        """Wait for the answer and return its error, None if there is none."""
        if not self._done:
            waiter = threading.Event()
            self._waiters.append(waiter)
            # Delivery sets `_done` before it looks for waiters, so one of the two sides sees the other.
            with resting():
                if not self._done and not waiter.wait(timeout):
                    raise TimeoutError(f"no answer came within {timeout} s")
        return self._error

    def __await__(self) -> Generator[Any, None, T]:
        if not self._done:
            loop = asyncio.get_running_loop()
            waiter: asyncio.Future[None] = loop.create_future()
            self._waiters.append((loop, (_resolve, waiter)))
            if not self._done:
                yield from waiter
        return self._answer()

    def when_done(self, loop: Loop, call: Callable[["Reply[T]"], None]) -> None:
        """Call a function, once, on the running event loop when the answer is there. Unlike `await`, this needs no task."""
        waiter = (loop, (call, self))
        self._waiters.append(waiter)
        if self._done:
            with suppress(ValueError):  # delivery has taken it, and calls
                self._waiters.remove(waiter)
                loop.call_soon(call, self)

    def settle(
        self, value: Any, error: BaseException | None
    ) -> list[threading.Event | tuple[Loop, Call]]:
        """Take the value or the error, and return who waits for it. Only `deliver` calls this, once."""
        self._value, self._error = value, error
        self._done = True
        waiters = []
        while self._waiters:  # others may take theirs back at the same time
            waiters.append(self._waiters.pop())
        return waiters

    def _answer(self) -> T:
        if self._error is not None:
            raise self._error
        value: T = self._value
        return value


Outcome: TypeAlias = tuple[
    Reply[Any], Any, BaseException | None
]  # a reply with its value, or its error


def deliver(outcomes: Sequence[Outcome]) -> None:
    """Give every reply its value or its error; each event loop is woken once for all of its replies."""
    by_loop: dict[Loop, list[Call]] = {}
    for reply, value, error in outcomes:
        for waiter in reply.settle(value, error):
            if isinstance(waiter, threading.Event):
                waiter.set()
            else:
                by_loop.setdefault(waiter[0], []).append(waiter[1])
    for loop, calls in by_loop.items():
        with suppress(RuntimeError):  # the loop is closed, and nobody waits
            loop.call_soon_threadsafe(_wake, calls)


def _wake(calls: Sequence[Call]) -> None:
    for call, argument in calls:
        try:
            call(argument)
        except Exception:  # the others must still be woken
            _log.exception("an answer could not be passed on")


def _resolve(waiter: "asyncio.Future[None]") -> None:
    if not waiter.done():  # else the client is gone
        waiter.set_result(None)
