"""Feedback that could not be delivered yet, in memory or in a folder."""

import hashlib
import json
import os
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from ..base.files import flush_folder, remove_abandoned, write_atomically
from ..decision import Arm
from ..errors import ParameterError
from ..learner.losses import Preference


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
        path: the folder that keeps it, a file for each decision, so that it survives the program. Several programs may use
            one folder: each sends what any of them left there. None keeps it in memory.

    >>> outbox = Outbox()
    >>> outbox.add(Undelivered("1f2e-7", loss=0.25))
    >>> len(outbox), outbox.items()[0].loss
    (1, 0.25)
    """

    def __init__(self, path: str | os.PathLike[str] | None = None) -> None:
        self.path = None if path is None else Path(path)
        self._lock = threading.Lock()
        self._items: dict[str, Undelivered] = {}  # without a folder
        if self.path is not None:
            if self.path.exists() and not self.path.is_dir():
                rule = "is a file, and an outbox is a folder"
                raise ParameterError(f"outbox {str(self.path)!r}: {rule}; choose another path")
            remove_abandoned(self.path)
            self.items()  # to notice what is damaged

    def __len__(self) -> int:
        return len(self._items) if self.path is None else sum(1 for _ in self.path.glob(_FILES))

    def items(self) -> list[Undelivered]:
        """All items, oldest first."""
        if self.path is None:
            with self._lock:
                return list(self._items.values())
        found = []
        for file in self.path.glob(_FILES):
            with suppress(FileNotFoundError):  # another program has delivered it
                found.append((file.stat().st_mtime_ns, file.name, _read(file)))
        return [item for *_, item in sorted(found)]

    def add(self, item: Undelivered) -> None:
        """Keep an item. If the outbox has a folder, the item is flushed to disk before this returns.

        Two different losses for one decision cannot both be right: the second raises, and the first is kept.

        Args:
            item: the feedback.

        Raises:
            ParameterError: if the outbox has other feedback for the same decision.
        """
        with self._lock:
            kept = (
                self._items.setdefault(item.decision, item) if self.path is None else _kept(self.path, item)
            )
        if kept != item:
            raise ParameterError(
                f"decision {item.decision!r}: the outbox has another loss for its explored arm; send only one"
            )

    def remove(self, decisions: list[str]) -> None:
        """Remove the items of these decisions.

        Args:
            decisions: the ids of the decisions.
        """
        with self._lock:
            for decision in decisions:
                self._items.pop(decision, None)
                if self.path is not None:
                    _file(self.path, decision).unlink(missing_ok=True)


_FILES = "*.json"


def _file(folder: Path, decision: str) -> Path:
    """The file of a decision. Its id may be any text, and a name may not."""
    return folder / f"{hashlib.sha256(decision.encode(errors='surrogatepass')).hexdigest()}.json"


def _kept(folder: Path, item: Undelivered) -> Undelivered:
    """Write an item, unless there is one of the same decision; return what is there."""
    folder.mkdir(exist_ok=True)
    file = _file(folder, item.decision)
    while True:
        try:
            write_atomically(file, json.dumps(item.to_json()), overwrite=False, tidy=False)
            flush_folder(folder)
            return item
        except FileExistsError:
            with suppress(FileNotFoundError):  # it is delivered by now
                return _read(file)


def _read(file: Path) -> Undelivered:
    try:
        return Undelivered(**json.loads(file.read_bytes()))
    except (ValueError, TypeError) as error:
        raise ParameterError(
            f"outbox {str(file)!r}: is damaged ({error}); fix the file, or move it"
        ) from None
