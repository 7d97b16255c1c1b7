"""What the desk stands on: futures, the writer, and threads for what takes long."""

import logging
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from threading import Event
from typing import Any, TypeVar

from ..policies import Policy
from .commands import feedback as settling
from .commit_loop import Command, Outcome, Writer, as_service_error, resolve
from .compiler import LATER, STORED, Compiler, code_of, needed
from .errors import Compiling, NotCompiled, NotFound, StoreError
from .experiment.rows import ExperimentRow
from .session import Reference, Room
from .store.store import Store

T = TypeVar("T")
U = TypeVar("U")

_log = logging.getLogger("decoupled.service")

KEEP_KEYS = 24 * 3600.0
_KEYS_AT_ONCE = 5_000  # as many as a second brings, and no pause that a client would feel


class Office:
    """Runs work in the writer's transactions, or aside from them; every call returns a future.

    Args:
        store: where everything is kept.
        clock: the time in seconds, for deadlines.
        snapshot_every: so many rows of a log come between two snapshots.
        max_pending: so many decisions of an experiment may wait; beyond it the oldest expires.
        keep_keys: for so many seconds an idempotency key is remembered.
        future: makes the futures that calls return.
        patience: for so many seconds (and one more at most) a request waits for a policy that is being compiled,
            before it is refused; None for as long as it takes.
        compiler: compiles policies.
        deliver: takes all outcomes of a commit, (future, result, error) each, to resolve the futures.
            An asyncio server passes one that hands them to its loop in one call.
    """

    def __init__(
        self,
        store: Store,
        *,
        clock: Callable[[], float] = time.time,
        snapshot_every: int = 10_000,
        max_pending: int = 100_000,
        keep_keys: float = KEEP_KEYS,
        patience: float | None = None,
        compiler: Compiler | None = None,
        future: Callable[[], Any] = Future,
        deliver: Callable[[Sequence[Outcome]], None] = resolve,
    ) -> None:
        if store.migrate(clock()):
            _log.info("store %s: created", store.where)
        self._compiler = compiler or Compiler()
        self._room = Room(store, clock, snapshot_every, self._compiler)
        self.patience = patience
        self._max_pending = max_pending
        self._keep_keys = keep_keys
        self.future = future
        self._writer = Writer(self._room, idle=self._sweep, deliver=deliver, park=self._park)
        self._beside = ThreadPoolExecutor(1, "decoupled-beside")
        self._checks = ThreadPoolExecutor(1, "decoupled-checks")  # never behind an export
        self._listing = False

    @property
    def deliver(self) -> Callable[[Sequence[Outcome]], None]:
        """What resolves the futures of a commit."""
        return self._writer.deliver

    @deliver.setter
    def deliver(self, deliver: Callable[[Sequence[Outcome]], None]) -> None:
        self._writer.deliver = deliver

    def ready(self) -> bool:
        """Whether the store took the last write. After a failure one is tried each second."""
        return self._writer.healthy

    # Compiling

    def compile_stored(self, offered: Iterable[Policy] = ()) -> None:
        """Have the policies of all experiments compiled, beside everything else, and then those on offer."""
        self._listing = True
        self._checks.submit(self._compile_stored, tuple(offered))

    def _compile_stored(self, offered: tuple[Policy, ...]) -> None:
        try:
            reader = self._room.store.reader()
            try:
                rows = reader.experiments(None)
            finally:
                reader.close()
            for row in rows:
                policy, numbers = needed(row)
                urgency = STORED if row.archived_at is None else LATER
                with suppress(NotCompiled):  # whoever asks for it is told
                    for arms in numbers:
                        self._compiler.begin(code_of(policy, arms), urgency)
            for each in offered:
                self._compiler.begin(code_of(each.to_dict(), 2), LATER)
        except Exception:
            _log.exception(
                "what the stored experiments need could not be read; it is compiled when it is asked for"
            )
        finally:
            self._listing = False

    def stored_to_compile(self) -> int:
        """How many policies of the experiments stored at the start are still to be compiled."""
        return self._compiler.stored_to_do() + self._listing

    def still_compiling(self) -> bool:
        """Whether a thread compiles, which cannot be interrupted."""
        return self._compiler.busy()

    def counters(self) -> dict[str, int]:
        """What this desk has done since it was opened, and the sums over the experiments in its memory."""
        running = self._room.all_running()
        return {
            "commits": self._writer.commits,
            "failed_commits": self._writer.failures,
            "commands": self._writer.commands,
            "queue": self._writer.queued(),
            "experiments": len(running),
            "decisions": sum(each.tallies.decisions for each in running),
            "observed": sum(each.tallies.applied for each in running),
            "expired": sum(each.tallies.expired for each in running),
            "late": sum(each.late for each in running),
            "pending": sum(len(each.pending) for each in running),
        }

    def close(self) -> None:
        """Finish what was asked, keep a snapshot of every experiment, and let go of the store."""
        self._compiler.close()
        self._checks.shutdown()
        self._beside.shutdown()
        self._writer.close()
        self._room.close()

    # Inside

    def _do(
        self,
        work: Callable[[], T],
        *about: Reference,
        alone: bool = False,
        otherwise: Callable[[], T] | None = None,
    ) -> "Future[T]":
        """Run work in a transaction that holds the experiments it is about."""
        future: Future[T] = self.future()
        self._writer.submit(Command(work, about, future, alone, otherwise))
        return future

    def _aside(
        self,
        work: Callable[[], T],
        then: Callable[[T], U] | None = None,
        about: tuple[Reference, ...] = (),
        *,
        future: Any = None,
        pool: ThreadPoolExecutor | None = None,
    ) -> "Future[Any]":
        """Run work in another thread, and give its result; or have the writer go on from there."""
        result: Future[Any] = self.future() if future is None else future

        def run() -> None:
            try:
                value = work()
                if then is None:
                    self.deliver([(result, value, None)])
                else:
                    self._writer.submit(Command(lambda: then(value), about, result, alone=True))
            except Exception as error:
                self.deliver([(result, None, as_service_error(error))])

        (pool or self._beside).submit(run)
        return result

    def _park(self, command: Command, error: Compiling) -> None:
        """Have a command wait for a policy, and run then."""

        def again(command: Command = command) -> None:
            try:
                self._writer.submit(command)
            except StoreError as closed:
                self.deliver([(command.future, None, closed)])

        def give_up() -> None:
            if command.otherwise is None:
                self.deliver([(command.future, None, error)])
            else:
                again(command._replace(work=command.otherwise))

        self._compiler.wait(error.job, again, give_up, self.patience)

    def _wait_for(self, work: Callable[[], T], *about: Reference) -> T:
        """Run work in a transaction of its own and wait for it; for what runs aside."""
        future: Future[T] = Future()
        self._writer.submit(Command(work, about, future, alone=True))
        return future.result()

    def _with_reader(self, tenant: str, name: str, work: Callable[[Store, ExperimentRow], T]) -> T:
        """Run work on an experiment as it is now, beside the writer."""
        reader = self._room.store.reader()
        try:
            row = reader.named(tenant, name)
            if row is None:
                raise NotFound(f"experiment {name!r}: is not known; create it first, or check the name")
            self._await_compiled(row)
            return work(reader, row)
        finally:
            reader.close()

    def _await_compiled(self, row: ExperimentRow) -> None:
        """Wait for the policy of an experiment. One that failed goes on: parts of a log can be read without it."""
        while True:  # it may have several forms, one after another
            try:
                self._compiler.require(row.name, *needed(row))
                return
            except NotCompiled:
                return
            except Compiling as error:
                ended = Event()
                self._compiler.wait(error.job, ended.set, ended.set, self.patience)
                ended.wait()
                if error.job.ended_at is None:
                    raise

    def _sweep(self) -> None:
        self._compiler.dismiss()
        if not self._writer.healthy:
            self._room.store.probe()
        settling.sweep_all(self._room)
        self._room.store.drop_keys(self._room.clock() - self._keep_keys, _KEYS_AT_ONCE)
