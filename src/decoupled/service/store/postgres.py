"""The store in PostgreSQL, which several replicas may share: one row lock for each experiment."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from itertools import count
from typing import Any

import psycopg
from psycopg import conninfo

from ...errors import invalid_value
from ..errors import StoreError
from ..experiment.rows import ExperimentRow
from .database import Values
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


# What the server or libpq says of a connection that fails, and what to do; in the order in which they are tried.
_REMEDIES = (
    ("database", "does not exist", "create the database, or correct the address"),
    ("role", "does not exist", "create the role, or correct the user in the address"),
    ("password", "", "correct the user and the password in the address, or set PGPASSWORD"),
    ("pg_hba.conf", "", "let this user and host in, in the server's pg_hba.conf"),
    ("permission denied", "", "give the user of the address the right to use the database and its schema"),
    ("too many", "", "end other connections, or raise max_connections of the server"),
)


def shown_address(url: str) -> str:
    """An address without its password.

    >>> shown_address("postgresql://shop:secret@db.internal:5433/decisions?connect_timeout=3")
    'postgresql://shop@db.internal:5433/decisions'
    """
    try:
        parts = conninfo.conninfo_to_dict(url)
    except psycopg.Error:
        return "postgresql://..."
    user = f"{parts['user']}@" if parts.get("user") else ""
    port = f":{parts['port']}" if parts.get("port") else ""
    return f"postgresql://{user}{parts.get('host', '')}{port}/{parts.get('dbname', '')}"


def _refusal(url: str, error: Exception) -> StoreError:
    if isinstance(error, psycopg.ProgrammingError) and error.sqlstate is None:
        # What libpq says of an address that it cannot parse may show the password in it.
        rule, remedy = "is not a PostgreSQL address", "write postgresql://USER@HOST:PORT/DATABASE"
        return StoreError(invalid_value("store", shown_address(url), rule, remedy))
    text = " ".join(str(error).split())
    remedy = next(
        (remedy for one, two, remedy in _REMEDIES if one in text and two in text),
        "check that the server runs and that the address is right",
    )
    return StoreError(invalid_value("store", shown_address(url), f"cannot be opened ({text})", remedy))


class PostgresStore(Store):
    """A store in the database at a postgresql:// address; `create`: whether its tables may be made."""

    dialect = POSTGRES

    def __init__(self, url: str, *, create: bool = True) -> None:
        super().__init__()
        self._url, self.where = url, shown_address(url)
        self._names = count()
        with self._opening():
            self._connect()
            if not create:
                self._check_tables()

    @contextmanager
    def _opening(self) -> Iterator[None]:
        """Errors say which database it is, and what to do."""
        try:
            yield
        except (psycopg.Error, OSError) as error:
            raise _refusal(self._url, error) from error
        except StoreError as error:
            if isinstance(error.__cause__, psycopg.Error | OSError):
                raise _refusal(self._url, error.__cause__) from error.__cause__
            raise

    def _check_tables(self) -> None:
        try:
            self.check_tables()
        except BaseException:
            self.connection.close()
            raise

    def migrate(self, now: float) -> bool:
        with self._opening():
            return super().migrate(now)

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

    def has_tables(self) -> bool:
        return bool(self.run("SELECT to_regclass('schema_migrations') IS NOT NULL")[0][0])

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
