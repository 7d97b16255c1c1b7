"""From the store into memory: the newest snapshot that can be read, or the beginning."""

import logging
from collections.abc import Callable, Sequence

from ..errors import StateError
from .errors import ReplayError
from .experiment.live import Running
from .experiment.rows import Decided, ExperimentRow
from .experiment.snapshots import restore
from .store.store import Store

_log = logging.getLogger(__name__)


def restored(store: Store, row: ExperimentRow) -> Running:
    """The experiment as its newest good snapshot has it; the rows after that are yet to be replayed."""
    for seq, text in store.snapshots(row.id):
        try:
            if seq <= row.head:
                return restore(row, text, rows_of(store, row.id))
        except (StateError, ReplayError) as error:
            _log.error("experiment %r: its snapshot at row %d is passed over: %s", row.name, seq, error)
    return from_beginning(store, row)


def from_beginning(store: Store, row: ExperimentRow) -> Running:
    """The experiment where its log begins: new, or at the snapshot that retention left."""
    base = store.base(row.id)
    if base is None:
        return Running(row)
    try:
        return restore(row, base[1], rows_of(store, row.id))
    except StateError as error:
        raise ReplayError(f"experiment {row.name!r}: where its log begins is damaged ({error})") from error


def rows_of(store: Store, experiment: int) -> Callable[[Sequence[int]], list[Decided]]:
    """Finds the decisions of an experiment by their places in its log."""
    return lambda seqs: store.decided_among(experiment, seqs)
