"""The store that an address names; what a database needs is imported when it is asked for."""

import os

from .problems import StoreError
from .store import Store


def open_store(url_or_path: str | os.PathLike[str]) -> Store:
    """A SQLite file at a path, or PostgreSQL at an address that begins postgresql://."""
    text = os.fspath(url_or_path)
    postgres = text.startswith(("postgresql://", "postgres://"))
    try:
        if postgres:
            from .postgres_store import PostgresStore

            return PostgresStore(text)
        from .sqlite_store import SqliteStore

        return SqliteStore(text)
    except ImportError as error:
        extra = "postgres" if postgres else "service"
        raise StoreError(
            f"store: {error.name} is not installed; in the repository, pip install -e '.[{extra}]'"
        ) from error
