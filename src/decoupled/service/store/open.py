"""The store that an address names; what a database needs is imported when it is asked for."""

import os

from ..errors import StoreError
from .store import Store


def open_store(
    url_or_path: str | os.PathLike[str],
    *,
    create: bool = True,
    look: bool = False,
    called: str = "store",
    where: str | None = None,
) -> Store:
    """A SQLite file at a path, or PostgreSQL at an address that begins postgresql://.

    Args:
        url_or_path: where it is.
        create: whether one may be made where there is none.
        look: only look at one that is there; no file of it changes.
        called: what messages call it.
        where: the path that messages name in place of this one.
    """
    text = os.fspath(url_or_path)
    try:
        if is_postgres(text):
            from .postgres import PostgresStore

            return PostgresStore(text, create=create and not look)
        from .sqlite import SqliteStore

        return SqliteStore(text, create=create and not look, look=look, called=called, where=where)
    except ImportError as error:
        extra = "postgres" if is_postgres(text) else "service"
        raise StoreError(
            f"store: {error.name} is not installed; in the repository, pip install -e '.[{extra}]'"
        ) from error


def is_postgres(address: str | os.PathLike[str]) -> bool:
    """Whether an address names a database of PostgreSQL.

    >>> is_postgres("postgresql://db.internal/decoupled"), is_postgres("decisions.db")
    (True, False)
    """
    return os.fspath(address).startswith(("postgresql://", "postgres://"))
