"""Error messages for a SQLite file that cannot be opened: the reason, and what to do."""

import os

import apsw

from decoupled.client import StoreError

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
    reason, remedy = _known(error) or _from_path(path) or _unknown(error)
    return StoreError.of(called, where, reason, remedy)


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
    return f"{'read-only disk' if read_only else 'permission denied'}: this user cannot read and write"


def _may_write(path: str) -> bool:
    wanted = os.R_OK | os.W_OK | (os.X_OK if os.path.isdir(path) else 0)
    return os.access(path, wanted, effective_ids=os.access in os.supports_effective_ids)


def _known(error: Exception) -> tuple[str, str] | None:
    for kind, reason, remedy in _REASONS:
        if isinstance(error, kind):
            return reason.format(error=error), remedy
    return None


def _unknown(error: Exception) -> tuple[str, str]:
    if isinstance(error, apsw.IOError):
        return f"cannot be read or written ({error})", "check the disk and its mount"
    return f"cannot be opened ({type(error).__name__}: {error})", "examine it with `decoupled doctor`"
