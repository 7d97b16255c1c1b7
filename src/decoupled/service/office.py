"""What the desk stands on: futures, the writer, and a thread for what takes long."""

import logging
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, TypeVar

from . import settling
from .problems import NotFound
from .room import Reference, Room
from .rows import ExperimentRow
from .store import Store
from .writer import Command, Outcome, Writer, as_service_error, resolve

T = TypeVar("T")
U = TypeVar("U")

_log = logging.getLogger(__name__)

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
        future: Callable[[], Any] = Future,
        deliver: Callable[[Sequence[Outcome]], None] = resolve,
    ) -> None:
        if store.migrate(clock()):
            _log.info("store %s: created", store.where)
        self._room = Room(store, clock, snapshot_every)
        self._max_pending = max_pending
        self._keep_keys = keep_keys
        self.future = future
        self._writer = Writer(self._room, idle=self._sweep, deliver=deliver)
        self._beside = ThreadPoolExecutor(1, "decoupled-beside")

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
        self._beside.shutdown()
        self._writer.close()
        self._room.close()

    # Inside

    def _do(self, work: Callable[[], T], *about: Reference, alone: bool = False) -> "Future[T]":
        """Run work in a transaction that holds the experiments it is about."""
        future: Future[T] = self.future()
        self._writer.submit(Command(work, about, future, alone))
        return future

    def _aside(
        self, work: Callable[[], T], then: Callable[[T], U] | None = None, about: tuple[Reference, ...] = ()
    ) -> "Future[Any]":
        """Run work in another thread, and give its result; or have the writer go on from there."""
        future: Future[Any] = self.future()

        def run() -> None:
            try:
                value = work()
                if then is None:
                    self.deliver([(future, value, None)])
                else:
                    self._writer.submit(Command(lambda: then(value), about, future, alone=True))
            except Exception as error:
                self.deliver([(future, None, as_service_error(error))])

        self._beside.submit(run)
        return future

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
            return work(reader, row)
        finally:
            reader.close()

    def _sweep(self) -> None:
        if not self._writer.healthy:
            self._room.store.probe()
        settling.sweep_all(self._room)
        self._room.store.drop_keys(self._room.clock() - self._keep_keys, _KEYS_AT_ONCE)
