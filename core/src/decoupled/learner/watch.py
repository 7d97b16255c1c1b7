"""What a watched learner keeps: confidence sequences, and the decisions that are not in them yet.

Evidence is added in the order of decisions. Were it added as feedback comes, it would be wrong for
arms whose feedback is late in a way that depends on the arm or its loss: what has come by some
moment is then no fair sample.
"""

import math
from collections import OrderedDict
from collections.abc import Sequence
from copy import copy as shallow
from itertools import islice
from typing import Any

import numpy as np

from ..base.arrays import Floats
from ..decision import Arm
from ..inference.judging import JudgeSums
from ..inference.lookout import Lookout
from ..inference.ordering import PATIENCE, Awaited
from ..inference.sequences import Sequences, empty_like
from ..inference.sums import Observation, most_segments, share_of_segment
from .arms import Serials
from .guardrails import CONTEXTS, PREFERENCES
from .labels import Judged, Judgement, Labels
from .pending import Pending, PendingStore
from .policy_state import PolicyState

MOST_NUMBERS = (
    1_000_000  # in the laws of the queue; without room for it, a decision goes without its law
)


class Watch:
    """Confidence sequences over the arms of a learner, which are numbered by their serials."""

    def __init__(
        self,
        sequences: Sequences,
        patience: int = PATIENCE,
        expired: float | None = None,
        *,
        weighs: bool,
    ) -> None:
        self.sequences = sequences
        # Whether the policy learns from weights. If so, a weight estimates 1 / propensity where
        # that is not known, and every available arm has a chance to be explored.
        self.weighs = weighs
        # After so many newer decisions, one without feedback counts with this loss, or is left out
        # if that is None.
        self.patience, self.expired = patience, expired
        self.label_patience = patience  # the same for one that was judged and awaits its label
        # Whether a decision also waits for those of its batch that were made after it: all of a
        # batch are made before any of them can have its loss. And how many these are, by its id.
        self.spares_batches = False
        self.later: dict[str, int] = {}
        self.serials: dict[Arm | None, int | None] = {}  # by the names of the arms
        # Decisions of this watch that are not in the sequences yet, oldest first. The loss of one
        # that is not observed is NaN, and one that is given up is None.
        self.queue: OrderedDict[str, Observation | None] = OrderedDict()
        # Decisions in the queue that were given up without a loss, since it counts what is missing
        # of each arm.
        self.lost: dict[str, Observation] = {}
        self.made = 0  # the number of the last decision that was put into the queue
        self._law: tuple[object, Floats] | None = (
            None  # of the last draw, with the state it belongs to
        )
        # What was observed since an incumbent was set, if that is not all: by decisions that were
        # not in the queue then.
        self.trial: Sequences | None = None
        self.before: set[str] = set()
        # With labels: by the id of a decision in the queue, what is known of its judgement; the
        # sequences of judged losses; and sums about the judge.
        self.judgements: dict[str, Judgement] = {}
        self.judged: Sequences | None = None
        self.judge: JudgeSums | None = None
        # For verdicts by segment, or a rule that asks for them: the sequences of each segment by
        # its place, in the order in which they appeared; and the segment of each decision in the
        # queue that counts for one.
        self.segments: dict[int, Sequences] | None = None
        self.segment_of: dict[str, int] = {}
        # Whether they are kept for verdicts, whatever the rules ask for.
        self.by_segment = False
        # The same as `trial` of each segment, for an incumbent by segment; None if `segments` know
        # no more than that.
        self.trials: dict[int, Sequences] | None = None
        # Segments that got evidence since an incumbent was last judged.
        self.unjudged: set[int] = set()
        # Whether the verdict is decided and still holds, for a budget that then explores less; None
        # if no budget asks.
        self.lookout: Lookout | None = None
        # Whether the chances of exploration depend on the request's segment. A weight made of them
        # would then depend on the request too, and weighted differences of all requests would say
        # nothing about the mean loss over them.
        self.mixes_laws = False
        self.sees_contexts = False
        # Whether any loss was a preference between the explored and the exploited arm.
        self.has_preferences = False
        # What came out of the queue, for whoever keeps further sequences and empties it; None if
        # nobody does.
        self.released: dict[str, Observation | None] | None = None

    def with_trial(self, *, tried: bool, by_segment: bool = False) -> "Watch":
        """A copy that judges an incumbent by decisions that are made from now on; or by none, if
        there is no incumbent.
        """
        copy = self.copy()
        copy.before, copy.trial, copy.trials = set(self.queue) if tried else set(), None, None
        copy.unjudged = set()
        if tried and by_segment and (copy.before or copy.segments):
            copy.trials = {}
        elif tried and not by_segment and (copy.before or copy.sequences.observed > 0):
            copy.trial = empty_like(copy.sequences, drift=True)
        return copy

    def with_segments(self, *, kept: bool) -> "Watch":
        """A copy that keeps sequences of each segment from now on; or none, unless verdicts need
        them.
        """
        copy = self.copy()
        if not kept and not self.by_segment:
            copy.segments, copy.segment_of = None, {}
        elif copy.segments is None:
            copy.segments = {}
        return copy

    @property
    def judges(self) -> Sequences:
        """The sequences that an incumbent is judged by."""
        return self.sequences if self.trial is None else self.trial

    @property
    def judges_of_segments(self) -> dict[int, Sequences]:
        """The sequences that an incumbent by segment is judged by, in the order in which segments
        appeared.
        """
        return (self.segments or {}) if self.trials is None else self.trials

    def waiting_of(self, place: int) -> int:
        """How many of a segment were observed and wait for earlier decisions, of any segment."""
        mine = (self.queue[key] for key, segment in self.segment_of.items() if segment == place)
        return sum(seen is not None and not math.isnan(seen.loss) for seen in mine)

    @property
    def waiting(self) -> int:
        """How many were observed and wait for earlier decisions."""
        return sum(seen is not None and not math.isnan(seen.loss) for seen in self.queue.values())

    @property
    def awaited(self) -> Awaited | None:
        """The decision that holds up losses which were observed, and for how long it still may;
        None if none does.
        """
        if self.waiting == 0:
            return None
        key = next(iter(self.queue))
        return Awaited(key, self._patience_for(key) + 1 - len(self.queue))

    def is_awaited(self, key: str) -> bool:
        """Whether a decision that is pending may still become evidence, once it has its loss."""
        seen = self.queue.get(key)
        return seen is not None and math.isnan(seen.loss)

    def _patience_for(self, key: str) -> int:
        """For how many newer decisions a decision is waited for."""
        wait = self.label_patience if key in self.judgements else self.patience
        return wait + self.later.get(key, 0)

    def with_labels(self, rules: Labels) -> "Watch":
        """The same watch for decisions that are judged and labelled, before anything is
        observed.
        """
        sums = self.sequences.sums
        self.judged = Sequences(
            self.sequences.count, sums.risk, drift=sums.drift, coupled=sums.coupled
        )
        self.judge = JudgeSums(self.sequences.count)
        if self.expired is not None:
            self.expired = rules.to_unit(self.expired)
        return self

    def why_means_may_change(self) -> str | None:
        """Why a comparison of losses seen, as if means were constant, would be wrong; None if
        nothing is known against it.
        """
        if self.sees_contexts:
            return CONTEXTS
        return PREFERENCES if self.has_preferences else None

    # Deciding

    def sync(self, pending_store: PendingStore, policy_state: PolicyState) -> None:
        """Put the decisions made since the last call into the queue.

        What is kept of them depends on the state, and they must be pending, so call this before
        either changes.
        """
        if pending_store.made <= self.made:
            self._release()
            return
        newest_first = reversed(pending_store.decisions.values())
        new = list(islice(newest_first, pending_store.made - self.made))
        n_ever = policy_state.serials.n_ever
        for number, pending in enumerate(reversed(new), self.made + 1):
            decision, _, eligible, baseline = pending
            if policy_state.contexts is not None:  # the law is that of its context
                policy_state.contexts.recall(baseline, policy_state.serials)
                policy_state.contexts.derive()
                self._law = None
                self._note_segment(decision.id, policy_state.contexts.segment)
            law = None
            # Whether there is room must not depend on the arm drawn: a round with a law is bet on
            # otherwise.
            room = (len(self.queue) + 1) * n_ever <= MOST_NUMBERS
            if room and decision.propensity is not None:
                state = policy_state.round, eligible
                if (
                    self._law is None or self._law[0] != state
                ):  # decisions of the same round share it
                    self._law = state, self._law_of(pending, policy_state)
                law = self._law[1]
            self.put(pending, self.serials[decision.exploit], law, n_ever)
            self.made = number
            # All earlier ones await their loss, so this can only wear out the patience.
            if len(self.queue) > min(self.patience, self.label_patience):
                self._release()

    def note_batch(self, keys: Sequence[str]) -> None:
        """Note that these decisions are made together, before they are put into the queue."""
        if self.spares_batches:
            for place, key in enumerate(keys[:-1], 1):
                self.later[key] = len(keys) - place

    def _note_segment(self, key: str, place: int) -> None:
        """Count a decision for its segment, if there is room for that."""
        if self.segments is not None and self._has_room(self.segments, place):
            self.segment_of[key] = place
            if self.trials is not None:
                self._has_room(self.trials, place)

    def _has_room(self, known: dict[int, Sequences], place: int) -> bool:
        """Whether this segment has sequences, which it gets with its first decision if there is
        room for them.
        """
        if place not in known and len(known) < most_segments(self.sequences.count):
            share = share_of_segment(len(known) + 1)
            known[place] = empty_like(self.sequences, drift=True, share=share)
        return place in known

    def _law_of(self, pending: Pending, policy_state: PolicyState) -> Floats:
        """The law of exploration by serial."""
        eligible, serials = pending[2], policy_state.serials
        part = None if eligible is None else serials.places(np.array(eligible, np.int64))[0]
        law = policy_state.law("exploration_law", part)
        if serials.kept is not None:
            by_place, law = law, np.zeros(serials.n_ever)
            law[serials.kept] = by_place
        return law

    def put(self, pending: Pending, exploit: int | None, law: Floats | None, n_ever: int) -> None:
        """Put a decision into the queue, which exploits this arm and explores by this law, if it is
        known.
        """
        decision, serial, eligible, _ = pending
        if law is not None and not law.item(serial) > 0.0:
            law = None  # the law is exact, and the arm was drawn by a rounded one
        weight: float | None = (
            decision.weight if decision.propensity is None else 1.0 / decision.propensity
        )
        available = (
            eligible
            if isinstance(eligible, tuple)
            else range(n_ever if eligible is None else eligible)
        )
        if (
            not self.weighs and law is None
        ):  # arms may have had no chance, and it is not known which
            weight = None
        elif not self.weighs and law is not None:
            available = tuple(np.flatnonzero(law).tolist())
        rho = decision.label_request.rho if decision.label_request is not None else 1.0
        # What a label says is not known yet, if one was wanted.
        label = math.nan if rho < 1.0 and decision.label else None
        self.queue[decision.id] = Observation(
            serial, weight, math.nan, exploit, available, law, rho, label
        )

    # Learning

    def settle(self, key: str, loss: float, judgement: Judgement | None = None) -> None:
        """Take the feedback of a decision. If it is too late, it changes nothing."""
        seen = self.queue.get(key)
        if seen is not None:
            if judgement is not None:
                self.judgements[key] = judgement
            self.queue[key] = self._with_loss(seen, loss, judgement)
        self._release()

    def _with_loss(
        self, seen: Observation, loss: float, judgement: Judgement | None
    ) -> Observation:
        """An observation with its loss, and with the label that counts if one was wanted: that of
        the judgement, or the declared loss of a decision that nobody judged.
        """
        if seen.label is None:
            explore, weight, _, exploit, available, law, rho, label = seen
            return Observation(explore, weight, loss, exploit, available, law, rho, label)
        label = None if judgement is None else judgement.counts_as
        if label is None:
            label = 0.5 + self.sequences.width * (loss - 0.5)
        return seen._replace(loss=loss, label=label)

    def note_judged(self, key: str, judgement: Judgement) -> None:
        """Take what a judge said of a decision that awaits its label."""
        if key in self.queue:
            self.judgements[key] = judgement

    def forget(self, key: str) -> None:
        """Give up a decision, which will have no feedback any more."""
        seen = self.queue.get(key)
        if seen is None:
            self.later.pop(key, None)
        elif math.isnan(seen.loss):
            self.queue[key] = self._given_up(key, seen)
        self._release()

    def _given_up(self, key: str, seen: Observation) -> Observation | None:
        judgement = self.judgements.get(key)
        loss = self.expired if judgement is None else judgement.fallback
        if loss is None:
            self.lost[key] = seen
            return None
        return self._with_loss(seen, loss, judgement)

    def _release(self) -> None:
        """Add decisions to the sequences, as far as all earlier ones are settled."""
        queue = self.queue
        while queue:
            key, seen = next(iter(queue.items()))
            if seen is not None and seen.loss != seen.loss:  # NaN
                if len(queue) <= self._patience_for(key):
                    return
                seen = self._given_up(key, seen)
            self._add(key, seen)
            self.before.discard(key)
            self.later.pop(key, None)
            del queue[key]
            self.judgements.pop(key, None)
            self.segment_of.pop(key, None)

    def _add(self, key: str, seen: Observation | None) -> None:
        """Add a decision to each of the sequences that it counts for, or leave it out there."""
        own = () if self.segments is None else self._sequences_of(key)
        if self.released is not None:
            self.released[key] = seen
        if seen is None:
            lost = self.lost.pop(key, None)
            for each in (self.sequences, self.trial if key not in self.before else None, *own):
                if each is not None:
                    each.leave_out(lost)
            return
        if seen.law is not None and len(seen.law) < self.sequences.count:
            # Arms that came later had no chance.
            missing = self.sequences.count - len(seen.law)
            seen = seen._replace(law=np.pad(seen.law, (0, missing)))
        pooled = seen._replace(law=None) if self.mixes_laws else seen
        number = self.sequences.observed
        self.sequences.add(pooled)
        if self.trial is not None and key not in self.before:
            self.trial.add(pooled)
        for each in own:
            each.add(seen)
        if self.judged is not None and self.judge is not None and key in self.judgements:
            (loss, position), label, fallback, _ = self.judgements[key]
            self.judged.add(pooled._replace(loss=loss, rho=1.0, label=None))
            is_missing = label is None and fallback is not None
            self.judge.add_once(
                self.judge.count, seen.explore, loss, label, position, is_missing=is_missing
            )
        if self.lookout is not None:
            self.lookout.take(number, seen, self.sequences)

    def _sequences_of(self, key: str) -> list[Sequences]:
        """The sequences of a decision's own segment, if any are kept."""
        known = self.segments or {}
        place = self.segment_of.get(key, -1)
        own = []
        if place in known:
            self.unjudged.add(place)
            own.append(known[place])
        if self.trials is not None and place in self.trials and key not in self.before:
            own.append(self.trials[place])
        return own

    def take_released(self) -> dict[str, Observation | None]:
        """What came out of the queue since the last call, by the ids of decisions; from the first
        call on.
        """
        released = {} if self.released is None else self.released
        self.released = {}
        return released

    def replay(
        self,
        serial: int,
        weight: float,
        loss: float,
        rho: float,
        label: float | None,
        *,
        incumbent: bool,
    ) -> None:
        """Add a record of a log. An incumbent is not judged by it: whoever set it may have known
        the log.
        """
        if incumbent and self.trial is None:
            self.trial = self.sequences.copy()
        self.sequences.add(Observation(serial, weight, loss, rho=rho, label=label))

    # Arms

    def all_sequences(self) -> list[Sequences]:
        """All that are kept."""
        sequences = [self.sequences]
        if self.trial is not None:
            sequences.append(self.trial)
        if self.judged is not None:
            sequences.append(self.judged)
        if self.lookout is not None and self.lookout.own is not None:
            sequences.append(self.lookout.own)
        if self.segments is not None:
            sequences.extend(self.segments.values())
        if self.trials is not None:
            sequences.extend(self.trials.values())
        return sequences

    def copy(self) -> "Watch":
        """The same, with sequences that go on independently; the queue is shared."""
        copy = shallow(self)
        copy.forget_law()
        for name in ("sequences", "trial", "judged", "judge", "lookout"):
            own = getattr(self, name)
            if own is not None:
                setattr(copy, name, own.copy())
        for name in ("segments", "trials"):
            by_place = getattr(self, name)
            if by_place is not None:
                setattr(copy, name, {place: each.copy() for place, each in by_place.items()})
        copy.unjudged = set(self.unjudged)
        return copy

    def forget_law(self) -> None:
        """Compute the law of exploration anew for the next decision, because arms may change."""
        self._law = None

    def looking_out(self, every: float) -> "Watch":
        """A copy that looks out for a change, by the verdict until now."""
        copy = self.copy()
        if copy.lookout is None:
            copy.lookout = Lookout(every)
            copy.lookout.look(copy.sequences)
        copy.lookout.every = every
        return copy

    def with_arms(self, serials: Serials) -> "Watch":
        """A copy with arms added and retired, so that those left are those of the learner."""
        copy = self.copy()
        live = range(serials.n_ever) if serials.kept is None else serials.kept.tolist()
        for each in copy.all_sequences():
            if serials.n_ever > each.count:
                each.add_arms(serials.n_ever - each.count)
            for gone in set(each.live).difference(live):
                each.retire(gone)
        if copy.lookout is not None:
            copy.lookout.look(copy.sequences)
        return copy

    # Saving

    def to_json(self) -> dict[str, Any]:
        """Everything as plain values. Equal laws are there once."""
        # By value: decisions share objects, but not with those that were restored.
        laws: dict[bytes, int] = {}
        queue = [[key, *_entry_to_json(seen, laws)] for key, seen in self.queue.items()]
        content = {"sequences": self.sequences.to_dict(), "weighs": self.weighs}
        content |= {"patience": self.patience, "expired_loss": self.expired}
        if self.label_patience != self.patience:
            content["label_patience"] = self.label_patience
        if self.spares_batches:
            content["later"] = list(self.later.items())
        if self.trial is not None:
            content |= {"trial": self.trial.to_dict(), "before": sorted(self.before)}
        content |= {"laws": [np.frombuffer(law).tolist() for law in laws], "queue": queue}
        if self.segments is not None:
            content["segments"] = [_by_place(self.segments), list(self.segment_of.items())]
            content |= {"by_segment": True} if self.by_segment else {}
        if self.trials is not None:
            content |= {"trials": _by_place(self.trials), "before": sorted(self.before)}
        if self.judged is not None and self.judge is not None:
            known = [
                [key, *judged, label, back, counts_as]
                for key, (judged, label, back, counts_as) in self.judgements.items()
            ]
            content["judge"] = [self.judged.to_dict(), self.judge.to_json(), known]
        if self.lookout is not None:
            content["lookout"] = self.lookout.to_dict()
        if self.has_preferences:
            content["has_preferences"] = True
        if self.lost:
            content["lost"] = [
                [key, *_entry_to_json(seen._replace(law=None), {})]
                for key, seen in self.lost.items()
            ]
        return content

    @classmethod
    def from_json(cls, content: dict[str, Any]) -> "Watch":
        """Restore the result of `to_json`."""
        sequences = Sequences.from_dict(content["sequences"])
        watch = cls(
            sequences,
            content["patience"],
            content["expired_loss"],
            weighs=content["weighs"],
        )
        watch.label_patience = content.get("label_patience", watch.patience)
        watch.spares_batches, watch.later = "later" in content, dict(content.get("later", ()))
        if "trial" in content:
            watch.trial, watch.before = (
                Sequences.from_dict(content["trial"]),
                set(content["before"]),
            )
        laws = [np.array(law, np.float64) for law in content["laws"]]
        for key, *entry in content["queue"]:
            watch.queue[key] = _entry_from_json(entry, laws) if entry else None
        if "segments" in content:
            known, segment_of = content["segments"]
            watch.segments = {place: Sequences.from_dict(each) for place, each in known}
            watch.segment_of = dict(segment_of)
            watch.by_segment = content.get("by_segment", False) is True
            watch.unjudged = set(watch.segments)  # judged once more, which changes nothing
        if "trials" in content:
            watch.trials = {place: Sequences.from_dict(each) for place, each in content["trials"]}
            watch.before = set(content["before"])
        if "judge" in content:
            judged, judge, known = content["judge"]
            watch.judged, watch.judge = Sequences.from_dict(judged), JudgeSums.from_json(judge)
            for key, loss, position, label, back, counts_as in known:
                said = Judged(loss, position)
                watch.judgements[key] = Judgement(said, label, back, counts_as)
        watch.has_preferences = content.get("has_preferences", False) is True
        for key, *entry in content.get("lost", ()):
            watch.lost[key] = _entry_from_json(entry, [])
        if "lookout" in content:
            watch.lookout = Lookout.from_dict(content["lookout"])
        return watch


_WANTED = "wanted"  # in place of a label that is not known yet


def _by_place(known: dict[int, Sequences]) -> list[list[Any]]:
    return [[place, each.to_dict()] for place, each in known.items()]


def _entry_to_json(seen: Observation | None, laws: dict[bytes, int]) -> list[Any]:
    if seen is None:
        return []
    explore, weight, loss, exploit, available, law, rho, label = seen
    return [
        *(explore, weight, None if math.isnan(loss) else loss, exploit),
        available.stop if isinstance(available, range) else list(available or ()),
        None if law is None else laws.setdefault(law.tobytes(), len(laws)),
        *(() if rho == 1.0 else (rho, _WANTED if label is not None and label != label else label)),
    ]


def _entry_from_json(entry: list[Any], laws: list[Floats]) -> Observation:
    explore, weight, loss, exploit, available, law, *labelled = entry
    rho, label = labelled or (1.0, None)
    return Observation(
        explore,
        None if weight is None else float(weight),
        math.nan if loss is None else float(loss),
        exploit,
        range(available) if isinstance(available, int) else tuple(available),
        None if law is None else laws[law],
        rho,
        math.nan if label == _WANTED else label,
    )
