"""The store in one SQLite file: WAL, and every commit flushed to disk before it returns."""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import apsw

from .database import Values
from .flushes import flushes_of_a_commit
from .problems import StoreError
from .rows import ExperimentRow
from .schema import SQLITE
from .store import EXPERIMENTS, Store

# Before it, a WAL that restarts while another connection checkpoints could lose a commit.
OLDEST_SAFE = (3, 51, 3)


def sqlite_version() -> tuple[int, ...]:
    """The version of SQLite that apsw carries.

    >>> sqlite_version() >= OLDEST_SAFE
    True
    """
    return tuple(int(part) for part in apsw.sqlite_lib_version().split("."))


@contextmanager
def _as_store_errors() -> Iterator[None]:
    try:
        yield
    except (apsw.Error, OSError) as error:
        raise StoreError(
            f"store: {type(error).__name__}: {error}; nothing was acknowledged, try again"
        ) from error


class SqliteStore(Store):
    """A store in the file at `path`, made if it is not there."""

    dialect = SQLITE

    def __init__(self, path: str | os.PathLike[str], *, synchronous: str = "FULL") -> None:
        super().__init__()
        if sqlite_version() < OLDEST_SAFE:
            found = ".".join(map(str, sqlite_version()))
            raise StoreError(f"store: SQLite {found} can lose commits; install apsw 3.51.3 or later")
        self.path = os.fspath(path)
        self._synchronous = synchronous
        with _as_store_errors():
            self._open()

    def _open(self) -> None:
        self.connection = apsw.Connection(self.path)
        self.connection.set_busy_timeout(10_000)
        self.connection.pragma("journal_mode", "wal")
        self.connection.pragma("synchronous", self._synchronous)
        self._cursor = self.connection.cursor()

    def run(self, sql: str, values: Values = ()) -> list[Any]:
        with _as_store_errors():
            return self._cursor.execute(sql, values).fetchall()

    def each(self, sql: str, values: Values = ()) -> Iterator[Any]:
        with _as_store_errors():
            yield from self.connection.execute(sql, values)

    def run_many(self, sql: str, many: list[Values]) -> None:
        with _as_store_errors():
            self._cursor.executemany(sql, many)

    def begin(self) -> None:
        self.run("BEGIN IMMEDIATE")

    def end(self) -> None:
        self.run("COMMIT")

    def undo(self) -> None:
        if self.connection.in_transaction:
            self.run("ROLLBACK")

    def lock(self, ids: Sequence[int]) -> list[ExperimentRow]:
        # The whole file is held already.
        return [
            ExperimentRow(*row) for each in ids for row in self.run(f"{EXPERIMENTS} WHERE id = ?", (each,))
        ]

    def hold_schema(self) -> None:
        pass  # BEGIN IMMEDIATE holds the whole file already

    def integrity(self) -> tuple[bool, str]:
        found = [text for (text,) in self.run("PRAGMA integrity_check(5)")]
        return found == ["ok"], "; ".join(found)

    def durability(self) -> tuple[bool, str]:
        version = ".".join(map(str, sqlite_version()))
        flushes = flushes_of_a_commit(os.path.dirname(os.path.abspath(self.path)))
        return (
            flushes > 0,
            f"SQLite {version}, {flushes} flush(es) of the log for a commit, before it returns",
        )

    def columns(self, table: str) -> list[str]:
        return [row[1] for row in self.run(f"PRAGMA table_info({table})")]

    def compact(self) -> None:
        self.run("PRAGMA journal_mode = delete")

    def reader(self) -> "SqliteStore":
        reader = SqliteStore(self.path)
        reader.run("BEGIN")
        reader.version()  # a transaction sees the file as it is at its first query
        return reader

    def close(self) -> None:
        with _as_store_errors():
            self.connection.close()
