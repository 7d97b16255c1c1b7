"""Feedback: checked, kept in an outbox until it is delivered, and sent in batches."""

import hashlib
import json
import os
import threading
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeAlias

from ..base.files import flush_folder, remove_abandoned, write_atomically
from ..base.validation import as_float, one_of
from ..errors import Message, ParameterError
from ..learner.losses import PREFERENCES
from .errors import (
    Compiling,
    ServiceError,
    StoreError,
    TooMany,
    Undelivered,
    Unreachable,
    error_from,
    identified,
    wrong_feedback,
)
from .exchange import ApiRequest, CompileWait, Endpoint, Exchange, send_for_json
from .results import RemoteDecision


class Outbox:
    """Feedback that waits to be sent, oldest first.

    Args:
        path: the folder that keeps it, a file for each decision, so that it survives the program.
            Several programs may use one folder: each sends what any of them left there. None keeps
            it in memory.

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
        dated_items = []
        for file in self.path.glob(_FILES):
            with suppress(FileNotFoundError):  # another program has delivered it
                dated_items.append((file.stat().st_mtime_ns, file.name, _read(file)))
        return [item for _, _, item in sorted(dated_items)]

    def add(self, item: Undelivered) -> None:
        """Keep an item; with a folder, it is flushed to disk before this returns.

        Two different losses for one decision cannot both be right: the second raises, and the first
        is kept.

        Args:
            item: the feedback.

        Raises:
            ParameterError: if the outbox has other feedback for the same decision.
        """
        with self._lock:
            if self.path is None:
                stored = self._items.setdefault(item.decision, item)
            else:
                stored = _store(self.path, item)
        if stored != item:
            rule = "the outbox has another loss for its explored arm; send only one"
            raise ParameterError(f"decision {item.decision!r}: {rule}")

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


def _store(folder: Path, item: Undelivered) -> Undelivered:
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
    """The item in a file of an outbox."""
    try:
        return Undelivered(**json.loads(file.read_bytes()))
    except (ValueError, TypeError) as error:
        rule = f"is damaged ({error}); fix the file, or move it"
        raise ParameterError(f"outbox {str(file)!r}: {rule}") from None


BATCH = 500  # the most items in one request
Outcome: TypeAlias = RemoteDecision | ServiceError
# Errors after which to send feedback again.
NOT_DELIVERED = (Unreachable, StoreError, Compiling, TooMany)


def checked_item(item: Undelivered) -> Undelivered:
    """Checked feedback, as plain numbers: exactly one of loss, reward and preference; or what a
    judge said, and at most one of them.
    """
    has_loss = item.loss is not None
    has_reward = item.reward is not None
    has_preference = item.preference is not None
    wrong = wrong_feedback(has_loss=has_loss, has_reward=has_reward, has_preference=has_preference)
    if wrong is not None and (item.judged is None or has_loss or has_reward):
        rule, remedy = wrong
        raise ParameterError(Message(f"feedback: {rule}", remedy))
    if item.preference is not None:
        one_of("preference", item.preference, PREFERENCES)
    names = ["judged", "loss", "reward", "position", "cost"]
    if isinstance(item.judged, str):
        one_of(names.pop(0), item.judged, PREFERENCES)
    numbers: dict[str, Any] = {name: _number(name, getattr(item, name)) for name in names}
    return item._replace(**numbers)


def _number(name: str, value: object) -> float | None:
    """A loss or a reward as a JSON number, from a number or truth value of Python or NumPy."""
    if value is None:
        return None
    kind = getattr(getattr(value, "dtype", None), "kind", None)
    number = float(bool(value)) if isinstance(value, bool) or kind == "b" else as_float(value)
    if number is None:
        rule = f"must be a number, True or False, not {type(value).__name__}"
        if isinstance(value, (int, float)):
            rule = "must be a finite number"
        raise ParameterError.of(name, value, rule, f"give the {name} of the explored arm")
    return number


def deliver(items: Sequence[Undelivered], endpoint: Endpoint) -> Exchange[list[Outcome]]:
    """Send feedback in batches, and send again what has to wait until a policy is compiled."""
    results = yield from _send_batches(items, endpoint)
    compile_wait = CompileWait(endpoint)
    while not compile_wait.over():
        waiting = [place for place, result in enumerate(results) if isinstance(result, Compiling)]
        if not waiting:
            break
        yield compile_wait.pause(1.0, str(results[waiting[0]]))
        resent = yield from _send_batches([items[place] for place in waiting], endpoint)
        for place, result in zip(waiting, resent, strict=True):
            results[place] = result
    return results


def _send_batches(items: Sequence[Undelivered], endpoint: Endpoint) -> Exchange[list[Outcome]]:
    """Send feedback in batches, in their order; what follows a batch that failed is not sent."""
    results: list[Outcome] = []
    for start in range(0, len(items), BATCH):
        body = {"items": [item.to_json() for item in items[start : start + BATCH]]}
        try:
            answer = yield from send_for_json(ApiRequest("POST", "/v1/feedback", body), endpoint)
        except NOT_DELIVERED as error:
            return results + [error] * (len(items) - start)
        results += [_outcome(content) for content in answer["results"]]
    return results


def _outcome(content: dict[str, Any]) -> Outcome:
    """What became of one item: the decision, or the error."""
    if content["status"] == 200:
        return RemoteDecision.of(content["decision"])
    problem = content["problem"]
    error = error_from(content["status"], problem["detail"], problem["title"])
    return identified(error, problem.get("request_id"))
