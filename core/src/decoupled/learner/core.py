"""The state machine of a learner, from requests and feedback to decisions and what is learned.

`Learner` checks the arguments and makes one call at a time, so the core knows no threads.
A step computes first and assigns last. If it is interrupted while it assigns, `recover` refuses to
go on.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import isnan
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from ..base.arrays import Floats, Ints, Words
from ..base.names import is_name, name_rule
from ..decision import Arm, Decision, GuardedDecision, Served
from ..errors import FeedbackError, Message, ParameterError, StateError
from .forks import branch_off, branch_off_in_child
from .guarding import GuardedServing, parts_with_rules
from .guardrails import PREFERENCES, Guardrails, refuse_constant_means
from .labels import JudgedFeedback, LabelledLoss
from .parts import Parts
from .pending import HeldBaseline, Pending, PendingDecisions, make_decision, new_decision
from .policy_state import PolicyState
from .replay import LogToReplay, check_randomised, checked_record, warn_of_unseen
from .request import ANYTHING, Request
from .saving import as_text, to_content
from .subsets import Subset, Subsets
from .watching import (
    WatchOptions,
    current_watch,
    tell_watch,
    watch_for_alarms,
    watch_from_now,
    watch_of_arms,
    watch_with_patience,
)

if TYPE_CHECKING:  # loaded when a learner is watched
    from .watch import Watch

_Answer = TypeVar("_Answer")


@dataclass(slots=True)
class DrawSetting:
    """What the decisions of one request are drawn from.

    Attributes:
        drawn_from: the policy's state, or one of some arms.
        subset: the arms to choose from; None for all.
        baseline: the baselines of the decisions.
        key_hash: that of the key, which draws the arm to exploit; None without one.
    """

    drawn_from: PolicyState
    subset: Subset | None
    baseline: HeldBaseline
    key_hash: int | None


def known_propensity(propensity: float) -> float | None:
    """A propensity as a decision has it: None for NaN, by which compiled code says "unknown".

    >>> known_propensity(0.5), known_propensity(float("nan"))
    (0.5, None)
    """
    return None if isnan(propensity) else propensity


class LearnerCore:
    """A learner without its lock and the arguments of its methods.

    Attributes:
        parts: what the learner is made of.
    """

    def __init__(self, parts: Parts) -> None:
        # Whether an update has begun that has not ended; if so at the next call, it was
        # interrupted.
        self._is_updating = False
        # The numbers of this process and those above it, each as a child, if it was forked since
        # the last call.
        self._forks: tuple[int, ...] = ()
        parts.policy_state.count_events(parts.pending_store.made)
        self._install(parts)

    def _install(self, parts: Parts) -> None:
        """Go on with these parts."""
        policy_state = parts.policy_state
        pending_store = parts.pending_store
        guard = parts.guard
        self._is_updating = True
        policy_state.pending_baselines.pending = pending_store.decisions
        pending_store.most = min(pending_store.limit, policy_state.most_pending)
        tell_watch(parts)
        self.parts = parts
        self._serving = GuardedServing(parts)
        self._subsets = Subsets(parts.arms, policy_state.serials, guard.rules.down)
        # Whether a decision of which nothing is asked is one of all arms, which are numbered by
        # their places, and only a guardrail may change what the policy drew; and whether feedback
        # does nothing but teach the policy.
        self._is_plain = (
            not guard.rules.down
            and policy_state.contexts is None
            and policy_state.serials.kept is None
            and parts.labels is None
        )
        self._may_replace = guard.may_replace
        self._only_learns = self._is_plain and not guard.has_rules and parts.watch is None
        self._is_updating = False

    # After an interrupt, and in a forked process

    def recover(self) -> None:
        """Get ready for the next step after one that failed, or after a fork.

        Refuse to go on after an update that did not end.
        """
        parts = self.parts
        if self._is_updating:
            problem = (
                "learner: this learner was interrupted in the middle of an update, so what it has "
                "learned is not whole"
            )
            remedy = "restore it from a saved state, or start it anew and replay its log"
            raise StateError(Message(problem, remedy))
        parts.policy_state.count_events(parts.pending_store.made)
        # The state may be that of a draw which was never used.
        parts.policy_state.pending_baselines.kept_of = ""
        if self._forks:
            branch_off_in_child(parts, self._forks)
            self._forks = ()

    def note_fork(self, number: int) -> None:
        """Note that this is a forked process, for `recover`: the parent's child of this number."""
        self._forks = (*self._forks, number)

    def branch_off(self, stream: Words, tag: str) -> None:
        """Go on apart from the learner that this is a copy of."""
        branch_off(self.parts, stream, tag)

    # Deciding

    def decide(self, request: Request) -> Decision:
        """Make a decision.

        Nearly always nothing is asked of it, and the policy draws from all arms. Then this does
        what `_draw` and `PendingStore.add` do, here, because a call more costs over 2 % of a
        decision and its feedback.
        """
        parts = self.parts
        policy_state = parts.policy_state
        pending_store = parts.pending_store
        has_room = len(pending_store.decisions) < pending_store.most
        if request is ANYTHING and self._is_plain and has_room:
            pending_baselines = policy_state.pending_baselines
            baseline = pending_baselines.share() if policy_state.has_baselines else None
            exploit, explore, weight, propensity = policy_state.calls.decide()
            number = pending_store.made + 1
            names = parts.arms.names
            decision_id = f"{pending_store.tag}-{number}"
            chance = None if isnan(propensity) else propensity  # as `known_propensity`
            guarded = None
            if self._may_replace:
                exploit, guarded = self._guard(exploit, None, None)
            fields = decision_id, policy_state.round, names[exploit], names[explore], chance, weight
            if guarded is None:
                decision = new_decision(Decision, fields)
            else:
                decision = GuardedDecision.from_fields(fields, guarded, None)
            pending_baselines.kept_of = decision_id
            pending_store.decisions[decision_id] = decision, explore, None, baseline
            pending_store.made = number
            return decision
        setting = self._prepare(request, 1)
        pending = self._draw(pending_store.made + 1, request, setting)
        if len(pending_store.decisions) < pending_store.most:
            pending_store.add(pending)
        else:
            self._replace_oldest([pending])
        if setting.subset is not None:  # it was drawn in a state of its own
            policy_state.count_events(pending_store.made)
        decision, _, _, _ = pending
        return decision

    def decide_often(self, request: Request, count: int) -> list[Decision]:
        """Make several decisions of one request."""
        setting = self._prepare(request, count)
        pending_store = self.parts.pending_store
        first = pending_store.made + 1
        newest = [self._draw(number, request, setting) for number in range(first, first + count)]
        self._replace_oldest(newest)
        if setting.subset is not None:  # they were drawn in a state of their own
            self.parts.policy_state.count_events(pending_store.made)
        return [decision for decision, _, _, _ in newest]

    def exploit(self, request: Request) -> Served:
        """Draw an arm to serve without a decision."""
        parts = self.parts
        policy_state = parts.policy_state
        subset = self._subsets.find(request.available)
        places = None if subset is None else subset.places
        key_hash = None if request.key is None else policy_state.keys.hash_of(request.key)
        parts.enter_context(request, new=False)
        drawn = policy_state.draw_exploited(places, key_hash)
        exploit, guard = self._serving.choose(drawn, places, key_hash)
        # A draw that is no decision is no event.
        policy_state.count_events(parts.pending_store.made)
        return Served(parts.arms.names[exploit], parts.arms.names[drawn], guard)

    def _prepare(self, request: Request, count: int) -> DrawSetting:
        """Prepare so many decisions of a request."""
        parts = self.parts
        policy_state = parts.policy_state
        if request.served is not None:
            parts.arms.place(request.served.exploit)  # an error if it is no arm
        if parts.labels is not None and parts.labels.judged:
            self._settle_unlabelled_before(count)
        subset = self._subsets.find(request.available)
        parts.enter_context(request)
        shares_baseline = policy_state.has_baselines and policy_state.contexts is None
        pending_baselines = policy_state.pending_baselines
        baseline: HeldBaseline = None
        if subset is None and shares_baseline:
            baseline = pending_baselines.share()
        if count > 1:
            policy_state.record_baselines()
        key_hash = None if request.key is None else policy_state.keys.hash_of(request.key)
        if subset is None:
            return DrawSetting(policy_state, None, baseline, key_hash)
        drawn_from = policy_state.restricted_to(subset.places)
        if shares_baseline:
            baseline = pending_baselines.read_from(drawn_from.pending_baselines, subset.places)
        return DrawSetting(drawn_from, subset, baseline, key_hash)

    def _draw(self, number: int, request: Request, setting: DrawSetting) -> Pending:
        """The decision of this number, as it will be kept."""
        parts = self.parts
        policy_state = parts.policy_state
        names = parts.arms.names
        drawn_from = setting.drawn_from
        subset = setting.subset
        baseline = setting.baseline
        exploit, explore, weight, propensity = drawn_from.calls.decide()
        decision_id = f"{parts.pending_store.tag}-{number}"
        if subset is None:
            policy_state.pending_baselines.kept_of = decision_id
        else:
            exploit = int(subset.places[exploit])
            explore = int(subset.places[explore])
        guarded = None
        why = None
        label_request = None
        if parts.guard.may_replace or setting.key_hash is not None or request.served is not None:
            exploit, guarded = self._choose_exploited(exploit, request, setting)
        chance = known_propensity(propensity)
        served = names[exploit] if request.is_exploiting else None
        fields = decision_id, policy_state.round, served, names[explore], chance, weight
        if parts.labels is not None:
            label_request = parts.labels.ask(number, policy_state.stream.tobytes())
        serial = policy_state.serials.id_at(explore)
        if policy_state.contexts is not None:
            baseline = policy_state.contexts.snapshot(drawn_from.state, drawn_from.serials, serial)
            why = policy_state.contexts.why(drawn_from.state)
        eligible = None if subset is None else subset.ids
        return make_decision(fields, guarded, why, label_request), serial, eligible, baseline

    def _choose_exploited(
        self, drawn: int, request: Request, setting: DrawSetting
    ) -> tuple[int, tuple[Arm, str] | None]:
        """The arm to exploit, of a key or by guardrails.

        With it, the arm that the policy drew and the guardrail, if one chose it.
        """
        parts = self.parts
        served = request.served
        places = None if setting.subset is None else setting.subset.places
        if served is not None:
            guarded = None if served.guard is None else (served.drawn, served.guard)
            return parts.arms.place(served.exploit), guarded
        if setting.key_hash is not None:
            place = setting.drawn_from.keys.arm(setting.key_hash)
            drawn = place if places is None else int(places[place])
        if not request.is_exploiting or not parts.guard.may_replace:
            return drawn, None
        return self._guard(drawn, places, setting.key_hash)

    def _guard(
        self, drawn: int, places: Ints | None, key_hash: int | None
    ) -> tuple[int, tuple[Arm, str] | None]:
        """The arm to exploit by guardrails, with the arm that the policy drew and the guardrail if
        one chose it.
        """
        exploit, guard = self._serving.choose(drawn, places, key_hash)
        return exploit, None if guard is None else (self.parts.arms.names[drawn], guard)

    def _replace_oldest(self, newest: list[Pending]) -> None:
        """Wait for the feedback of decisions. If there is no room, forget the oldest ones."""
        oldest = self.parts.pending_store.oldest(len(newest))
        if oldest:
            self.parts.sync_watch()
        self._replace_pending(oldest, newest)

    def _replace_pending(self, gone: list[str], newest: list[Pending]) -> None:
        watch = self.parts.watch
        self._is_updating = True
        self.parts.pending_store.replace(gone, newest)
        if watch is not None:
            if len(newest) > 1:
                watch.note_batch([decision.id for decision, _, _, _ in newest])
            for decision_id in gone:
                watch.forget(decision_id)
        self._is_updating = False

    # Learning

    def observe(self, decision: Decision | str, loss: float) -> None:
        """Learn a loss on a scale from 0 to 1.

        Nearly always feedback only teaches the policy, and comes with the decision that `decide`
        made, which could choose any arm. Then this does what `_apply_feedback` does, here, because
        a call more costs over 2 % of a decision and its feedback.
        """
        pending_store = self.parts.pending_store
        if self._only_learns and type(decision) is Decision:
            decision_id = decision.id
            decisions = pending_store.decisions
            pending = decisions.get(decision_id) if type(decision_id) is str else None
            if pending is not None:
                made, arm, eligible, baseline = pending
                if made is decision and eligible is None:
                    self._is_updating = True
                    try:
                        self.parts.policy_state.learn(
                            arm, decision.weight, loss, baseline, decision_id
                        )
                    except StateError:  # a solver failed, and nothing is changed
                        self._is_updating = False
                        raise
                    del decisions[decision_id]
                    self._is_updating = False
                    return
        self._apply_feedback(pending_store.find(decision), loss)

    def observe_preference(self, decision: Decision | str, loss: float) -> None:
        """Learn a loss that is a preference between the two arms."""
        pending = self.parts.pending_store.find(decision)
        self._check_takes_preference(pending)
        self._note_preference()
        self._apply_feedback(pending, loss)

    def _check_takes_preference(self, pending: Pending) -> None:
        """Raise an error if feedback on a decision cannot be a preference between its two arms."""
        decision, _, _, _ = pending
        if decision.exploit is None:
            problem = f"decision {decision.id!r}: has no exploited arm to compare with"
            raise FeedbackError(Message(problem, "make decisions to compare with decide()"))
        if self.parts.watch is not None:
            if not self.parts.watch.sequences.drift:
                refuse_constant_means("preference", PREFERENCES)
            self.parts.guard.rules.check_takes_preferences()

    def _note_preference(self) -> None:
        if self.parts.watch is not None:
            self.parts.watch.has_preferences = True

    def _apply_feedback(
        self, pending: Pending, loss: float, labelled: LabelledLoss | None = None
    ) -> None:
        """Learn a loss on a scale from 0 to 1, and what it changes about the labels."""
        parts = self.parts
        watch = parts.watch
        decision, _, _, _ = pending
        parts.sync_watch()
        self._is_updating = True
        try:
            parts.policy_state.settle(pending, loss)
        except StateError:  # a solver failed, and nothing is changed
            self._is_updating = False
            raise
        del parts.pending_store.decisions[decision.id]
        if parts.labels is not None:
            parts.labels.note(decision.id, labelled)
        if watch is not None:
            judgement = None if labelled is None else labelled.judgement
            watch.settle(decision.id, loss, judgement)
        self._is_updating = False
        if parts.guard.has_rules:
            self._serving.apply_evidence_after_feedback()

    def expire(self, decision: Decision | str, loss: float) -> None:
        """Learn a loss on a scale from 0 to 1 that says nothing about the judge."""
        labels = self.parts.labels
        pending = self.parts.pending_store.find(decision)
        self._apply_feedback(pending, loss if labels is None else labels.rules.to_unit(loss))

    def forget(self, decision: Decision | str) -> None:
        """Wait no longer for the feedback of a decision."""
        parts = self.parts
        made, _, _, _ = parts.pending_store.find(decision)
        if parts.labels is not None and made.id in parts.labels.judged:
            self._settle_unlabelled(made.id)
            return
        parts.sync_watch()
        self._replace_pending([made.id], [])

    def replay(self, log: LogToReplay) -> int:
        """Learn from a log, of which all records are checked first."""
        parts = self.parts
        policy_state = parts.policy_state
        watch = parts.watch
        labels = parts.labels
        checked = [
            checked_record(
                place,
                record,
                parts.arms,
                parts.losses,
                policy_state.contexts,
                labelled=labels is not None,
            )
            for place, record in enumerate(log.records)
        ]
        if log.must_be_randomised:
            check_randomised(checked, parts.arms, policy_state)
        # Before anything is learned, since warnings may be errors.
        warn_of_unseen(checked, parts.arms, policy_state)
        parts.sync_watch()
        has_incumbent = parts.guard.rules.incumbent is not None
        self._is_updating = True
        for record in checked:
            loss = record.loss if labels is None else labels.learn_logged(record)
            assert loss is not None
            policy_state.learn_logged(record.arm, record.weight, loss, record.context)
            if watch is not None:
                serial = policy_state.serials.id_at(record.arm)
                label = None if record.judged is None else record.loss
                watch.replay(
                    serial, record.weight, loss, record.rho, label, has_incumbent=has_incumbent
                )
        self._is_updating = False
        self._serving.apply_evidence()
        return len(checked)

    # Labels

    def observe_judged(self, decision: Decision | str, feedback: JudgedFeedback) -> None:
        """Take what a judge says of a decision, its label, or both."""
        parts = self.parts
        label = feedback.label
        labels = parts.labels
        assert labels is not None
        pending = parts.pending_store.find(decision)
        if feedback.is_preference:
            self._check_takes_preference(pending)
        made, _, _, _ = pending
        labels.check(made, feedback.judged, label)
        judged = labels.judged[made.id] if feedback.judged is None else feedback.judged
        if feedback.is_preference:
            self._note_preference()
        for decision_id in labels.overdue(parts.pending_store.made):
            if decision_id != made.id:
                self._settle_unlabelled(decision_id)
        if label is not None or not made.label:
            labelled = labels.loss_of(made, judged, label)
            self._apply_feedback(pending, labelled.loss, labelled)
            return
        parts.sync_watch()
        labels.expect(made.id, judged)
        if parts.watch is not None:
            parts.watch.note_judged(made.id, labels.awaited(made, judged))

    def overdue(self) -> tuple[Decision, ...]:
        """The decisions whose label is overdue, oldest first."""
        parts = self.parts
        if parts.labels is None:
            return ()
        overdue = []
        for decision_id in parts.labels.overdue(parts.pending_store.made):
            decision, _, _, _ = parts.pending_store.decisions[decision_id]
            overdue.append(decision)
        return tuple(overdue)

    def _settle_unlabelled(self, decision_id: str) -> None:
        """Learn from a decision whose label never came."""
        labels = self.parts.labels
        pending = self.parts.pending_store.decisions[decision_id]
        decision, _, _, _ = pending
        assert labels is not None
        labelled = labels.loss_without_label(decision)
        self._apply_feedback(pending, labelled.loss, labelled)

    def _settle_unlabelled_before(self, count: int) -> None:
        """Learn from the decisions that await a label and make room for so many new ones."""
        labels = self.parts.labels
        for decision_id in self.parts.pending_store.oldest(count):
            if labels is not None and decision_id in labels.judged:
                self._settle_unlabelled(decision_id)

    # Arms

    def add_arms(self, names: list[object]) -> None:
        """Add arms at the end."""
        parts = self.parts
        if not names:
            return
        arms = parts.arms.extended(names)
        policy_state = parts.policy_state.extended(len(names))
        pending_store = parts.pending_store.with_arm(parts.policy_state.serials.n_ever)
        self._install(
            replace(
                parts,
                arms=arms,
                policy_state=policy_state,
                pending_store=pending_store,
                guard=parts.guard.with_arms(len(arms)),
                watch=watch_of_arms(parts, policy_state),
            )
        )
        self._serving.apply_evidence()

    def retire_arms(self, names: list[object]) -> None:
        """Retire arms."""
        parts = self.parts
        gone = parts.arms.places(names)
        if len(gone) == 0:
            return
        rules = parts.guard.rules
        rules.check_retiring(names)
        arms = parts.arms.without(gone)
        policy_state = parts.policy_state.without(gone)
        guard = parts.guard.with_rules(rules.without(names))
        if guard.frozen is not None:
            guard.frozen = np.delete(guard.frozen, gone)
        watch = watch_of_arms(parts, policy_state)
        self._install(
            replace(parts, arms=arms, policy_state=policy_state, guard=guard, watch=watch)
        )
        self._serving.apply_evidence()

    # Guardrails, and the tag of ids

    def set_guardrails(self, rules: Guardrails) -> None:
        """Serve by other rules."""
        self._install(parts_with_rules(self.parts, rules))
        self.parts.sync_watch()
        self._serving.apply_evidence()

    def set_tag(self, tag: str) -> None:
        """Let ids begin with another tag."""
        pending_store = self.parts.pending_store
        if not is_name(tag):
            raise ParameterError.of("tag", tag, name_rule(), "for example 'checkout'")
        if len(pending_store) > 0:
            rule = f"cannot be set while decisions are pending, and {len(pending_store):,} are"
            raise ParameterError.of("tag", tag, rule, "set it before the first decision")
        pending_store.tag = tag

    # What a learner knows

    def pending(self) -> PendingDecisions:
        """The decisions that await feedback."""
        return PendingDecisions.of(self.parts.pending_store)

    def law(self, name: str, request: Request) -> Floats:
        """The policy's "exploitation_law" or "exploration_law" for a request."""
        places = self._look_at(request)
        return self.parts.policy_state.law(name, places)

    def guarded_law(self, request: Request) -> Floats:
        """The probability that a decision of a request exploits each arm."""
        return self._serving.exploitation_law(self._look_at(request))

    def _look_at(self, request: Request) -> Ints | None:
        """Put a request where it is answered without a decision. Return the places of its arms."""
        subset = self._subsets.find(request.available)
        self.parts.enter_context(request, new=False)
        return None if subset is None else subset.places

    def estimates(self) -> Floats:
        """What is learned about each arm."""
        policy_state = self.parts.policy_state
        return policy_state.form.estimates(policy_state.state)

    def inspect(self, view: Callable[[Parts], _Answer]) -> _Answer:
        """The answer of a function of the parts."""
        return view(self.parts)

    def to_json(self) -> str:
        """The whole state as text."""
        self.parts.sync_watch()
        return as_text(to_content(self.parts))

    # Watching

    def watch(self, options: WatchOptions) -> None:
        """Keep confidence sequences from now on."""
        self._install(replace(self.parts, watch=watch_from_now(self.parts, options)))

    def stop_watching(self) -> None:
        """Drop the confidence sequences."""
        self._install(replace(self.parts, watch=None))

    def wait_for_feedback(self, patience: int, expired: float | None) -> None:
        """Change how long evidence waits for feedback, and the loss, from 0 to 1, counted then."""
        watch = watch_with_patience(self.parts, patience, expired)
        self._install(replace(self.parts, watch=watch))

    def give_up(self, decision: Decision | str) -> None:
        """Let the evidence wait no longer for a decision."""
        made, _, _, _ = self.parts.pending_store.find(decision)
        current_watch(self.parts).forget(made.id)

    def query_watch(self, question: "Callable[[Watch, Parts], _Answer]") -> _Answer:
        """The answer to a question about what is watched."""
        return question(current_watch(self.parts), self.parts)

    def is_decided(self, alarm_every: float) -> bool:
        """Whether an arm is decided to be the best, without an alarm since."""
        watch = watch_for_alarms(self.parts, alarm_every)
        if watch is not self.parts.watch:
            self._install(replace(self.parts, watch=watch))
        return watch.lookout is not None and watch.lookout.alarm.decided is not None
