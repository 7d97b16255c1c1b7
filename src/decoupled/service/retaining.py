"""Retention: dropping the old part of a log while what remains can still be replayed."""

from .restoring import from_beginning
from .room import Reference, Room
from .rows import Decided, ExperimentRow
from .running import Running
from .store import Store


def cut(store: Store, row: ExperimentRow, before: float) -> Running:
    """The experiment as it stood when the first row of `before` or later was written. `store` is a reader."""
    running = from_beginning(store, row)
    for each in store.rows_since(row.id, running.head):
        if (each.made_at if isinstance(each, Decided) else each.at) >= before:
            break
        running.replay(each)
    return running


def drop(room: Room, about: Reference, base: Running, before: float) -> int:
    """Drop the log up to where `base` stands, which becomes its beginning, and idempotency keys of that age.

    Decisions that waited then are kept: what settled them is in the part that stays. Counts are part of
    what an experiment has in memory and in snapshots, and do not change.
    """
    running = room.get(about)
    if base.head == 0:
        return 0
    room.store.flush()
    room.store.add_snapshot(running.id, base.head, base.snapshot(), room.clock(), base=True)
    room.store.drop_keys(before)
    return room.store.drop_rows(running.id, base.head, list(base.pending))
