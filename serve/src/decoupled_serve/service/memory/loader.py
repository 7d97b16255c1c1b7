"""Restores large experiments, and makes their snapshots, in background threads, while others are served.

It reads what is committed, over a connection of its own. Whoever needs the experiment waits for it; what another process
writes in the meantime is replayed afterwards, as for any experiment in memory.
"""

import gc
import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from functools import partial

from decoupled.client import CLOSED, Loading, ReplayError, ServiceError

from ...fair_threads import FairThreads
from ..experiment.live import LiveExperiment
from ..experiment.rows import ExperimentRow
from ..store.store import Store
from .restore import restored


class Load:
    """An experiment that is being restored, and the callbacks that wait for it."""

    def __init__(self, row: ExperimentRow) -> None:
        self.row = row
        self.ended = False
        self.running: LiveExperiment | None = None
        self.error: ServiceError | None = None
        self.waiters: list[Callable[[], None]] = []


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

    def wait(self, load: Load, then: Callable[[], None]) -> None:
        """Call `then` when an experiment is restored, or could not be."""
        with self._lock:
            if not load.ended:
                load.waiters.append(then)
                return
        then()

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
        with suppress(RuntimeError):  # it is closed, and the snapshot would only shorten the next start
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
            load.error = ReplayError(f"experiment {load.row.name!r}: {type(error).__name__}: {error}")
            load.error.__cause__ = error
        with self._lock:
            load.ended = True
            waiters, load.waiters = load.waiters, []
            if load.running is not None:
                self.ended.append(load)
            elif not waiters:
                self._loads.pop(load.row.id, None)
        for then in waiters:
            then()

    def _restored(self, row: ExperimentRow) -> LiveExperiment:
        with closing(self._store.reader()) as reader, _without_collection():
            found = reader.named(row.tenant, row.name)
            if found is None or found.id != row.id:
                raise ReplayError(f"experiment {row.name!r}: vanished while it was restored; try again")
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
