"""What a watched learner keeps: confidence sequences, and of each pending decision what they will need."""

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from ..base.arrays import Floats
from ..base.packed import pack_ints, unpack_ints
from ..decision import Arm, Decision
from ..inference.sequences import Sequences
from ..inference.sums import Observation
from .arm_ids import Serials
from .pending import Covered, Pending
from .protocol import RunnablePolicy
from .runner import Running

MOST_NUMBERS = (
    1_000_000  # in the laws of pending decisions; feedback that is later than that counts without its law
)

NO_ARM, NO_LAW = -1, -1  # in columns: a decision without an exploited arm, or without a law


class Drawn(NamedTuple):
    """What a decision's observation will need: the serial of the exploited arm, and the law by serial.

    `law` is None if the policy does not know its propensities, or if there are too many arms to compare them by it.
    """

    exploit: int | None
    law: Floats | None


_UNKNOWN = Drawn(None, None)


class Place(NamedTuple):
    """The number of observations before one: of all, and of an incumbent's trial, None if it is not part of it."""

    number: int
    of_trial: int | None


class Watch:
    """Confidence sequences over the arms of a learner, which are numbered by their serials."""

    def __init__(self, sequences: Sequences, weighs: bool) -> None:
        self.sequences = sequences
        # Whether the policy learns from weights. If so, a weight estimates 1 / propensity where that is not known, and
        # every available arm has a chance to be explored.
        self.weighs = weighs
        self.serials: dict[Arm | None, int | None] = {}  # by the names of the arms
        self.drawn: dict[str, Drawn] = {}
        self._with_law: dict[str, None] = {}  # the drawn decisions that have a law, oldest first
        self._law: tuple[object, Floats] | None = None  # of the last draw, with the state it belongs to
        # What was observed since an incumbent was set, if that is not all: by decisions that were not pending then.
        self.trial: Sequences | None = None
        self.before: set[str] = set()
        self.newest: Observation | None = None  # the last one added, for whoever keeps further sequences

    @classmethod
    def start(
        cls, serials: Serials, risk: float, drift: bool, policy: RunnablePolicy, pending: Iterable[str]
    ) -> "Watch":
        """Watch arms of which nothing is known. Of decisions that are pending already, nothing is kept."""
        sequences = Sequences(serials.born, risk, drift=drift, coupled=policy.coupled)
        watch = cls(_followed(sequences, serials), policy.cumulative is not None)
        watch.drawn = dict.fromkeys(pending, _UNKNOWN)
        return watch

    def with_trial(self, serials: Serials, pending: Iterable[str] | None) -> "Watch":
        """A copy that judges an incumbent by what neither these pending decisions tell nor what was observed.

        None ends it: there is no incumbent.
        """
        copy = self.copy()
        copy.before, copy.trial = set(pending or ()), None
        if pending is not None and (copy.before or copy.sequences.observed > 0):
            coupled = copy.sequences.sums.coupled
            copy.trial = _followed(Sequences(serials.born, copy.sequences.risk, coupled=coupled), serials)
        return copy

    @property
    def judges(self) -> Sequences:
        """The sequences that an incumbent is judged by."""
        return self.sequences if self.trial is None else self.trial

    # Deciding

    def keep_drawn(self, pending: Iterable[Pending], running: Running) -> None:
        """Keep what the decisions of this round need until their feedback comes; this may be repeated.

        `pending` has all pending decisions, newest first. What is kept depends on the state, so call this before the state
        changes. A decision costs nothing until then.
        """
        now, new = running.round, []
        for decision, _, covered, baseline in pending:
            if decision.round != now or decision.id in self.drawn:  # and so are all before it
                break
            new.append((decision, covered, baseline))
        for decision, covered, baseline in reversed(new):
            if running.contexts is not None:  # the law is that of its context
                running.contexts.recall(baseline)
                running.contexts.derive()
                self._law = None
            self._keep(decision.id, self._drawn_by(decision, covered, running))

    def _drawn_by(self, decision: Decision, covered: Covered, running: Running) -> Drawn:
        law = None
        if decision.propensity is not None and (self.sequences.pairs_arms or not self.weighs):
            law = self._law_of(covered, running)
        return Drawn(self.serials[decision.exploit], law)

    def _keep(self, key: str, drawn: Drawn) -> None:
        self.drawn[key] = drawn
        if drawn.law is not None:
            self._with_law[key] = None
            while len(self._with_law) * len(drawn.law) > MOST_NUMBERS:
                oldest = next(iter(self._with_law))
                self.drawn[oldest] = self.drawn[oldest]._replace(law=None)
                self._with_law.pop(oldest)

    def _law_of(self, covered: Covered, running: Running) -> Floats:
        """The law of exploration by serial. Decisions of the same round share it."""
        state = running.round, covered
        if self._law is None or self._law[0] != state:
            part = None if covered is None else running.serials.places(np.array(covered, np.int64))[0]
            law = running.law("exploration_law", part)
            if running.serials.kept is not None:
                by_place, law = law, np.zeros(running.serials.born)
                law[running.serials.kept] = by_place
            self._law = state, law
        return self._law[1]

    # Learning

    def observed_by(self, pending: Pending, loss: float) -> Observation:
        """The feedback of a decision. One that was made before the watch began tells nothing of what was exploited."""
        decision, serial, covered, _ = pending
        exploit, law = self.drawn[decision.id]
        if law is not None:
            missing = self.sequences.count - len(law)
            if missing > 0:  # arms that came later had no chance
                law = np.pad(law, (0, missing))
            if not law.item(serial) > 0.0:
                law = None  # the law is exact, and the arm was drawn by a rounded one
        weight = decision.weight if decision.propensity is None else 1.0 / decision.propensity
        available = range(covered) if isinstance(covered, int) else covered
        if self.weighs:
            return Observation(serial, weight, loss, exploit, available, law)
        if law is None:  # arms may have had no chance, and it is not known which
            return Observation(serial, None, loss, exploit, available)
        return Observation(serial, weight, loss, exploit, tuple(np.flatnonzero(law).tolist()), law)

    def place_of(self, key: str) -> Place:
        """Which observation that of a decision will be."""
        if self.trial is None or key in self.before:
            return Place(self.sequences.observed, None)
        return Place(self.sequences.observed, self.trial.observed)

    def settle(self, key: str, seen: Observation, place: Place) -> None:
        """Add the feedback of a decision; this may be repeated."""
        self.forget(key)
        self.newest = seen
        self.sequences.add_once(place.number, seen)
        if self.trial is not None and place.of_trial is not None:
            self.trial.add_once(place.of_trial, seen)

    def replay(self, serial: int, weight: float, loss: float, *, incumbent: bool) -> None:
        """Add a record of a log. An incumbent is not judged by it: whoever set it may have known the log."""
        if incumbent and self.trial is None:
            self.trial = self.sequences.copy()
        self.sequences.add(Observation(serial, weight, loss))

    def forget(self, key: str) -> None:
        """Forget a decision, which will have no feedback any more; this may be repeated."""
        self._with_law.pop(key, None)
        self.before.discard(key)
        self.drawn.pop(key, None)

    # Arms

    def copy(self) -> "Watch":
        """The same, with sequences that go on independently; what is kept of pending decisions is shared."""
        copy = Watch(self.sequences.copy(), self.weighs)
        copy.serials, copy.drawn, copy._with_law = self.serials, self.drawn, self._with_law
        copy.before = self.before
        copy.trial = None if self.trial is None else self.trial.copy()
        return copy

    def following(self, serials: Serials) -> "Watch":
        """A copy with arms added and retired, so that those left are those of the learner."""
        copy = self.copy()
        for each in (copy.sequences, copy.trial):
            if each is not None:
                _followed(each, serials)
        return copy

    # Saving

    def to_json(self) -> dict[str, Any]:
        """Everything as plain values. Equal laws are there once."""
        laws, which = _numbered(self.drawn.values())
        return {
            "sequences": self.sequences.to_dict(),
            "weighs": self.weighs,
            **(
                {} if self.trial is None else {"trial": self.trial.to_dict(), "before": sorted(self.before)}
            ),
            "laws": laws,
            "drawn": {
                key: [exploit, None if number == NO_LAW else number]
                for (key, (exploit, _)), number in zip(self.drawn.items(), which, strict=True)
            },
        }

    def without_drawn(self) -> "Watch":
        """The same sequences, without pending decisions."""
        watch = Watch(self.sequences, self.weighs)
        watch.trial, watch.before = self.trial, self.before
        return watch

    def law_columns(self, pending: Iterable[str]) -> dict[str, Any]:
        """What is kept of these pending decisions, as columns. Equal laws are there once."""
        drawn = [self.drawn[key] for key in pending]
        laws, which = _numbered(drawn)
        exploit = [NO_ARM if arm is None else arm for arm, _ in drawn]
        return {
            "exploit": pack_ints(np.array(exploit, np.int64)),
            "law": pack_ints(np.array(which, np.int64)),
            "laws": laws,
        }

    def fill_drawn(self, pending: Iterable[str], columns: dict[str, Any]) -> None:
        """Restore the result of `law_columns`."""
        laws: list[Floats | None] = [np.array(law, np.float64) for law in columns["laws"]]
        laws.append(None)  # the place of NO_LAW
        exploit, which = unpack_ints(columns["exploit"]).tolist(), unpack_ints(columns["law"]).tolist()
        for key, arm, number in zip(pending, exploit, which, strict=True):
            self.drawn[key] = Drawn(None if arm == NO_ARM else arm, laws[number])
            if number != NO_LAW:
                self._with_law[key] = None

    @classmethod
    def from_json(cls, content: dict[str, Any]) -> "Watch":
        """Restore the result of `to_json`."""
        watch = cls(Sequences.from_dict(content["sequences"]), content["weighs"])
        if "trial" in content:
            watch.trial, watch.before = Sequences.from_dict(content["trial"]), set(content["before"])
        laws = [np.array(law, np.float64) for law in content["laws"]]
        for key, (exploit, number) in content["drawn"].items():
            watch.drawn[key] = Drawn(exploit, None if number is None else laws[number])
            if number is not None:
                watch._with_law[key] = None
        return watch


def _numbered(drawn: Iterable[Drawn]) -> tuple[list[list[float]], list[int]]:
    """The laws that differ, and the number of each decision's.

    Laws are compared by value: decisions of one round share the object, but not with those that were restored, and
    rounds may have equal laws.
    """
    known: dict[int, int] = {}  # by object, since most are shared
    equal: dict[bytes, int] = {}
    laws: list[list[float]] = []
    which: list[int] = []
    for _, law in drawn:
        if law is None:
            which.append(NO_LAW)
            continue
        number = known.get(id(law))
        if number is None:
            number = known[id(law)] = equal.setdefault(law.tobytes(), len(laws))
            if number == len(laws):
                laws.append(law.tolist())
        which.append(number)
    return laws, which


def _followed(sequences: Sequences, serials: Serials) -> Sequences:
    """The sequences, with arms added and retired so that those left are these."""
    if serials.born > sequences.count:
        sequences.add_arms(serials.born - sequences.count)
    for gone in set(sequences.live) - set(_live(serials)):
        sequences.retire(gone)
    return sequences


def _live(serials: Serials) -> list[int]:
    return list(range(serials.born)) if serials.kept is None else serials.kept.tolist()
