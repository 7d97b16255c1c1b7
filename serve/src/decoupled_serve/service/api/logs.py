"""The recorded log, as it is when called: reading, exporting and evaluating it, its history, dropping its old part, and backups."""

import json
import os
from collections import OrderedDict
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from decoupled.policies import Policy

from ..analysis import export
from ..analysis.export import LogEvaluation, LoggedDecision, Tags, evaluate
from ..analysis.history import History, HistoryRecord, Segments, SegmentsRecord, checked_by
from ..commits.background import Background, in_background, reading
from ..commits.loop import CommitLoop
from ..experiment.live import LiveExperiment
from ..experiment.records import OPERATOR, Decided, moment
from ..experiment.settings import as_settings
from ..experiment.snapshots import snapshot
from ..memory.cache import keep
from ..memory.loader import from_beginning
from ..memory.session import Reference, Session
from ..store.backup import back_up
from .experiments import as_experiment

_HISTORIES = 64  # kept in memory, those that were last asked for
_SEGMENTED = 16
AT_ONCE = 20_000  # rows dropped in one transaction, so that nobody waits long


class Logs:
    """Read, export and evaluate logs, drop their old part, and back up the store."""

    def __init__(
        self, commits: CommitLoop, background: Background, for_histories: Background
    ) -> None:
        self._commits, self._background, self._for_histories = commits, background, for_histories
        # Only what runs in `for_histories` uses them, and of one experiment one at a time.
        self._histories: OrderedDict[int, History] = OrderedDict()
        self._segments: OrderedDict[tuple[int, tuple[str, ...]], Segments] = OrderedDict()

    @in_background()
    def read(
        self, tenant: str, name: str, after: int = 0, limit: int | None = None
    ) -> list[LoggedDecision]:
        """The logged decisions after row `after`, with their true propensities."""
        with reading(self._commits, tenant, name) as (reader, row):
            return list(export.logged(reader, row, after, limit))

    @in_background()
    def export(
        self,
        tenant: str,
        name: str,
        path: str | os.PathLike[str],
        format: str = "parquet",  # noqa: A002
        tags: Tags | None = None,
        passing: Callable[[LoggedDecision], LoggedDecision] = lambda each: each,
    ) -> int:
        """Write decisions with these tags to a Parquet or CSV file, each through `passing`, which may end it; returns how many."""
        with reading(self._commits, tenant, name) as (reader, row):
            return export.write(
                map(passing, export.logged(reader, row, tags=tags)), Path(path), format
            )

    @in_background()
    def evaluate(self, tenant: str, name: str, tags: Tags | None = None) -> LogEvaluation:
        """The value of every arm and of the exploited arms, from the log since the arms last changed, of decisions with all `tags`."""
        with reading(self._commits, tenant, name) as (reader, row):
            settings = as_settings(json.loads(row.settings))
            coupled = Policy.from_dict(settings.policy).coupled
            # From there on every decision is logged, and could choose from the current arms.
            first = max(reader.arms_changed(row.id), (reader.base(row.id) or (0,))[0])
            decisions = export.logged(reader, row, after=first, tags=tags)
            return evaluate(name, decisions, as_experiment(row).arms, settings, coupled)

    @in_background("_for_histories")
    def history(self, tenant: str, name: str, points: int = 200) -> HistoryRecord:
        """Counts and mean losses at some points of the log; the log is read once, and then only what is new."""
        with reading(self._commits, tenant, name) as (reader, row):
            found = self._histories.pop(row.id, None)
            if found is None or not found.still_holds(reader, row):
                found = History.start(reader, row)
            found.read(reader.rows_since(row.id, found.running.head))
            keep(self._histories, row.id, found, _HISTORIES)
            return found.record(row, points)

    @in_background("_for_histories")
    def segments(self, tenant: str, name: str, by: Sequence[str] = ()) -> SegmentsRecord:
        """Verdicts by segment, which hold all together, read as `history` is; `by` are the fields of the context that tell them apart."""
        with reading(self._commits, tenant, name) as (reader, row):
            settings = as_settings(json.loads(row.settings))
            fields = checked_by(
                by, settings, getattr(Policy.from_dict(settings.policy), "segments", ())
            )
            found = self._segments.pop((row.id, fields), None)
            if found is None or not found.still_holds(reader, row):
                found = Segments.start(reader, row, fields)
            found.read(reader.rows_since(row.id, found.running.head))
            keep(self._segments, (row.id, fields), found, _SEGMENTED)
            return found.record()

    @in_background()
    def retention(self, tenant: str, name: str, before: float) -> int:
        """Drop the log up to a time, except decisions that were pending then; returns the number of rows dropped."""
        with reading(self._commits, tenant, name) as (reader, row):
            base = from_beginning(reader, row)
            for each in reader.rows_since(row.id, base.head):
                if (each.made_at if isinstance(each, Decided) else each.at) >= before:
                    break
                base.replay(each)
        if base.head == 0:
            return 0
        about, run = Reference("name", tenant, name), partial(self._commits.run, alone=True)
        content = snapshot(base)  # which takes a while, so not in the commit loop
        run(_rebase, about, seq=base.head, content=content, before=before).result()
        firsts = range(1, base.head + 1, AT_ONCE)
        return sum(run(_drop, about, base=base, first=first).result() for first in firsts)

    @in_background()
    def backup(self, path: str | os.PathLike[str], *, force: bool = False) -> int:
        """Copy the store as it is now to a SQLite file, a new one unless forced; returns the number of experiments."""
        count = back_up(self._commits.session.store, path, force=force)
        file, new = os.path.basename(path), {"experiments": count}
        self._commits.submit(lambda it: it.record("backup.write", OPERATOR, file, new=new)).result()
        return count


# Retention drops the old part of a log, while the rest can still be replayed.
def _rebase(session: Session, *, about: Reference, seq: int, content: str, before: float) -> None:
    """Start the log at a snapshot. The rows before it are no longer needed, except its pending decisions."""
    running = session.get(about)
    earlier = session.store.base(running.id)
    session.store.add_snapshot(running.id, seq, content, session.clock(), base=True)
    if earlier is None or earlier[0] < seq:
        # The rows follow in transactions of their own; from here on nothing needs them.
        new = {"before": moment(before), "dropped_to_row": seq}
        session.record("log.drop", running.tenant, running.name, new=new)
    session.store.drop_keys_of(running.id, before)


def _drop(session: Session, *, about: Reference, base: LiveExperiment, first: int) -> int:
    """Drop `AT_ONCE` of the rows before `base`, and return how many there were.

    Decisions that were pending at `base` stay with what judged them, because the rest of the log settles them. Counts do not
    change: they are part of the experiment in memory and of its snapshots.
    """
    last = min(first + AT_ONCE - 1, base.head)
    kept = sorted([*base.pending, *(each.seq for each in base.judged.values())])
    return session.store.drop_rows(session.get(about).id, first, last, kept)
