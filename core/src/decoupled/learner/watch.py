"""What a watched learner keeps: confidence sequences, and decisions that are not in them yet."""

import math
from collections.abc import Sequence
from copy import copy as shallow_copy
from itertools import islice

import numpy as np

from ..base.arrays import Floats
from ..decision import Arm, Decision
from ..inference.judging import JudgeSums
from ..inference.lookout import Lookout
from ..inference.sequences import Sequences, empty_like
from ..inference.sums import Observation, most_segments, share_of_segment
from .arms import Serials
from .evidence_queue import EvidenceQueue
from .guardrails import CONTEXTS, PREFERENCES
from .labels import Judgement, Labels
from .pending import EligibleArms, Pending, PendingStore
from .policy_state import PolicyState

# Numbers in the laws of the queue. Without room for its law, a decision goes without it.
MOST_LAW_NUMBERS = 1_000_000


class Watch:
    """Confidence sequences over the arms of a learner, which are numbered by their serials.

    Args:
        sequences: the confidence sequences of all decisions.
        queue: the decisions that are not in the sequences yet.
        weighs: whether the policy learns from weights. If so, a weight estimates 1 / propensity
            where that is not known, and every available arm has a chance to be explored.

    Attributes:
        serials: the serial of each arm by its name.
        made: the number of the last decision that was put into the queue.
        incumbent_trial: what was observed of the decisions made since an incumbent was set; None
            if `sequences` know no more than that.
        incumbent_trials: the same for each segment, for an incumbent by segment; None if
            `segments` know no more than that.
        made_before_trial: the ids of the decisions that were in the queue when the incumbent was
            set, so they do not count for it.
        judged_sequences: with labels, the sequences of what the judge says alone; else None.
        judge_sums: with labels, the sums about the judge; else None.
        segments: for verdicts by segment, or a rule that asks for them: the sequences of each
            segment by its place, in the order in which they appeared; else None.
        segment_of: the segment of each decision in the queue that counts for one.
        by_segment: whether the segments are kept for verdicts, whatever the rules ask for.
        unjudged: the segments that got evidence since an incumbent was last judged.
        lookout: whether the verdict is decided and still holds, for a budget that then explores
            less; None if no budget asks.
        mixes_laws: whether the chances of exploration depend on the request's segment. A weight
            made of them would then depend on the request too, and weighted differences of all
            requests would say nothing about the mean loss over them.
        sees_contexts: whether requests have contexts.
        has_preferences: whether any loss was a preference between the explored and the exploited
            arm.
        released: what came out of the queue, for whoever keeps further sequences and empties it;
            None if nobody does.
    """

    def __init__(self, sequences: Sequences, queue: EvidenceQueue, *, weighs: bool) -> None:
        self.sequences = sequences
        self.queue = queue
        self.weighs = weighs
        self.serials: dict[Arm | None, int | None] = {}
        self.made = 0
        self.incumbent_trial: Sequences | None = None
        self.incumbent_trials: dict[int, Sequences] | None = None
        self.made_before_trial: set[str] = set()
        self.judged_sequences: Sequences | None = None
        self.judge_sums: JudgeSums | None = None
        self.segments: dict[int, Sequences] | None = None
        self.segment_of: dict[str, int] = {}
        self.by_segment = False
        self.unjudged: set[int] = set()
        self.lookout: Lookout | None = None
        self.mixes_laws = False
        self.sees_contexts = False
        self.has_preferences = False
        self.released: dict[str, Observation | None] | None = None
        # The law of the last decision, and what of the state it belongs to.
        self._law: tuple[tuple[int, EligibleArms], Floats] | None = None

    # Copies with other settings

    def with_trial(self, *, has_incumbent: bool, by_segment: bool = False) -> "Watch":
        """A copy that judges an incumbent by decisions that are made from now on; or by none, if
        there is no incumbent.
        """
        copy = self.copy()
        copy.made_before_trial = set(self.queue.observations) if has_incumbent else set()
        copy.incumbent_trial = None
        copy.incumbent_trials = None
        copy.unjudged = set()
        if not has_incumbent:
            return copy
        if by_segment and (copy.made_before_trial or copy.segments):
            copy.incumbent_trials = {}
        elif not by_segment and (copy.made_before_trial or copy.sequences.observed > 0):
            copy.incumbent_trial = empty_like(copy.sequences, drift=True)
        return copy

    def with_segments(self, *, kept: bool) -> "Watch":
        """A copy that keeps sequences of each segment from now on; or none, unless verdicts need
        them.
        """
        copy = self.copy()
        if not kept and not self.by_segment:
            copy.segments = None
            copy.segment_of = {}
        elif copy.segments is None:
            copy.segments = {}
        return copy

    def keep_labels(self, rules: Labels) -> None:
        """Keep what a judge and labels say too; call this before anything is observed."""
        sums = self.sequences.sums
        self.judged_sequences = Sequences(
            self.sequences.count, sums.risk, drift=sums.drift, coupled=sums.coupled
        )
        self.judge_sums = JudgeSums(self.sequences.count)
        if self.queue.expired_loss is not None:
            self.queue.expired_loss = rules.to_unit(self.queue.expired_loss)

    def with_patience(self, patience: int, expired_loss: float | None) -> "Watch":
        """A copy with another patience, and another loss if it runs out."""
        copy = self.copy()
        copy.queue = self.queue.with_patience(patience, expired_loss)
        return copy

    def with_lookout(self, every: float) -> "Watch":
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
        for sequences in copy.all_sequences():
            if serials.n_ever > sequences.count:
                sequences.add_arms(serials.n_ever - sequences.count)
            for retired in set(sequences.live).difference(live):
                sequences.retire(retired)
        if copy.lookout is not None:
            copy.lookout.look(copy.sequences)
        return copy

    def copy(self) -> "Watch":
        """The same, with sequences that go on independently; the queue is shared."""
        copy = shallow_copy(self)
        copy.forget_law()
        for name in ("sequences", "incumbent_trial", "judged_sequences", "judge_sums", "lookout"):
            own = getattr(self, name)
            if own is not None:
                setattr(copy, name, own.copy())
        for name in ("segments", "incumbent_trials"):
            by_place = getattr(self, name)
            if by_place is not None:
                copies = {place: sequences.copy() for place, sequences in by_place.items()}
                setattr(copy, name, copies)
        copy.unjudged = set(self.unjudged)
        return copy

    # What can be asked

    @property
    def incumbent_sequences(self) -> Sequences:
        """The sequences that an incumbent is judged by."""
        return self.sequences if self.incumbent_trial is None else self.incumbent_trial

    @property
    def incumbent_sequences_by_segment(self) -> dict[int, Sequences]:
        """The sequences that an incumbent by segment is judged by, in the order in which segments
        appeared.
        """
        return (self.segments or {}) if self.incumbent_trials is None else self.incumbent_trials

    def all_sequences(self) -> list[Sequences]:
        """All that are kept."""
        sequences = [self.sequences]
        if self.incumbent_trial is not None:
            sequences.append(self.incumbent_trial)
        if self.judged_sequences is not None:
            sequences.append(self.judged_sequences)
        if self.lookout is not None and self.lookout.since_alarm is not None:
            sequences.append(self.lookout.since_alarm)
        if self.segments is not None:
            sequences.extend(self.segments.values())
        if self.incumbent_trials is not None:
            sequences.extend(self.incumbent_trials.values())
        return sequences

    def waiting_in_segment(self, place: int) -> int:
        """How many of a segment were observed and wait for earlier decisions, of any segment."""
        return self.queue.waiting_among(
            decision_id for decision_id, segment in self.segment_of.items() if segment == place
        )

    def why_means_may_change(self) -> str | None:
        """Why a comparison of losses seen, as if means were constant, would be wrong; None if
        nothing is known against it.
        """
        if self.sees_contexts:
            return CONTEXTS
        return PREFERENCES if self.has_preferences else None

    def take_released(self) -> dict[str, Observation | None]:
        """What came out of the queue since the last call, by the ids of decisions; from the first
        call on.
        """
        released = {} if self.released is None else self.released
        self.released = {}
        return released

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
        for number, pending in enumerate(reversed(new), self.made + 1):
            self._put(pending, policy_state)
            self.made = number
            # All earlier ones await their loss, so this can only wear out the patience.
            if self.queue.exceeds_patience:
                self._release()

    def _put(self, pending: Pending, policy_state: PolicyState) -> None:
        """Put a decision into the queue, with its law of exploration if that is known."""
        decision, serial, eligible, baseline = pending
        contexts = policy_state.contexts
        if contexts is not None:  # the law is that of its context
            contexts.recall(baseline, policy_state.serials)
            contexts.derive()
            self._law = None
            self._note_segment(decision.id, contexts.segment)
        n_ever = policy_state.serials.n_ever
        law = None
        # Whether there is room must not depend on the arm drawn: a round with a law is bet on
        # otherwise.
        has_room = (len(self.queue) + 1) * n_ever <= MOST_LAW_NUMBERS
        if has_room and decision.propensity is not None:
            law = self._shared_law(eligible, policy_state)
            if not law.item(serial) > 0.0:
                law = None  # the law is exact, and the arm was drawn by a rounded one
        observation = self._unobserved(decision, serial, eligible, law, n_ever)
        self.queue.put(decision.id, observation)

    def _shared_law(self, eligible: EligibleArms, policy_state: PolicyState) -> Floats:
        """The law of exploration by serial, computed once for the decisions of a round that could
        choose from the same arms.
        """
        belongs_to = policy_state.round, eligible
        if self._law is None or self._law[0] != belongs_to:
            self._law = belongs_to, _exploration_law(eligible, policy_state)
        return self._law[1]

    def forget_law(self) -> None:
        """Compute the law of exploration anew for the next decision, because arms may change."""
        self._law = None

    def _unobserved(
        self,
        decision: Decision,
        serial: int,
        eligible: EligibleArms,
        law: Floats | None,
        n_ever: int,
    ) -> Observation:
        """A decision as it will be observed, without its loss."""
        weight: float | None = decision.weight
        if decision.propensity is not None:
            weight = 1.0 / decision.propensity
        available: Sequence[int] = range(n_ever)
        if isinstance(eligible, tuple):
            available = eligible
        elif eligible is not None:
            available = range(eligible)
        if not self.weighs and law is None:
            weight = None  # arms may have had no chance, and it is not known which
        elif not self.weighs and law is not None:
            available = tuple(np.flatnonzero(law).tolist())
        rho = decision.label_request.rho if decision.label_request is not None else 1.0
        # What a label says is not known yet, if one was wanted.
        label = math.nan if rho < 1.0 and decision.label else None
        exploit = self.serials[decision.exploit]
        return Observation(serial, weight, math.nan, exploit, available, law, rho, label)

    def note_batch(self, decision_ids: Sequence[str]) -> None:
        """Note that these decisions are made together, before they are put into the queue."""
        self.queue.note_batch(decision_ids)

    def _note_segment(self, decision_id: str, place: int) -> None:
        """Count a decision for its segment, if there is room for that."""
        if self.segments is not None and self._has_room(self.segments, place):
            self.segment_of[decision_id] = place
            if self.incumbent_trials is not None:
                self._has_room(self.incumbent_trials, place)

    def _has_room(self, by_place: dict[int, Sequences], place: int) -> bool:
        """Whether this segment has sequences, which it gets with its first decision if there is
        room for them.
        """
        if place not in by_place and len(by_place) < most_segments(self.sequences.count):
            share = share_of_segment(len(by_place) + 1)
            by_place[place] = empty_like(self.sequences, drift=True, share=share)
        return place in by_place

    # Learning

    def settle(self, decision_id: str, loss: float, judgement: Judgement | None = None) -> None:
        """Take the feedback of a decision. If it is too late, it changes nothing."""
        self.queue.settle(decision_id, loss, judgement)
        self._release()

    def note_judged(self, decision_id: str, judgement: Judgement) -> None:
        """Take what a judge said of a decision that awaits its label."""
        self.queue.note_judged(decision_id, judgement)

    def forget(self, decision_id: str) -> None:
        """Give up a decision, which will have no feedback any more."""
        self.queue.forget(decision_id)
        self._release()

    def _release(self) -> None:
        """Add decisions to the sequences, as far as all earlier ones are settled."""
        while True:
            decision_id = self.queue.oldest_settled()
            if decision_id is None:
                return
            observation = self.queue.observations[decision_id]
            if self.released is not None:
                self.released[decision_id] = observation
            if observation is None:
                self._leave_out(decision_id)
            else:
                self._add(decision_id, observation)
            self.made_before_trial.discard(decision_id)
            self.segment_of.pop(decision_id, None)
            self.queue.remove(decision_id)

    def _leave_out(self, decision_id: str) -> None:
        """Leave a decision out of each of the sequences that it would have counted for."""
        lost = self.queue.lost.get(decision_id)
        self.sequences.leave_out(lost)
        if self.incumbent_trial is not None and decision_id not in self.made_before_trial:
            self.incumbent_trial.leave_out(lost)
        for sequences in self._sequences_of_segment(decision_id):
            sequences.leave_out(lost)

    def _add(self, decision_id: str, observation: Observation) -> None:
        """Add a decision to each of the sequences that it counts for."""
        number = self.sequences.observed
        if observation.law is not None and len(observation.law) < self.sequences.count:
            # Arms that came later had no chance.
            came_later = self.sequences.count - len(observation.law)
            observation = observation._replace(law=np.pad(observation.law, (0, came_later)))
        pooled = observation._replace(law=None) if self.mixes_laws else observation
        self.sequences.add(pooled)
        if self.incumbent_trial is not None and decision_id not in self.made_before_trial:
            self.incumbent_trial.add(pooled)
        for sequences in self._sequences_of_segment(decision_id):
            sequences.add(observation)
        if decision_id in self.queue.judgements:
            self._add_judgement(self.queue.judgements[decision_id], pooled)
        if self.lookout is not None:
            self.lookout.take(number, observation, self.sequences)

    def _add_judgement(self, judgement: Judgement, observation: Observation) -> None:
        """Add what a judge said of a decision, and its label."""
        if self.judged_sequences is None or self.judge_sums is None:
            return
        (loss, position), label, fallback, _ = judgement
        self.judged_sequences.add(observation._replace(loss=loss, rho=1.0, label=None))
        is_missing = label is None and fallback is not None
        self.judge_sums.add_once(
            self.judge_sums.count,
            observation.explore,
            loss,
            label,
            position,
            is_missing=is_missing,
        )

    def _sequences_of_segment(self, decision_id: str) -> list[Sequences]:
        """The sequences of a decision's own segment, if any are kept."""
        if self.segments is None:
            return []
        place = self.segment_of.get(decision_id, -1)
        own = []
        if place in self.segments:
            self.unjudged.add(place)
            own.append(self.segments[place])
        is_in_trial = decision_id not in self.made_before_trial
        trials = self.incumbent_trials
        if trials is not None and place in trials and is_in_trial:
            own.append(trials[place])
        return own

    def replay(
        self,
        serial: int,
        weight: float,
        loss: float,
        rho: float,
        label: float | None,
        *,
        has_incumbent: bool,
    ) -> None:
        """Add a record of a log. An incumbent is not judged by it: whoever set it may have known
        the log.
        """
        if has_incumbent and self.incumbent_trial is None:
            self.incumbent_trial = self.sequences.copy()
        self.sequences.add(Observation(serial, weight, loss, rho=rho, label=label))


def _exploration_law(eligible: EligibleArms, policy_state: PolicyState) -> Floats:
    """The law of exploration by serial, for a request that could choose from these arms."""
    serials = policy_state.serials
    places = None if eligible is None else serials.places(np.array(eligible, np.int64))[0]
    law = policy_state.law("exploration_law", places)
    if serials.kept is None:
        return law
    by_serial = np.zeros(serials.n_ever)
    by_serial[serials.kept] = law
    return by_serial
