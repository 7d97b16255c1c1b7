"""The store in PostgreSQL, which replicas can share: a row lock protects each experiment."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import cache
from itertools import count
from typing import Any

import psycopg

from decoupled.client import StoreError

from ...fair_threads import pause
from ...options.kinds import AS_POSTGRES, HIDDEN, shown_store
from ..experiment.records import ExperimentRow
from .schema import PAIRS, POSTGRES, TABLES
from .store import EXPERIMENTS, PairsConnection, Store, Values

# How long a replica that stops in the middle of a transaction can hold up the others. After that its transaction
# is rolled back, and its callers get an error.
PATIENCE = "10s"
_MIGRATING = 0x6465636F  # any number, as long as all releases use the same


@cache
def _translated(sql: str) -> str:
    return sql.replace("?", "%s")


# Words in the error of a failed connection, and the remedy. The first match counts.
_REMEDIES = (
    ("database", "does not exist", "create the database, or correct the address"),
    ("role", "does not exist", "create the role, or correct the user in the address"),
    ("password", "", "correct the user and the password in the address, or set PGPASSWORD"),
    ("pg_hba.conf", "", "allow this user and host in the server's pg_hba.conf"),
    ("permission denied", "", "grant this user the use of the database and its schema"),
    ("too many", "", "close other connections, or raise the server's max_connections"),
    ("", "", "check that the server is running and that the address is right"),
)


class PostgresStore(Store):
    """A store in the database at a postgresql:// address; `create` is whether to create its tables."""

    dialect, system = POSTGRES, "postgresql"
    driver_errors, value_errors = (psycopg.Error, OSError), (psycopg.DataError,)

    def __init__(self, url: str, *, create: bool = True) -> None:
        super().__init__()
        self._url, self.where = url, shown_store(url)
        self._names = count()
        with self._opening():
            self._connect()
            try:
                if not create:
                    self.check_tables()
            except BaseException:
                self.connection.close()
                raise

    def opening_error(self, error: Exception) -> StoreError:
        if self.where == HIDDEN or (
            isinstance(error, psycopg.ProgrammingError) and error.sqlstate is None
        ):
            # The message of libpq may show the password in the address.
            return StoreError.of("store", self.where, "is not a PostgreSQL address", AS_POSTGRES)
        text = " ".join(str(error).split())
        remedy = next(remedy for one, two, remedy in _REMEDIES if one in text and two in text)
        return StoreError.of("store", self.where, f"cannot be opened ({text})", remedy)

    def _connect(self) -> None:
        self.connection = psycopg.connect(self._url, autocommit=True, application_name="decoupled")
        self.connection.prepare_threshold = 1
        self._cursor = self.connection.cursor()
        self._cursor.execute(f"SET idle_in_transaction_session_timeout = '{PATIENCE}'")
        self._cursor.execute(f"SET lock_timeout = '{PATIENCE}'")
        self._cursor.execute("SET synchronous_commit = on")

    def run(self, sql: str, values: Values = ()) -> list[Any]:
        with self._guarded():
            done = self._cursor.execute(_translated(sql), values)
            return done.fetchall() if done.description is not None else []

    def each(self, sql: str, values: Values = ()) -> Iterator[Any]:
        with self._guarded(), self.connection.cursor(f"each{next(self._names)}") as cursor:
            cursor.itersize = 5000
            for row in cursor.execute(_translated(sql), values):
                yield row
                pause()

    def run_many(self, sql: str, many: list[Values]) -> None:
        with self._guarded():
            self._cursor.executemany(_translated(sql), many)

    def begin(self) -> None:
        with self._guarded():
            if self.connection.closed:
                self._connect()
        self.run("BEGIN")

    def undo(self) -> None:
        try:
            self.run("ROLLBACK")
        except StoreError:
            with suppress(psycopg.Error):
                self.connection.close()  # `begin` opens another
            raise

    def lock_schema(self) -> None:
        # Another replica may be migrating for longer than others wait for a row. If it stops, the server ends its
        # transaction after a while, so this wait ends too.
        self.run("SET LOCAL lock_timeout = 0")
        self.run("SELECT pg_advisory_xact_lock(?)", (_MIGRATING,))
        self.run(f"SET LOCAL lock_timeout = '{PATIENCE}'")

    def lock(self, ids: Sequence[int]) -> list[ExperimentRow]:
        sql = f"{EXPERIMENTS} WHERE id = ANY(?) ORDER BY id FOR UPDATE"
        return [ExperimentRow(*row) for row in self.run(sql, (list(ids),))]

    def integrity(self) -> tuple[bool, str]:
        [(checksums,)] = self.run("SHOW data_checksums")
        return True, f"PostgreSQL checks itself; data_checksums is {checksums}"

    def durability(self) -> tuple[bool, str]:
        names = ("fsync", "synchronous_commit", "full_page_writes")
        found = {name: self.run(f"SHOW {name}")[0][0] for name in names}
        return "off" not in found.values(), ", ".join(
            f"{name} {value}" for name, value in found.items()
        )

    def clock_offset(self, now: Callable[[], float]) -> float:
        [(theirs,)] = self.run(
            "SELECT CAST(extract(epoch FROM clock_timestamp()) AS DOUBLE PRECISION)"
        )
        return now() - float(theirs)

    def sizes(self) -> dict[str, int]:
        sums = " + ".join(f"pg_total_relation_size('{table}')" for table in TABLES)
        return {"store": int(self.run(f"SELECT {sums}")[0][0])}

    def has_tables(self) -> bool:
        return bool(self.run("SELECT to_regclass('schema_migrations') IS NOT NULL")[0][0])

    def columns(self, table: str) -> list[str]:
        sql = "SELECT column_name FROM information_schema.columns WHERE table_schema = current_schema() AND table_name = ?"
        return [name for (name,) in self.run(sql, (table,))]

    def json_at(self, column: str, *names: str) -> str:
        path = ",".join(f'"{name}"' for name in names)
        return f"(CAST({column} AS json) #>> '{{{path}}}')"

    def renumber(self) -> None:
        newest = "FROM experiments HAVING max(id) IS NOT NULL"
        self.run(f"SELECT setval(pg_get_serial_sequence('experiments', 'id'), max(id)) {newest}")

    def has_pairs(self) -> bool:
        return bool(self.columns("pairs"))

    def open_pairs(self) -> PairsConnection:
        opened = PostgresStore(self._url)
        opened.begin()
        opened.lock_schema()  # two replicas that create a table at once get an error
        opened.run(PAIRS.format(**POSTGRES._asdict()))
        opened.end()
        return opened

    def lock_pairs(self) -> None:
        self.run("LOCK TABLE pairs IN SHARE ROW EXCLUSIVE MODE")

    def reader(self) -> "PostgresStore":
        reader = PostgresStore(self._url)
        reader.run(
            "SET idle_in_transaction_session_timeout = 0"
        )  # an export may pause between two queries
        reader.run("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
        return reader

    def close(self) -> None:
        with self._guarded():
            self.connection.close()
