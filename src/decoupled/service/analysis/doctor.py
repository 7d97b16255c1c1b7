"""`decoupled doctor`: whether a store, and the machine it is on, keep what the service promises."""

import os
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from ...errors import DecoupledError
from ..errors import ReplayError, StoreError
from ..experiment.live import Running
from ..experiment.rows import ExperimentRow
from ..experiment.snapshots import restore, snapshot
from ..recovery import from_beginning, restored, rows_of
from ..store.open import open_store
from ..store.schema import MIGRATIONS, TABLES
from ..store.store import Store

# No disk answers so soon. Memory does, and so does a disk that promises what it has not done.
_TOO_QUICK = 20e-6


@dataclass(frozen=True, slots=True)
class Check:
    """One thing the doctor looked at, and what was found."""

    name: str
    good: bool
    finding: str


def examine(
    url_or_path: str | os.PathLike[str], *, now: Callable[[], float] = time.time
) -> Iterator[Check]:
    """Look at everything, one check after another. The store may be in use; nothing in it is changed.

    >>> from decoupled.service.decision_service import open_service
    >>> path = Path(tempfile.mkdtemp()) / "store.db"
    >>> open_service(path).close()
    >>> [check.name for check in examine(path) if not check.good and check.name != "disk"]
    []
    """
    try:
        store = open_store(url_or_path, look=True)
    except StoreError as error:
        yield Check("store", False, str(error))
        return
    try:
        reader = store.reader()
        try:
            yield from _checks(store, reader, now)
        finally:
            reader.close()
    finally:
        store.close()


def _checks(store: Store, reader: Store, now: Callable[[], float]) -> Iterator[Check]:
    yield schema(reader)
    yield from _guarded("integrity", lambda: integrity(reader))
    yield from _guarded("durability", lambda: Check("durability", *store.durability()))
    if store.path is not None:
        folder = Path(store.path).parent
        yield from _guarded("disk", lambda: disk(folder))
    yield from _guarded("clock", lambda: clock(reader, now))
    yield from _guarded("experiments", lambda: experiments(reader))
    for row in reader.experiments(None):
        yield from _guarded(f"log of {row.name!r}", lambda row=row: rows(reader, row))  # type: ignore[misc]
        yield from _guarded(f"replay of {row.name!r}", lambda row=row: replay(reader, row))  # type: ignore[misc]


def _guarded(name: str, check: Callable[[], Check]) -> Iterator[Check]:
    try:
        yield check()
    except (DecoupledError, OSError) as error:
        yield Check(name, False, str(error))


def schema(reader: Store) -> Check:
    """Whether the tables are of this release."""
    found = reader.version()
    return Check("schema", found == len(MIGRATIONS), f"version {found} of {len(MIGRATIONS)}")


def integrity(reader: Store) -> Check:
    """Whether the database finds itself whole."""
    good, finding = reader.integrity()
    return Check("integrity", good, finding if good else f"{finding}; restore a backup")


def experiments(reader: Store) -> Check:
    """Whether there are experiments, and one for every row of the logs."""
    found = len(reader.experiments(None))
    logs = " UNION ".join(f"SELECT experiment FROM {table}" for table in TABLES[1:-1])
    sql = f"SELECT count(*) FROM ({logs}) AS logged WHERE experiment NOT IN (SELECT id FROM experiments)"
    lost = reader.run(sql)[0][0]
    if lost:
        return Check(
            "experiments", False, f"{found}, and rows of {lost} others that are missing; restore a backup"
        )
    if not found:
        remedy = "if there were some, another file took this one's place: restore a backup into a new store"
        return Check("experiments", True, f"none; {remedy}")
    return Check("experiments", True, str(found))


