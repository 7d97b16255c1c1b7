"""Backup and restore. A backup is a SQLite file, also of a store in PostgreSQL."""

import os
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from functools import partial
from itertools import islice

from decoupled.base import replacing
from decoupled.client import Conflict, StoreError

from ...fair_threads import resting
from ..experiment.records import OPERATOR, audit_row
from ..experiment.request_context import ORIGIN
from .open import Location, is_postgres, open_store
from .schema import MIGRATIONS, TABLES
from .store import Store, insertion

_AT_ONCE = 5_000


def back_up(store: Store, path: Location, *, force: bool = False) -> int:
    """Copy a store as it is now to a file, whole or not at all; return the number of experiments.

    An existing file is replaced only with `force`, and a store in use never is.
    """
    target = os.path.realpath(path)
    check = partial(_check_target, store, target, force)
    check()
    with closing(store.reader()) as reader:
        return _to_file(reader, target, "backup", check, overwrite=force)


def _check_target(store: Store, target: str, force: bool) -> None:
    from .sqlite import companions, is_used

    exists = os.path.lexists(target)
    if exists and store.path is not None and os.path.samefile(store.path, target):
        raise _conflict("backup", target, "is the store itself")
    if leftover := companions(target):
        rule = (
            "is a store in use, or was not closed" if exists else "does not exist, but its log does"
        )
        raise _conflict("backup", target, f"{rule} (see {leftover[0]!r})")
    if not exists:
        return
    if not os.path.isfile(target):
        raise _conflict("backup", target, "is not a regular file")
    if is_used(target):
        raise _conflict("backup", target, "is a store in use")
    if not force:
        raise _exists("backup", target)


def _conflict(called: str, path: str, rule: str, remedy: str = "choose another file") -> Conflict:
    return Conflict.of(called, path, rule, remedy)


def _exists(called: str, path: str) -> Conflict:
    remedy = "choose another file" + (", or replace it with --force" if called == "backup" else "")
    return _conflict(called, path, "exists already", remedy)


def _to_file(
    reader: Store,
    target: str,
    called: str,
    check: Callable[[], None],
    *,
    overwrite: bool = False,
    restored_from: Location | None = None,
) -> int:
    """Copy a store to a new file, which gets its name when it is complete."""
    try:
        with replacing(target, overwrite=overwrite) as temporary:
            with closing(open_store(temporary, called=called, where=target)) as written:
                count = copy(reader, written, restored_from)
                with resting():
                    written.compact()
            check()  # again: a service may have started on it in the meantime
            return count
    except FileExistsError:
        raise _exists(called, target) from None
    except OSError as error:
        raise StoreError.of(called, target, str(error), "choose another place") from error


def restore(path: Location, url_or_path: Location) -> int:
    """Copy a backup into a store that is empty or does not exist; return the number of experiments.

    The new store continues exactly as the old one would have from the moment of the backup. It lacks what was
    acknowledged after that moment. The backup does not change.
    """
    from .sqlite import companions

    if not os.path.isfile(path):
        rule, remedy = "does not exist", "give a file that `decoupled backup` wrote"
        raise StoreError.of("backup", os.fspath(path), rule, remedy)
    with _reading(path) as reader:
        if not is_postgres(url_or_path):
            url_or_path = target = os.path.realpath(url_or_path)
            if not os.path.lexists(target) and not companions(target):
                return _to_file(reader, target, "store", lambda: None, restored_from=path)
            if os.path.lexists(target) and os.path.samefile(path, target):
                raise _conflict(
                    "store", target, "is the backup itself", "restore into another file"
                )
        with closing(open_store(url_or_path)) as written:
            return copy(reader, written, path)


@contextmanager
def _reading(path: Location) -> Iterator[Store]:
    """Open a backup for reading. One of an earlier release is copied, and the copy is migrated."""
    from .sqlite import SqliteStore

    with closing(SqliteStore(path, create=False, read_only=True, called="backup")) as source:
        source.check_version()
        if source.version() == len(MIGRATIONS):
            with closing(source.reader()) as reader:
                yield reader
            return
        with tempfile.TemporaryDirectory() as folder:
            newer = os.path.join(folder, "copy.db")
            source.copy_to(newer)
            with closing(SqliteStore(newer, called="backup", where=source.where)) as copied:
                copied.migrate(0.0)
                yield copied


def copy(reader: Store, target: Store, restored_from: Location | None = None) -> int:
    """Copy every table into a store that has no experiments yet. The audit trail says that it was restored."""
    target.migrate(0.0)
    target.begin()
    try:
        if target.run("SELECT 1 FROM experiments LIMIT 1"):
            rule, remedy = "has experiments already", "restore into an empty store"
            raise _conflict(target.called, target.where, rule, remedy)
        for table in TABLES:
            _copy_table(reader, target, table)
        target.renumber()
        count = int(target.run("SELECT count(*) FROM experiments WHERE deleted_at IS NULL")[0][0])
        if restored_from is not None:
            new, file = {"experiments": count}, os.path.basename(restored_from)
            target.add_audit(
                audit_row(time.time(), ORIGIN.get(), "store.restore", OPERATOR, file, new=new)
            )
        target.count_key_change()
        target.commit()
    except BaseException:
        target.rollback()
        raise
    return count


def _copy_table(reader: Store, target: Store, table: str) -> None:
    columns, order = target.columns(table), ""
    if table == "audit":  # numbered anew, because the empty store may have entries of its own
        columns, order = [name for name in columns if name != "id"], " ORDER BY id"
    into = insertion(table, columns)
    if table == "api_keys":
        into += " ON CONFLICT DO NOTHING"  # for a key that was added to the empty store by hand
    rows = reader.each(f"SELECT {', '.join(columns)} FROM {table}{order}")
    while part := list(islice(rows, _AT_ONCE)):
        target.run_many(into, part)
