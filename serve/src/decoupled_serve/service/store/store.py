"""The store: what the service needs from a database, and everything that it writes and reads, in SQL that both databases understand."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from heapq import merge
from itertools import starmap
from operator import itemgetter
from typing import Any, ClassVar, Protocol, Self, TypeAlias

from decoupled.client import StoreError

from ..experiment.records import (
    AUDIT_COLUMNS,
    AuditRecord,
    Changed,
    Decided,
    ExperimentRow,
    Judgement,
    KeyRow,
    Outcome,
    Row,
    Settled,
    audit_record,
)
from .schema import EVENTS, LOGS, MIGRATIONS, RECORD, Dialect, statements

Values: TypeAlias = Sequence[Any]


class PairsConnection(Protocol):
    """Runs transactions over the table of pairs, in a thread of its own."""

    def run(self, sql: str, values: Values = ()) -> list[Any]:
        """Run one statement and return its rows."""

    def begin(self) -> None:
        """Open a transaction."""

    def lock_pairs(self) -> None:
        """Keep every other transaction from writing pairs until this one ends."""

    def end(self) -> None:
        """Make the transaction durable."""

    def undo(self) -> None:
        """Roll back."""

    def close(self) -> None:
        """Close the connection."""


EXPERIMENTS = f"SELECT {', '.join(ExperimentRow._fields)} FROM experiments"
_TABLES: Any = {Decided: "decided", Settled: "settled", Judgement: "judged", Changed: "changed"}
_FROM = {kind: f"SELECT {', '.join(kind._fields)} FROM {table}" for kind, table in _TABLES.items()}
# Decisions `d` with what settled them, `s`, or what judged them, `j`; `paired` reads a row.
PAIRED = (
    f"SELECT {', '.join(f'd.{name}' for name in Decided._fields)}, {', '.join(f's.{name}' for name in Settled._fields)}, "
    f"{', '.join(f'j.{name}' for name in Judgement._fields)} "
    "FROM decided d LEFT JOIN settled s ON s.experiment = d.experiment AND s.decision = d.seq "
    "LEFT JOIN judged j ON j.experiment = d.experiment AND j.decision = d.seq"
)


def paired(row: Any) -> tuple[Decided, Outcome]:
    """A decision, and the row that settled it, or that judged it, if there is one."""
    first, second = len(Decided._fields), len(Decided._fields) + len(Settled._fields)
    outcome: Outcome = None
    if row[first] is not None:
        outcome = Settled(*row[first:second])
    elif row[second] is not None:
        outcome = Judgement(*row[second:])
    return Decided(*row[:first]), outcome


def insertion(table: str, columns: Sequence[str]) -> str:
    """The statement that inserts a row into a table.

    >>> insertion("changed", ["seq", "kind"])
    'INSERT INTO changed (seq, kind) VALUES (?, ?)'
    """
    return f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({', '.join('?' * len(columns))})"


_INTO: dict[type, str] = {
    **{kind: insertion(table, ("experiment", *kind._fields)) for kind, table in _TABLES.items()},
    KeyRow: insertion("request_keys", KeyRow._fields),
    AuditRecord: insertion("audit", AUDIT_COLUMNS),
}


class Store(ABC):
    """One connection to a database with the tables of the service, used by one thread at a time, always in a transaction.

    Every error of the database is raised as a `StoreError`, except that for a value which it cannot take. After an error
    the caller rolls back. Rows are collected and written together, at the latest when the transaction is committed.
    """

    dialect: ClassVar[Dialect]
    system: ClassVar[str]  # the name of the database
    driver_errors: ClassVar[tuple[type[Exception], ...]]  # the errors that the driver raises
    value_errors: ClassVar[tuple[type[Exception], ...]] = ()  # of these, those about a value
    called = "store"  # the argument that error messages name
    where: str  # the path or address that error messages show
    path: str | None = None  # the file, if it is one

    def __init__(self) -> None:
        self._waiting: dict[type, list[Values]] = {kind: [] for kind in _INTO}
        self._new_keys: dict[tuple[int, str], KeyRow] = {}
        self._wrote = False

    # What a database has to do

    @abstractmethod
    def opening_error(self, error: Exception) -> StoreError:
        """The error for a database that cannot be opened: the reason and the remedy."""

    def running_error(self, error: Exception) -> StoreError:
        """The error for a statement that failed."""
        return StoreError(
            f"store: {type(error).__name__}: {error}; nothing was acknowledged, try again"
        )

    @contextmanager
    def _opening(self) -> Iterator[None]:
        try:
            with self._guarded():
                yield
        except StoreError as error:
            if isinstance(error.__cause__, self.driver_errors):
                raise self.opening_error(error.__cause__) from error.__cause__
            raise

    @contextmanager
    def _guarded(self) -> Iterator[None]:
        try:
            yield
        except self.value_errors:
            raise
        except self.driver_errors as error:
            raise self.running_error(error) from error

    @abstractmethod
    def run(self, sql: str, values: Values = ()) -> list[Any]:
        """Run one statement and return its rows."""

    @abstractmethod
    def each(self, sql: str, values: Values = ()) -> Iterator[Any]:
        """Run one query and yield its rows as they arrive."""

    @abstractmethod
    def run_many(self, sql: str, many: list[Values]) -> None:
        """Run one statement for each tuple of values."""

    @abstractmethod
    def begin(self) -> None:
        """Open a transaction that may write."""

    def end(self) -> None:
        """Make the transaction durable."""
        self.run("COMMIT")

    @abstractmethod
    def undo(self) -> None:
        """Roll back, in whatever state the transaction is."""

    @abstractmethod
    def close(self) -> None:
        """Close the connection."""

    @abstractmethod
    def integrity(self) -> tuple[bool, str]:
        """Whether the database passes its own check, and the result in words."""

    @abstractmethod
    def durability(self) -> tuple[bool, str]:
        """Whether a commit waits for the disk, by the settings of the database."""

    def clock_offset(self, now: Callable[[], float]) -> float:
        """How many seconds this clock is ahead of the database's."""
        return 0.0

    @abstractmethod
    def columns(self, table: str) -> list[str]:
        """The names of a table's columns."""

    def sizes(self) -> dict[str, int]:
        """What is known of the bytes of the "store", of its "wal", and of what is "free" on its disk."""
        return {}

    @abstractmethod
    def json_at(self, column: str, *names: str) -> str:
        """The expression for the text at a place in a column of JSON; names must be plain."""

    def renumber(self) -> None:  # noqa: B027 - most databases need nothing
        """Number new experiments after those that were copied in."""

    def compact(self) -> None:  # noqa: B027
        """Merge the log into the file, so that one file is left."""

    @abstractmethod
    def has_tables(self) -> bool:
        """Whether the database has the service's tables."""

    @abstractmethod
    def has_pairs(self) -> bool:
        """Whether pairs were ever kept here."""

    @abstractmethod
    def open_pairs(self) -> PairsConnection:
        """Another connection, over the pairs, whose table is created if it is missing."""

    @abstractmethod
    def reader(self) -> Self:
        """Another connection, in a read-only transaction that sees the store as it is now."""

    def lock_schema(self) -> None:  # noqa: B027 - most databases need nothing beyond `begin`
        """Keep other processes from migrating until the transaction ends."""

    @abstractmethod
    def lock(self, ids: Sequence[int]) -> list[ExperimentRow]:
        """Lock these experiments, in order, until the transaction ends; return their rows."""

    # The tables

    def migrate(self, now: float) -> bool:
        """Run the missing migrations, each in its own transaction; True if there were no tables. An error names the database."""
        with self._opening():
            return self._migrate(now)

    def _migrate(self, now: float) -> bool:
        new = False
        while True:
            self.begin()
            self.lock_schema()
            self.run(RECORD.format(**self.dialect._asdict()))
            done = self.version()
            if done > len(MIGRATIONS):
                self.rollback()
                self.check_version()
            if done == len(MIGRATIONS):
                self.commit()
                return new
            for sql in statements(done + 1, self.dialect):
                self.run(sql)
            self.run("INSERT INTO schema_migrations VALUES (?, ?)", (done + 1, now))
            self.commit()
            new = new or done == 0

    def check_version(self) -> None:
        """Raise if the tables are from a later release."""
        if self.version() > len(MIGRATIONS):
            rule = f"has version {self.version()} and this release knows {len(MIGRATIONS)}"
            raise StoreError.of(
                self.called, self.where, rule, "open it with the release that wrote it"
            )

    def check_tables(self) -> None:
        """Raise if the database does not have the service's tables."""
        if not self.has_tables() or self.version() == 0:
            raise StoreError.of(
                self.called, self.where, "has no tables of the service", self.creation()
            )

    def creation(self) -> str:
        """The remedy if there is no store."""
        if self.called != "store":
            return "give a file that `decoupled backup` wrote"
        return (
            "correct --store (or DECOUPLED_STORE), or create a store there with `decoupled serve`"
        )

    def version(self) -> int:
        """The number of the last migration that ran."""
        return int(self.run("SELECT coalesce(max(version), 0) FROM schema_migrations")[0][0])

    # Transactions

    def commit(self) -> bool:
        """Write the collected rows and make the transaction durable; return whether an experiment was written to."""
        self.flush()
        self._new_keys.clear()
        self.end()
        wrote, self._wrote = self._wrote, False
        return wrote

    def probe(self) -> None:
        """Write a row and delete it, to check that the store takes writes."""
        self.run("INSERT INTO schema_migrations VALUES (-1, 0.0)")
        self.run("DELETE FROM schema_migrations WHERE version = -1")
        self._wrote = True

    def rollback(self) -> None:
        """Drop the collected rows and undo what was written."""
        for rows in self._waiting.values():
            rows.clear()
        self._wrote = False
        self._new_keys.clear()
        self.undo()

    def flush(self) -> None:
        """Write the collected rows, so that queries see them."""
        for kind, rows in self._waiting.items():
            if rows:
                self.run_many(_INTO[kind], rows)
                rows.clear()

    # Writing

    def append(self, experiment: int, row: Row) -> None:
        """Add a row to an experiment's log."""
        self._waiting[type(row)].append((experiment, *row))

    def add_key(self, row: KeyRow) -> None:
        """Save the request of an idempotency key."""
        self._waiting[KeyRow].append(row)
        self._new_keys[row.experiment, row.key] = row

    def add_audit(self, row: Values) -> None:
        """Add a change to the audit trail."""
        self._waiting[AuditRecord].append(row)

    def create(self, row: ExperimentRow) -> bool:
        """Add an experiment, whose id the database chooses; False if its name is taken."""
        into = insertion("experiments", ExperimentRow._fields[1:])
        return bool(self.run(f"{into} ON CONFLICT DO NOTHING RETURNING id", row[1:]))

    def update(self, experiment: int, **columns: Any) -> None:
        """Set columns of an experiment."""
        names = ", ".join(f"{name} = ?" for name in columns)
        self._wrote = True
        self.run(f"UPDATE experiments SET {names} WHERE id = ?", (*columns.values(), experiment))

    def mark_late(self, experiment: int, decision: int, at: float) -> bool:
        """Record that feedback came too late; False if it was recorded before."""
        self.flush()
        sql = "UPDATE settled SET late_at = ? WHERE experiment = ? AND decision = ? AND late_at IS NULL RETURNING 1"
        if not self.run(sql, (at, experiment, decision)):
            return False
        self.run("UPDATE experiments SET late = late + 1 WHERE id = ?", (experiment,))
        return True

    def add_snapshot(
        self, experiment: int, seq: int, content: str, at: float, base: bool = False
    ) -> None:
        """Save a snapshot. A base replaces all earlier snapshots, since rows before it may be gone.

        Otherwise the newest earlier snapshot is kept, in case this one is damaged.
        """
        self.run(
            "DELETE FROM snapshots WHERE experiment = ? AND seq = ? AND base = 0", (experiment, seq)
        )
        sql = "INSERT INTO snapshots (experiment, seq, content, at, base) VALUES (?, ?, ?, ?, ?) ON CONFLICT DO NOTHING"
        self.run(sql, (experiment, seq, content, at, int(base)))
        if base:
            self.run("DELETE FROM snapshots WHERE experiment = ? AND seq < ?", (experiment, seq))
        else:
            older = "SELECT max(seq) FROM snapshots WHERE experiment = ? AND seq < ?"
            sql = f"DELETE FROM snapshots WHERE experiment = ? AND base = 0 AND seq < ({older})"
            self.run(sql, (experiment, experiment, seq))

    def drop_rows(self, experiment: int, first: int, last: int, keeping: Sequence[int]) -> int:
        """Delete a range of a log, except for these decisions, which are in order; return the number of rows."""
        dropped, start = 0, first
        for end in (*(seq for seq in keeping if first <= seq <= last), last + 1):
            for table in EVENTS if end > start else ():
                sql = (
                    f"DELETE FROM {table} WHERE experiment = ? AND seq >= ? AND seq < ? RETURNING 1"
                )
                dropped += len(self.run(sql, (experiment, start, end)))
            start = end + 1
        return dropped

    def drop_keys(self, before: float, most: int) -> None:
        """Delete idempotency keys from before a time, oldest first."""
        old = "SELECT experiment, key FROM request_keys WHERE at < ? ORDER BY at LIMIT ?"
        self.run(f"DELETE FROM request_keys WHERE (experiment, key) IN ({old})", (before, most))

    def drop_keys_of(self, experiment: int, before: float) -> None:
        """Delete the idempotency keys of one experiment from before a time."""
        self.run("DELETE FROM request_keys WHERE experiment = ? AND at < ?", (experiment, before))

    # Deleting

    def mark_deleted(self, experiment: int, at: float) -> None:
        """Free the name of an experiment, and hide it. Its row stays, so that its id and its tag are not used again."""
        self.update(experiment, deleted_at=at, name=f"deleted:{experiment}")

    def unerased(self, most: int) -> list[int]:
        """Deleted experiments that may still have rows."""
        sql = "SELECT id FROM experiments WHERE deleted_at IS NOT NULL AND settings <> '{}' ORDER BY id LIMIT ?"
        return [found for (found,) in self.run(sql, (most,))]

    def erase(self, experiment: int, most: int) -> int:
        """Delete so many rows of each table that has rows of an experiment; return the number deleted."""
        erased = 0
        for table in LOGS:
            key = "key" if table == "request_keys" else "seq"
            some = f"SELECT {key} FROM {table} WHERE experiment = ? ORDER BY {key} LIMIT ?"
            sql = f"DELETE FROM {table} WHERE experiment = ? AND {key} IN ({some}) RETURNING 1"
            erased += len(self.run(sql, (experiment, experiment, most)))
        return erased

    def mark_erased(self, experiment: int) -> None:
        """Blank what is left of a deleted experiment."""
        blank = {"guardrails": None, "budget": None, "key_secret": ""}
        self.update(experiment, settings="{}", seed="0", arms="[]", retired="[]", **blank)

    def count_key_change(self) -> None:
        """Note that a key was added or revoked, so that every process looks its keys up again."""
        self.run("UPDATE key_changes SET number = number + 1")

    # Reading

    def key_changes(self) -> int:
        """How often keys were added or revoked."""
        return int(self.run("SELECT number FROM key_changes")[0][0])

    def named(self, tenant: str, name: str) -> ExperimentRow | None:
        """The experiment of that name."""
        return self._experiment("tenant = ? AND name = ? AND deleted_at IS NULL", (tenant, name))

    def tagged(self, tag: str) -> ExperimentRow | None:
        """The experiment whose decisions have that tag, also if it was deleted."""
        return self._experiment("tag = ?", (tag,))

    def _experiment(self, where: str, values: Values) -> ExperimentRow | None:
        rows = self.run(f"{EXPERIMENTS} WHERE {where}", values)
        return ExperimentRow(*rows[0]) if rows else None

    def every_experiment(self) -> Iterator[ExperimentRow]:
        """The experiments of all tenants, one after another, ordered by name."""
        sql = f"{EXPERIMENTS} WHERE deleted_at IS NULL ORDER BY name, tenant"
        return starmap(ExperimentRow, self.each(sql))

    def rows_since(self, experiment: int, seq: int) -> Iterator[Row]:
        """The rows of the log after `seq`, in order."""
        self.flush()
        where, values = "WHERE experiment = ? AND seq > ? ORDER BY seq", (experiment, seq)
        logs = (starmap(kind, self.each(f"{sql} {where}", values)) for kind, sql in _FROM.items())
        return merge(*logs, key=itemgetter(0))

    def decided(self, experiment: int, seq: int, count: int = 1) -> list[Decided]:
        """The decisions among the `count` rows from `seq` on."""
        self.flush()
        sql = f"{_FROM[Decided]} WHERE experiment = ? AND seq >= ? AND seq < ? ORDER BY seq"
        return [Decided(*row) for row in self.run(sql, (experiment, seq, seq + count))]

    def decided_among(self, experiment: int, seqs: Sequence[int]) -> list[Decided]:
        """The decisions of these rows, in order."""
        if seqs and seqs[-1] - seqs[0] < 4 * len(seqs):  # nearly all of a range
            sql = f"{_FROM[Decided]} WHERE experiment = ? AND seq >= ? AND seq <= ? ORDER BY seq"
            wanted, rows = set(seqs), self.run(sql, (experiment, seqs[0], seqs[-1]))
            return [Decided(*row) for row in rows if row[0] in wanted]
        found: list[Decided] = []
        for start in range(0, len(seqs), 500):
            part = seqs[start : start + 500]
            sql = f"{_FROM[Decided]} WHERE experiment = ? AND seq IN ({', '.join('?' * len(part))}) ORDER BY seq"
            found.extend(Decided(*row) for row in self.run(sql, (experiment, *part)))
        return found

    def settled(self, experiment: int, decision: int) -> Settled | None:
        """The row that settled a decision, if there is one."""
        self.flush()
        rows = self.run(
            f"{_FROM[Settled]} WHERE experiment = ? AND decision = ?", (experiment, decision)
        )
        return Settled(*rows[0]) if rows else None

    def joined(self, experiment: int, after: int) -> Iterator[tuple[Decided, Outcome]]:
        """The decisions after a row, each with the row that settled it, or that judged it."""
        sql = f"{PAIRED} WHERE d.experiment = ? AND d.seq > ? ORDER BY d.seq"
        return map(paired, self.each(sql, (experiment, after)))

    def arms_changed(self, experiment: int) -> int:
        """The row of the last change of arms; 0 if there is none."""
        sql = "SELECT coalesce(max(seq), 0) FROM changed WHERE experiment = ? AND kind IN ('added', 'retired')"
        return int(self.run(sql, (experiment,))[0][0])

    def most_exploited(self, experiment: int, most: int) -> list[int]:
        """The places of the arms that the decisions of the log exploited most."""
        sql = (
            "SELECT exploit FROM decided WHERE experiment = ? AND exploit IS NOT NULL "
            "GROUP BY exploit ORDER BY count(*) DESC, exploit LIMIT ?"
        )
        return [place for (place,) in self.run(sql, (experiment, most))]

    def lacks_propensity(self, experiment: int, after: int) -> bool:
        """Whether the log lacks the propensity of some explored arm."""
        sql = (
            "SELECT 1 FROM decided WHERE experiment = ? AND seq > ? "
            "AND explore IS NOT NULL AND propensity IS NULL LIMIT 1"
        )
        return bool(self.run(sql, (experiment, after)))

    def key(self, experiment: int, key: str) -> KeyRow | None:
        """The request of an idempotency key, if it was used."""
        new = self._new_keys.get((experiment, key))
        if new is not None:
            return new
        sql = (
            f"SELECT {', '.join(KeyRow._fields)} FROM request_keys WHERE experiment = ? AND key = ?"
        )
        rows = self.run(sql, (experiment, key))
        return KeyRow(*rows[0]) if rows else None

    def audit(
        self, where: Mapping[str, str | None], before: int | None, limit: int
    ) -> list[AuditRecord]:
        """Changes, newest first: those with these values in their columns (None for any), before an id."""
        self.flush()
        given = {name: value for name, value in where.items() if value is not None}
        tests = [f"{name} = ?" for name in given] + ([] if before is None else ["id < ?"])
        values = (*given.values(), *(() if before is None else (before,)), limit)
        only = f" WHERE {' AND '.join(tests)}" if tests else ""
        sql = f"SELECT id, {', '.join(AUDIT_COLUMNS)} FROM audit{only} ORDER BY id DESC LIMIT ?"
        return [audit_record(*row) for row in self.run(sql, values)]

    def snapshots(self, experiment: int) -> list[tuple[int, str]]:
        """The snapshots of an experiment, newest first: row and text. None before a base, since rows before it may be gone."""
        base = "SELECT max(seq) FROM snapshots WHERE experiment = ? AND base = 1"
        sql = f"SELECT seq, content FROM snapshots WHERE experiment = ? AND seq >= coalesce(({base}), 0) ORDER BY seq DESC"
        return [(seq, content) for seq, content in self.run(sql, (experiment, experiment))]

    def newest_snapshot(self, experiment: int) -> tuple[int, int] | None:
        """The row of the newest snapshot, and its size in bytes."""
        sql = "SELECT seq, octet_length(content) FROM snapshots WHERE experiment = ? ORDER BY seq DESC LIMIT 1"
        rows = self.run(sql, (experiment,))
        return (rows[0][0], rows[0][1]) if rows else None

    def expiring(self, before: float, after: int, most: int) -> list[int]:
        """The ids, above `after` and in order, of experiments that may have a decision that expires by then."""
        sql = "SELECT id FROM experiments WHERE next_expiry <= ? AND id > ? ORDER BY id LIMIT ?"
        return [experiment for (experiment,) in self.run(sql, (before, after, most))]

    def base(self, experiment: int) -> tuple[int, str] | None:
        """The snapshot that the log starts from; None if the log is complete."""
        sql = (
            "SELECT seq, content FROM snapshots WHERE experiment = ? AND base = 1 ORDER BY seq DESC"
        )
        rows = self.run(sql, (experiment,))
        return (rows[0][0], rows[0][1]) if rows else None
