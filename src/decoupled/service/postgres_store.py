"""The store in PostgreSQL, which several replicas may share: one row lock for each experiment."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from itertools import count
from typing import Any

import psycopg

from .database import Values
from .problems import StoreError
from .rows import ExperimentRow
from .schema import POSTGRES
from .store import EXPERIMENTS, Store

# A replica that stops in the middle of a transaction, paused or cut off, must not hold the others up for
# longer than this; its own transaction is lost, and it says so to those who wait for it.
PATIENCE = "10s"
_MIGRATING = 0x6465636F  # any number will do, as long as it is always the same


@cache
def _translated(sql: str) -> str:
    return sql.replace("?", "%s")


@contextmanager
def _as_store_errors() -> Iterator[None]:
    try:
        yield
    except (psycopg.Error, OSError) as error:
        kind = type(error).__name__
        raise StoreError(f"store: {kind}: {error}; nothing was acknowledged, try again") from error


class PostgresStore(Store):
    """A store in the database at a postgresql:// address."""

    dialect = POSTGRES

    def __init__(self, url: str) -> None:
        super().__init__()
        self._url = url
        self._names = count()
        with _as_store_errors():
            self._connect()

    def _connect(self) -> None:
        self.connection = psycopg.connect(self._url, autocommit=True, application_name="decoupled")
        self.connection.prepare_threshold = 1
        self._cursor = self.connection.cursor()
        self._cursor.execute(f"SET idle_in_transaction_session_timeout = '{PATIENCE}'")
        self._cursor.execute(f"SET lock_timeout = '{PATIENCE}'")
        self._cursor.execute("SET synchronous_commit = on")

    def run(self, sql: str, values: Values = ()) -> list[Any]:
        with _as_store_errors():
            done = self._cursor.execute(_translated(sql), values)
            return done.fetchall() if done.description is not None else []

    def each(self, sql: str, values: Values = ()) -> Iterator[Any]:
        with _as_store_errors(), self.connection.cursor(f"each{next(self._names)}") as cursor:
            cursor.itersize = 5000
            yield from cursor.execute(_translated(sql), values)

    def run_many(self, sql: str, many: list[Values]) -> None:
        with _as_store_errors():
            self._cursor.executemany(_translated(sql), many)

    def begin(self) -> None:
        with _as_store_errors():
            if self.connection.closed:
                self._connect()
        self.run("BEGIN")

    def end(self) -> None:
        self.run("COMMIT")

    def undo(self) -> None:
        try:
            self.run("ROLLBACK")
        except StoreError:
            with suppress(psycopg.Error):
                self.connection.close()  # `begin` makes another
            raise

    def hold_schema(self) -> None:
        self.run("SELECT pg_advisory_xact_lock(?)", (_MIGRATING,))

    def lock(self, ids: Sequence[int]) -> list[ExperimentRow]:
        sql = f"{EXPERIMENTS} WHERE id = ANY(?) ORDER BY id FOR UPDATE"
        return [ExperimentRow(*row) for row in self.run(sql, (list(ids),))]

    def integrity(self) -> tuple[bool, str]:
        [(checksums,)] = self.run("SHOW data_checksums")
        return True, f"PostgreSQL keeps its own; its checksums are {checksums}"

    def durability(self) -> tuple[bool, str]:
        names = ("fsync", "synchronous_commit", "full_page_writes")
        found = {name: self.run(f"SHOW {name}")[0][0] for name in names}
        good = (
            found["fsync"] == "on"
            and found["synchronous_commit"] != "off"
            and found["full_page_writes"] == "on"
        )
        return good, ", ".join(f"{name} {value}" for name, value in found.items())

    def clock_apart(self, now: Callable[[], float]) -> float:
        [(theirs,)] = self.run("SELECT CAST(extract(epoch FROM clock_timestamp()) AS DOUBLE PRECISION)")
        return now() - float(theirs)

    def columns(self, table: str) -> list[str]:
        sql = "SELECT column_name FROM information_schema.columns WHERE table_schema = current_schema() AND table_name = ?"
        return [name for (name,) in self.run(sql, (table,))]

    def renumber(self) -> None:
        self.run(
            "SELECT setval(pg_get_serial_sequence('experiments', 'id'), max(id)) "
            "FROM experiments HAVING max(id) IS NOT NULL"
        )

    def reader(self) -> "PostgresStore":
        reader = PostgresStore(self._url)
        reader.run("SET idle_in_transaction_session_timeout = 0")  # an export may think between two queries
        reader.run("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
        return reader

    def close(self) -> None:
        with _as_store_errors():
            self.connection.close()
