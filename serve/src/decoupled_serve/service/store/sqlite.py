"""The store in a SQLite file, in WAL mode. Every commit is flushed to disk before it returns."""

import os
import shutil
import struct
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any

import apsw

from decoupled.client import StoreError

from ...fair_threads import pause
from ..experiment.records import ExperimentRow
from .pairs import PairsFile, make_private
from .schema import SQLITE
from .store import EXPERIMENTS, PairsConnection, Store, Values

# Error messages for a SQLite file that cannot be opened: the reason, and what to do.
_CHECK = "correct the path"
_PERMIT = "give this user write permission there, or choose another path"
_REASONS: tuple[tuple[type[apsw.Error], str, str], ...] = (
    (apsw.NotADBError, "is not a SQLite database", _CHECK),
    (apsw.CorruptError, "is damaged ({error})", "restore a backup with `decoupled restore`"),
    (apsw.BusyError, "is locked by another program", "end that program, then try again"),
    (apsw.LockedError, "is locked by another program", "end that program, then try again"),
    (apsw.FullError, "cannot be written: the disk is full", "free some space"),
)


def opening_error(called: str, where: str, error: Exception, path: str) -> StoreError:
    """The error for a file that cannot be opened: the path, the reason and the remedy.

    >>> import tempfile
    >>> folder = tempfile.mkdtemp()
    >>> str(opening_error("store", folder, apsw.CantOpenError(), folder)).removeprefix(f"store = {folder!r}: ")
    'is a folder; name a file in it'
    """
    if isinstance(error, apsw.IOError):
        found = f"cannot be read or written ({error})", "check the disk and its mount"
    else:
        found = (
            f"cannot be opened ({type(error).__name__}: {error})",
            "examine it with `decoupled doctor`",
        )
    known = (
        (why.format(error=error), remedy)
        for kind, why, remedy in _REASONS
        if isinstance(error, kind)
    )
    return StoreError.of(called, where, *(next(known, None) or _from_path(path) or found))


def _from_path(path: str) -> tuple[str, str] | None:
    folder = os.path.dirname(path)
    if not os.path.isdir(folder):
        return f"the folder {folder!r} does not exist", f"create it, or {_CHECK}"
    if os.path.isdir(path):
        return "is a folder", "name a file in it"
    if os.path.exists(path) and not os.path.isfile(path):
        return "is not a regular file", _CHECK
    if not _may_write(folder):
        return f"{_why(folder)} the folder {folder!r}, where SQLite keeps its log", _PERMIT
    if os.path.exists(path) and not _may_write(path):
        return f"{_why(folder)} the file", _PERMIT
    return None


def _why(folder: str) -> str:
    # Windows cannot be asked.
    read_only = hasattr(os, "statvfs") and os.statvfs(folder).f_flag & os.ST_RDONLY
    return (
        f"{'read-only disk' if read_only else 'permission denied'}: this user cannot read and write"
    )


def _may_write(path: str) -> bool:
    wanted = os.R_OK | os.W_OK | (os.X_OK if os.path.isdir(path) else 0)
    return os.access(path, wanted, effective_ids=os.access in os.supports_effective_ids)


# The files of a SQLite store: whether they belong together, and whether a program uses them.
#
# They are read through SQLite itself: under POSIX, a process that opens and closes a file in any other way loses its
# locks on that file, and with them the protection of a store that is open here.
_ROLLBACK = 1  # in the header of a file that has no write-ahead log
_LOG_MARKS = (b"\x37\x7f\x06\x82", b"\x37\x7f\x06\x83")
HAS_LOG = 1  # the user version of a file while it has a log


def companions(path: str) -> list[str]:
    """The files that SQLite keeps next to a store in use, and leaves there after a crash."""
    return [path + end for end in ("-wal", "-shm", "-journal") if os.path.lexists(path + end)]


def is_used(path: str) -> bool:
    """Whether a program has this store open, under this name or another (a hard link).

    Every user of a store in WAL mode holds a lock on the file, so nobody else can lock it exclusively.
    """
    try:
        connection = apsw.Connection(path, flags=apsw.SQLITE_OPEN_READWRITE)
        try:
            connection.pragma("locking_mode", "exclusive")
            connection.execute("BEGIN EXCLUSIVE; ROLLBACK")
        finally:
            connection.close()
    except apsw.BusyError:
        return True
    except apsw.NotADBError:
        return False
    except apsw.Error as error:
        raise opening_error("file", path, error, path) from error
    return False


def mismatch(path: str) -> tuple[str, str] | None:
    """Why a store has lost its log, or the log next to it belongs to another file, and the remedy; None if they match.

    SQLite does not check this: it applies a log to any file of that name, drops the log if the file is empty, and goes on
    without one.
    """
    log = f"{path}-wal"
    # Before the header is read: whoever opens a store writes that first, and then makes these.
    found = [each for each in (log, f"{path}-shm") if os.path.exists(each)]
    filled = log in found and os.path.getsize(log) > 0
    header = _header(path)
    lost = _is_marked(header) and not (os.path.exists(log) and _is_log(log))
    if lost and _is_marked(_header(path)):  # still: the last of those who use it may be closing it
        rule = f"was not closed, and its log {log!r}, which has what was acknowledged last, is lost or damaged"
        accept = f"""sqlite3 {path} "PRAGMA user_version = 0\""""
        return (
            rule,
            f"put the log back, or restore a backup; to go on with what is left, run: {accept}",
        )
    if not header:
        rule = f"is empty or missing, but its log {log!r} is not"
        remedy = "put the store back next to its log, or restore a backup into a new store"
        return (rule, remedy) if filled else None
    if found and header[18] == _ROLLBACK:
        rule = f"was replaced while it was in use: {found[0]!r} belongs to the file that was there before"
        or_else = f"if {path!r} is the right file, move the files that end in -wal and -shm away"
        remedy = (
            "stop the programs that use it, copy these files, and restore a backup into a new store"
        )
        return rule, f"{remedy}; or, {or_else}"
    return None


