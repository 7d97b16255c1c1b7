"""The file of the pairs of answers that await a person's label, beside a store in SQLite."""

import os
from contextlib import suppress
from typing import Any

import apsw

from decoupled.client import StoreError

from .schema import PAIRS, SQLITE
from .store import PairsConnection, Values


class PairsFile(PairsConnection):
    """A SQLite file that no backup has and only its owner can read. What is deleted is overwritten, and no write-ahead log keeps it."""

    def __init__(self, path: str) -> None:
        self._path = path
        make_private(path)
        try:
            self._connection = apsw.Connection(path)
            self._connection.set_busy_timeout(10_000)
            for pragma in (
                ("secure_delete", "on"),
                ("journal_mode", "delete"),
                ("synchronous", "full"),
            ):
                self._connection.pragma(*pragma)
        except (apsw.Error, OSError) as error:
            raise self._failed(error) from error
        self.run(PAIRS.format(**SQLITE._asdict()))

    def _failed(self, error: Exception) -> StoreError:
        rule, remedy = f"cannot be used ({error})", "check the file and its disk"
        return StoreError.of("pairs", self._path, rule, remedy)

    def run(self, sql: str, values: Values = ()) -> list[Any]:
        try:
            return self._connection.execute(sql, values).fetchall()
        except apsw.Error as error:
            raise self._failed(error) from error

    def begin(self) -> None:
        if not os.path.exists(self._path):
            raise self._failed(FileNotFoundError("it was removed while in use"))
        self.run("BEGIN IMMEDIATE")

    def lock_pairs(self) -> None:
        pass  # `begin` has locked the file

    def end(self) -> None:
        self.run("COMMIT")

    def undo(self) -> None:
        if self._connection.in_transaction:
            self.run("ROLLBACK")

    def close(self) -> None:
        self._connection.close()


def make_private(path: str) -> None:
    """Create the file for its owner alone, unless it exists; SQLite gives its companions the same permissions."""
    with suppress(OSError):  # SQLite says what is wrong
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
