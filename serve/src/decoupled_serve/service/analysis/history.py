"""How an experiment came to be what it is, and verdicts by segment. Both replay the log once, and go on where they stopped.

A history keeps a point for every `step` rows; when there are too many, it drops every second one and doubles the step. The
intervals are those that the experiment showed at that time, bit for bit.
"""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from decoupled.client import Invalid
from decoupled.decision import Arm
from decoupled.errors import near_name
from decoupled.inference import (
    Interval,
    Observation,
    Sequences,
    Verdict,
    most_segments,
    share_of_segment,
    verdict,
)
from decoupled.learner import LossRange

from ..experiment.context import Value, segment_of
from ..experiment.live import LiveExperiment
from ..experiment.records import Changed, Decided, ExperimentRow, Row, Settings
from ..experiment.watched import ArmLoss, arm_losses
from ..memory.loader import from_beginning
from ..store.store import Store

MOST_POINTS = 500
MOST_ARMS = 20  # those that were exploited most, if there are more


@dataclass(frozen=True, slots=True)
class Point:
    """An experiment after a row of its log. Lists are by arm shown, None for a later one; `all_` counts are over all arms."""

    seq: int
    at: float
    decisions: int
    observed: int
    exploited: tuple[int, ...]
    explored: tuple[int, ...]
    losses: tuple[Interval | None, ...]
    all_exploited: int
    all_explored: int

    def widened(self, arms: int) -> "Point":
        """With room for arms that came later."""
        more = arms - len(self.losses)
        exploited, explored = (each + (0,) * more for each in (self.exploited, self.explored))
        losses = self.losses + (None,) * more
        return (
            replace(self, exploited=exploited, explored=explored, losses=losses) if more else self
        )


@dataclass(frozen=True, slots=True)
class HistoryRecord:
    """The history of an experiment, on its own scale of losses; `HistoryOut` says what each field means."""

    experiment: str
    level: float
    since: float | None
    arms: tuple[Arm, ...]
    retired: tuple[bool, ...]
    others: int
    points: tuple[Point, ...]


@dataclass(slots=True)
class History:
    """The history of one experiment, as far as its log was read."""

    running: LiveExperiment  # after the rows that were read
    shown: list[int]  # places of the arms that are shown
    chosen_at: int  # the last row of the log when they were chosen
    step: int = 1
    points: list[Point] = field(default_factory=list)

    @classmethod
    def start(cls, reader: Store, row: ExperimentRow) -> "History":
        """A history at the start of the log, about the arms that are exploited most now."""
        return cls(from_beginning(reader, row), _shown(reader, row), row.head)

    def still_holds(self, reader: Store, row: ExperimentRow) -> bool:
        """Whether it can go on: rows that it has not read are there, and it is about the right arms."""
        base = reader.base(row.id)
        if base is not None and base[0] > self.running.head:
            return False
        if row.head < 2 * self.chosen_at + 1000:
            return True
        self.chosen_at = row.head
        return self.shown == _shown(reader, row)

    def read(self, rows: Iterable[Row]) -> None:
        """Go on with these rows of the log."""
        for row in rows:
            self.running.replay(row)
            arms = len(self.running.names)
            # Some may have come after those to show were chosen.
            if self.shown[-1:] != [arms - 1] and arms <= MOST_ARMS:
                self.shown += range(len(self.shown), arms)
            if self.running.head % self.step == 0:
                self.points.append(self._point())
                if len(self.points) > MOST_POINTS:
                    self.step *= 2
                    self.points = [each for each in self.points if each.seq % self.step == 0]

    def record(self, row: ExperimentRow, most: int) -> HistoryRecord:
        """At most so many points, the last of which is now."""
        running, names = self.running, self.running.names
        points, gone = self.points, set(running.retired)
        if running.head > 0 and (not points or points[-1].seq != running.head):
            points = [*points, self._point()]
        if len(points) > most:  # so many of them, evenly, with the last one
            points = [points[round((i + 1) * len(points) / most) - 1] for i in range(most)]
        return HistoryRecord(
            row.name, 1.0 - running.settings.risk, running.watched_since,
            tuple(names[place] for place in self.shown), tuple(place in gone for place in self.shown),
            len(names) - len(self.shown),
            tuple(each.widened(len(self.shown)) for each in points),
        )  # fmt: skip

    def _point(self) -> Point:
        running, shown = self.running, self.shown
        tallies, arms = running.tallies, len(running.names)
        here = [place for place in shown if place < arms]
        found = _intervals(running.learner.inference.sequences, here, running.losses)
        losses = tuple(found[place] if place < arms else None for place in shown)
        exploited, explored = (
            tuple(counts[place] if place < arms else 0 for place in shown)
            for counts in (tallies.exploit, tallies.explore)
        )
        known = (running.head, running.last_at, tallies.decisions, tallies.applied)
        return Point(
            *known, exploited, explored, losses, sum(tallies.exploit), sum(tallies.explore)
        )


