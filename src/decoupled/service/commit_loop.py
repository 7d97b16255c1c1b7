"""One thread that writes: it collects commands, commits them together, and only then answers."""

import asyncio
import logging
import threading
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import suppress
from functools import partial
from queue import Empty, SimpleQueue
from typing import Any, Generic, NamedTuple, TypeAlias, TypeVar

from .errors import Compiling, Loading, ServiceError, StoreError
from .session import Reference, Session

T = TypeVar("T")
MOST_AT_ONCE = 1000
CLOSED = "service: is closed; open it again"

# Clients that wait for answers fall into two groups, each of which waits for the other's commit. Waiting for the
# other group, for a fraction of the time that a commit takes, merges them.
_LINGER = 0.25
_LONGEST_LINGER = 0.002
_BREATH = 0.01  # seconds between two parts of housekeeping, in which commands run

_log = logging.getLogger(__name__)


class Reply(Generic[T]):
    """The answer to a call. `result()` waits for it in a thread, and `await` on an event loop.

    It arrives when the effect of the call is on disk.
    """

    __slots__ = ("_done", "_error", "_value", "_waiters")

    def __init__(self) -> None:
        self._done = False
        self._value: Any = None
        self._error: BaseException | None = None
        self._waiters: list[threading.Event | asyncio.Future[None]] = []

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
            if not self._done and not waiter.wait(timeout):
                raise TimeoutError(f"no answer came within {timeout} s")
        return self._error

    def __await__(self) -> Generator[Any, None, T]:
        if not self._done:
            waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiters.append(waiter)
            if not self._done:
                yield from waiter
        return self._answer()

    def _answer(self) -> T:
        if self._error is not None:
            raise self._error
        value: T = self._value
        return value


Outcome: TypeAlias = tuple[Reply[Any], Any, BaseException | None]  # a reply with its value, or its error


def deliver(outcomes: Sequence[Outcome]) -> None:
    """Give every reply its value or its error; each event loop is woken once for all of its replies."""
    by_loop: dict[asyncio.AbstractEventLoop, list[asyncio.Future[None]]] = {}
    for reply, value, error in outcomes:
        reply._value, reply._error = value, error
        reply._done = True
        for waiter in reply._waiters:
            if isinstance(waiter, threading.Event):
                waiter.set()
            else:
                by_loop.setdefault(waiter.get_loop(), []).append(waiter)
    for loop, waiters in by_loop.items():
        with suppress(RuntimeError):  # the loop is closed, and nobody waits
            loop.call_soon_threadsafe(_wake, waiters)


def _wake(waiters: Sequence["asyncio.Future[None]"]) -> None:
    for waiter in waiters:
        if not waiter.done():  # else the client is gone
            waiter.set_result(None)


class Command(NamedTuple):
    """A function to run inside a transaction, and the reply for its result.

    `about` names the experiments that it touches, which are locked first. `alone` asks for a transaction of its own.
    `otherwise` runs instead if a policy is still being compiled when the caller's patience ends; without it the
    caller gets the error. `permit` names the key of the caller, which must still be valid in the transaction.
    """

    run: Callable[[Session], Any]
    about: tuple[Reference, ...]
    reply: Reply[Any]
    alone: bool = False
    otherwise: Callable[[Session], Any] | None = None
    permit: str | None = None


