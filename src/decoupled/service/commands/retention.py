"""Retention: dropping the old part of a log while what remains can still be replayed."""

from ..experiment.live import Running
from ..experiment.rows import Decided, ExperimentRow
from ..experiment.snapshots import snapshot
from ..recovery import from_beginning
from ..session import Reference, Room
from ..store.store import Store

AT_ONCE = 20_000  # rows dropped in one transaction, so that nobody waits for long


def cut(store: Store, row: ExperimentRow, before: float) -> Running:
    """The experiment as it stood when the first row of `before` or later was written. `store` is a reader."""
    running = from_beginning(store, row)
    for each in store.rows_since(row.id, running.head):
        if (each.made_at if isinstance(each, Decided) else each.at) >= before:
            break
        running.replay(each)
    return running


def rebase(room: Room, about: Reference, base: Running, before: float) -> None:
    """Have the log begin where `base` stands. Rows before it are now of no use, but for what waited then."""
    running = room.get(about)
    room.store.add_snapshot(running.id, base.head, snapshot(base), room.clock(), base=True)
    room.store.drop_keys_of(running.id, before)


def drop(room: Room, about: Reference, base: Running, first: int) -> int:
    """Drop `AT_ONCE` rows of what comes before `base`; give how many were there.

    Decisions that waited then are kept: what settled them is in the part that stays. Counts are part of
    what an experiment has in memory and in snapshots, and do not change.
    """
    last = min(first + AT_ONCE - 1, base.head)
    return room.store.drop_rows(room.get(about).id, first, last, list(base.pending))
