"""An experiment as text, and back, so that a restart need not replay the whole log."""

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import Any

from ...base.signed_json import seal, unseal
from ...learner.learner import Learner
from ...learner.meter import Meter
from ..errors import ReplayError
from .live import REMEDY, Running, Tallies
from .rows import Decided, ExperimentRow

SNAPSHOT_FORMAT = "decoupled-experiment"
SNAPSHOT_VERSION = 1


def snapshot(running: Running) -> str:
    """The whole experiment as text, for `restore`. Pending decisions are in the order of the log."""
    content: dict[str, Any] = {
        "head": running.head,
        "version": running.version,
        "last_at": running.last_at,
        "archived_at": running.archived_at,
        "names": running.names,
        "retired": running.retired,
        "tallies": asdict(running.tallies),
        "pending": list(running.pending),
        "learner": running.learner.to_json(),
    }
    if running.meter is not None:
        content["meter"] = running.meter.to_dict()
    if running.replayed:
        content["replayed"] = running.replayed
    if running.watched_since is not None:
        content["watched_since"] = running.watched_since
    return seal(SNAPSHOT_FORMAT, SNAPSHOT_VERSION, content)


def restore(
    row: ExperimentRow, text: str, rows_of: Callable[[Sequence[int]], Sequence[Decided]]
) -> Running:
    """The experiment that `snapshot` wrote; `rows_of` finds the rows of its pending decisions.

    The snapshot of an earlier version has no confidence sequences: then its learner is not watched.
    """
    content = unseal(text, SNAPSHOT_FORMAT, SNAPSHOT_VERSION, "the service")
    running = Running(row)
    running.head = running.saved = content["head"]
    running.version, running.last_at = content["version"], content["last_at"]
    running.saved_at = running.last_at
    running.archived_at = content["archived_at"]
    running.names, running.retired = content["names"], content["retired"]
    gone = set(running.retired)
    running.places = {name: place for place, name in enumerate(running.names) if place not in gone}
    running.tallies = Tallies.from_dict(content["tallies"])
    running.learner = Learner.from_json(content["learner"])
    running.watched_since = content.get("watched_since")
    running.replayed = content.get("replayed", {})
    running.meter = Meter.from_dict(content["meter"]) if "meter" in content else None
    pending, rows = running.learner.pending, rows_of(content["pending"])
    if [each.seq for each in rows] != content["pending"] or len(rows) != len(pending):
        raise ReplayError(f"experiment {row.name!r}: pending decisions are missing from the log; {REMEDY}")
    running.pending = {each.seq: (each, made) for each, made in zip(rows, pending, strict=True)}
    running.waiting = deque(running.pending)
    return running
