"""How an experiment came to be what it is: counts and mean losses at some points of its log, with their intervals.

A history replays the log once and goes on where it stopped. It keeps a point for every `step` rows; when there are too
many, it drops every second one and doubles the step. The intervals are those that the experiment showed at that time,
bit for bit.
"""

import json
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from decoupled.decision import Arm
from decoupled.inference import Interval, Sequences

from ..experiment.live import LiveExperiment
from ..experiment.numbered_arms import count_of
from ..experiment.rows import ExperimentRow, Row
from ..memory.restore import from_beginning
from ..store.store import Store

MOST_POINTS = 500
MOST_ARMS = 20  # those that were exploited most, if there are more


@dataclass(frozen=True, slots=True)
class Point:
    """An experiment after a row of its log. Lists are by arm, and an arm that came later has None.

    `all_exploited` and `all_explored` are over all arms, also those that are not shown.
    """

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
        return replace(self, exploited=exploited, explored=explored, losses=losses) if more else self


@dataclass(frozen=True, slots=True)
class HistoryRecord:
    """The history of an experiment, on its own scale of losses.

    Attributes:
        since: the time from which losses count; None if all do.
        arms: the arms that it is about: all that there ever were, or those that were exploited most.
        retired: which of them are retired now.
        others: how many other arms there were.
        points: from the oldest to the newest, which is now. Counts are since the experiment was created.
    """

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
        return row.head < 2 * self.chosen_at + 1000 or self._chosen_again(reader, row)

    def _chosen_again(self, reader: Store, row: ExperimentRow) -> bool:
        self.chosen_at = row.head
        return self.shown == _shown(reader, row)

    def read(self, rows: Iterable[Row]) -> None:
        """Go on with these rows of the log."""
        for row in rows:
            self.running.replay(row)
            self._show_new()
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
        return HistoryRecord(
            row.name, 1.0 - running.settings.risk, running.watched_since,
            tuple(names[place] for place in self.shown), tuple(place in gone for place in self.shown),
            len(names) - len(self.shown),
            tuple(each.widened(len(self.shown)) for each in _thinned(points, most)),
        )  # fmt: skip

    def _show_new(self) -> None:
        """Show arms that came after those to show were chosen."""
        arms = len(self.running.names)
        if self.shown[-1:] != [arms - 1] and arms <= MOST_ARMS:
            self.shown += range(len(self.shown), arms)

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
        return Point(
            running.head,
            running.last_at,
            tallies.decisions,
            tallies.applied,
            exploited,
            explored,
            losses,
            sum(tallies.exploit),
            sum(tallies.explore),
        )


def _intervals(
    sequences: Sequences, places: list[int], losses: tuple[float, float]
) -> dict[int, Interval | None]:
    """The mean loss of each arm; None if none was seen of it."""
    ends = zip(*(each.tolist() for each in sequences.bounds(among=places)), strict=True)
    found = {
        place: Interval.around(*each).scaled(*losses) for place, each in zip(places, ends, strict=True)
    }
    return {place: found[place] if sequences.seen(place) else None for place in places}


def _shown(reader: Store, row: ExperimentRow) -> list[int]:
    arms = count_of(json.loads(row.arms))
    return list(range(arms)) if arms <= MOST_ARMS else sorted(reader.most_exploited(row.id, MOST_ARMS))


def _thinned(points: list[Point], most: int) -> list[Point]:
    """So many of the points, evenly, with the last one."""
    if len(points) <= most:
        return points
    return [points[round((i + 1) * len(points) / most) - 1] for i in range(most)]
