"""Backup and restore. A backup is a SQLite file, whatever store it is taken from."""

import os
from pathlib import Path

from ..sealed import replacing
from .problems import Conflict, StoreError
from .schema import TABLES
from .store import Store
from .stores import open_store

_AT_ONCE = 5_000


def back_up(store: Store, path: str | os.PathLike[str]) -> int:
    """Copy a store as it is now to a file, whole or not at all; give the number of experiments."""
    reader = store.reader()
    try:
        with replacing(path) as temporary:
            target = open_store(temporary)
            try:
                count = copy(reader, target)
                target.compact()
            finally:
                target.close()
            return count
    except OSError as error:
        raise StoreError(f"backup: {error}; choose another place") from error
    finally:
        reader.close()


def restore(path: str | os.PathLike[str], url_or_path: str | os.PathLike[str]) -> int:
    """Copy a backup into a store that is empty or not there; give the number of experiments.

    A store is a copy in every bit that matters: it goes on as the first would have, from the moment of
    the backup. What was acknowledged after that moment is not in it.
    """
    if not Path(path).is_file():
        raise StoreError(f"backup {os.fspath(path)!r}: is not there; give the file that `backup` wrote")
    source, target = open_store(path), open_store(url_or_path)
    try:
        source.migrate(0.0)
        reader = source.reader()
        try:
            return copy(reader, target)
        finally:
            reader.close()
    finally:
        source.close()
        target.close()


def copy(reader: Store, target: Store) -> int:
    """Copy every table into a store that has no experiments yet."""
    target.migrate(0.0)
    target.begin()
    try:
        if target.run("SELECT 1 FROM experiments LIMIT 1"):
            raise Conflict("store: has experiments already; restore into an empty one")
        count = 0
        for table in TABLES:
            copied = _copy_table(reader, target, table)
            count = count or copied
        target.renumber()
        target.commit()
    except BaseException:
        target.rollback()
        raise
    return count


def _copy_table(reader: Store, target: Store, table: str) -> int:
    columns = target.columns(table)
    into = f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({', '.join('?' * len(columns))})"
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
