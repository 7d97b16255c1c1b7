"""Restoring experiments from the store, large ones in background threads, while others are served.

It reads what is committed, over a connection of its own. Whoever needs the experiment waits for it; what another process
writes in the meantime is replayed afterwards, as for any experiment in memory.
"""

import gc
import logging
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from functools import partial

from decoupled.client import CLOSED, Loading, ReplayError, ServiceError
from decoupled.errors import StateError

from ...fair_threads import FairThreads
from ..experiment.live import LiveExperiment
from ..experiment.records import Decided, ExperimentRow
from ..experiment.snapshots import restore
from ..store.store import Store
from .compiler import Awaited

# Restoring experiments from the store: from the newest readable snapshot, or from the start of the log.
QUICK_ROWS = 500  # of the log, to replay
QUICK_TEXT = 200_000  # characters of a snapshot, to parse

_log = logging.getLogger(__name__)


def restored(store: Store, row: ExperimentRow) -> LiveExperiment:
    """The experiment at its newest readable snapshot; the rows after it are still to be replayed."""
    for seq, text in store.snapshots(row.id):
        try:
            if seq <= row.head:
                return restore(row, text, rows_of(store, row.id))
        except (StateError, ReplayError) as error:
            _log.error("experiment %r: its snapshot at row %d is skipped: %s", row.name, seq, error)
    return from_beginning(store, row)


def is_quick(store: Store, row: ExperimentRow) -> bool:
    """Whether an experiment is restored in a few milliseconds, so that others can wait for it."""
    newest = store.newest_snapshot(row.id)
    if newest is None:
        return row.head <= QUICK_ROWS and len(row.arms) <= QUICK_TEXT
    seq, size = newest
    return seq <= row.head <= seq + QUICK_ROWS and size <= QUICK_TEXT


def from_beginning(store: Store, row: ExperimentRow) -> LiveExperiment:
    """The experiment at the start of its log: new, or at the snapshot that retention left."""
    base = store.base(row.id)
    if base is None:
        return LiveExperiment(row)
    try:
        return restore(row, base[1], rows_of(store, row.id))
    except StateError as error:
        rule = f"the snapshot at the start of its log is damaged ({error})"
        raise ReplayError(f"experiment {row.name!r}: {rule}") from error


def rows_of(store: Store, experiment: int) -> Callable[[Sequence[int]], list[Decided]]:
    """A function that finds decisions of an experiment by their rows."""
    return lambda seqs: store.decided_among(experiment, seqs)


class Load(Awaited):
    """An experiment that is being restored."""

    def __init__(self, row: ExperimentRow) -> None:
        super().__init__()
        self.row = row
        self.running: LiveExperiment | None = None
        self.error: ServiceError | None = None


class Loader:
    """Restores experiments, and makes snapshots of large ones, one after another for each tenant."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._threads = FairThreads("decoupled-loads")
        self._lock = threading.Lock()
        self._loads: dict[int, Load] = {}
        self.ended: list[Load] = []  # those that `finished` has not given yet
        self.snapshots: deque[tuple[int, int, str]] = deque()  # experiment, row and text
        self._closed = False

    def require(self, row: ExperimentRow) -> None:
        """Start to restore an experiment, and raise `Loading`; or raise what went wrong the last time."""
        with self._lock:
            load = self._loads.get(row.id)
            if load is not None and load.error is not None:
                del self._loads[row.id]
                raise load.error
            if self._closed:
                raise Loading(CLOSED)
            if load is None:
                load = self._loads[row.id] = Load(row)
                self._threads.start(partial(self._run, load), row.tenant)
        text = f"experiment {row.name!r}: is being restored from its log; ask again in 1 s"
        raise Loading(text, load)

    def busy_with(self, experiment: int) -> bool:
        """Whether an experiment is being restored, or could not be."""
        return experiment in self._loads

    def finished(self) -> list[LiveExperiment]:
        """The experiments that were restored since the last call."""
        with self._lock:
            ended, self.ended = self.ended, []
            for load in ended:
                self._loads.pop(load.row.id, None)
        return [load.running for load in ended if load.running is not None]

    def write(self, running: LiveExperiment, make: Callable[[], str]) -> None:
        """Make the snapshot of an experiment as it is now, and add it to `snapshots`."""
        place = running.id, running.head
        with suppress(
            RuntimeError
        ):  # it is closed, and the snapshot would only shorten the next start
            self._threads.start(lambda: self.snapshots.append((*place, make())), running.tenant)

    def close(self) -> None:
        """Stop, and let those that wait find out that the service is closed."""
        self._closed = True
        self._threads.close()

    def _run(self, load: Load) -> None:
        try:
            load.running = self._restored(load.row)
        except ServiceError as error:
            load.error = error
        except Exception as error:  # it is told to those who asked, as any other error of the log
            load.error = ReplayError(
                f"experiment {load.row.name!r}: {type(error).__name__}: {error}"
            )
            load.error.__cause__ = error
        if load.running is not None:
            with self._lock:
                self.ended.append(load)
        if load.end() == 0 and load.running is None:
            with self._lock:  # nobody is told, so that the next to ask tries again
                self._loads.pop(load.row.id, None)

    def _restored(self, row: ExperimentRow) -> LiveExperiment:
        with closing(self._store.reader()) as reader, _without_collection():
            found = reader.named(row.tenant, row.name)
            if found is None or found.id != row.id:
                raise ReplayError(
                    f"experiment {row.name!r}: vanished while it was restored; try again"
                )
            running = restored(reader, found)
            for each in reader.rows_since(row.id, running.head):
                if self._closed:
                    raise Loading(CLOSED)
                running.replay(each)
            return running


@contextmanager
def _without_collection() -> Iterator[None]:
    """Look for no garbage while many objects are made, none of which is: it would take half of the time."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
