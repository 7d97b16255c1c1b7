"""The store in a SQLite file, in WAL mode. Every commit is flushed to disk before it returns."""

import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any

import apsw

from decoupled.client import StoreError

from ...fair_threads import pause
from ..experiment.rows import ExperimentRow
from . import sqlite_files
from .database import Values
from .schema import SQLITE
from .sqlite_errors import opening_error
from .store import EXPERIMENTS, Store

# In earlier versions, a WAL that restarts during another connection's checkpoint can lose a commit.
OLDEST_SAFE = (3, 51, 3)


def sqlite_version() -> tuple[int, ...]:
    """The version of SQLite in apsw.

    >>> sqlite_version() >= OLDEST_SAFE
    True
    """
    return tuple(int(part) for part in apsw.sqlite_lib_version().split("."))


class SqliteStore(Store):
    """A store in the file at `path`; `open_store` says what the options mean.

    `synchronous` is when SQLite waits for the disk; with FULL, before a commit returns.
    """

    dialect, system = SQLITE, "sqlite"
    driver_errors = (apsw.Error, OSError)
    busy_timeout = 10_000  # milliseconds to wait for another program's lock

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        synchronous: str = "FULL",
        create: bool = True,
        read_only: bool = False,
        called: str = "store",
        where: str | None = None,
    ) -> None:
        super().__init__()
        if sqlite_version() < OLDEST_SAFE:
            found = ".".join(map(str, sqlite_version()))
            raise StoreError(f"store: SQLite {found} can lose commits; install apsw 3.51.3 or later")
        self.path: str = os.path.realpath(path)
        self.called, self.where = called, where or self.path
        self._synchronous, self._read_only = synchronous, read_only
        self._for_a_service = called == "store" and where is None
        with self._opening():
            self._check_files(create)
            self._open(create)

    def _check_files(self, create: bool) -> None:
        found = sqlite_files.mismatch(self.path)
        if found is not None:
            raise StoreError.of(self.called, self.where, *found)
        if not create and not os.path.lexists(self.path):
            raise StoreError.of(self.called, self.where, "does not exist", self.creation())

    def _open(self, create: bool) -> None:
        flags = apsw.SQLITE_OPEN_READWRITE | (apsw.SQLITE_OPEN_CREATE if create else 0)
        if self._read_only and sqlite_files.in_rollback_mode(self.path):
            flags = apsw.SQLITE_OPEN_READONLY
        in_use = bool(sqlite_files.companions(self.path))
        if create:
            _make(self.path)
        self.connection = apsw.Connection(self.path, flags=flags)
        try:
            self.connection.set_busy_timeout(self.busy_timeout)
            self._cursor = self.connection.cursor()
            if not create:
                self.check_tables()  # before writing to a file that may belong to another program
            if not self._read_only:
                if self.connection.readonly("main"):  # SQLite itself reports this at the first write
                    raise apsw.ReadOnlyError("the file is read-only")
                new = self.connection.pragma("journal_mode") != "wal"
                self.connection.pragma("journal_mode", "wal")
                self.connection.pragma("synchronous", self._synchronous)
                if new or self.connection.pragma("user_version") != sqlite_files.HAS_LOG:
                    self._mark(sqlite_files.HAS_LOG)
            # Leave the log as it is; `close` merges it, and a new, empty log is removed on closing.
            if in_use or not self._read_only:
                self.connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
        except BaseException:
            self.connection.close()
            raise
        self._file, self._log, self._log_size = _identity(self.path), _identity(f"{self.path}-wal"), 0

    def _mark(self, version: int) -> None:
        """Note in the file itself whether it has a log, without which it must not be opened."""
        self.connection.pragma("user_version", version)
        with suppress(apsw.BusyError):  # another program is doing it
            self.connection.wal_checkpoint()

    def opening_error(self, error: Exception) -> StoreError:
        return opening_error(self.called, self.where, error, self.path)

    def running_error(self, error: Exception) -> StoreError:
        return super().running_error(error) if self._for_a_service else self.opening_error(error)

    def _check_in_place(self) -> None:
        # Data written to a file that was renamed or removed is lost when the process ends.
        if _identity(self.path) != self._file:
            raise StoreError(
                "store: its file was replaced, moved or removed while in use; nothing was acknowledged; "
                "put the file back, or stop the service and restore a backup"
            )

    def run(self, sql: str, values: Values = ()) -> list[Any]:
        try:  # in place of `_guarded`, which takes as long as a small statement
            return self._cursor.execute(sql, values).fetchall()
        except self.driver_errors as error:
            raise self.running_error(error) from error

    def each(self, sql: str, values: Values = ()) -> Iterator[Any]:
        with self._guarded():
            for row in self.connection.execute(sql, values):
                yield row
                pause()

    def run_many(self, sql: str, many: list[Values]) -> None:
        try:
            self._cursor.executemany(sql, many)
        except self.driver_errors as error:
            raise self.running_error(error) from error

    def begin(self) -> None:
        self._check_in_place()
        if _identity(f"{self.path}-wal") != self._log:
            with suppress(apsw.Error):  # SQLite still has the log: save what was acknowledged
                self.connection.wal_checkpoint()
            raise StoreError(
                "store: its log, the file ending in -wal, was replaced or removed while in use; nothing was acknowledged; "
                "what was before is merged into the store; stop the service as usual, and start it again"
            )
        if self._is_cut_off():
            raise StoreError(
                "store: its log, the file ending in -wal, was emptied or cut off while in use; nothing was acknowledged; "
                "stop the service, and restore a backup"
            )
        self.run("BEGIN IMMEDIATE")

    def _is_cut_off(self) -> bool:
        """Whether the log is shorter than it was. SQLite begins it again without making it shorter."""
        if _identity(f"{self.path}-wal") != self._log:  # SQLite still has the whole of it
            return False
        size = os.path.getsize(f"{self.path}-wal") if self._log else 0
        self._log_size = max(self._log_size, size)
        return size < self._log_size

    def end(self) -> None:
        self.run("COMMIT")

    def undo(self) -> None:
        if self.connection.in_transaction:
            self.run("ROLLBACK")

    def lock(self, ids: Sequence[int]) -> list[ExperimentRow]:
        # BEGIN IMMEDIATE has locked the whole file.
        sql = f"{EXPERIMENTS} WHERE id = ?"
        return [ExperimentRow(*row) for each in ids for row in self.run(sql, (each,))]

    def lock_schema(self) -> None:
        pass  # BEGIN IMMEDIATE has locked the whole file

    def integrity(self) -> tuple[bool, str]:
        found = [text for (text,) in self.run("PRAGMA integrity_check(5)")]
        return found == ["ok"], "; ".join(found)

    def durability(self) -> tuple[bool, str]:
        version = ".".join(map(str, sqlite_version()))
        return self._synchronous == "FULL", f"SQLite {version}; synchronous is {self._synchronous}"

    def sizes(self) -> dict[str, int]:
        try:
            return {
                "store": os.path.getsize(self.path),
                "wal": os.path.getsize(f"{self.path}-wal"),
                "free": shutil.disk_usage(os.path.dirname(self.path)).free,
            }
        except OSError:  # a file that is missing fails the next write, which says so
            return {}

    def has_tables(self) -> bool:
        return bool(self.run("SELECT 1 FROM sqlite_schema WHERE name = 'schema_migrations'"))

    def columns(self, table: str) -> list[str]:
        return [row[1] for row in self.run(f"PRAGMA table_info({table})")]

    def json_at(self, column: str, *names: str) -> str:
        path = "".join(f'."{name}"' for name in names)
        return f"json_extract({column}, '${path}')"

    def compact(self) -> None:
        self.run("PRAGMA journal_mode = delete")

    def reader(self) -> "SqliteStore":
        self._check_in_place()
        reader = SqliteStore(
            self.path, create=False, read_only=self._read_only, called=self.called, where=self.where
        )
        reader.run("BEGIN")
        reader.version()  # the first query fixes what the transaction sees
        return reader

    def close(self) -> None:
        with self._guarded():
            # Merging what is left of a log would destroy the file.
            if not self._read_only and not self.connection.in_transaction and not self._is_cut_off():
                self._merge_log()
            self.connection.close()

    def _merge_log(self) -> None:
        """Merge the log into the file, unless others use it."""
        with suppress(apsw.Error):  # then the next to open it finds the log
            self.connection.set_busy_timeout(0)
            self.connection.pragma("user_version", 0)
            try:
                self.connection.pragma("journal_mode", "delete")
            except apsw.BusyError:
                self._mark(sqlite_files.HAS_LOG)

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


def _make(path: str) -> None:
    """Create the file for its owner alone, unless it exists; SQLite gives its companions the same permissions."""
    with suppress(OSError):  # SQLite says what is wrong
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))


def _identity(path: str) -> tuple[int, int] | None:
    """The file that has this name now; None if there is none."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino
