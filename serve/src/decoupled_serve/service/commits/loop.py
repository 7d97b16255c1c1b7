"""One thread that writes: it collects commands, commits them together, and only then answers."""

import logging
import threading
import time
from collections.abc import Callable, Hashable, Sequence
from functools import partial
from typing import Any, NamedTuple, TypeAlias, TypeVar

from decoupled.client import CLOSED, Compiling, Loading, ServiceError, StoreError

from ..experiment.request_context import ORIGIN, Origin
from ..memory.session import Reference, Session
from .queue import Command, CommandQueue
from .replies import Outcome, Reply, deliver

T = TypeVar("T")
MOST_AT_ONCE = 1000  # decisions and losses in one transaction, if others wait
SLICE = 32  # of a batch, which take about as long as a commit; then it makes way for others

# Clients that wait for answers fall into two groups, each of which waits for the other's commit. Waiting for the
# other group, for a fraction of the time that a commit takes, merges them.
_LINGER = 0.25
LONGEST_LINGER = 0.002
_BREATH = 0.01  # seconds between two parts of housekeeping, in which commands run

_log = logging.getLogger(__name__)


class Continuation(NamedTuple):
    """What a command returns that makes way for others: what it did is committed, and `rest` runs later."""

    rest: Callable[[Session], Any]


# Called after each transaction with its commands, its seconds, and the error if it failed.
Observer: TypeAlias = Callable[[Sequence[Command], float, ServiceError | None], None]


