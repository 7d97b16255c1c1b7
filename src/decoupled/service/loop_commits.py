"""Commits for an event loop: commands run in its own thread, and only the flush to disk in another.

In CPython two threads take turns with the interpreter, and handing it over costs more than a small command. So commands
that are quick run where they arrive, many in one transaction, and a second thread does nothing but commit. Whatever may
have to wait or takes long goes to the commit loop, whose thread can be held up without holding up other requests: loading
an experiment, writing a snapshot, many arms, a store that another program has locked, PostgreSQL. So do all commands
while others are waiting there.
"""

import asyncio
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from queue import SimpleQueue
from typing import TypeVar

from .commit_loop import LONGEST_LINGER, Command, CommitLoop, Prepared, Unfinished
from .errors import StoreError
from .origin import ORIGIN
from .replies import Reply, deliver
from .session import Reference, Session

T = TypeVar("T")
# The part of a commit's time for which to wait, and what is left of it if waiting is always in vain.
_LINGER = 0.75
_LEAST_TRUST = 0.125
_TICK = 0.001  # seconds; the timers of an event loop are no finer


class LoopCommits:
    """Runs commands of one event loop, in the order in which they come.

    Args:
        commits: the commit loop, whose session and store it shares.
    """

    def __init__(self, commits: CommitLoop) -> None:
        self._commits = commits
        self._loop: asyncio.AbstractEventLoop | None = None
        self._waiting: list[Command] = []
        self._busy = False  # whether a pass is scheduled, or a commit under way
        self._expected = 0  # commands in the next transaction, if everyone who was answered asks again
        self._trust = 1.0  # that they do; falls when the wait was in vain
        self._timer: asyncio.TimerHandle | None = None  # begins it with those that are there
        self._to_finish: SimpleQueue[Prepared | None] = SimpleQueue()
        self._thread: threading.Thread | None = None
        self._closed = False

    def submit(
        self,
        run: Callable[[Session], T | Unfinished],
        *about: Reference,
        alone: bool = False,
        otherwise: Callable[[Session], T | Unfinished] | None = None,
        permit: str | None = None,
        size: int = 1,
    ) -> Reply[T]:
        """Run a function in a transaction that holds the experiments it is about. Call it on the event loop."""
        loop = asyncio.get_running_loop()
        # The loop reads requests, and must not be held up by a batch.
        if alone or size > 1 or self._closed or (loop is not self._loop and not self._adopt(loop)):
            return self._commits.submit(
                run, *about, alone=alone, otherwise=otherwise, permit=permit, size=size
            )
        reply: Reply[T] = Reply()
        self._waiting.append(Command(run, about, reply, alone, otherwise, ORIGIN.get(), permit))
        if not self._busy:
            self._busy = True
            loop.call_soon(self._start)
        elif self._timer is not None and len(self._waiting) >= self._expected:
            self._timer.cancel()
            self._start()
        return reply

    def queued(self) -> int:
        """How many commands are waiting."""
        return len(self._waiting)

    def _adopt(self, loop: asyncio.AbstractEventLoop) -> bool:
        """Serve this loop from now on, unless another one is served that still runs."""
        if self._loop is not None and not self._loop.is_closed():
            return False
        self._loop, self._waiting, self._busy, self._timer = loop, [], False, None
        if self._thread is None:
            self._thread = threading.Thread(target=self._finish, name="decoupled-flushes", daemon=True)
            self._thread.start()
        return True

    def _start(self) -> None:
        """Run what is waiting, in one transaction."""
        if self._expected > 2:
            all_came = len(self._waiting) >= self._expected
            self._trust = 1.0 if all_came else max(_LEAST_TRUST, 0.9 * self._trust)
        batch, self._waiting, self._busy, self._timer = self._waiting, [], False, None
        prepared = self._commits.prepare_now(batch) if batch and not self._closed else None
        if prepared is not None:
            self._busy = True
            self._to_finish.put(prepared)
            return
        for command in batch:
            try:
                self._commits.put(command)
            except StoreError as closed:
                deliver([(command.reply, None, closed)])

    def _finish(self) -> None:
        """The second thread: commit what was run."""
        while (prepared := self._to_finish.get()) is not None:
            self._commits.finish(prepared)
            took = time.monotonic() - prepared.start
            with suppress(RuntimeError):  # the loop is closed
                assert self._loop is not None
                self._loop.call_soon_threadsafe(self._go_on, len(prepared.batch), took)

    def _go_on(self, answered: int, took: float) -> None:
        """After a commit: clients that were answered are about to ask again, so it waits a moment for them."""
        self._busy, self._expected = True, answered + len(self._waiting)
        linger = min(LONGEST_LINGER, self._trust * _LINGER * took)
        if self._expected <= 2:
            self._start()
        elif linger >= _TICK:
            self._timer = asyncio.get_running_loop().call_later(linger, self._start)
        else:
            self._look_again(time.monotonic() + linger)

    def _look_again(self, until: float) -> None:
        """Let the loop read what has arrived until enough is there; a timer would be too coarse."""
        if len(self._waiting) >= self._expected or time.monotonic() >= until:
            self._start()
        else:
            asyncio.get_running_loop().call_soon(self._look_again, until)

    def close(self) -> None:
        """Finish the commit that is under way, and leave all others to the commit loop."""
        self._closed = True
        if self._thread is not None:
            self._to_finish.put(None)
            self._thread.join()
            self._thread = None