def _intervals(
    sequences: Sequences, places: list[int], losses: LossRange
) -> dict[int, Interval | None]:
    """The mean loss of each arm; None if none was seen of it."""
    ends = zip(places, *(each.tolist() for each in sequences.bounds(among=places)), strict=True)
    found = {place: Interval.around(*each).scaled(*losses) for place, *each in ends}
    return {place: each if sequences.seen(place) else None for place, each in found.items()}


def _shown(reader: Store, row: ExperimentRow) -> list[int]:
    arms = len(json.loads(row.arms))
    return (
        list(range(arms)) if arms <= MOST_ARMS else sorted(reader.most_exploited(row.id, MOST_ARMS))
    )


# Verdicts by segment: which arm is best for some requests, and which for others. They hold all together.
#
# A segment is the values that some fields of the context have together. Each has confidence sequences of its own, with the
# observations of its decisions. The risk is split in the order in which segments appear: the s-th has the share
# 6 / (pi^2 s^2), and all shares sum to 1. A segment appears with its first decision, before any loss of it is seen, so its
# share depends on nothing that it could show. After a certain number of segments all others share one.
#
# The law of exploration weighs the rounds of a segment if it is the same for all its requests. Else all count the same.
#
# Observations are added in the order of decisions, when the experiment itself adds them. Records of other logs, which were
# replayed into the experiment, are not counted, nor are decisions that were made before the part of the log that is left.
_NAMED = 3  # segments that a sentence names for each arm


def checked_by(by: Sequence[str], settings: Settings, learned_by: Sequence[str]) -> tuple[str, ...]:
    """The fields to tell segments by: those asked for, those that the policy has segments of, or all but numbers."""
    fields = settings.context
    if not by:
        by = learned_by or [
            name for name, kind in fields.items() if kind not in ("number", "vector")
        ]
    for name in by:
        if name not in fields:
            rule = "is not a field of this experiment"
            raise Invalid.of("by", name, rule, near_name(name, fields))
        if fields[name] in ("number", "vector"):
            rule = "is a number, and each would be a segment of its own"
            raise Invalid.of("by", name, rule, "choose a text or a boolean")
    if not by:
        remedy = "declare a text or a boolean when an experiment is created"
        raise Invalid(f"by: this experiment has no field to tell segments by; {remedy}")
    return tuple(dict.fromkeys(by))


@dataclass(frozen=True, slots=True)
class SegmentVerdict:
    """What is known of one segment; `SegmentOut` says what each field means. Those that share one have None for `values`."""

    values: tuple[Value | None, ...] | None
    risk: float
    decisions: int
    observed: int
    verdict: Verdict
    arms: tuple[ArmLoss, ...]
    exploited: Interval | None

    @property
    def name(self) -> str:
        """The segment in a few words."""
        return "all others" if self.values is None else " / ".join(map(_spoken, self.values))


def _spoken(value: Value | None) -> str:
    return (
        "(none)" if value is None else str(value).lower() if isinstance(value, bool) else str(value)
    )


@dataclass(frozen=True, slots=True)
class SegmentsRecord:
    """The verdicts of all segments, those with the most losses first; `SegmentsOut` says what each field means."""

    experiment: str
    by: tuple[str, ...]
    text: str
    state_version: int
    risk: float
    drift: bool
    since: float | None
    segments: tuple[SegmentVerdict, ...]


@dataclass(slots=True)
class _Segment:
    values: tuple[Value | None, ...] | None
    sequences: Sequences
    # Whether the chances of exploration are the same for all its requests at a time. If not, they must not weigh rounds.
    has_one_law: bool
    decisions: int = 0
    last: tuple[tuple[int, int, int, int], SegmentVerdict] | None = None

    def judged(self, running: LiveExperiment) -> SegmentVerdict:
        """Its verdict, which is computed again only after something has changed."""
        seen, names = self.sequences.observed, tuple(running.names)
        state = self.decisions, seen + self.sequences.left_out, len(names), len(running.retired)
        if self.last is None or self.last[0] != state:
            served = self.sequences.served() if self.sequences.used().any() else None
            found = SegmentVerdict(
                self.values, self.sequences.risk, self.decisions, seen, verdict(self.sequences, names),
                arm_losses(self.sequences, names, running.losses),
                None if served is None else served.scaled(*running.losses),
            )  # fmt: skip
            self.last = state, found
        return self.last[1]


