"""The files of a SQLite store: whether they belong together, and whether a program uses them.

They are read through SQLite itself: under POSIX, a process that opens and closes a file in any other way loses its
locks on that file, and with them the protection of a store that is open here.
"""

import os
import struct

import apsw

from .sqlite_errors import opening_error

_ROLLBACK = 1  # in the header of a file that has no write-ahead log
_LOG_MARKS = (0x377F0682, 0x377F0683)
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


def in_rollback_mode(path: str) -> bool:
    """Whether a file has no write-ahead log, as a backup is written."""
    header = _header(path)
    return len(header) == 100 and header[18] == _ROLLBACK


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
    lost = _is_marked(header) and (not os.path.exists(log) or _page_size_of_log(log) is None)
    if lost and _is_marked(_header(path)):  # still: the last of those who use it may be closing it
        rule = (
            f"was not closed, and its log {log!r}, which has what was acknowledged last, is lost or damaged"
        )
        accept = f"""sqlite3 {path} "PRAGMA user_version = 0\""""
        return rule, f"put the log back, or restore a backup; to go on with what is left, run: {accept}"
    if not header:
        rule = f"is empty or missing, but its log {log!r} is not"
        remedy = "put the store back next to its log, or restore a backup into a new store"
        return (rule, remedy) if filled else None
    if found and header[18] == _ROLLBACK:
        rule = f"was replaced while it was in use: {found[0]!r} belongs to the file that was there before"
        return rule, _separate(path)
    if filled and _page_size_of_log(log) not in (None, _page_size(header)):
        return f"was replaced while it was in use: {log!r} has pages of another size", _separate(path)
    return None


def _is_marked(header: bytes) -> bool:
    return header[60:64] == struct.pack(">I", HAS_LOG) and header[18] != _ROLLBACK


def _separate(path: str) -> str:
    return (
        "stop the programs that use it, copy these files, and restore a backup into a new store; "
        f"or, if {path!r} is the right file, move the files that end in -wal and -shm away"
    )


def _header(path: str) -> bytes:
    if not os.path.isfile(path) or os.path.getsize(path) < 100:
        return b""
    file = apsw.VFSFile("", path, [apsw.SQLITE_OPEN_MAIN_DB | apsw.SQLITE_OPEN_READONLY, 0])
    try:
        return file.xRead(100, 0)
    finally:
        file.xClose()


def _page_size(header: bytes) -> int:
    (size,) = struct.unpack(">H", header[16:18])
    return 65536 if size == 1 else int(size)


def _page_size_of_log(log: str) -> int | None:
    """The page size of a log; None if a crash cut it off at its start, since SQLite ignores such a log."""
    with open(log, "rb") as file:
        head = file.read(12)
    if len(head) < 12:
        return None
    mark, _, size = struct.unpack(">III", head)
    return int(size) if mark in _LOG_MARKS else None
