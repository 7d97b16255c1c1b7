"""Backup and restore. A backup is a SQLite file, whatever store it is taken from."""

import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from ...base.files import replacing
from ...errors import invalid_value
from ..errors import Conflict, StoreError
from .open import is_postgres, open_store
from .schema import MIGRATIONS, TABLES
from .store import Store

_AT_ONCE = 5_000


def back_up(store: Store, path: str | os.PathLike[str], *, force: bool = False) -> int:
    """Copy a store as it is now to a file, whole or not at all; give the number of experiments.

    A file that exists is replaced only if forced, and a store that is in use never is.
    """
    target = os.path.realpath(path)

    def check() -> None:
        _check_target(store, target, force)

    check()
    reader = store.reader()
    try:
        return _to_file(reader, target, "backup", check, overwrite=force)
    finally:
        reader.close()


def _check_target(store: Store, target: str, force: bool) -> None:
    from .sqlite_files import beside, is_used

    exists = os.path.lexists(target)
    if exists and store.path is not None and os.path.samefile(store.path, target):
        raise _refused("backup", target, "is the store itself", "choose another file")
    if leftover := beside(target):
        rule = "is a store in use, or one that was not closed" if exists else "is not there, but its log is"
        raise _refused("backup", target, f"{rule} (see {leftover[0]!r})", "choose another file")
    if not exists:
        return
    if not os.path.isfile(target):
        raise _refused("backup", target, "is not a regular file", "choose another file")
    if is_used(target):
        raise _refused("backup", target, "is a store in use", "choose another file")
    if not force:
        raise _exists("backup", target)


def _refused(called: str, path: str, rule: str, remedy: str) -> Conflict:
    return Conflict(invalid_value(called, path, rule, remedy))


def _exists(called: str, path: str) -> Conflict:
    remedy = "choose another file" + (", or replace it with --force" if called == "backup" else "")
    return _refused(called, path, "exists already", remedy)


def _to_file(
    reader: Store, target: str, called: str, check: Callable[[], None], *, overwrite: bool = False
) -> int:
    """Copy what a reader sees to a file of its own, which has its name only when it is complete."""
    try:
        with replacing(target, overwrite=overwrite) as temporary:
            written = open_store(temporary, called=called, where=target)
            try:
                count = copy(reader, written)
                written.compact()
            finally:
                written.close()
            check()  # again: a service may have been started on it in the meantime
            return count
    except FileExistsError:
        raise _exists(called, target) from None
    except OSError as error:
        raise StoreError(invalid_value(called, target, str(error), "choose another place")) from error


def restore(path: str | os.PathLike[str], url_or_path: str | os.PathLike[str]) -> int:
    """Copy a backup into a store that is empty or not there; give the number of experiments.

    A store is a copy in every bit that matters: it goes on as the first would have, from the moment of
    the backup. What was acknowledged after that moment is not in it. The backup stays as it is.
    """
    from .sqlite_files import beside

    if not os.path.isfile(path):
        rule, remedy = "is not there", "give the file that `decoupled backup` wrote"
        raise StoreError(invalid_value("backup", os.fspath(path), rule, remedy))
    with _reading(path) as reader:
        if is_postgres(url_or_path):
            return _into(reader, url_or_path)
        target = os.path.realpath(url_or_path)
        if not os.path.lexists(target) and not beside(target):
            return _to_file(reader, target, "store", lambda: None)
        if os.path.lexists(target) and os.path.samefile(path, target):
            raise _refused("store", target, "is the backup itself", "restore into another file")
        return _into(reader, target)


def _into(reader: Store, url_or_path: str | os.PathLike[str]) -> int:
    target = open_store(url_or_path)
    try:
        return copy(reader, target)
    finally:
        target.close()


@contextmanager
def _reading(path: str | os.PathLike[str]) -> Iterator[Store]:
    """A backup to read from; one of an earlier release is brought up to date as a copy."""
    from .sqlite import SqliteStore

    source = SqliteStore(path, create=False, look=True, called="backup")
    try:
        source.check_version()
        if source.version() == len(MIGRATIONS):
            reader = source.reader()
            try:
                yield reader
            finally:
                reader.close()
            return
        with tempfile.TemporaryDirectory() as folder:
            newer = os.path.join(folder, "copy.db")
            source.copy_to(newer)
            copied = SqliteStore(newer, called="backup", where=source.where)
            try:
                copied.migrate(0.0)
                yield copied
            finally:
                copied.close()
    finally:
        source.close()


def copy(reader: Store, target: Store) -> int:
    """Copy every table into a store that has no experiments yet."""
    target.migrate(0.0)
    target.begin()
    try:
        if target.run("SELECT 1 FROM experiments LIMIT 1"):
            raise _refused(
                target.called, target.where, "has experiments already", "restore into an empty store"
            )
        copied = {table: _copy_table(reader, target, table) for table in TABLES}
        target.renumber()
        target.commit()
    except BaseException:
        target.rollback()
        raise
    return copied["experiments"]


def _copy_table(reader: Store, target: Store, table: str) -> int:
    columns = target.columns(table)
    into = f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({', '.join('?' * len(columns))})"
    if table == "api_keys":
        into += " ON CONFLICT DO NOTHING"  # a key that was added to the empty store by hand
    copied, part = 0, []
    for row in reader.each(f"SELECT {', '.join(columns)} FROM {table}"):
        part.append(row)
        copied += 1
        if len(part) == _AT_ONCE:
            target.run_many(into, part)
            part = []
    if part:
        target.run_many(into, part)
    return copied
