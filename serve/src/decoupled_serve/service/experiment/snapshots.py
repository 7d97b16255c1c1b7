"""An experiment as text, and back, so that a restart need not replay the whole log."""

import hashlib
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from decoupled.base import pack_ints, seal, unpack_ints, unseal
from decoupled.client import Invalid, ReplayError
from decoupled.errors import DecoupledError, UnsupportedError
from decoupled.inference import Sequences
from decoupled.learner import (
    Labels,
    Learner,
    Meter,
    Saved,
    as_text,
    described,
    from_columns,
    to_columns,
    without_pending,
)

from .live import REMEDY, UNLIMITED, LiveExperiment, Tallies, places_of
from .records import Decided, ExperimentRow, Judgement

SNAPSHOT_FORMAT = "decoupled-experiment"
SNAPSHOT_VERSION = 1


def snapshot(running: LiveExperiment) -> str:
    """The whole experiment as text, for `restore`. Pending decisions are in the order of the log."""
    return prepared(running)()


def prepared(running: LiveExperiment) -> Callable[[], str]:
    """A function that makes the snapshot of an experiment as it is now, in any thread and at any time."""
    content: dict[str, Any] = {
        "head": running.head,
        "version": running.version,
        "last_at": running.last_at,
        "archived_at": running.archived_at,
        "names": running.names,
        "retired": running.retired,
    }
    waiting = list(running.pending)
    learner, columns = to_columns(running.learner)
    tallies = running.tallies.copied()
    if running.meter is not None:
        content["meter"] = running.meter.to_dict()
    if running.replayed:
        content["replayed"] = running.replayed
    if running.judged:
        content["judged"] = list(running.judged.values())
    if running.watched_since is not None:
        content["watched_since"] = running.watched_since

    def text() -> str:
        content["waiting"] = pack_ints(np.array(waiting, np.int64))
        content["columns"] = columns()
        whole = {**content, "tallies": tallies.to_dict(), "learner": as_text(learner)}
        return seal(SNAPSHOT_FORMAT, SNAPSHOT_VERSION, whole)

    return text


def restore(
    row: ExperimentRow, text: str, rows_of: Callable[[Sequence[int]], Sequence[Decided]]
) -> LiveExperiment:
    """The experiment that `snapshot` wrote; `rows_of` finds the rows of its pending decisions."""
    content = unseal(text, SNAPSHOT_FORMAT, SNAPSHOT_VERSION, "the service")
    running = LiveExperiment(row)
    running.head = running.saved = content["head"]
    running.version, running.last_at = content["version"], content["last_at"]
    running.saved_at = running.last_at
    running.archived_at = content["archived_at"]
    running.names, running.retired = content["names"], content["retired"]
    running.places = places_of(running.names, running.retired)
    running.tallies = Tallies.from_dict(content["tallies"])
    seqs = unpack_ints(content["waiting"]).tolist()
    rows = rows_of(seqs)
    if [each.seq for each in rows] != seqs:
        raise ReplayError(
            f"experiment {row.name!r}: pending decisions are missing from the log; {REMEDY}"
        )
    running.learner = _learner(running, content, rows)
    running.watched_since = content.get("watched_since")
    running.replayed = content.get("replayed", {})
    running.meter = Meter.from_dict(content["meter"]) if "meter" in content else None
    pending = running.learner.pending
    if len(rows) != len(pending):
        raise ReplayError(f"experiment {row.name!r}: its snapshot and its log disagree; {REMEDY}")
    running.pending = {each.seq: (each, made) for each, made in zip(rows, pending, strict=True)}
    running.waiting = deque(running.pending)
    running.awaited = deque(running.pending)
    running.judged = {each[1]: Judgement(*each) for each in content.get("judged", ())}
    if not running.judged.keys() <= running.pending.keys():
        raise ReplayError(
            f"experiment {row.name!r}: its snapshot has a judged decision twice; {REMEDY}"
        )
    return running


def _learner(running: LiveExperiment, content: dict[str, Any], rows: Sequence[Decided]) -> Learner:
    names = running.names
    chosen = []
    for row in rows:
        exploit = None if row.exploit is None else names[row.exploit]
        explore = None if row.explore is None else names[row.explore]
        fields = (row.round, exploit, explore, row.propensity, row.weight)
        chosen.append(fields if row.drawn is None else (*fields, names[row.drawn], row.guard))
    return from_columns(content["learner"], content["columns"], chosen)


# An experiment that starts from a saved learner: its first state is a snapshot before the first row of its log.
def digest_of(text: str) -> str:
    """The digest of a saved learner, by which it is recognised."""
    return hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()


def checked_learner(text: str) -> Saved:
    """What a saved learner says about itself; `Invalid` if it is damaged."""
    try:
        return described(text)
    except DecoupledError as error:
        raise _refused(error) from None


def adopted(text: str) -> str:
    """A saved learner as an experiment runs it. Its policy must be compiled."""
    try:
        return without_pending(text, UNLIMITED, renumbered=True)
    except DecoupledError as error:
        raise _refused(error) from None


def first_snapshot(row: ExperimentRow, learner: str) -> str:
    """The snapshot that an experiment starts from, given what `adopted` returned.

    Confidence sequences that the learner kept with the experiment's risk go on. Else losses count from `watched_since` on.
    """
    running = LiveExperiment(row)
    settings = running.settings
    running.learner = found = Learner.from_json(learner)
    labels = described(learner).labels
    if (None if labels is None else Labels(**labels)) != settings.labels:
        raise Invalid("labels: come with the learner; give those that it has")
    kept = _sequences(found)
    if kept is not None and (kept.risk, kept.drift) != (settings.risk, settings.drift):
        found.inference.stop()
        kept = None
    if kept is None:
        running.watch()
        running.watched_since = row.created_at if found.round > 1 else None
    else:
        found.inference.configure(patience=settings.patience, expired_loss=settings.expired_loss)
    if found.guardrails != settings.guardrails:
        found.guardrails = settings.guardrails
    return snapshot(running)


def _refused(error: DecoupledError) -> Invalid:
    return Invalid(f"learner: {str(error).removeprefix('state: ')}")


def _sequences(learner: Learner) -> Sequences | None:
    try:
        return learner.inference.sequences
    except UnsupportedError:  # it is not watched
        return None
