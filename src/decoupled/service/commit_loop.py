"""One thread that writes: it gathers what callers ask, commits it together, and only then answers."""

import logging
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from queue import Empty, SimpleQueue
from typing import Any, NamedTuple, TypeAlias

from .errors import Compiling, ServiceError, StoreError
from .session import Reference, Room

MOST_AT_ONCE = 1000

# Clients that wait in turn fall into two groups, each of which waits for the other's flush. To wait for the
# other group for a part of what a flush takes brings them together.
_LINGER = 0.25
_LONGEST_LINGER = 0.002

_log = logging.getLogger(__name__)


class Command(NamedTuple):
    """Something to do inside a transaction, and the future that takes its result.

    `about` names the experiments it touches, which are locked before anything is done; `alone` asks for a
    transaction of its own. `otherwise` is what to do if a policy is still being compiled when the caller's
    patience ends; without it the caller is told so.
    """

    work: Callable[[], Any]
    about: tuple[Reference, ...]
    future: Any
    alone: bool = False
    otherwise: Callable[[], Any] | None = None


# What is delivered once the commit is on disk: a future with its result, or with its error.
Outcome: TypeAlias = tuple[Any, Any, BaseException | None]


def resolve(outcomes: Sequence[Outcome]) -> None:
    """Give every future its result or its error."""
    for future, result, error in outcomes:
        if future.cancelled() or (isinstance(future, Future) and not future.set_running_or_notify_cancel()):
            continue  # whoever waited has gone
        if error is None:
            future.set_result(result)
        else:
            future.set_exception(error)


class Writer:
    """Runs commands in the order they came, as many in one commit as have come meanwhile."""

    def __init__(
        self,
        room: Room,
        *,
        every: float = 1.0,
        idle: Callable[[], None] | None = None,
        deliver: Callable[[Sequence[Outcome]], None] = resolve,
        park: Callable[[Command, Compiling], None] | None = None,
    ) -> None:
        self._room = room
        self._park = park
        self._queue: SimpleQueue[Command | None] = SimpleQueue()
        self._every = every
        self._idle = idle
        self.deliver = deliver
        self.healthy = True
        self.commits = self.failures = self.commands = 0
        self._last = 0.0  # how long the last transaction took
        self._lately = [0, 0]  # how many commands the last two had
        self._closed = False
        self._closing = threading.Lock()
        self._thread = threading.Thread(target=self._work, name="decoupled-writer", daemon=True)
        self._thread.start()

    def submit(self, command: Command) -> None:
        """Have a command run; its future is resolved when its effect is on disk."""
        with self._closing:
            if self._closed:
                raise StoreError("desk: is closed; open it again")
            self._queue.put(command)

    def queued(self) -> int:
        """How many commands wait."""
        return self._queue.qsize()

    def close(self) -> None:
        """Run what was submitted, then stop."""
        with self._closing:
            if not self._closed:
                self._closed = True
                self._queue.put(None)
        self._thread.join()

    def _work(self) -> None:
        due = time.monotonic() + self._every
        left: Command | None = None
        while True:
            batch, left, stop = self._next(left, due)
            if batch:
                self.perform(batch)
            if time.monotonic() >= due:
                due = time.monotonic() + self._every
                if self._idle is not None and not stop:
                    self.perform([Command(self._idle, (), Future(), alone=True)])
            if stop:
                return

    def _next(self, left: Command | None, due: float) -> tuple[list[Command], Command | None, bool]:
        """Commands for one transaction, one that must wait for the next, and whether this is the end."""
        batch: list[Command] = []
        try:
            first = left or self._queue.get(timeout=max(0.0, due - time.monotonic()))
            until = time.monotonic() + min(_LONGEST_LINGER, _LINGER * self._last)
            while first is not None:
                if first.alone and batch:
                    return batch, first, False
                batch.append(first)
                if first.alone or len(batch) == MOST_AT_ONCE:
                    return batch, None, False
                first = self._another(len(batch), until)
        except Empty:
            return batch, None, False
        return batch, None, True

    def _another(self, have: int, until: float) -> Command | None:
        """The next command. Those answered last are about to ask again: it is worth a moment to wait for them."""
        expected = self._lately[0] + self._lately[1]
        if have < expected and expected > 2:
            left = until - time.monotonic()
            if left > 0.0:
                return self._queue.get(timeout=left)
        return self._queue.get_nowait()

    def perform(self, batch: list[Command]) -> None:
        """Run commands in one transaction, and answer. One that fails unforeseen is left out, the rest run again."""
        start = time.monotonic()
        while batch:
            outcomes: list[Outcome] = []
            command = batch[0]
            try:
                self._room.enter([each for command in batch for each in command.about])
                for command in batch:
                    outcomes.extend(self._outcome(command))
                wrote = self._room.leave()
            except StoreError as error:
                self._fail(error)
                outcomes = [(each.future, None, error) for each in batch]
            except Exception as error:
                self._fail(error)
                self._answer([(command.future, None, as_service_error(error))])
                batch = [each for each in batch if each is not command]
                continue
            else:
                self.healthy = self.healthy or wrote  # a full disk can still be read
                self.commits += 1
                self.commands += len(batch)
                self._last = time.monotonic() - start
                self._lately = [self._lately[1], len(batch)]
            self._answer(outcomes)
            return

    def _outcome(self, command: Command) -> list[Outcome]:
        try:
            return [(command.future, command.work(), None)]
        except StoreError:
            raise
        except Compiling as error:  # it is tried again when the policy is ready
            if self._park is None or error.job is None:
                return [(command.future, None, error)]
            self._park(command, error)
            return []
        except ServiceError as error:  # raised before anything was written
            return [(command.future, None, error)]

    def _fail(self, error: Exception) -> None:
        self.healthy = self.healthy and not isinstance(error, StoreError)
        self.failures += 1
        _log.error("nothing of this transaction was acknowledged: %s", error)
        self._room.abandon()

    def _answer(self, outcomes: Sequence[Outcome]) -> None:
        try:
            self.deliver(outcomes)
        except RuntimeError:  # an event loop that is closed; nobody is left who could be woken otherwise
            resolve(outcomes)


def as_service_error(error: Exception) -> ServiceError:
    """An error as the desk raises it."""
    if isinstance(error, ServiceError):
        return error
    told = ServiceError(f"{type(error).__name__}: {error}")
    told.__cause__ = error
    return told
