"""`decoupled doctor`: check whether a store and its machine keep the promises of the service."""

import os
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import median

from decoupled.client import ReplayError, StoreError
from decoupled.errors import DecoupledError

from ..experiment.live import LiveExperiment
from ..experiment.records import ExperimentRow
from ..experiment.snapshots import restore, snapshot
from ..memory.loader import from_beginning, restored, rows_of
from ..store.open import Location, open_store
from ..store.schema import EVENTS, LOGS, MIGRATIONS
from ..store.store import Store

# No disk is faster. Memory is, and so is a disk that reports a flush before it has done it.
_FASTEST_FLUSH = 20e-6  # seconds


@dataclass(frozen=True, slots=True)
class Check:
    """One check of the doctor, and its result."""

    name: str
    good: bool
    finding: str


def examine(url_or_path: Location, *, now: Callable[[], float] = time.time) -> Iterator[Check]:
    """Run every check in turn. The store may be in use; nothing in it changes.

    >>> from decoupled_serve.service.service import open_service
    >>> path = Path(tempfile.mkdtemp()) / "store.db"
    >>> open_service(path).close()
    >>> [check.name for check in examine(path) if not check.good and check.name != "disk"]
    []
    """
    try:
        store = open_store(url_or_path, read_only=True)
    except StoreError as error:
        yield Check("store", False, str(error))
        return
    with closing(store), closing(store.reader()) as reader:
        for name, check in _checks(store, reader, now):
            try:
                good, finding = check()
            except (DecoupledError, OSError) as error:
                good, finding = False, str(error)
            yield Check(name, good, finding)


Result = tuple[bool, str]  # whether it is good, and the finding
Named = tuple[str, Callable[[], Result]]


def _checks(store: Store, reader: Store, now: Callable[[], float]) -> Iterator[Named]:
    yield "schema", partial(schema, reader)
    yield "integrity", partial(integrity, reader)
    yield "durability", store.durability
    if store.path is not None:
        yield "disk", partial(disk, Path(store.path).parent)
    if reader.version() != len(MIGRATIONS):
        return  # this release cannot read its rows
    yield "clock", partial(clock, reader, now)
    yield "experiments", partial(experiments, reader)
    for row in list(reader.every_experiment()):
        yield f"log of {row.name!r}", partial(rows, reader, row)
        yield f"replay of {row.name!r}", partial(replay, reader, row)


def schema(reader: Store) -> Result:
    """Whether the tables have the version of this release."""
    found = reader.version()
    finding = f"version {found} of {len(MIGRATIONS)}"
    if found < len(MIGRATIONS):
        return False, f"{finding}; start the service on it once, which brings it up to date"
    return found == len(MIGRATIONS), finding


def integrity(reader: Store) -> Result:
    """Whether the database passes its own check."""
    good, finding = reader.integrity()
    return good, finding if good else f"{finding}; restore a backup"


def experiments(reader: Store) -> Result:
    """Whether every row of the logs belongs to an experiment."""
    found = sum(1 for _ in reader.every_experiment())
    logs = " UNION ".join(f"SELECT experiment FROM {table}" for table in LOGS)
    sql = f"SELECT count(*) FROM ({logs}) AS logged WHERE experiment NOT IN (SELECT id FROM experiments)"
    missing = reader.run(sql)[0][0]
    if missing:
        return False, f"{found}, and rows of {missing} others that are missing; restore a backup"
    remedy = "if there were some, another file replaced this one: restore a backup into a new store"
    return True, str(found) if found else f"none; {remedy}"


def disk(folder: Path) -> Result:
    """How long a flush to disk takes. If it takes almost no time, it did not reach a disk."""
    times = []
    with tempfile.TemporaryFile(dir=folder) as file:
        for _ in range(20):
            file.write(b"\0" * 4096)
            file.flush()
            start = time.perf_counter()
            os.fsync(file.fileno())
            times.append(time.perf_counter() - start)
    finding = f"a flush takes {1e3 * median(times):.3g} ms"
    if median(times) < _FASTEST_FLUSH:
        return False, f"{finding}: it cannot have reached a disk, so a power cut would lose data"
    return True, finding


def clock(reader: Store, now: Callable[[], float]) -> Result:
    """Whether the clock is not behind the log, and agrees with the database's clock."""
    last = reader.run("SELECT max(made_at) FROM decided")[0][0] or 0.0
    offset = reader.clock_offset(now)
    if last > now() + 1.0:
        return (
            False,
            f"it is {last - now():.0f} s behind the newest decision: deadlines wait for it",
        )
    if abs(offset) > 5.0:
        return (
            False,
            f"it differs by {offset:.0f} s from the database's: replicas disagree on deadlines",
        )
    return True, "it agrees with the log"


def rows(reader: Store, row: ExperimentRow) -> Result:
    """Whether a log is numbered without gaps, and every settled decision was made before."""
    base = reader.base(row.id)
    start = 0 if base is None else base[0]
    found, last = 0, start
    for table in EVENTS:
        sql = (
            f"SELECT count(*), coalesce(max(seq), 0) FROM {table} WHERE experiment = ? AND seq > ?"
        )
        [(count, newest)] = reader.run(sql, (row.id, start))
        found, last = found + count, max(last, newest)
    if (found, last) != (row.head - start, row.head):
        return (
            False,
            f"{found} rows up to {last}; there should be {row.head - start} up to {row.head}",
        )
    sql = (
        "SELECT count(*) FROM settled s LEFT JOIN decided d ON d.experiment = s.experiment AND d.seq = s.decision "
        "WHERE s.experiment = ? AND (d.seq IS NULL OR d.seq >= s.seq)"
    )
    orphans = reader.run(sql, (row.id,))[0][0]
    if orphans:
        return False, f"{orphans} rows settle decisions that were not made before them"
    return True, f"{found} rows"


def replay(reader: Store, row: ExperimentRow) -> Result:
    """Whether a replay of the log gives every draw and every snapshot again, bit for bit."""
    snapshots = dict(reader.snapshots(row.id))
    running = from_beginning(reader, row)
    compared = 0
    for each in reader.rows_since(row.id, running.head):
        running.replay(each)
        if running.head in snapshots:
            # Restored and saved again: another release may have written the same state differently.
            _compare(row, running, restore(row, snapshots[running.head], rows_of(reader, row.id)))
            compared += 1
    if (running.head, running.version) != (row.head, row.version):
        raise ReplayError(
            f"the replay ends at row {running.head}, but the experiment at row {row.head}"
        )
    current = restored(reader, row)
    for each in reader.rows_since(row.id, current.head):
        current.replay(each)
    _compare(row, running, current)
    return True, f"{row.head} rows, {compared} snapshots, the same state bit for bit"


def _compare(row: ExperimentRow, running: LiveExperiment, saved: LiveExperiment) -> None:
    if snapshot(running) != snapshot(saved):
        rule = f"the replay to row {running.head} differs from the state saved there"
        raise ReplayError(
            f"experiment {row.name!r}: {rule}; restore a backup, and report this as a bug"
        )
