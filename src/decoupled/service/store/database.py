"""What the service needs of a database: statements, transactions and tables, whatever it is."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from typing import Any, ClassVar, Self, TypeAlias

from ...errors import invalid_value
from ..errors import StoreError
from ..experiment.rows import ExperimentRow
from .schema import MIGRATIONS, RECORD, Dialect, statements

Values: TypeAlias = Sequence[Any]


class Database(ABC):
    """One connection to a database, used by one thread at a time, always inside a transaction.

    After an error the caller rolls back; whatever the database raises comes out as a `StoreError`.
    """

    dialect: ClassVar[Dialect]
    called = "store"  # the argument that named this database
    where: str  # its path or address, as messages show it
    path: str | None = None  # its file, where it is one

    @abstractmethod
    def run(self, sql: str, values: Values = ()) -> list[Any]:
        """Run one statement and return its rows."""

    @abstractmethod
    def each(self, sql: str, values: Values = ()) -> Iterator[Any]:
        """Run one query and return its rows as they come."""

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
        """Roll back, whatever state the transaction is in."""

    @abstractmethod
    def close(self) -> None:
        """Let go of the database."""

    @abstractmethod
    def integrity(self) -> tuple[bool, str]:
        """Whether the database finds itself whole, and what it says."""

    @abstractmethod
    def durability(self) -> tuple[bool, str]:
        """Whether a commit waits for the disk, and how that is known. Not inside a transaction."""

    def clock_apart(self, now: Callable[[], float]) -> float:
        """By how many seconds this clock is ahead of the database's."""
        return 0.0

    @abstractmethod
    def columns(self, table: str) -> list[str]:
        """The names of a table's columns."""

    def renumber(self) -> None:  # noqa: B027 - most databases need nothing
        """Have new experiments numbered after those that were copied in."""

    def compact(self) -> None:  # noqa: B027
        """Leave one file and nothing beside it."""

    @abstractmethod
    def has_tables(self) -> bool:
        """Whether the service has been here."""

    @abstractmethod
    def reader(self) -> Self:
        """Another connection, inside a transaction that sees the store as it is now and writes nothing."""

    @abstractmethod
    def hold_schema(self) -> None:
        """Let nobody else migrate until the transaction ends."""

    @abstractmethod
    def lock(self, ids: Sequence[int]) -> list[ExperimentRow]:
        """Hold these experiments until the transaction ends, taken in order; give them as they stand."""

    def commit(self) -> bool:
        """Make the transaction durable; whether something is known to have been written."""
        self.end()
        return False

    def rollback(self) -> None:
        """Undo what was written."""
        self.undo()

    # The tables

    def migrate(self, now: float) -> bool:
        """Bring the tables to this release's form, one migration in one transaction after another.

        Returns:
            Whether there were none before.
        """
        new = False
        while True:
            self.begin()
            self.hold_schema()
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
        """Refuse tables of a later release."""
        if self.version() > len(MIGRATIONS):
            rule = f"is of version {self.version()} and this release knows {len(MIGRATIONS)}"
            raise StoreError(
                invalid_value(self.called, self.where, rule, "open it with the release that wrote it")
            )

    def check_tables(self) -> None:
        """Refuse a database that the service has not been to."""
        if not self.has_tables() or self.version() == 0:
            raise StoreError(
                invalid_value(self.called, self.where, "holds no tables of the service", self.creation())
            )

    def creation(self) -> str:
        """What to do where no store is found."""
        if self.called != "store":
            return "give the file that `decoupled backup` wrote"
        return "correct --store (or DECOUPLED_STORE), or create a store there with `decoupled serve`"

    def version(self) -> int:
        """The last migration that ran."""
        return int(self.run("SELECT coalesce(max(version), 0) FROM schema_migrations")[0][0])