def _is_marked(header: bytes) -> bool:
    return header[60:64] == struct.pack(">I", HAS_LOG) and header[18] != _ROLLBACK


def _header(path: str) -> bytes:
    if not os.path.isfile(path) or os.path.getsize(path) < 100:
        return b""
    file = apsw.VFSFile("", path, [apsw.SQLITE_OPEN_MAIN_DB | apsw.SQLITE_OPEN_READONLY, 0])
    try:
        return file.xRead(100, 0)
    finally:
        file.xClose()


def _is_log(path: str) -> bool:
    """Whether a file begins as a log does. SQLite ignores one that a crash cut off at its start."""
    with open(path, "rb") as file:
        head = file.read(12)
    return len(head) == 12 and head[:4] in _LOG_MARKS


# In earlier versions, a WAL that restarts during another connection's checkpoint can lose a commit.
OLDEST_SAFE = (3, 51, 3)


def sqlite_version() -> tuple[int, ...]:
    """The version of SQLite in apsw.

    >>> sqlite_version() >= OLDEST_SAFE
    True
    """
    return tuple(int(part) for part in apsw.sqlite_lib_version().split("."))


class SqliteStore(Store):
    """A store in the file at `path`, with the options of `open_store`. With `synchronous` FULL, a commit waits for the disk."""

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
            found = f"SQLite {apsw.sqlite_lib_version()} can lose commits"
            raise StoreError(f"store: {found}; install apsw 3.51.3 or later")
        self.path: str = os.path.realpath(path)
        self.called, self.where = called, where or self.path
        self._synchronous, self._read_only = synchronous, read_only
        self._for_a_service = called == "store" and where is None
        with self._opening():
            if (problem := mismatch(self.path)) is not None:
                raise StoreError.of(self.called, self.where, *problem)
            if not create and not os.path.lexists(self.path):
                raise StoreError.of(self.called, self.where, "does not exist", self.creation())
            self._open(create)

    def _open(self, create: bool) -> None:
        flags = apsw.SQLITE_OPEN_READWRITE | (apsw.SQLITE_OPEN_CREATE if create else 0)
        if self._read_only and _header(self.path)[18:19] == bytes(
            [_ROLLBACK]
        ):  # as a backup is written
            flags = apsw.SQLITE_OPEN_READONLY
        in_use = bool(companions(self.path))
        if create:
            make_private(self.path)
        self.connection = apsw.Connection(self.path, flags=flags)
        try:
            self.connection.set_busy_timeout(self.busy_timeout)
            self._cursor = self.connection.cursor()
            if not create:
                self.check_tables()  # before writing to a file that may belong to another program
            if not self._read_only:
                if self.connection.readonly(
                    "main"
                ):  # SQLite itself reports this at the first write
                    raise apsw.ReadOnlyError("the file is read-only")
                new = self.connection.pragma("journal_mode") != "wal"
                self._use_log()
                self.connection.pragma("synchronous", self._synchronous)
                if new or self.connection.pragma("user_version") != HAS_LOG:
                    self._mark(HAS_LOG)
            # Leave the log as it is; `close` merges it, and a new, empty log is removed on closing.
            if in_use or not self._read_only:
                self.connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
        except BaseException:
            self.connection.close()
            raise
        self._file, self._log, self._log_size = (
            _identity(self.path),
            _identity(f"{self.path}-wal"),
            0,
        )

    def _use_log(self) -> None:
        """Switch to a log. Of programs that do so at once, SQLite refuses some without waiting."""
        end = time.monotonic() + self.busy_timeout / 1000.0
        while True:
            try:
                self.connection.pragma("journal_mode", "wal")
            except apsw.BusyError:
                if time.monotonic() >= end:
                    raise
                time.sleep(0.01)
            else:
                return

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
            rule = "its file was replaced, moved or removed while in use; nothing was acknowledged"
            raise StoreError(
                f"store: {rule}; put the file back, or stop the service and restore a backup"
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

    def undo(self) -> None:
        if self.connection.in_transaction:
            self.run("ROLLBACK")

    def lock(self, ids: Sequence[int]) -> list[ExperimentRow]:
        # BEGIN IMMEDIATE has locked the whole file.
        sql = f"{EXPERIMENTS} WHERE id = ?"
        return [ExperimentRow(*row) for each in ids for row in self.run(sql, (each,))]

    def integrity(self) -> tuple[bool, str]:
        found = [text for (text,) in self.run("PRAGMA integrity_check(5)")]
        return found == ["ok"], "; ".join(found)

    def durability(self) -> tuple[bool, str]:
        told = f"SQLite {apsw.sqlite_lib_version()}; synchronous is {self._synchronous}"
        return self._synchronous == "FULL", told

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

    def has_pairs(self) -> bool:
        return os.path.exists(f"{self.path}-pairs")

    def open_pairs(self) -> PairsConnection:
        return PairsFile(f"{self.path}-pairs")

    def reader(self) -> "SqliteStore":
        self._check_in_place()
        named = {"called": self.called, "where": self.where}
        reader = SqliteStore(self.path, create=False, read_only=self._read_only, **named)
        reader.run("BEGIN")
        reader.version()  # the first query fixes what the transaction sees
        return reader

    def close(self) -> None:
        with self._guarded():
            # Merging what is left of a log would destroy the file.
            if (
                not self._read_only
                and not self.connection.in_transaction
                and not self._is_cut_off()
            ):
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
                self._mark(HAS_LOG)

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
    """The file that has this name now; None if there is none."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino
