"""A running policy: it decides, and it learns from the losses of the arms it explored."""

import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, TypeVar, overload

from ..base.arrays import Floats
from ..base.files import write_atomically
from ..base.turns import Turns
from ..base.validation import MOST_ROUNDS, whole_number
from ..decision import Arm, Decision, Served
from ..errors import LossError, Message, ParameterError, UnsupportedError
from ..policy import Definition
from .arms import ArmNames, Arms, listed, listed_available, refuse_set
from .context import Advice, Context
from .core import LearnerCore
from .guardrail_state import GuardrailState
from .guardrails import Guardrails, checked_guardrails
from .inferring import Inference, WatchCalls, checked_patience, not_watched
from .labels import (
    Judged,
    JudgedFeedback,
    Labelling,
    Labels,
    LabelStatus,
    checked_labels,
    checked_position,
)
from .losses import LossRange, Preference, preference_loss
from .parts import Parts
from .pending import PendingDecisions, PendingStore
from .policy_state import PolicyState
from .replay import LogToReplay, RecordLike, listed_records
from .request import ANYTHING, Request
from .saving import from_text
from .seeds import Key, Seed, key_text, randomness
from .watching import WatchOptions

if TYPE_CHECKING:  # loaded when a learner is watched
    from .watch import Watch

_Answer = TypeVar("_Answer")

DEFAULT_PENDING = 100_000


