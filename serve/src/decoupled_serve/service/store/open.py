"""Open the store at an address. The driver of a database is imported when it is needed."""

import os
import time
from contextlib import closing

from decoupled.base import needed_for
from decoupled.client import StoreError

from ...options.kinds import AS_POSTGRES, HIDDEN, shown_store
from ...options.kinds import Location as Location
from ...options.kinds import is_postgres as is_postgres
from .store import Store


def open_store(
    url_or_path: Location,
    *,
    create: bool = True,
    read_only: bool = False,
    called: str = "store",
    where: str | None = None,
) -> Store:
    """Open a SQLite file at a path, or PostgreSQL at an address that begins with postgresql://.

    If it is `read_only`, none of its files changes. Errors name the argument `called`, and `where` if it is another path.
    """
    text = os.fspath(url_or_path)
    if not is_postgres(text) and shown_store(text) == HIDDEN:
        raise StoreError.of(
            called, HIDDEN, "is neither a path nor a PostgreSQL address", AS_POSTGRES
        )
    create = create and not read_only
    with needed_for("store"):
        if is_postgres(text):
            from .postgres import PostgresStore

            return PostgresStore(text, create=create)
        from .sqlite import SqliteStore

        return SqliteStore(text, create=create, read_only=read_only, called=called, where=where)


def migrated(url_or_path: Location) -> tuple[str, int, int]:
    """Create the tables of a store or update them; return its address, and the version before and after.

    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "store.db"
    >>> _, before, after = migrated(path)
    >>> before, migrated(path)[1:] == (after, after)
    (0, True)
    """
    with closing(open_store(url_or_path)) as store:
        before = _version(store)
        store.migrate(time.time())
        return store.where, before, _version(store)


def _version(store: Store) -> int:
    store.begin()
    try:
        return store.version() if store.has_tables() else 0
    finally:
        store.rollback()
