"""The store in one SQLite file: WAL, and every commit flushed to disk before it returns."""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import apsw

from ...errors import invalid_value
from ..errors import StoreError
from ..experiment.rows import ExperimentRow
from . import sqlite_files
from .database import Values
from .opening import refusal
from .schema import SQLITE
from .sqlite_flushes import flushes_of_a_commit
from .store import EXPERIMENTS, Store

# Before it, a WAL that restarts while another connection checkpoints could lose a commit.
OLDEST_SAFE = (3, 51, 3)


def sqlite_version() -> tuple[int, ...]:
    """The version of SQLite that apsw carries.

    >>> sqlite_version() >= OLDEST_SAFE
    True
    """
    return tuple(int(part) for part in apsw.sqlite_lib_version().split("."))


class SqliteStore(Store):
    """A store in the file at `path`.

    Args:
        path: the file.
        synchronous: when SQLite waits for the disk; FULL is before a commit returns.
        create: whether the file may be made if it is not there.
        look: only look at what is there; neither the file nor a log beside it changes.
        called: what messages call it.
        where: the path that messages name in place of `path`.
    """

    dialect = SQLITE
    patience = 10_000  # milliseconds to wait for another program's lock

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        synchronous: str = "FULL",
        create: bool = True,
        look: bool = False,
        called: str = "store",
        where: str | None = None,
    ) -> None:
        super().__init__()
        if sqlite_version() < OLDEST_SAFE:
            found = ".".join(map(str, sqlite_version()))
            raise StoreError(f"store: SQLite {found} can lose commits; install apsw 3.51.3 or later")
        self.path: str = os.path.realpath(path)
        self.called, self.where = called, where or self.path
        self._synchronous, self._look = synchronous, look
        self._for_a_service = called == "store" and where is None
        with self._opening():
            self._check_files(create)
            self._open(create)

    def _check_files(self, create: bool) -> None:
        found = sqlite_files.mismatch(self.path)
        if found is not None:
            raise StoreError(invalid_value(self.called, self.where, *found))
        if not create and not os.path.lexists(self.path):
            raise StoreError(invalid_value(self.called, self.where, "does not exist", self.creation()))

    def _open(self, create: bool) -> None:
        flags = apsw.SQLITE_OPEN_READWRITE | (apsw.SQLITE_OPEN_CREATE if create else 0)
        if self._look and sqlite_files.in_rollback_mode(self.path):
            flags = apsw.SQLITE_OPEN_READONLY
        in_use = bool(sqlite_files.beside(self.path))
        self.connection = apsw.Connection(self.path, flags=flags)
        try:
            self.connection.set_busy_timeout(self.patience)
            self._cursor = self.connection.cursor()
            if not create:
                self.check_tables()  # before anything is written to a file that may be another program's
            if not self._look:
                if self.connection.readonly("main"):  # SQLite says so at the first write only
                    raise apsw.ReadOnlyError("it can only be read")
                self.connection.pragma("journal_mode", "wal")
                self.connection.pragma("synchronous", self._synchronous)
            elif in_use:  # what is in the log stays there; an empty log of our own goes when we close
                self.connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
        except BaseException:
            self.connection.close()
            raise
        self._file = _identity(self.path)

    @contextmanager
    def _opening(self) -> Iterator[None]:
        """Errors say what is wrong with the file, and what to do."""
        try:
            yield
        except (apsw.Error, OSError) as error:
            raise refusal(self.called, self.where, error, self.path) from error
        except StoreError as error:
            if isinstance(error.__cause__, apsw.Error | OSError):
                raise refusal(self.called, self.where, error.__cause__, self.path) from error.__cause__
            raise

    @contextmanager
    def _guarded(self) -> Iterator[None]:
        try:
            yield
        except (apsw.Error, OSError) as error:
            if not self._for_a_service:
                raise refusal(self.called, self.where, error, self.path) from error
            raise StoreError(
                f"store: {type(error).__name__}: {error}; nothing was acknowledged, try again"
            ) from error

    def _check_in_place(self) -> None:
        # What is written to a file that has lost its name is gone when the process ends.
        if _identity(self.path) != self._file:
            raise StoreError(
                "store: its file was replaced, moved or removed while in use; nothing was acknowledged, and "
                "nothing will be before the file is put back, or the service is stopped and a backup restored"
            )

    def migrate(self, now: float) -> bool:
        with self._opening():
            return super().migrate(now)

    def run(self, sql: str, values: Values = ()) -> list[Any]:
        with self._guarded():
            return self._cursor.execute(sql, values).fetchall()

    def each(self, sql: str, values: Values = ()) -> Iterator[Any]:
        with self._guarded():
            yield from self.connection.execute(sql, values)

    def run_many(self, sql: str, many: list[Values]) -> None:
        with self._guarded():
            self._cursor.executemany(sql, many)

    def begin(self) -> None:
        self._check_in_place()
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

    def has_tables(self) -> bool:
        return bool(self.run("SELECT 1 FROM sqlite_schema WHERE name = 'schema_migrations'"))

    def columns(self, table: str) -> list[str]:
        return [row[1] for row in self.run(f"PRAGMA table_info({table})")]

    def compact(self) -> None:
        self.run("PRAGMA journal_mode = delete")

    def reader(self) -> "SqliteStore":
        self._check_in_place()
        reader = SqliteStore(self.path, create=False, look=self._look, called=self.called, where=self.where)
        reader.run("BEGIN")
        reader.version()  # a transaction sees the file as it is at its first query
        return reader

    def close(self) -> None:
        with self._guarded():
            self.connection.close()

    def copy_to(self, path: str) -> None:
        """Copy the whole file, page by page."""
        with self._guarded():
            target = apsw.Connection(path)
            try:
                with target.backup("main", self.connection, "main") as copying:
                    while not copying.done:
                        copying.step(10_000)
            finally:
                target.close()


def _identity(path: str) -> tuple[int, int] | None:
    """Which file has this name now; None if there is none."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino
