"""Threads for long work that take turns, so that short work need not wait for the end of what came before it."""

import time
from collections import deque
from collections.abc import Callable, Hashable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from contextvars import ContextVar, copy_context
from functools import partial
from threading import Lock
from typing import Any

MOST = 16  # threads of one kind, and so lanes that take turns
SLICE = 0.02  # seconds of a turn, if others wait
_current: "ContextVar[FairThreads | None]" = ContextVar("fair_threads", default=None)


class FairThreads:
    """Runs work in lanes, such as one for each tenant: of each lane one piece at a time, in order.

    Lanes take turns. One thread works at a time, because many would hold up the rest of the program. It passes the turn on
    where it calls `pause` or rests, to the one that has waited longest.

    >>> threads, done = FairThreads("example"), []
    >>> for name, steps in (("long", 3), ("short", 1)):
    ...     threads.start(lambda name=name, steps=steps: done.extend([name] * steps), lane=name)
    >>> threads.close()
    >>> sorted(done)
    ['long', 'long', 'long', 'short']
    """

    def __init__(self, name: str) -> None:
        self._pool = ThreadPoolExecutor(MOST, name)
        self.close = self._pool.shutdown
        self._lock = Lock()  # for the fields below
        self._lanes: dict[Hashable, deque[Callable[[], Any]]] = {}
        self._waiting: deque[Lock] = deque()  # each is held, and released when its turn comes
        self._taken, self._since = False, 0.0

    def start(self, work: Callable[[], object], lane: Hashable = None) -> None:
        """Run work in the context of the caller; `RuntimeError` if this is closed."""
        with self._lock:
            if lane not in self._lanes:
                self._pool.submit(self._run, lane)
                self._lanes[lane] = deque()
            self._lanes[lane].append(partial(copy_context().run, self._in_turn, work))

    def _run(self, lane: Hashable) -> None:
        while True:
            with self._lock:
                work = self._lanes[lane][0]
            with suppress(Exception):  # it answers for itself
                work()
            with self._lock:
                self._lanes[lane].popleft()
                if not self._lanes[lane]:
                    del self._lanes[lane]
                    return
            with suppress(RuntimeError):  # it is being closed, and finishes what was started
                self._pool.submit(self._run, lane)  # others may wait for a thread
                return

    def _in_turn(self, work: Callable[[], object]) -> None:
        _current.set(self)
        self.take()
        try:
            work()
        finally:
            self.give()

    def take(self) -> None:
        """Wait for a turn."""
        mine = Lock()
        with self._lock:
            if self._taken:
                mine.acquire()
                self._waiting.append(mine)
            self._taken = True
        mine.acquire()
        self._since = time.monotonic()

    def give(self) -> None:
        """End the turn."""
        with self._lock:
            if self._waiting:
                self._waiting.popleft().release()
            else:
                self._taken = False

    def pass_on(self) -> None:
        """End the turn and wait for the next, if its time is over and others wait."""
        if self._waiting and time.monotonic() - self._since > SLICE:
            self.give()
            self.take()


def pause() -> None:
    """Let others work, in long work; elsewhere this does nothing."""
    threads = _current.get()
    if threads is not None:
        threads.pass_on()


@contextmanager
def resting() -> Iterator[None]:
    """Let others work during a block that only waits."""
    threads = _current.get()
    if threads is None:
        yield
        return
    threads.give()
    try:
        yield
    finally:
        threads.take()
