"""How an experiment came to be what it is: counts and mean losses at some points of its log, with their intervals.

A history reads the log once and goes on where it stopped. It keeps a point for every `step` rows; when there are too
many, it drops every second one and doubles the step. The intervals are those that the experiment showed at that time,
bit for bit. No policy runs, so a million rows take seconds; the exception are policies that do not learn from weights:
which arms they could explore is not in the log, so it is replayed.
"""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from ...decision import Arm
from ...inference.interval import Interval
from ...inference.sequences import Sequences
from ...inference.sums import Observation
from ...policies import Policy
from ..experiment.live import Running
from ..experiment.rows import Changed, Decided, ExperimentRow, Row, Settled
from ..recovery import from_beginning
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
class _Waiting:
    """A pending decision, and how many arms there were when it was made."""

    row: Decided
    arms: int


@dataclass(slots=True)
class History:
    """The history of one experiment, as far as its log was read."""

    running: Running  # at the start of the log; only its counts and its sequences go on
    shown: list[int]  # places of the arms that are shown
    chosen_at: int  # the last row of the log when they were chosen
    weighs: bool  # whether the policy learns from weights
    step: int = 1
    points: list[Point] = field(default_factory=list)
    waiting: dict[int, _Waiting] = field(default_factory=dict)

    @classmethod
    def start(cls, reader: Store, row: ExperimentRow) -> "History":
        """A history at the start of the log, about the arms that are exploited most now."""
        running = from_beginning(reader, row)
        weighs = Policy.from_dict(running.settings.policy).cumulative is not None
        if weighs:
            running.learner.sequences.sums.pairs = None  # no interval here needs them
        history = cls(running, _shown(reader, row), row.head, weighs)
        history.waiting = {
            seq: _Waiting(made, len(running.names)) for seq, (made, _) in running.pending.items()
        }
        return history

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
            self._apply(row)
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

    # Rows

    def _apply(self, row: Row) -> None:
        running = self.running
        if not self.weighs:
            running.replay(row)
            self._show_new()
            return
        running.head = row.seq
        if isinstance(row, Decided):
            running.last_at = row.made_at
            self._decide(row)
        elif isinstance(row, Settled):
            running.last_at = row.at
            self._settle(row)
        else:
            running.last_at = row.at
            self._change(row)

    def _decide(self, row: Decided) -> None:
        tallies = self.running.tallies
        tallies.decisions += 1
        if row.exploit is not None:
            tallies.exploit[row.exploit] += 1
        if row.explore is not None:
            tallies.explore[row.explore] += 1
            self.waiting[row.seq] = _Waiting(row, len(self.running.names))

    def _settle(self, row: Settled) -> None:
        made = self.waiting.pop(row.decision)
        if row.kind == "observed":
            self.running.tallies.applied += 1
        if row.loss is None or made.row.explore is None:
            return
        decided, sums = made.row, self.running.learner.sequences.sums
        weight = decided.weight if decided.propensity is None else 1.0 / decided.propensity
        some: Sequence[int] | None = None if decided.available is None else json.loads(decided.available)
        if some is None and made.arms < len(sums.arms):
            some = range(made.arms)  # arms that came later had no chance
        loss = self.running.losses.scaled(row.loss)
        sums.add(Observation(decided.explore, weight, loss, decided.exploit, some))

    def _change(self, row: Changed) -> None:
        running = self.running
        if row.kind == "added":
            names = json.loads(row.content)
            running.learner.sequences.add_arms(len(names))
            for name in names:
                running.places[name] = len(running.names)
                running.names.append(name)
            running.tallies.widen(len(running.names))
            self._show_new()
        elif row.kind == "retired":
            gone = [running.places.pop(name) for name in json.loads(row.content)]
            running.retired += gone
            for place in gone:
                running.learner.sequences.retire(place)

    def _show_new(self) -> None:
        """Show arms that came after those to show were chosen."""
        arms = len(self.running.names)
        if self.shown[-1:] != [arms - 1] and arms <= MOST_ARMS:
            self.shown += range(len(self.shown), arms)

    # Points

    def _point(self) -> Point:
        running, shown = self.running, self.shown
        tallies, arms = running.tallies, len(running.names)
        here = [place for place in shown if place < arms]
        found = _intervals(running.learner.sequences, here, running.losses)
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
    return {place: found[place] if sequences.sums.arms[place].seen else None for place in places}


def _shown(reader: Store, row: ExperimentRow) -> list[int]:
    arms = len(json.loads(row.arms))
    return list(range(arms)) if arms <= MOST_ARMS else sorted(reader.most_exploited(row.id, MOST_ARMS))


def _thinned(points: list[Point], most: int) -> list[Point]:
    """So many of the points, evenly, with the last one."""
    if len(points) <= most:
        return points
    return [points[round((i + 1) * len(points) / most) - 1] for i in range(most)]
