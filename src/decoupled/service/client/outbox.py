"""Feedback that could not be delivered yet, in memory or in a file."""

import json
import os
import threading
from pathlib import Path
from typing import Any, NamedTuple

from ...decision import Arm
from ...errors import ParameterError


class Undelivered(NamedTuple):
    """The loss or reward of a decision's explored arm, on its way."""

    decision: str
    loss: float | None = None
    reward: float | None = None
    arm: Arm | None = None

    def to_json(self) -> dict[str, Any]:
        """As the service takes it in a batch."""
        return {name: value for name, value in self._asdict().items() if value is not None}


class Outbox:
    """What waits to be sent, oldest first. With a path it survives the program: each line is flushed to disk.

    >>> outbox = Outbox()
    >>> outbox.add(Undelivered("1f2e-7", loss=0.25))
    >>> len(outbox), outbox.items()[0].loss
    (1, 0.25)
    """

    def __init__(self, path: str | os.PathLike[str] | None = None) -> None:
        self.path = None if path is None else Path(path)
        self._lock = threading.Lock()
        self._items: dict[str, Undelivered] = {}
        if self.path is not None and self.path.exists():
            for item in _read(self.path):
                self._items[item.decision] = item
            self._rewrite()

    def __len__(self) -> int:
        return len(self._items)

    def items(self) -> list[Undelivered]:
        """All that waits, oldest first."""
        with self._lock:
            return list(self._items.values())

    def add(self, item: Undelivered) -> None:
        """Keep an item; when this returns it is as safe as the outbox can make it.

        Two losses for one decision cannot both be true: the second raises, and the first stays.
        """
        with self._lock:
            waiting = self._items.get(item.decision)
            if waiting == item:
                return
            if waiting is not None:
                raise ParameterError(
                    f"decision {item.decision!r}: another loss of its explored arm waits in the outbox; send one only"
                )
            if self.path is not None:
                with self.path.open("ab") as file:
                    file.write(_line(item))
                    file.flush()
                    os.fsync(file.fileno())
            self._items[item.decision] = item

    def remove(self, decisions: list[str]) -> None:
        """Drop what was delivered or refused."""
        with self._lock:
            for decision in decisions:
                self._items.pop(decision, None)
            self._rewrite()

    def _rewrite(self) -> None:
        if self.path is None:
            return
        fresh = self.path.with_name(self.path.name + ".new")
        with fresh.open("wb") as file:
            file.writelines(_line(item) for item in self._items.values())
            file.flush()
            os.fsync(file.fileno())
        os.replace(fresh, self.path)


_START = b'{"decision": "'  # how every line begins


def _line(item: Undelivered) -> bytes:
    return json.dumps(item.to_json()).encode() + b"\n"


def _read(path: Path) -> list[Undelivered]:
    *lines, last = path.read_bytes().split(b"\n")
    # What follows the last line break was being written when the program died: `add` had not returned.
    if not last.startswith(_START[: len(last)]):
        raise ParameterError(f"outbox {str(path)!r}: is another kind of file; choose another path")
    try:
        return [Undelivered(**json.loads(line)) for line in lines]
    except (ValueError, TypeError) as error:
        raise ParameterError(
            f"outbox {str(path)!r}: is damaged ({error}); fix the line, or move the file"
        ) from None
