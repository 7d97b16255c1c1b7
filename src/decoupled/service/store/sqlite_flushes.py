"""Count the flushes of a commit in SQLite, with a virtual file system between SQLite and the disk."""

import tempfile
from pathlib import Path
from typing import Any

import apsw


class _CountingFile(apsw.VFSFile):
    """A file that counts the flushes of the log."""

    def __init__(self, vfs: "_CountingVFS", name: Any, flags: list[int]) -> None:
        super().__init__("", name, flags)
        self._vfs = vfs
        self._log = bool(flags[0] & apsw.SQLITE_OPEN_WAL)

    def xSync(self, flags: int) -> None:  # noqa: N802 - SQLite's name
        if self._log:
            self._vfs.flushes += 1
        super().xSync(flags)


class _CountingVFS(apsw.VFS):
    """SQLite's file system, with counting files."""

    def __init__(self, name: str) -> None:
        self.flushes = 0
        super().__init__(name, "")

    def xOpen(self, name: Any, flags: list[int]) -> _CountingFile:  # noqa: N802
        return _CountingFile(self, name, flags)


def flushes_of_a_commit(folder: str, synchronous: str = "FULL") -> int:
    """How often SQLite flushes the log for one commit, with the service's settings.

    >>> flushes_of_a_commit(tempfile.gettempdir()), flushes_of_a_commit(tempfile.gettempdir(), "OFF")
    (1, 0)
    """
    vfs = _CountingVFS("decoupled-counting")
    try:
        with tempfile.TemporaryDirectory(dir=folder) as scratch:
            connection = apsw.Connection(str(Path(scratch) / "scratch.db"), vfs="decoupled-counting")
            connection.pragma("journal_mode", "wal")
            connection.pragma("synchronous", synchronous)
            connection.execute("CREATE TABLE numbers (number INTEGER)")
            connection.execute("INSERT INTO numbers VALUES (1)")
            before = vfs.flushes
            connection.execute("INSERT INTO numbers VALUES (2)")
            flushes = vfs.flushes - before
            connection.close()
            return flushes
    finally:
        vfs.unregister()