class CommitLoop:
    """Runs commands in the order in which they arrive, all that are waiting in one commit.

    Experiments take turns, and a batch is run in slices if others wait: so none holds them up for longer than a slice. For a
    policy that is being compiled, a command waits `patience` seconds, and at most one more; None for as long as it takes.
    `housekeeping` runs about once a second, and again after the next commands if it returns True.
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
        self._queue = CommandQueue(SLICE)
        self._housekeeping, self._every = housekeeping, every
        self.healthy = True
        self.commits = self.failures = self.commands = 0
        self._last = 0.0  # how long the last transaction took
        self._expected = 0  # commands in the next one, if everyone who was answered asks again
        self._lane: Hashable = None  # of the command that runs
        self._with_lighter = (
            False  # whether it shares its transaction with commands that are no batches
        )
        session.others_wait = lambda: self._with_lighter or self._queue.lighter_than(self._lane)
        self.observers: list[Observer] = []
        self._thread = threading.Thread(target=self._work, name="decoupled-commits", daemon=True)
        self._thread.start()

    def submit(
        self,
        run: Callable[[Session], T | Continuation],
        *about: Reference,
        alone: bool = False,
        otherwise: Callable[[Session], T | Continuation] | None = None,
        permit: str | None = None,
        size: int = 1,
    ) -> Reply[T]:
        """Run a function in a transaction that holds the experiments it is about.

        With a `size`, the decisions or losses of a batch, it may return `Continuation` after each slice of them.
        """
        reply: Reply[T] = Reply()
        lane, weight = self.session.lane(about), min(size, SLICE)
        command = Command(run, about, reply, alone, otherwise, ORIGIN.get(), permit, weight, lane)
        if not self._queue.put(command):
            raise StoreError(CLOSED)
        return reply

    def run(
        self, command: Callable[..., T], about: Reference, *, alone: bool = False, **arguments: Any
    ) -> Reply[T]:
        """Run a command about one experiment with these arguments, in a transaction that holds it."""
        return self.submit(partial(command, about=about, **arguments), about, alone=alone)

    def queued(self) -> int:
        """How many commands are waiting."""
        return len(self._queue)

    def close(self) -> None:
        """Run what was submitted, then stop."""
        self._queue.close()
        self._thread.join()

    def _work(self) -> None:
        due = time.monotonic() + self._every
        while True:
            stop = self._queue.closed
            self._queue.wait(1, due - time.monotonic())
            # Clients that were just answered are about to ask again, so it waits a moment for them.
            if self._expected > 2 and len(self._queue) > 0:
                self._queue.wait(self._expected, min(LONGEST_LINGER, _LINGER * self._last))
            batch = self._queue.take(MOST_AT_ONCE)
            if batch:
                self._perform(batch)
            elif stop:
                return
            if time.monotonic() >= due:
                due = time.monotonic() + self._every
                if self._housekeeping is not None and not stop:
                    tidied: Reply[bool] = Reply()
                    self._perform([Command(self._housekeeping, (), tidied, alone=True)])
                    if tidied.exception(0.0) is None and tidied.result():
                        due = time.monotonic() + _BREATH

    def _perform(self, batch: list[Command]) -> None:
        """Run commands in one transaction, and answer. If one fails unexpectedly, the others run again without it."""
        start = time.monotonic()
        self._with_lighter = any(each.weight < SLICE for each in batch)
        while batch:
            outcomes, unfinished = list[Outcome](), list[Command]()
            command: Command | None = None
            try:
                self.session.enter([each for command in batch for each in command.about])
                for command in batch:
                    self._run(command, outcomes, unfinished)
                command = None
                self.session.write()
            except StoreError as error:
                self._fail_all(error, batch, start)
                return
            except Exception as error:
                if (
                    command is None and len(batch) > 1
                ):  # it is one of them: look for it in each half
                    self._fail(error, batch)
                    self._perform(batch[: len(batch) // 2])
                    batch = batch[len(batch) // 2 :]
                    continue
                command = command or batch[0]
                self._fail(error, [command])
                deliver([(command.reply, None, as_service_error(error))])
                batch = [each for each in batch if each is not command]
                continue
            self._commit(batch, outcomes, unfinished, start)
            return

    def _commit(
        self, batch: list[Command], outcomes: list[Outcome], unfinished: list[Command], start: float
    ) -> None:
        """Make a transaction durable, and then answer; the rest of what made way for others is queued again."""
        try:
            wrote = self.session.store.commit()
        except Exception as error:
            self._fail_all(error, batch, start)
            return
        self.session.committed()
        self.healthy = self.healthy or wrote  # a full disk can still be read
        self.commits += 1
        self.commands += len(batch)
        self._last = time.monotonic() - start
        self._expected = len(batch) + len(self._queue)
        for command in unfinished:
            self._queue.put_back(command)
        self._tell(batch, outcomes, start, None)

    def _tell(
        self,
        batch: list[Command],
        outcomes: list[Outcome],
        start: float,
        failed: ServiceError | None,
    ) -> None:
        """Answer, and then tell those who observe the commits."""
        seconds = time.monotonic() - start
        deliver(outcomes)
        if batch[0].run is not self._housekeeping:
            for observe in self.observers:
                observe(batch, seconds, failed)

    def _run(self, command: Command, outcomes: list[Outcome], unfinished: list[Command]) -> None:
        ORIGIN.set(command.origin)
        self._lane = command.lane
        try:
            if command.permit is not None:
                self.session.keys.check(command.permit)
            done = command.run(self.session)
            if isinstance(done, Continuation):
                unfinished.append(command._replace(run=done.rest))
            else:
                outcomes.append((command.reply, done, None))
        except StoreError:
            raise
        except ServiceError as error:  # raised before anything was written
            if isinstance(error, Compiling) and error.job is not None:
                self._park(command, error)
            elif (
                isinstance(error, Loading) and error.load is not None
            ):  # else the service is being closed
                error.load.wait(partial(self._again, command))
            else:
                outcomes.append((command.reply, None, error))

    def _park(self, command: Command, error: Compiling) -> None:
        """Run a command again once its policy is compiled."""

        def give_up() -> None:
            if command.otherwise is None:
                deliver([(command.reply, None, error)])
            else:
                self._again(command._replace(run=command.otherwise))

        self.session.compiler.wait(error.job, partial(self._again, command), give_up, self.patience)

    def _again(self, command: Command) -> None:
        """Queue a command again, which may have become one of another lane."""
        if not self._queue.put(command._replace(lane=self.session.lane(command.about))):
            deliver([(command.reply, None, StoreError(CLOSED))])

    def _fail_all(self, error: Exception, batch: list[Command], start: float) -> None:
        self._fail(error, batch)
        failed = as_service_error(error)
        self._tell(batch, [(each.reply, None, failed) for each in batch], start, failed)

    def _fail(self, error: Exception, batch: Sequence[Command]) -> None:
        self.healthy = self.healthy and not isinstance(error, StoreError)
        self.failures += 1
        requests = [each.origin.request for each in batch if each.origin.request is not None]
        ORIGIN.set(Origin())
        fields = {"fields": {"requests": requests}} if requests else None
        _log.error("nothing of this transaction was acknowledged: %s", error, extra=fields)
        self.session.abandon()


def as_service_error(error: Exception) -> ServiceError:
    """Any error as a `ServiceError`."""
    if isinstance(error, ServiceError):
        return error
    wrapped = ServiceError(f"{type(error).__name__}: {error}")
    wrapped.__cause__ = error
    return wrapped
