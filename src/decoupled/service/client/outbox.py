"""Feedback that could not be delivered yet, in memory or in a file."""

import json
import os
import threading
from pathlib import Path
from typing import Any, NamedTuple

from ...decision import Arm
from ...errors import ParameterError
from ...learner.preferences import Preference


class Undelivered(NamedTuple):
    """Feedback to deliver: the loss or the reward of the arm that a decision explored, or a preference.

    Attributes:
        decision: the id of the decision.
        loss: the loss of the explored arm.
        reward: its reward, in place of the loss.
        arm: the arm whose loss it is, as a safeguard; None names none.
        preference: which of the two arms did better, in place of a number.

    >>> Undelivered("1f2e-7", loss=0.25).to_json()
    {'decision': '1f2e-7', 'loss': 0.25}
    """

    decision: str
    loss: float | None = None
    reward: float | None = None
    arm: Arm | None = None
    preference: Preference | None = None

    def to_json(self) -> dict[str, Any]:
        """The item as the service takes it in a batch."""
        return {name: value for name, value in self._asdict().items() if value is not None}


class Outbox:
    """Feedback that waits to be sent, oldest first.

    Args:
        path: the file that keeps it, so that it survives the program; None keeps it in memory.

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
            self._items = {item.decision: item for item in _read(self.path)}
            self._rewrite()

    def __len__(self) -> int:
        return len(self._items)

    def items(self) -> list[Undelivered]:
        """All items, oldest first."""
        with self._lock:
            return list(self._items.values())

    def add(self, item: Undelivered) -> None:
        """Keep an item. If the outbox has a file, the item is flushed to disk before this returns.

        Two different losses for one decision cannot both be right: the second raises, and the first is kept.

        Args:
            item: the feedback.

        Raises:
            ParameterError: if the outbox has other feedback for the same decision.
        """
        with self._lock:
            waiting = self._items.get(item.decision)
            if waiting == item:
                return
            if waiting is not None:
                raise ParameterError(
                    f"decision {item.decision!r}: the outbox has another loss for its explored arm; send only one"
                )
            if self.path is not None:
                _write(self.path, [item], "ab")
            self._items[item.decision] = item

    def remove(self, decisions: list[str]) -> None:
        """Remove the items of these decisions.

        Args:
            decisions: the ids of the decisions.
        """
        with self._lock:
            for decision in decisions:
                self._items.pop(decision, None)
            self._rewrite()

    def _rewrite(self) -> None:
        if self.path is not None:
            new = self.path.with_name(self.path.name + ".new")
            _write(new, list(self._items.values()), "wb")
            os.replace(new, self.path)


_START = b'{"decision": "'  # how every line begins


def _write(path: Path, items: list[Undelivered], mode: str) -> None:
    with open(path, mode) as file:
        file.writelines(json.dumps(item.to_json()).encode() + b"\n" for item in items)
        file.flush()
        os.fsync(file.fileno())


def _read(path: Path) -> list[Undelivered]:
    *lines, last = path.read_bytes().split(b"\n")
    # An incomplete last line was being written when the program ended, before `add` returned.
    if not last.startswith(_START[: len(last)]):
        raise ParameterError(f"outbox {str(path)!r}: is another kind of file; choose another path")
    try:
        return [Undelivered(**json.loads(line)) for line in lines]
    except (ValueError, TypeError) as error:
        raise ParameterError(
            f"outbox {str(path)!r}: is damaged ({error}); fix the line, or move the file"
        ) from None
