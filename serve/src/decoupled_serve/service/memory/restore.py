"""Restoring experiments from the store: from the newest readable snapshot, or from the start of the log."""

import json
import logging
from collections.abc import Callable, Sequence

from decoupled.client import ReplayError
from decoupled.errors import StateError

from ..experiment.live import LiveExperiment
from ..experiment.numbered_arms import from_stored, is_large
from ..experiment.rows import Decided, ExperimentRow
from ..experiment.snapshots import restore
from ..store.store import Store

QUICK_ROWS = 500  # of the log, to replay
QUICK_TEXT = 200_000  # characters of a snapshot, to parse

_log = logging.getLogger(__name__)


def restored(store: Store, row: ExperimentRow) -> LiveExperiment:
    """The experiment at its newest readable snapshot; the rows after it are still to be replayed."""
    for seq, text in store.snapshots(row.id):
        try:
            if seq <= row.head:
                return restore(row, text, rows_of(store, row.id))
        except (StateError, ReplayError) as error:
            _log.error("experiment %r: its snapshot at row %d is skipped: %s", row.name, seq, error)
    return from_beginning(store, row)


def is_quick(store: Store, row: ExperimentRow) -> bool:
    """Whether an experiment is restored in a few milliseconds, so that others can wait for it."""
    if is_large(from_stored(json.loads(row.arms))):
        return False
    newest = store.newest_snapshot(row.id)
    if newest is None:
        return row.head <= QUICK_ROWS and len(row.arms) <= QUICK_TEXT
    seq, size = newest
    return seq <= row.head <= seq + QUICK_ROWS and size <= QUICK_TEXT


def from_beginning(store: Store, row: ExperimentRow) -> LiveExperiment:
    """The experiment at the start of its log: new, or at the snapshot that retention left."""
    base = store.base(row.id)
    if base is None:
        return LiveExperiment(row)
    try:
        return restore(row, base[1], rows_of(store, row.id))
    except StateError as error:
        raise ReplayError(
            f"experiment {row.name!r}: the snapshot at the start of its log is damaged ({error})"
        ) from error


def rows_of(store: Store, experiment: int) -> Callable[[Sequence[int]], list[Decided]]:
    """A function that finds decisions of an experiment by their rows."""
    return lambda seqs: store.decided_among(experiment, seqs)
