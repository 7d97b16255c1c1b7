"""Threads for long work that take turns, so that short work need not wait for the end of what came before it."""

import time
from collections import deque
from collections.abc import Callable, Hashable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from contextvars import ContextVar, copy_context
from functools import partial
from threading import Condition
from typing import Any

MOST = 16  # threads of one kind, and so lanes that take turns
SLICE = 0.02  # seconds of a turn, if others wait
_current: "ContextVar[FairThreads | None]" = ContextVar("fair_threads", default=None)


class FairThreads:
    """Runs work in lanes, such as one for each tenant: of each lane one piece at a time, in order.

    Lanes take turns. One thread works at a time, because many would hold up the rest of the program. It passes the turn on
    where it calls `pause` or rests, to the one that has waited longest.
    """

    def __init__(self, name: str) -> None:
        self._pool = ThreadPoolExecutor(MOST, name)
        self.close = self._pool.shutdown
        self._lanes: dict[Hashable, deque[Callable[[], Any]]] = {}
        self._changed = Condition()  # guards the fields above and below
        self._asked = self._given = 0  # turns
        self._since = 0.0

    def start(self, work: Callable[[], object], lane: Hashable = None) -> None:
        """Run work in the context of the caller; `RuntimeError` if this is closed."""
        with self._changed:
            if lane not in self._lanes:
                self._pool.submit(self._run, lane)
                self._lanes[lane] = deque()
            self._lanes[lane].append(partial(copy_context().run, self._in_turn, work))

    def _run(self, lane: Hashable) -> None:
        while True:
            with self._changed:
                work = self._lanes[lane][0]
            with suppress(Exception):  # it answers for itself
                work()
            with self._changed:
                self._lanes[lane].popleft()
                if not self._lanes[lane]:
                    del self._lanes[lane]
                    return
            with suppress(RuntimeError):  # it is being closed, and finishes what was started
                self._pool.submit(self._run, lane)  # others may wait for a thread
                return

    def _in_turn(self, work: Callable[[], object]) -> None:
        _current.set(self)
        self.take_turn()
        try:
            work()
        finally:
            self.give_turn()

    def is_turn_over(self) -> bool:
        """Whether others wait and the turn of this thread has lasted long enough."""
        return self._asked - self._given > 1 and time.monotonic() - self._since > SLICE

    def take_turn(self) -> None:
        """Wait for the turn of this thread."""
        with self._changed:
            mine, self._asked = self._asked, self._asked + 1
            self._changed.wait_for(lambda: self._given == mine)
        self._since = time.monotonic()

    def give_turn(self) -> None:
        """Let the next thread work."""
        with self._changed:
            self._given += 1
            self._changed.notify_all()


def pause() -> None:
    """Let others work if they wait, in long work; elsewhere this does nothing."""
    threads = _current.get()
    if threads and threads.is_turn_over():
        with resting():
            pass


@contextmanager
def resting() -> Iterator[None]:
    """Let others work during a block that only waits."""
    threads = _current.get()
    if threads:
        threads.give_turn()
    try:
        yield
    finally:
        if threads:
            threads.take_turn()