@dataclass(slots=True)
class Segments:
    """The segments of one experiment, as far as its log was read."""

    running: LiveExperiment  # after the rows that were read
    by: tuple[str, ...]
    since: float | None
    found: dict[tuple[Value | None, ...] | None, _Segment] = field(default_factory=dict)
    # The segment and the look of each decision that is not in its segment yet.
    waiting: dict[str, tuple[_Segment, Observation]] = field(default_factory=dict)

    @classmethod
    def start(cls, reader: Store, row: ExperimentRow, by: tuple[str, ...]) -> "Segments":
        """No segment yet, at the start of the log."""
        running = from_beginning(reader, row)
        running.learner.inference.take_released()  # recording begins
        return cls(running, by, running.last_at if running.head > 0 else None)

    def still_holds(self, reader: Store, row: ExperimentRow) -> bool:
        """Whether the rows that it has not read are there."""
        base = reader.base(row.id)
        return base is None or base[0] <= self.running.head

    def read(self, rows: Iterable[Row]) -> None:
        """Go on with these rows of the log."""
        running = self.running
        for row in rows:
            running.replay(row)
            if isinstance(row, Decided):
                segment = self._segment(row)
                segment.decisions += 1
                if row.seq in running.pending and row.explore is not None:
                    # The weight of a policy that learns from means is 1, whatever the chance was.
                    weight = row.weight if row.propensity is None else 1.0 / row.propensity
                    look = Observation(row.explore, weight, 0.0)
                    self.waiting[running.pending[row.seq][1].id] = segment, look
            elif isinstance(row, Changed):
                for each in self.found.values():
                    _follow(each.sequences, running)
            self._take()

    def _take(self) -> None:
        """Add what the experiment has added to its own sequences since the last call."""
        released = self.running.learner.inference.take_released()
        for decision_id, observation in released.items():
            if decision_id not in self.waiting:
                continue
            segment, look = self.waiting.pop(decision_id)
            if observation is None:
                segment.sequences.leave_out(look)
            elif segment.has_one_law:
                segment.sequences.add(observation)
            else:
                segment.sequences.add(observation._replace(law=None))

    def _segment(self, row: Decided) -> _Segment:
        """The segment of a decision."""
        values: tuple[Value | None, ...] | None = segment_of(row.context, self.by)
        known = self.found.get(values)
        if known is not None:
            return known
        running = self.running
        if len(self.found) >= most_segments(len(running.names)):
            if (rest := self.found.get(None)) is not None:
                return rest
            values = None
        settings = running.settings
        risk = settings.risk * share_of_segment(len(self.found) + 1)
        share_of_labels = 1.0 if settings.labels is None else settings.labels.share
        sequences = Sequences(
            len(running.names), risk, drift=settings.drift, coupled=running.coupled,
            label_share=share_of_labels,
        )  # fmt: skip
        _follow(sequences, running)
        made = self.found[values] = _Segment(values, sequences, self._has_one_law(values))
        return made

    def _has_one_law(self, values: tuple[Value | None, ...] | None) -> bool:
        """Whether the policy explores alike for all requests of a segment: it tells no segments apart within it."""
        learned_by: tuple[str, ...] = getattr(self.running.learner.policy, "segments", ())
        return not learned_by or (values is not None and set(learned_by) <= set(self.by))

    def record(self) -> SegmentsRecord:
        """The verdicts as they are now."""
        running = self.running
        every = (each.judged(running) for each in self.found.values())
        judged = sorted(every, key=lambda each: -each.observed)
        settings = running.settings
        return SegmentsRecord(
            running.name, self.by, sentence(judged), running.version, settings.risk, settings.drift,
            self.since, tuple(judged),
        )  # fmt: skip


def _follow(sequences: Sequences, running: LiveExperiment) -> None:
    """Add and retire arms, so that those left are those of the experiment."""
    more = len(running.names) - sequences.count
    if more > 0:
        sequences.add_arms(more)
    for gone in set(sequences.live) & set(running.retired):
        sequences.retire(gone)


def sentence(segments: Sequence[SegmentVerdict]) -> str:
    """Which arm is best where, as far as that is decided."""
    best: dict[Arm, list[str]] = {}
    for each in segments:
        if each.verdict.state == "decided" and each.verdict.best is not None:
            best.setdefault(each.verdict.best, []).append(each.name)
    undecided = len(segments) - sum(map(len, best.values()))
    if not best:
        return "too early: no segment is decided"
    parts = [f"{arm} is best for {_listed(names)}" for arm, names in best.items()]
    if undecided:
        parts.append(f"{undecided} {'is' if undecided == 1 else 'are'} open")
    return "; ".join(parts)


def _listed(names: list[str]) -> str:
    first, more = names[:_NAMED], len(names) - _NAMED
    return ", ".join(first) + (f" and {more} more" if more > 0 else "")