class CommitLoop:
    """Runs commands in the order in which they arrive, all that are waiting in one commit.

    Args:
        session: the experiments and the store.
        patience: for how many seconds (and at most one more) a command waits for a policy that is being compiled;
            None for as long as it takes.
        housekeeping: runs about once a second, and again after the next commands if it returns True.
    """

    def __init__(
        self,
        session: Session,
        *,
        patience: float | None = None,
        housekeeping: Callable[[Session], bool] | None = None,
        every: float = 1.0,
    ) -> None:
        self.session = session
        self.patience = patience
        self._queue: SimpleQueue[Command | None] = SimpleQueue()
        self._housekeeping, self._every = housekeeping, every
        self.healthy = True
        self.commits = self.failures = self.commands = 0
        self._last = 0.0  # how long the last transaction took
        self._lately = [0, 0]  # how many commands the last two had
        self._closed = False
        self._closing = threading.Lock()
        self._thread = threading.Thread(target=self._work, name="decoupled-commits", daemon=True)
        self._thread.start()

    def submit(
        self,
        run: Callable[[Session], T],
        *about: Reference,
        alone: bool = False,
        otherwise: Callable[[Session], T] | None = None,
        permit: str | None = None,
    ) -> Reply[T]:
        """Run a function in a transaction that holds the experiments it is about."""
        reply: Reply[T] = Reply()
        self.put(Command(run, about, reply, alone, otherwise, permit))
        return reply

    def put(self, command: Command) -> None:
        """Queue a command; its reply arrives when its effect is on disk."""
        with self._closing:
            if self._closed:
                raise StoreError(CLOSED)
            self._queue.put(command)

    def queued(self) -> int:
        """How many commands are waiting."""
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
                if self._housekeeping is not None and not stop:
                    tidied: Reply[bool] = Reply()
                    self.perform([Command(self._housekeeping, (), tidied, alone=True)])
                    if tidied.exception(0.0) is None and tidied.result():
                        due = time.monotonic() + _BREATH
            if stop:
                return

    def _next(self, left: Command | None, due: float) -> tuple[list[Command], Command | None, bool]:
        """Commands for one transaction, one left for the next, and whether to stop."""
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
        """The next command. Clients that were just answered are about to ask again, so it waits a moment for them."""
        expected = self._lately[0] + self._lately[1]
        if have < expected and expected > 2:
            left = until - time.monotonic()
            if left > 0.0:
                return self._queue.get(timeout=left)
        return self._queue.get_nowait()

    def perform(self, batch: list[Command]) -> None:
        """Run commands in one transaction, and answer. If one fails unexpectedly, the others run again without it."""
        start = time.monotonic()
        while batch:
            outcomes: list[Outcome] = []
            command = batch[0]
            try:
                self.session.enter([each for command in batch for each in command.about])
                for command in batch:
                    outcomes.extend(self._outcome(command))
                wrote = self.session.leave()
            except StoreError as error:
                self._fail(error)
                outcomes = [(each.reply, None, error) for each in batch]
            except Exception as error:
                self._fail(error)
                deliver([(command.reply, None, as_service_error(error))])
                batch = [each for each in batch if each is not command]
                continue
            else:
                self.healthy = self.healthy or wrote  # a full disk can still be read
                self.commits += 1
                self.commands += len(batch)
                self._last = time.monotonic() - start
                self._lately = [self._lately[1], len(batch)]
            deliver(outcomes)
            return

    def _outcome(self, command: Command) -> list[Outcome]:
        try:
            if command.permit is not None:
                self.session.permits.check(command.permit)
            return [(command.reply, command.run(self.session), None)]
        except StoreError:
            raise
        except Compiling as error:
            if error.job is None:
                return [(command.reply, None, error)]
            self._park(command, error)
            return []
        except Loading as error:
            if error.load is None:  # the service is being closed
                return [(command.reply, None, error)]
            self.session.loader.wait(error.load, partial(self._again, command))
            return []
        except ServiceError as error:  # raised before anything was written
            return [(command.reply, None, error)]

    def _park(self, command: Command, error: Compiling) -> None:
        """Run a command again once its policy is compiled."""

        def give_up() -> None:
            if command.otherwise is None:
                deliver([(command.reply, None, error)])
            else:
                self._again(command._replace(run=command.otherwise))

        self.session.compiler.wait(error.job, partial(self._again, command), give_up, self.patience)

    def _again(self, command: Command) -> None:
        try:
            self.put(command)
        except StoreError as closed:
            deliver([(command.reply, None, closed)])

    def _fail(self, error: Exception) -> None:
        self.healthy = self.healthy and not isinstance(error, StoreError)
        self.failures += 1
        _log.error("nothing of this transaction was acknowledged: %s", error)
        self.session.abandon()


def as_service_error(error: Exception) -> ServiceError:
    """Any error as a `ServiceError`."""
    if isinstance(error, ServiceError):
        return error
    wrapped = ServiceError(f"{type(error).__name__}: {error}")
    wrapped.__cause__ = error
    return wrapped
