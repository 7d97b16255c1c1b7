"""What the service needs from a database: statements, transactions and tables."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, ClassVar, Self, TypeAlias

from decoupled.client import StoreError

from ..experiment.records import ExperimentRow
from .schema import MIGRATIONS, RECORD, Dialect, statements

Values: TypeAlias = Sequence[Any]


class Database(ABC):
    """One connection to a database, used by one thread at a time, always inside a transaction.

    Every error of the database is raised as a `StoreError`, except that for a value which it cannot take. After an error
    the caller rolls back.
    """

    dialect: ClassVar[Dialect]
    system: ClassVar[str]  # the name of the database
    driver_errors: ClassVar[tuple[type[Exception], ...]]  # the errors that the driver raises
    value_errors: ClassVar[tuple[type[Exception], ...]] = ()  # of these, those about a value
    called = "store"  # the argument that error messages name
    where: str  # the path or address that error messages show
    path: str | None = None  # the file, if it is one

    @abstractmethod
    def opening_error(self, error: Exception) -> StoreError:
        """The error for a database that cannot be opened: the reason and the remedy."""

    def running_error(self, error: Exception) -> StoreError:
        """The error for a statement that failed."""
        return StoreError(f"store: {type(error).__name__}: {error}; nothing was acknowledged, try again")

    @contextmanager
    def _opening(self) -> Iterator[None]:
        try:
            with self._guarded():
                yield
        except StoreError as error:
            if isinstance(error.__cause__, self.driver_errors):
                raise self.opening_error(error.__cause__) from error.__cause__
            raise

    @contextmanager
    def _guarded(self) -> Iterator[None]:
        try:
            yield
        except self.value_errors:
            raise
        except self.driver_errors as error:
            raise self.running_error(error) from error

    @abstractmethod
    def run(self, sql: str, values: Values = ()) -> list[Any]:
        """Run one statement and return its rows."""

    @abstractmethod
    def each(self, sql: str, values: Values = ()) -> Iterator[Any]:
        """Run one query and yield its rows as they arrive."""

    @abstractmethod
    def run_many(self, sql: str, many: list[Values]) -> None:
        """Run one statement for each tuple of values."""

    @abstractmethod
    def begin(self) -> None:
        """Open a transaction that may write."""

    @abstractmethod
    def end(self) -> None:
        """Make the transaction durable."""

    @abstractmethod
    def undo(self) -> None:
        """Roll back, in whatever state the transaction is."""

    @abstractmethod
    def close(self) -> None:
        """Close the connection."""

    @abstractmethod
    def integrity(self) -> tuple[bool, str]:
        """Whether the database passes its own check, and the result in words."""

    @abstractmethod
    def durability(self) -> tuple[bool, str]:
        """Whether a commit waits for the disk, by the settings of the database."""

    def clock_offset(self, now: Callable[[], float]) -> float:
        """How many seconds this clock is ahead of the database's."""
        return 0.0

    @abstractmethod
    def columns(self, table: str) -> list[str]:
        """The names of a table's columns."""

    def sizes(self) -> dict[str, int]:
        """What is known of the bytes of the "store", of its "wal", and of what is "free" on its disk."""
        return {}

    @abstractmethod
    def json_at(self, column: str, *names: str) -> str:
        """The expression for the text at a place in a column of JSON; names must be plain."""

    def renumber(self) -> None:  # noqa: B027 - most databases need nothing
        """Number new experiments after those that were copied in."""

    def compact(self) -> None:  # noqa: B027
        """Merge the log into the file, so that one file is left."""

    @abstractmethod
    def has_tables(self) -> bool:
        """Whether the database has the service's tables."""

    @abstractmethod
    def reader(self) -> Self:
        """Another connection, in a read-only transaction that sees the store as it is now."""

    @abstractmethod
    def lock_schema(self) -> None:
        """Keep other processes from migrating until the transaction ends."""

    @abstractmethod
    def lock(self, ids: Sequence[int]) -> list[ExperimentRow]:
        """Lock these experiments, in order, until the transaction ends; return their rows."""

    def commit(self) -> bool:
        """Make the transaction durable; return whether something is known to have been written."""
        self.end()
        return False

    def rollback(self) -> None:
        """Undo what was written."""
        self.undo()

    # The tables

    def migrate(self, now: float) -> bool:
        """Run the migrations that are missing, each in its own transaction; return whether there were no tables.

        An error names the database, since this is the first time that it is written to.
        """
        with self._opening():
            return self._migrate(now)

    def _migrate(self, now: float) -> bool:
        new = False
        while True:
            self.begin()
            self.lock_schema()
            self.run(RECORD.format(**self.dialect._asdict()))
            done = self.version()
            if done > len(MIGRATIONS):
                self.rollback()
                self.check_version()
            if done == len(MIGRATIONS):
                self.commit()
                return new
            for sql in statements(done + 1, self.dialect):
                self.run(sql)
            self.run("INSERT INTO schema_migrations VALUES (?, ?)", (done + 1, now))
            self.commit()
            new = new or done == 0

    def check_version(self) -> None:
        """Raise if the tables are from a later release."""
        if self.version() > len(MIGRATIONS):
            rule = f"has version {self.version()} and this release knows {len(MIGRATIONS)}"
            raise StoreError.of(self.called, self.where, rule, "open it with the release that wrote it")

    def check_tables(self) -> None:
        """Raise if the database does not have the service's tables."""
        if not self.has_tables() or self.version() == 0:
            raise StoreError.of(self.called, self.where, "has no tables of the service", self.creation())

    def creation(self) -> str:
        """The remedy if there is no store."""
        if self.called != "store":
            return "give a file that `decoupled backup` wrote"
        return "correct --store (or DECOUPLED_STORE), or create a store there with `decoupled serve`"

    def version(self) -> int:
        """The number of the last migration that ran."""
        return int(self.run("SELECT coalesce(max(version), 0) FROM schema_migrations")[0][0])