def disk(folder: Path) -> Check:
    """How long a flush to disk takes. One that takes no time did not happen."""
    times = []
    with tempfile.TemporaryFile(dir=folder) as file:
        for _ in range(20):
            file.write(b"\0" * 4096)
            file.flush()
            start = time.perf_counter()
            os.fsync(file.fileno())
            times.append(time.perf_counter() - start)
    typical = median(times)
    finding = f"a flush takes {1e3 * typical:.3g} ms"
    if typical < _TOO_QUICK:
        return Check(
            "disk", False, f"{finding}: it cannot have reached a disk, so a power cut would lose data"
        )
    return Check("disk", True, finding)


def clock(reader: Store, now: Callable[[], float]) -> Check:
    """Whether the clock runs, and is not behind what was recorded, nor apart from the server's."""
    before, ticks = now(), time.monotonic()
    time.sleep(0.05)
    drift = (now() - before) - (time.monotonic() - ticks)
    last = max(
        (at for (at,) in reader.run("SELECT max(made_at) FROM decided") if at is not None), default=0.0
    )
    apart = reader.clock_apart(now)
    if abs(drift) > 0.02:
        return Check("clock", False, f"it jumped by {drift:.3f} s within 0.05 s")
    if last > now() + 1.0:
        return Check("clock", False, f"it is {last - now():.0f} s behind the newest decision")
    if abs(apart) > 5.0:
        return Check(
            "clock", False, f"it is {apart:.0f} s apart from the database's: replicas disagree on deadlines"
        )
    return Check("clock", True, "it runs, and agrees with what was recorded")


def rows(reader: Store, row: ExperimentRow) -> Check:
    """Whether the rows of a log are numbered without gaps, and each thing settled was decided."""
    name = f"log of {row.name!r}"
    base = reader.base(row.id)
    start = 0 if base is None else base[0]
    counts = [
        reader.run(
            f"SELECT count(*), max(seq) FROM {table} WHERE experiment = ? AND seq > ?", (row.id, start)
        )[0]
        for table in ("decided", "settled", "changed")
    ]
    found, last = (
        sum(count for count, _ in counts),
        max((seq for _, seq in counts if seq is not None), default=start),
    )
    if (found, last) != (row.head - start, row.head):
        return Check(
            name, False, f"{found} rows up to {last}, where {row.head - start} up to {row.head} belong"
        )
    sql = (
        "SELECT count(*) FROM settled s LEFT JOIN decided d ON d.experiment = s.experiment AND d.seq = s.decision "
        "WHERE s.experiment = ? AND (d.seq IS NULL OR d.seq >= s.seq)"
    )
    orphans = reader.run(sql, (row.id,))[0][0]
    if orphans:
        return Check(name, False, f"{orphans} rows settle decisions that were not made before them")
    return Check(name, True, f"{found} rows")


def replay(reader: Store, row: ExperimentRow) -> Check:
    """Whether the log, replayed from its beginning, gives every draw again and every snapshot bit for bit."""
    snapshots = dict(reader.snapshots(row.id))
    running = from_beginning(reader, row)
    compared = 0
    for each in reader.rows_since(row.id, running.head):
        running.replay(each)
        if running.head in snapshots:
            # Read and written again: an older version may have written the same state in other words.
            saved = restore(row, snapshots[running.head], rows_of(reader, row.id))
            _compare(row, running, saved)
            compared += 1
    if (running.head, running.version) != (row.head, row.version):
        raise ReplayError(f"the replay ends at row {running.head}, and the experiment at {row.head}")
    current = restored(reader, row)
    for each in reader.rows_since(row.id, current.head):
        current.replay(each)
    _compare(row, running, current)
    state = "state the same, bit for bit"
    return Check(f"replay of {row.name!r}", True, f"{row.head} rows, {compared} snapshots, {state}")


def _compare(row: ExperimentRow, running: Running, saved: Running) -> None:
    if snapshot(running) != snapshot(saved):
        raise ReplayError(
            f"experiment {row.name!r}: replayed to row {running.head} it is not what was saved there; "
            "restore a backup, and tell us"
        )