class Learner:
    """A running policy. Make one with `policy.start(arms, seed)`.

    Only `observe` and `replay` learn: they change the estimates and the round, which is 1 + the
    number of observations applied. `decide`, `exploit` and `explore` draw from that state and
    change only the random stream and the pending decisions. So you can call them any number of
    times between two observations, and feedback may come late, out of order, or never. Use
    `add_arms` and `retire_arms` to change the arms at any time.

    A learner is thread-safe: calls from several threads run one after another. If Ctrl-C interrupts
    an update, the next call raises `StateError`: restore the learner then, or replay its log. In a
    forked process, a learner has its own random stream, and its decisions have other ids than the
    parent's.

    Args:
        policy: the policy to run, such as `Ladder()`.
        arms: the number of arms, which are then called 0, 1, 2 and so on, or their names in a list;
            two or more.
        seed: the seed of the random stream, a whole number or a `numpy.random.SeedSequence`; None
            for fresh randomness.
        loss_range: the lowest and the highest possible loss. A loss outside it is rejected.
        max_pending: how many decisions may await feedback. Beyond that, the oldest is forgotten. If
            decisions store a number for each arm, at most 100 million numbers are stored: 10,000
            decisions with 10,000 arms.
        guardrails: rules about the arm that is served; None for no rules.
        labels: how many decisions ask for a label, if losses come from a judge; None if losses are
            true.

    >>> import decoupled as dc
    >>> learner = dc.FTPL().start(arms=["a", "b", "c"], seed=7)
    >>> decision = learner.decide()
    >>> learner.observe(decision, loss=0.3)      # the loss of decision.explore
    >>> learner.round, len(learner.pending)
    (2, 0)
    """

    def __init__(
        self,
        policy: Definition,
        arms: Arms,
        seed: Seed = None,
        *,
        loss_range: tuple[float, float] = (0.0, 1.0),
        max_pending: int = DEFAULT_PENDING,
        guardrails: Guardrails | None = None,
        labels: Labels | None = None,
    ) -> None:
        names = ArmNames.checked(arms)
        losses = LossRange.checked(loss_range)
        remedy = f"the default is {DEFAULT_PENDING}"
        limit = whole_number("max_pending", max_pending, 1, remedy, MOST_ROUNDS)
        stream, tag = randomness(seed)
        parts = Parts(
            arms=names,
            losses=losses,
            policy_state=PolicyState.fresh(policy, len(names), stream),
            pending_store=PendingStore(tag, limit),
            guard=GuardrailState(Guardrails()),
            labels=None if labels is None else Labelling(checked_labels(labels)),
        )
        self._begin(LearnerCore(parts))
        if guardrails is not None:
            self._core.set_guardrails(checked_guardrails(guardrails))

    def _begin(self, core: LearnerCore) -> None:
        """Run this core."""
        self._core = core
        # Methods that nearly every call takes. It costs time to look them up and bind them anew.
        self._decide = core.decide
        self._observe = core.observe
        self._turns = Turns(type(self).__name__, recover=core.recover, on_fork=core.note_fork)

    @classmethod
    def _with_core(cls, core: LearnerCore) -> Self:
        """A learner that runs this core."""
        learner = object.__new__(cls)
        learner._begin(core)
        return learner

    def __repr__(self) -> str:
        pending = len(self._core.parts.pending_store)
        size = f"{len(self._core.parts.arms)} arms, round {self.round}, {pending} pending"
        return f"<Learner {self.policy!r}, {size}>"

    def __reduce__(self) -> tuple[Any, tuple[Any, ...]]:
        # Unpickling the policy's class defines it, so that from_json can find the policy by name.
        return _unpickled, (type(self), type(self.policy), self.to_json())

    # Properties

    @property
    def policy(self) -> Definition:
        """The policy that is running."""
        return self._core.parts.policy_state.policy

    @property
    def arms(self) -> tuple[Arm, ...]:
        """The names of the arms, in order."""
        return tuple(self._core.parts.arms.names)

    @property
    def loss_range(self) -> tuple[float, float]:
        """The lowest and highest possible loss."""
        losses = self._core.parts.losses
        return losses.low, losses.high

    @property
    def round(self) -> int:
        """1 + the number of observations applied."""
        return self._core.parts.policy_state.round

    @property
    def max_pending(self) -> int:
        """How many decisions may await feedback. Beyond that, the oldest is forgotten.

        >>> import decoupled as dc
        >>> dc.Ladder().start(arms=10_000, seed=1).max_pending
        10000
        """
        return self._core.parts.pending_store.most

    @property
    def tag(self) -> str:
        """What the ids of new decisions begin with: a decision has the id `<tag>-<number>`.

        Each learner draws a tag of its own, so that no two learners make decisions with the same
        id. A service that logs its decisions and replays them sets the tag that its log has, before
        the first decision.

        Raises:
            ParameterError: if you set something that is no name, or set it while decisions are
                pending.

        >>> import decoupled as dc
        >>> learner = dc.FTPL().start(arms=["a", "b"], seed=7)
        >>> learner.tag = "checkout"
        >>> learner.decide().id
        'checkout-1'
        """
        return self._core.parts.pending_store.tag

    @tag.setter
    def tag(self, tag: str) -> None:
        self._turns.run(self._core.set_tag, tag)

    @property
    def segments(self) -> tuple[tuple[str | None, ...], ...] | None:
        """The segments that a contextual policy tells apart, in order of appearance; None for other
        policies.

        >>> import decoupled as dc
        >>> learner = dc.ContextualLadder(segments=("subject",)).start(arms=2, seed=7)
        >>> for subject in ("law", "art", "law"):
        ...     decision = learner.decide(context={"subject": subject})
        >>> learner.segments
        (('law',), ('art',))
        """
        contexts = self._core.parts.policy_state.contexts
        return None if contexts is None else tuple(contexts.encoder.segments)

    @property
    def pending(self) -> PendingDecisions:
        """The decisions that await feedback, oldest first; `pending.forgotten` counts those that
        were forgotten before.

        >>> import decoupled as dc
        >>> learner = dc.FTPL().start(arms=2, seed=7, max_pending=3)
        >>> for _ in range(5):
        ...     decision = learner.decide()
        >>> len(learner.pending), learner.pending.forgotten, learner.pending[-1] == decision
        (3, 2, True)
        """
        return self._turns.run(self._core.pending)

    @property
    def overdue(self) -> tuple[Decision, ...]:
        """The decisions whose label is overdue, oldest first; see `Labels.deadline`.

        The decisions stay pending until the next feedback, which settles them first, as `forget`
        does. A service that logs each of these events reads this property and settles them itself.

        >>> import decoupled as dc
        >>> learner = dc.FTPL().start(arms=2, seed=7, labels=dc.Labels(share=1.0, deadline=2))
        >>> decision = learner.decide()
        >>> learner.observe(decision, judged=0.5)
        >>> _ = learner.decide(count=2)
        >>> learner.overdue == (decision,)
        True
        >>> learner.forget(decision)
        >>> learner.overdue, learner.labels.missing
        ((), 1)
        """
        return self._turns.run(self._core.overdue)

    @property
    def labels(self) -> LabelStatus | None:
        """The labels so far; None if the learner was started without `labels=`.

        See `Labels` for an example.
        """
        labels = self._core.parts.labels
        return None if labels is None else labels.status

    @property
    def guardrails(self) -> Guardrails:
        """The rules about the arm that is served. Assign to it to change them.

        `Guardrails()` has none.

        >>> import decoupled as dc
        >>> learner = dc.FTPL().start(arms=["a", "b"], seed=7)
        >>> learner.guardrails = dc.Guardrails(pinned="a")
        >>> [learner.exploit().exploit for _ in range(3)]
        ['a', 'a', 'a']
        """
        return self._core.parts.guard.rules

    @guardrails.setter
    def guardrails(self, rules: Guardrails) -> None:
        self._turns.run(self._core.set_guardrails, checked_guardrails(rules))

    @property
    def inference(self) -> Inference:
        """Intervals, differences and verdicts that hold at every moment at once, since `watch` was
        called.

        Raises:
            UnsupportedError: if the learner is not watched.
        """
        if self._core.parts.watch is None:
            raise not_watched()
        return Inference(
            WatchCalls(
                query=self._query_watch,
                configure=self._configure_watch,
                give_up=self._give_up,
                stop=self._stop_watching,
                loss_range=self.loss_range,
            )
        )

    def _query_watch(self, question: "Callable[[Watch, Parts], _Answer]") -> _Answer:
        return self._turns.run(self._core.query_watch, question)

    def _configure_watch(self, patience: int, expired_loss: float | None) -> None:
        """Check the arguments of `Inference.configure`, and do it."""
        self._turns.run(
            self._core.wait_for_feedback,
            checked_patience(patience),
            self._scaled_expired_loss(expired_loss),
        )

    def _give_up(self, decision: Decision | str) -> None:
        self._turns.run(self._core.give_up, decision)

    def _stop_watching(self) -> None:
        self._turns.run(self._core.stop_watching)

    def _scaled_expired_loss(self, expired_loss: float | None) -> float | None:
        if expired_loss is None:
            return None
        return self._core.parts.losses.scaled_as("expired_loss", expired_loss)

    # Deciding

    @overload
    def decide(
        self,
        count: None = None,
        *,
        context: Context | None = None,
        advice: Advice | None = None,
        key: Key | None = None,
        available: Iterable[Arm] | None = None,
    ) -> Decision: ...
    @overload
    def decide(
        self,
        count: int,
        *,
        context: Context | None = None,
        advice: Advice | None = None,
        key: Key | None = None,
        available: Iterable[Arm] | None = None,
    ) -> list[Decision]: ...

    def decide(
        self,
        count: int | None = None,
        *,
        context: Context | None = None,
        advice: Advice | None = None,
        key: Key | None = None,
        available: Iterable[Arm] | None = None,
    ) -> Decision | list[Decision]:
        """Decide on an arm to exploit and an arm to explore; with `count`, return a list of
        decisions.

        A policy of the standard game (`policy.coupled`) gives the same arm for both.

        Args:
            count: the number of decisions, at most `max_pending`; None returns one decision, and
                not a list.
            context: what is known of the request, for a `ContextualLadder`: values by the names of
                fields, each a string, a boolean, a number, or None if it is missing. Fields that
                the policy does not name are ignored.
            advice: what advisers of the policy would exploit: an arm, or a mapping from arms to
                probabilities, by the adviser's name. An adviser who says nothing counts as the
                policy's pooled ladder.
            key: a session, a user or anything else that should keep its arm; None draws afresh. The
                key decides the draw of the arm to exploit, and nothing else: the same key exploits
                the same arm until what is learned moves it, here, after saving and loading, and on
                every replica. Nobody can predict that arm without the seed, unless it can be
                guessed. A string of 1 to 1,024 bytes in UTF-8, or a whole number, the same key as
                its digits.
            available: the arms to choose from; None for all. The policy applies its own rule to
                their estimates, and the propensity is exact for that choice. When the loss arrives,
                the unavailable arms are charged the same loss, an unbiased estimate of the mean
                loss of the available arms, so absence gains nothing.

        Returns:
            One decision, or a list of `count` decisions.

        Raises:
            ArmError: if `available` is empty or names something that is not an arm.
            ParameterError: if `count` is not a whole number from 1 to `max_pending`.
            UnsupportedError: if the policy takes no `context`, or plays the standard game and gets
                a `key`.

        >>> import decoupled as dc
        >>> learner = dc.FTPL().start(arms=["a", "b", "c"], seed=7)
        >>> [decision.explore for decision in learner.decide(count=3)]
        ['b', 'b', 'a']
        >>> learner.decide(available=["b"]).propensity
        1.0
        >>> {learner.decide(key="session-17").exploit for _ in range(20)}
        {'b'}
        """
        if context is None and advice is None and key is None and available is None:
            request = ANYTHING
        else:
            if key is not None:
                _refuse_coupled(self.policy, "decide(key=...)")
            request = Request(
                context=context,
                advice=advice,
                available=listed_available(available),
                key=None if key is None else key_text(key),
            )
        if count is None:
            return self._turns.run(self._decide, request)
        number = whole_number("count", count, 1, "leave it out for a single decision")
        most = self._core.parts.pending_store.most
        if number > most:
            rule = f"must not exceed max_pending = {most}"
            remedy = "make fewer at once, or raise max_pending in start()"
            raise ParameterError.of("count", count, rule, remedy)
        return self._turns.run(self._core.decide_often, request, number)

    def redecide(
        self,
        served: Served,
        *,
        context: Context | None = None,
        advice: Advice | None = None,
        available: Iterable[Arm] | None = None,
    ) -> Decision:
        """Make a decision of your log again, where a key drew the arm to exploit and the log does
        not have the key.

        To replay a log of everything that a learner did, make its calls again: `decide`, `exploit`,
        `observe` and so on. A learner of the same seed then ends in the same state. Where `decide`
        had a key that you keep secret, call this with the arm that the log says was exploited. The
        arm to explore is drawn again.

        Args:
            served: the arm that was exploited, and the guardrail that chose it, if one did.
            context: what was known of the request, as in `decide`.
            advice: what advisers would have exploited, as in `decide`.
            available: the arms that could be chosen, as in `decide`.

        Raises:
            ArmError: if the arm is not one of the learner's.
            UnsupportedError: if the policy plays the standard game, where the arm played is the arm
                seen.

        >>> import decoupled as dc
        >>> learner, again = (dc.FTPL().start(arms=["a", "b", "c"], seed=7) for _ in range(2))
        >>> decision = learner.decide(key="a user")
        >>> again.redecide(dc.Served(decision.exploit, decision.drawn, decision.guard)) == decision
        True
        """
        _refuse_coupled(self.policy, "redecide()")
        request = Request(
            context=context, advice=advice, available=listed_available(available), served=served
        )
        return self._turns.run(self._decide, request)

    def explore(
        self,
        *,
        context: Context | None = None,
        available: Iterable[Arm] | None = None,
    ) -> Decision:
        """Make a decision that only explores: its `exploit` is None.

        Args:
            context: what is known of the request, as in `decide`; None for nothing.
            available: the arms to choose from, as in `decide`; None for all.

        Raises:
            UnsupportedError: if the policy plays the standard game, where the arm played is the arm
                seen.

        >>> import decoupled as dc
        >>> learner = dc.FTPL().start(arms=["a", "b", "c"], seed=7)
        >>> learner.explore().exploit is None
        True
        """
        _refuse_coupled(self.policy, "explore()")
        request = Request(
            context=context, available=listed_available(available), is_exploiting=False
        )
        return self._turns.run(self._decide, request)

    def exploit(
        self,
        *,
        context: Context | None = None,
        advice: Advice | None = None,
        key: Key | None = None,
        available: Iterable[Arm] | None = None,
    ) -> Served:
        """Draw an arm to use now. It needs no feedback and does not advance the schedule.

        Args:
            context: what is known of the request, as in `decide`; None for nothing.
            advice: what advisers would exploit, as in `decide`; None for nothing.
            key: a session or a user that should keep its arm, as in `decide`; None draws afresh.
            available: the arms to choose from, as in `decide`; None for all.

        Returns:
            The arm, as `exploit`, and which guardrail chose it.

        Raises:
            UnsupportedError: if the policy plays the standard game, where the arm played is the arm
                seen.

        >>> import decoupled as dc
        >>> learner = dc.FTPL().start(arms=["a", "b", "c"], seed=7)
        >>> [learner.exploit().exploit for _ in range(4)], learner.round, len(learner.pending)
        (['b', 'c', 'a', 'b'], 1, 0)
        >>> learner.guardrails = dc.Guardrails(pinned="c")
        >>> learner.exploit()
        Served(exploit='c', drawn='a', guard='pinned', limited_by=None)
        """
        _refuse_coupled(self.policy, "exploit()")
        request = Request(
            context=context,
            advice=advice,
            available=listed_available(available),
            key=None if key is None else key_text(key),
        )
        return self._turns.run(self._core.exploit, request)

    # Learning

    def observe(
        self,
        decision: Decision | str,
        loss: float | None = None,
        *,
        reward: float | None = None,
        preference: Preference | None = None,
        judged: float | Preference | None = None,
        position: float | None = None,
    ) -> None:
        """Learn the loss of the arm that a decision *explored*.

        Do not report the loss of the exploited arm: it is suffered and not seen. Give exactly one
        of `loss`, `reward` and `preference`, and do not mix preferences with losses.

        With `labels`, give `judged` for every decision, and the label as one of the three if
        `decision.label` is true, in the same call or a later one. Until its label comes, the
        decision stays pending.

        Args:
            decision: the decision, or its id.
            loss: the loss of the explored arm, within `loss_range`.
            reward: its reward in place of the loss: the mirror image of the loss within
                `loss_range`.
            preference: which of the two arms did better, in place of a number; see
                `preference_loss`.
            judged: what the judge says: a loss within `loss_range`, or a preference. Only with
                `labels`.
            position: how much the judge preferred what it saw first: 1 if that won, -1 if the
                second did, 0 for a tie; None if you do not know. It changes nothing but
                `inference.judge()`.

        Raises:
            FeedbackError: if the decision is not pending: its feedback has arrived already, it was
                forgotten, or it belongs to another learner. Also for a label that was not asked
                for, or comes before the judgement.
            LossError: if the loss is missing, given twice, not a number, or outside `loss_range`.
            UnsupportedError: if a policy of the standard game is given a preference.

        >>> import decoupled as dc
        >>> learner = dc.FTPL().start(arms=["a", "b"], seed=7, loss_range=(0, 250))
        >>> late, prompt = learner.decide(count=2)
        >>> learner.observe(prompt, loss=120)
        >>> learner.observe(late.id, reward=200)
        """
        parts = self._core.parts
        if parts.labels is not None:
            feedback = self._judged_feedback(loss, reward, preference, judged, position)
            self._turns.run(self._core.observe_judged, decision, feedback)
            return
        if judged is not None or position is not None:
            name = "position" if judged is None else "judged"
            rule = "this learner has no labels, so what a judge says is its loss"
            remedy = "give loss=, or start it with labels=dc.Labels(share=0.1)"
            raise ParameterError(f"{name}: {rule}; {remedy}")
        if preference is None:
            self._turns.run(self._observe, decision, parts.losses.scaled(loss, reward))
            return
        preferred = self._scaled_preference(preference, loss, reward)
        self._turns.run(self._core.observe_preference, decision, preferred)

    def _judged_feedback(
        self,
        loss: float | None,
        reward: float | None,
        preference: Preference | None,
        judged: float | Preference | None,
        position: float | None,
    ) -> JudgedFeedback:
        """The arguments of `observe`, on a scale from 0 to 1, for a learner with labels."""
        losses = self._core.parts.losses
        label = None
        if preference is not None:
            label = self._scaled_preference(preference, loss, reward)
        elif judged is None or loss is not None or reward is not None:
            label = losses.scaled(loss, reward)
        seen_first = checked_position(position)
        said = None
        if isinstance(judged, str):
            said = Judged(self._scaled_preference(judged, None, None), seen_first)
        elif judged is not None:
            said = Judged(losses.scaled_as("judged", judged), seen_first)
        is_preference = preference is not None or isinstance(judged, str)
        return JudgedFeedback(said, label, is_preference)

    def _scaled_preference(self, preference: Preference, loss: object, reward: object) -> float:
        """The loss of a preference, on a scale from 0 to 1; neither loss nor reward may be given
        with it.
        """
        if loss is not None or reward is not None:
            name = "loss" if loss is not None else "reward"
            raise LossError(Message(f"preference, {name}: both were given", "give one of them"))
        _refuse_coupled(self.policy, "preference", "a decision has one arm; use")
        losses = self._core.parts.losses
        return losses.scaled(preference_loss(preference, losses))

    def expire(self, decision: Decision | str, loss: float) -> None:
        """Learn the loss that you declared for decisions whose feedback never comes, such as 1 for
        a timeout.

        Without labels, this is `observe`. With labels, it also settles a decision that nobody
        judged, and it says nothing about the judge.

        Args:
            decision: the pending decision, or its id.
            loss: the declared loss, within `loss_range`. Declare it before you see any.

        Raises:
            FeedbackError: if the decision is not pending.
            LossError: if the loss is outside `loss_range`.

        >>> import decoupled as dc
        >>> learner = dc.FTPL().start(arms=["a", "b"], seed=7, labels=dc.Labels(share=0.5))
        >>> learner.expire(learner.decide(), loss=1.0)
        >>> learner.round, len(learner.pending), learner.labels.used
        (2, 0, 0)
        """
        scaled = self._core.parts.losses.scaled(loss)
        self._turns.run(self._core.expire, decision, scaled)

    def replay(self, records: Iterable[RecordLike], *, unrandomised: bool = False) -> int:
        """Learn from a log.

        The propensity of a record is the probability with which the logging policy explored its
        arm. All records are checked before the first is applied.

        A log without propensities raises an error. So does a log whose propensities are all 1,
        unless the policy keeps means, which do not depend on propensities. The reason: the sums
        that other policies learn from such a log show how often an arm was tried, not how good it
        is. If a log of two or more records leaves out arms whose losses the learner has never seen,
        an `UnseenArmWarning` names them.

        Args:
            records: the log: tuples (explored arm, propensity, loss), or mappings with the keys
                "explore", "propensity" and "loss", and "context" for a contextual policy. A learner
                with `labels` takes the loss for a label. With the keys "judged" and
                "label_probability", `decision.label_request.rho`, the loss is left out where no
                label was asked for.
            unrandomised: accept a log whose propensities are all 1; only if it has a record of
                every arm for every round.

        Returns:
            The number of records.

        >>> import decoupled as dc
        >>> learner = dc.FTPL().start(arms=["a", "b"], seed=7)
        >>> learner.replay([("a", 0.5, 0.9), {"explore": "b", "propensity": 0.5, "loss": 0.2}])
        2
        >>> learner.estimates().tolist()
        [1.8, 0.4]
        """
        log = LogToReplay(listed_records(records), must_be_randomised=not unrandomised)
        return self._turns.run(self._core.replay, log)

    def forget(self, decision: Decision | str) -> None:
        """Give up on the feedback of a pending decision.

        Estimates stay unbiased if your choice depends on no loss.

        A watched learner counts it as `expired_loss`, or leaves it out; see `watch`. A label that
        it awaits counts as `Labels.missing`.

        Args:
            decision: the pending decision, or its id.

        >>> import decoupled as dc
        >>> learner = dc.FTPL().start(arms=2, seed=7)
        >>> learner.forget(learner.decide())
        >>> learner.pending, learner.pending.forgotten
        ((), 1)
        """
        self._turns.run(self._core.forget, decision)

    # Adding and retiring arms

    def add_arms(self, names: Iterable[Arm]) -> None:
        """Add arms at the end of the list. The round and the random stream do not change.

        If the policy sums losses, a new arm starts with everything that the leader, the arm with
        the smallest sum, has learned. So it is level with the best and tried at once, like every
        arm in round 1. If the policy keeps means, the arm is one it has not seen yet. Pending
        decisions could not choose it, so when their feedback arrives it is charged the loss seen,
        like any unavailable arm.

        Args:
            names: strings or whole numbers that no arm of this learner has. A new arm may reuse a
                retired name.

        >>> import decoupled as dc
        >>> learner = dc.FTPL().start(arms=["a", "b"], seed=7)
        >>> learner.replay([("a", 0.5, 0.9), ("b", 0.5, 0.2)])
        2
        >>> learner.add_arms(["c"])
        >>> learner.arms, learner.estimates().tolist()
        (('a', 'b', 'c'), [1.8, 0.4, 0.4])
        """
        refuse_set("names", names)
        self._turns.run(self._core.add_arms, listed("names", names))

    def retire_arms(self, names: Iterable[Arm]) -> None:
        """Retire arms: they are not drawn again, and the estimates of the others stay as they are.

        You can still send the feedback of a decision that explored such an arm. It counts as a
        round and changes the other arms as usual, so that their estimates stay unbiased. Nothing is
        learned about the retired arm, even if a new arm has its name. At least two arms must stay.

        Args:
            names: the arms to retire. At least two others must stay.

        >>> import decoupled as dc
        >>> learner = dc.FTPL().start(arms=["a", "b", "c"], seed=7)
        >>> decision = learner.decide()
        >>> learner.retire_arms([decision.explore])
        >>> learner.observe(decision, loss=0.3)
        >>> decision.explore, learner.arms, learner.round, learner.estimates().tolist()
        ('b', ('a', 'c'), 2, [0.0, 0.0])
        """
        self._turns.run(self._core.retire_arms, listed("names", names))

    # Inspecting

    def exploitation_probabilities(
        self,
        *,
        context: Context | None = None,
        advice: Advice | None = None,
        available: Iterable[Arm] | None = None,
        guarded: bool = True,
    ) -> Floats:
        """The exact probability that `decide` now exploits each arm, in the order of `arms`.

        Args:
            context: what is known of the request, as in `decide`; None for nothing.
            advice: what advisers would exploit, as in `decide`; None for nothing.
            available: the arms to choose from, as in `decide`; None for all.
            guarded: apply the guardrails; False gives the policy's own probabilities.

        >>> import decoupled as dc
        >>> dc.FTPL().start(arms=4, seed=7).exploitation_probabilities().round(6).tolist()
        [0.25, 0.25, 0.25, 0.25]
        """
        request = Request(context=context, advice=advice, available=listed_available(available))
        if guarded:
            return self._turns.run(self._core.guarded_law, request)
        return self._turns.run(self._core.law, "exploitation_law", request)

    def exploration_probabilities(
        self, *, context: Context | None = None, available: Iterable[Arm] | None = None
    ) -> Floats:
        """The exact probability that `decide` now explores each arm, in the order of `arms`.

        Args:
            context: what is known of the request, as in `decide`; None for nothing.
            available: the arms to choose from, as in `decide`; None for all.

        >>> import decoupled as dc
        >>> learner = dc.FTPL().start(arms=3, seed=7)
        >>> learner.exploration_probabilities(available=[0, 2]).round(3).tolist()
        [0.5, 0.0, 0.5]
        """
        request = Request(context=context, available=listed_available(available))
        return self._turns.run(self._core.law, "exploration_law", request)

    def estimates(self) -> Floats:
        """What is learned about each arm, for losses scaled to [0, 1]; see the policy for the
        meaning.

        With `labels`, these are estimates on the map of `Labels.to_unit`.

        >>> import decoupled as dc
        >>> dc.FTPL().start(arms=3, seed=7).estimates().tolist()
        [0.0, 0.0, 0.0]
        """
        return self._turns.run(self._core.estimates)

    def inspect(self, view: Callable[[Parts], _Answer]) -> _Answer:
        """Call a function of a tool with the learner's parts, while no other call runs.

        Args:
            view: the function. It must not call the learner.

        >>> import decoupled as dc
        >>> learner = dc.FTPL().start(arms=2, seed=7)
        >>> learner.inspect(lambda parts: parts.pending_store.made)
        0
        """
        return self._turns.run(self._core.inspect, view)

    # Watching

    def watch(
        self,
        risk: float = 0.05,
        *,
        drift: bool = True,
        patience: int | None = None,
        expired_loss: float | None = None,
        by_segment: bool = False,
    ) -> None:
        """Keep confidence sequences from now on, for `inference`.

        Call this before the first decision: earlier ones do not count. Each feedback then takes
        some 25 microseconds longer.

        Losses count in the order of decisions: each waits until all earlier decisions are settled.
        So delays may depend on the arm or on the loss. The policy learns from every loss at once.

        Args:
            risk: the probability that any interval of a family ever fails; see
                `decoupled.inference.Sequences`.
            drift: whether losses may drift. If no arm's mean loss ever changes, False mostly gives
                narrower intervals. Contexts and preferences need True.
            patience: how many newer decisions wait for one without feedback, up to 10,000; None for
                250, with those of its own `decide(count=...)` on top, and for the deadline of
                labels once it was judged and awaits its label. After that, or after `forget`, it
                counts as `expired_loss`, or with `Labels.missing` if only its label is missing.
                Later feedback still reaches the policy. Give what nearly all of your feedback
                arrives within.
            expired_loss: the loss that it counts as, within `loss_range`. None leaves it out, and
                calls the verdict provisional: then you assume that whether a loss arrives in time
                depends on neither the arm nor the loss.
            by_segment: also keep confidence sequences of each segment of a `ContextualLadder`, for
                `inference.verdict(context=...)`. They have a second risk of this size, which
                segments share.

        Raises:
            ParameterError: if the learner is watched already.
            UnsupportedError: if it has more than 10,000 arms; with `drift=False`, if the policy
                looks at contexts; or with `by_segment=True`, if it tells no segments apart.

        >>> import decoupled as dc
        >>> policy = dc.ContextualLadder(segments=("subject",))
        >>> learner = policy.start(arms=["small", "large"], seed=7)
        >>> learner.watch(by_segment=True)
        >>> best = {"law": "large", "art": "small"}
        >>> for turn in range(500):
        ...     subject = "law" if turn % 2 else "art"
        ...     decision = learner.decide(context={"subject": subject})
        ...     learner.observe(decision, loss=0.2 if decision.explore == best[subject] else 0.6)
        >>> print(learner.inference.verdict(context={"subject": "law"}))
        large is better than small (99.2401 %, decided at round 23)
        """
        options = WatchOptions(
            risk=risk,
            drift=drift,
            patience=None if patience is None else checked_patience(patience),
            expired=self._scaled_expired_loss(expired_loss),
            by_segment=bool(by_segment),
        )
        self._turns.run(self._core.watch, options)

    def is_decided(self, alarm_every: float) -> bool:
        """Whether an arm is decided to be the best, without an alarm since: for a budget with a
        `decided_share`.

        Args:
            alarm_every: the mean number of looks until a false alarm, at least; see `Budget`.

        >>> import decoupled as dc
        >>> learner = dc.FTPL().start(arms=["a", "b"], seed=7)
        >>> learner.watch()
        >>> learner.is_decided(alarm_every=100_000)
        False
        """
        return self._turns.run(self._core.is_decided, alarm_every)

    # Saving

    def fork(self, seed: Seed) -> Self:
        """Copy the learner with its own random stream.

        Two replicas that load the same saved state draw the same arms, so the second explores
        nothing new. Fork each replica with its own seed. Pending decisions are copied too.

        Args:
            seed: the seed of the copy's random stream; None draws fresh randomness.

        >>> import decoupled as dc
        >>> learner = dc.FTPL().start(arms=100, seed=7)
        >>> one, two = learner.fork(seed=1), learner.fork(seed=2)
        >>> one.decide().explore == two.decide().explore
        False
        """
        stream, tag = randomness(seed)
        core = LearnerCore(from_text(self.to_json()))
        core.branch_off(stream, tag)
        return self._with_core(core)

    def to_json(self) -> str:
        """The whole state as text: what is learned, the pending decisions and the random stream.

        >>> import decoupled as dc
        >>> learner = dc.FTPL().start(arms=3, seed=7)
        >>> twin = dc.Learner.from_json(learner.to_json())
        >>> twin.decide() == learner.decide()
        True
        """
        return self._turns.run(self._core.to_json)

    @classmethod
    def from_json(cls, text: str | bytes) -> Self:
        """Restore the learner that `to_json` wrote. It continues bit for bit.

        Args:
            text: what `to_json` wrote.

        Raises:
            StateError: if the text is damaged, altered, or of a later version.

        >>> import decoupled as dc
        >>> text = dc.Exp3().start(arms=3, seed=7).to_json()
        >>> altered = text.replace('"round":1', '"round":9')
        >>> dc.Learner.from_json(altered)  # doctest: +NORMALIZE_WHITESPACE
        Traceback (most recent call last):
            ...
        decoupled.errors.StateError: state: does not match its checksum, so it was altered; give the
        text that Learner.to_json() wrote
        """
        return cls._with_core(LearnerCore(from_text(text)))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write `to_json` to a file atomically.

        Args:
            path: the file to write; an existing file is replaced.

        >>> import decoupled as dc, tempfile, pathlib
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "learner.json"
        >>> learner = dc.FTPL().start(arms=3, seed=7)
        >>> learner.save(path)
        >>> dc.Learner.load(path).decide() == learner.decide()
        True
        """
        write_atomically(path, self.to_json())

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Restore the learner that `save` wrote.

        Args:
            path: the file that `save` wrote.

        Raises:
            StateError: if the file is damaged, altered, or of a later version.
        """
        return cls.from_json(Path(path).read_bytes())


def _unpickled(kind: type[Learner], policy: object, text: str) -> Learner:
    return kind.from_json(text)


def _refuse_coupled(
    policy: Definition,
    call: str,
    where: str = "the arm played is the arm seen; use decide(), or",
) -> None:
    """Raise the error of a call that makes no sense in the standard game."""
    if policy.coupled:
        game = f"{type(policy).__name__} plays the standard game"
        raise UnsupportedError(f"{call}: {game}, where {where} a decoupled policy such as FTPL")
