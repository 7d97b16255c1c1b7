"""A running policy: it decides, and it learns from the losses of the arms it explored."""

import hashlib
import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, TypeAlias, TypeVar, overload

import numpy as np

from ..base.arrays import Floats, Ints, Words
from ..base.files import write_atomically
from ..base.names import is_name, name_rule
from ..base.turns import in_turn, in_turn_with
from ..base.validation import MOST_ROUNDS, whole_number
from ..decision import Arm, Decision, LabelSums, Served, with_label
from ..errors import FeedbackError, LossError, Message, ParameterError, UnsupportedError
from ..inference.ordering import PATIENCE
from ..policy import Definition
from .arms import ArmNames, Arms, listed, listed_available, refuse_set
from .context import Advice, Context
from .guard import Guard, Guarded, Listed, Told
from .guardrails import CONTEXTS, PREFERENCES, Guardrails, refuse_by_segment, refuse_constant_means
from .inferring import Inference, check_watchable, checked_patience, not_watched
from .labels import (
    Judged,
    Judgement,
    Labelling,
    Labels,
    LabelStatus,
    checked_labels,
    checked_position,
)
from .losses import LossRange, Predictions, Preference, listed_predictions, preference_loss
from .parts import Parts
from .pending import (
    NEVER,
    Pending,
    PendingDecisions,
    Recorded,
    Unfinished,
    Waiting,
    marked,
    new_decision,
    nothing,
    undone_by,
)
from .replay import RecordLike, check_randomised, checked_record, listed_records, warn_of_unseen
from .runner import Running
from .saving import as_text, from_text, to_content
from .seeds import Key, Seed, key_text, randomness

if TYPE_CHECKING:  # loaded when a learner is watched
    from .watch import Watch

_Answer = TypeVar("_Answer")

# What decisions are asked for: how many, among which arms, with which predictions, the text of a key or what it was
# served, the context and advice, and whether they exploit too.
_Asked: TypeAlias = tuple[int, Listed, Any, str | Served | None, Told | None, bool]

DEFAULT_PENDING = 100_000


class Learner(Guarded):
    """A running policy. Make one with `policy.start(arms, seed)`.

    Only `observe` and `replay` learn: they change the estimates and the round, which is 1 + the number of observations
    applied. `decide`, `exploit` and `explore` draw from that state and change only the random stream and the pending
    decisions. So you can call them any number of times between two observations, and feedback may come late, out of
    order, or never. Use `add_arms` and `retire_arms` to change the arms at any time.

    A learner is thread-safe: calls from several threads run one after another. An interrupt, such as Ctrl-C, affects at
    most the call in progress, which has then done everything or nothing. In a forked process, a learner has its own
    random stream, and its decisions have other ids than the parent's.

    Args:
        policy: the policy to run, such as `Ladder()`.
        arms: the number of arms, which are then called 0, 1, 2 and so on, or their names in a list; two or more.
        seed: the seed of the random stream, a whole number or a `numpy.random.SeedSequence`; None for fresh randomness.
        loss_range: the lowest and the highest possible loss. A loss outside it is rejected.
        max_pending: how many decisions may await feedback. Beyond that, the oldest is forgotten. So it is beyond 100
            million numbers, if decisions keep one for each arm: 10,000 decisions with 10,000 arms.
        guardrails: rules about the arm that is served; None for no rules.
        labels: how many decisions ask for a label, if losses come from a judge; None if losses are true.

    >>> import decoupled as dc
    >>> learner = dc.FTPL().start(arms=["a", "b", "c"], seed=7)
    >>> decision = learner.decide()
    >>> learner.observe(decision, loss=0.3)      # the loss of decision.explore
    >>> learner.round, len(learner.pending)
    (2, 0)
    """

    _labels: Labelling | None

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
        names, losses = ArmNames.checked(arms), LossRange.checked(loss_range)
        remedy = f"the default is {DEFAULT_PENDING}"
        limit = whole_number("max_pending", max_pending, 1, remedy, MOST_ROUNDS)
        stream, tag = randomness(seed)
        running = Running.fresh(policy, len(names), stream)
        labelling = None if labels is None else Labelling(checked_labels(labels))
        guard = Guard(Guardrails())
        self._set_parts(Parts(names, losses, running, Waiting(tag, limit), guard, None, labelling))
        if guardrails is not None:
            self._guard_by(guardrails)  # an assignment would hide the property from the reference

    def _set_parts(self, parts: Parts) -> None:
        self._policy = parts.running.policy
        self._unfinished: Unfinished | None = None
        # The numbers of this process and those above it, each as a child, if it was forked since the last call.
        self._forks: tuple[int, ...] = ()
        self._set(parts._asdict())
        self._running.count_events(self._waiting.made)
        self._open()

    def _serials(self) -> Iterable[int]:
        kept = self._running.serials.kept
        return range(len(self._arms)) if kept is None else kept.tolist()

    @property
    def _parts(self) -> Parts:
        return Parts(*(getattr(self, f"_{name}") for name in Parts._fields))

    # One call at a time, and all of it or nothing

    def _commit(self, rest: Callable[..., object], *arguments: Any) -> None:
        """Make a call that may be repeated. If it is interrupted, the next call of the learner repeats it."""
        self._unfinished = None, rest, arguments, nothing
        rest(*arguments)
        self._unfinished = None

    def _recover(self) -> None:
        """Do what a call that failed or was interrupted left to do, or take it back."""
        left = self._unfinished
        if left is not None:
            due, rest, arguments, undo = left
            if due is None or due == self._running.round:
                rest(*arguments)
            else:
                undo()
            self._unfinished = None
        self._running.count_events(self._waiting.made)
        if self._forks:  # draw other arms than the parent and its other children, under other ids
            words = [*self._running.stream.tolist(), self._waiting.made, *self._forks]
            self._commit(self._renew, *self._descended(*randomness(np.random.SeedSequence(words))))

    def _replace(self, **parts: Any) -> None:
        """Replace some parts of the learner, by their names."""
        self._commit(self._set, parts)

    def _set(self, parts: dict[str, Any]) -> None:
        for name, part in parts.items():
            setattr(self, f"_{name}", part)
        # Tell parts of the learner what they need of the others.
        running = self._running
        running.pending = self._waiting.decisions
        self._waiting.most = min(self._waiting.limit, running.most_pending)
        # Whether nothing but the policy's draw makes a decision, and arms are numbered by their places.
        plain = not self._guard.rules and running.contexts is None and running.serials.kept is None
        self._plain = plain and self._labels is None
        if self._watch is not None:
            self._watch.serials = {
                None: None,
                **dict(zip(self._arms.names, self._serials(), strict=True)),
            }
            self._watch.sees_contexts = running.contexts is not None
            self._watch.mixes_laws = self._tells_segments

    def _forked(self, number: int) -> None:
        self._open()
        self._forks, self._halfway = (*self._forks, number), True  # the next call does the rest

    def _descended(self, stream: Words, tag: str) -> tuple[Words, str]:
        # The new ids differ from the old ones even if the seed is the same.
        lineage = f"{self._waiting.tag}-{self._waiting.made}-{tag}".encode()
        return stream, hashlib.sha256(lineage).hexdigest()[:12]

    def _renew(self, stream: Words, tag: str) -> None:
        """Go on with another random stream, and with ids of another tag. Numbers go on: no event happens twice."""
        self._running.stream[:] = stream
        self._waiting.tag = tag
        self._forks = ()

    def __repr__(self) -> str:
        size = f"{len(self._arms)} arms, round {self.round}, {len(self._waiting)} pending"
        return f"<Learner {self._policy!r}, {size}>"

    def __reduce__(self) -> tuple[Any, tuple[Any, ...]]:
        # Unpickling the policy's class defines it, so that from_json can find the policy by name.
        return _unpickled, (type(self), type(self._policy), self.to_json())

    # Properties

    @property
    def policy(self) -> Definition:
        """The policy that is running."""
        return self._policy

    @property
    def arms(self) -> tuple[Arm, ...]:
        """The names of the arms, in order."""
        return tuple(self._arms.names)

    @property
    def loss_range(self) -> tuple[float, float]:
        """The lowest and highest possible loss."""
        return self._losses.low, self._losses.high

    @property
    def round(self) -> int:
        """1 + the number of observations applied."""
        return self._running.round

    @property
    def max_pending(self) -> int:
        """How many decisions may await feedback. Beyond that, the oldest is forgotten.

        >>> import decoupled as dc
        >>> dc.Ladder().start(arms=10_000, seed=1).max_pending
        10000
        """
        return self._waiting.most

    @property
    def tag(self) -> str:
        """What the ids of new decisions begin with: a decision has the id `<tag>-<number>`.

        Each learner draws a tag of its own, so that no two learners make decisions with the same id. A service that logs
        its decisions and replays them sets the tag that its log has, before the first decision.

        Raises:
            ParameterError: if you set something that is no name, or set it while decisions are pending.

        >>> import decoupled as dc
        >>> learner = dc.FTPL().start(arms=["a", "b"], seed=7)
        >>> learner.tag = "checkout"
        >>> learner.decide().id
        'checkout-1'
        """
        return self._waiting.tag

    @tag.setter
    def tag(self, tag: str) -> None:
        self._set_tag(tag)

    @in_turn
    def _set_tag(self, tag: str) -> None:
        if not is_name(tag):
            raise ParameterError.of("tag", tag, name_rule(), "for example 'checkout'")
        if len(self._waiting) > 0:
            rule = f"cannot be set while decisions are pending, and {len(self._waiting):,} are"
            raise ParameterError.of("tag", tag, rule, "set it before the first decision")
        self._waiting.tag = tag

    @property
    def segments(self) -> tuple[tuple[str | None, ...], ...] | None:
        """The segments that a contextual policy tells apart, in order of appearance; None for other policies.

        >>> import decoupled as dc
        >>> learner = dc.ContextualLadder(segments=("subject",)).start(arms=2, seed=7)
        >>> for subject in ("law", "art", "law"):
        ...     decision = learner.decide(context={"subject": subject})
        >>> learner.segments
        (('law',), ('art',))
        """
        contexts = self._running.contexts
        return None if contexts is None else tuple(contexts.encoder.segments)

    @property
    @in_turn
    def pending(self) -> PendingDecisions:
        """The decisions that await feedback, oldest first; `pending.forgotten` counts those that were forgotten before.

        >>> import decoupled as dc
        >>> learner = dc.FTPL().start(arms=2, seed=7, max_pending=3)
        >>> for _ in range(5):
        ...     decision = learner.decide()
        >>> len(learner.pending), learner.pending.forgotten, learner.pending[-1] == decision
        (3, 2, True)
        """
        return PendingDecisions.of(self._waiting)

    @property
    @in_turn
    def overdue(self) -> tuple[Decision, ...]:
        """The decisions whose label is overdue, oldest first; see `Labels.deadline`. They stay pending until then.

        The next feedback settles them first, as `forget` does. A service that logs each of these events asks for them
        and settles them itself.

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
        if self._labels is None:
            return ()
        decisions = self._waiting.decisions
        return tuple(decisions[key][0] for key in self._labels.overdue(self._waiting.made))

    @property
    def labels(self) -> LabelStatus | None:
        """The labels so far; None if the learner was started without `labels=`. See `Labels` for an example."""
        known = self._labels
        if known is None:
            return None
        return LabelStatus(int(known.sums[0]), known.missing, len(known.judged), known.lam)

    @property
    def inference(self) -> Inference:
        """Intervals, differences and verdicts that hold at every moment at once, since `watch` was called.

        Raises:
            UnsupportedError: if the learner is not watched.
        """
        if self._watch is None:
            raise not_watched()
        return Inference._of(self)

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
        baseline: Predictions | None = None,
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
        baseline: Predictions | None = None,
    ) -> list[Decision]: ...

    def decide(
        self,
        count: int | None = None,
        *,
        context: Context | None = None,
        advice: Advice | None = None,
        key: Key | None = None,
        available: Iterable[Arm] | None = None,
        baseline: Predictions | None = None,
    ) -> Decision | list[Decision]:
        """Decide on an arm to exploit and an arm to explore; with `count`, return a list of decisions.

        A policy of the standard game (`policy.coupled`) gives the same arm for both.

        Args:
            count: the number of decisions, at most `max_pending`; None returns one decision, and not a list.
            context: what is known of the request, for a `ContextualLadder`: values by the names of fields, each a string, a
                boolean, a number, or None if it is missing. Fields that the policy does not name are ignored.
            advice: what advisers of the policy would exploit: an arm, or a mapping from arms to probabilities, by the
                adviser's name. An adviser who says nothing counts as the policy's pooled ladder.
            key: a session, a user or anything else that should keep its arm; None draws afresh. The key decides the
                draw of the arm to exploit, and nothing else: the same key exploits the same arm until what is learned
                moves it, here, after saving and loading, and on every replica. Nobody can predict that arm without the
                seed, unless it can be guessed. A string of 1 to 1,024 bytes in UTF-8, or a whole number, the same key as its digits.
            available: the arms to choose from; None for all. The policy applies its own rule to their estimates, and
                the propensity is exact for that choice. When the loss arrives, the unavailable arms are charged the
                same loss, an unbiased estimate of the mean loss of the available arms, so absence gains nothing.
            baseline: your predictions of each arm's loss in this round; None for none. A centred estimator subtracts
                them instead of its running mean, which it keeps for arms without a prediction. Good predictions make
                estimates less noisy, and no prediction can bias them. They count for arms that pass the policy's gate,
                and with a soft gate only up to its bound, so that a wrong prediction of an arm that is seldom explored
                does little harm. Only centred estimators accept them.

        Returns:
            One decision, or a list of `count` decisions.

        Raises:
            ArmError: if `available` is empty or names something that is not an arm.
            ParameterError: if `count` is not a whole number from 1 to `max_pending`.
            UnsupportedError: if the policy takes no `baseline` or `context`, or plays the standard game and gets a `key`.

        >>> import decoupled as dc
        >>> learner = dc.FTPL().start(arms=["a", "b", "c"], seed=7)
        >>> [decision.explore for decision in learner.decide(count=3)]
        ['b', 'b', 'a']
        >>> learner.decide(available=["b"]).propensity
        1.0
        >>> {learner.decide(key="session-17").exploit for _ in range(20)}
        {'b'}
        >>> centred = dc.Ladder().start(arms=["a", "b", "c"], seed=7)
        >>> centred.observe(centred.decide(), loss=0.5)    # its first loss only sets a level
        >>> decision = centred.decide(baseline={"a": 0.9, "b": 0.2, "c": 0.4})
        >>> centred.observe(decision, loss=0.9)
        >>> decision.explore, centred.estimates().tolist()    # a perfect prediction: each arm learns its loss
        ('a', [0.9, 0.2, 0.4])
        """
        plain = count is None and context is None and advice is None and key is None
        if plain and available is None and baseline is None:
            return self._decide_plainly(None)
        told = None if context is None and advice is None else (context, advice)
        word = None if key is None else self._key(key)
        some = None if available is None else listed_available(available)
        expected = None if baseline is None else self._predictions(baseline)
        if count is None:
            return self._decide((1, some, expected, word, told, True))[0]
        repeats = whole_number("count", count, 1, "leave it out for a single decision")
        if repeats > self._waiting.limit:
            rule = f"must not exceed max_pending = {self._waiting.limit}"
            raise ParameterError.of("count", count, rule, "raise max_pending in start()")
        return self._decide((repeats, some, expected, word, told, True))

    def _key(self, key: Key) -> str:
        self._refuse_coupled("decide(key=...)")
        return key_text(key)

    def redecide(
        self,
        served: Served,
        *,
        context: Context | None = None,
        advice: Advice | None = None,
        available: Iterable[Arm] | None = None,
    ) -> Decision:
        """Make a decision of your log again, where a key drew the arm to exploit and the log does not have the key.

        To replay a log of everything that a learner did, make its calls again: `decide`, `exploit`, `observe` and so on.
        A learner of the same seed then ends in the same state. Where `decide` had a key that you keep secret, call this
        with the arm that the log says was exploited. The arm to explore is drawn again.

        Args:
            served: the arm that was exploited, and the guardrail that chose it, if one did.
            context: what was known of the request, as in `decide`.
            advice: what advisers would have exploited, as in `decide`.
            available: the arms that could be chosen, as in `decide`.

        Raises:
            ArmError: if the arm is not one of the learner's.
            UnsupportedError: if the policy plays the standard game, where the arm played is the arm seen.

        >>> import decoupled as dc
        >>> learner, again = (dc.FTPL().start(arms=["a", "b", "c"], seed=7) for _ in range(2))
        >>> decision = learner.decide(key="a user")
        >>> again.redecide(dc.Served(decision.exploit, decision.drawn, decision.guard)) == decision
        True
        """
        self._refuse_coupled("redecide()")
        told = None if context is None and advice is None else (context, advice)
        self._check_arm(served.exploit)
        return self._decide((1, listed_available(available), None, served, told, True))[0]

    @in_turn
    def _check_arm(self, arm: Arm) -> None:
        """Raise an error if this is no arm of the learner."""
        self._arms.place(arm)

    @in_turn_with
    def _decide_plainly(self, _: None) -> Decision:
        """Make one decision of which nothing is asked: what `_decide` would do, with fewer calls."""
        running, waiting = self._running, self._waiting
        if not self._plain or len(waiting.decisions) >= waiting.most:
            return self._decide_all((1, None, None, None, None, True))[0]
        baseline = running.baseline_of(None) if running.has_baselines else None
        exploit, explore, weight, propensity = running.calls.decide()
        number, names = waiting.made + 1, self._arms.names
        key, known = f"{waiting.tag}-{number}", propensity if propensity == propensity else None
        fields = key, running.round, names[exploit], names[explore], known, weight
        decision = new_decision(Decision, fields)
        waiting.decisions[key] = decision, explore, None, baseline
        waiting.made = number  # no call in between, so this is one step
        return decision

    @in_turn_with
    def _decide(self, asked: _Asked) -> list[Decision]:
        return self._decide_all(asked)

    def _decide_all(self, asked: _Asked) -> list[Decision]:
        """Make decisions, all of them in one step."""
        count, some, expected, key, told, exploiting = asked
        self._keep_evidence()
        running, waiting = self._running, self._waiting
        part = baseline = None
        if self._labels is not None and self._labels.judged:
            for gone in waiting.oldest(count):  # they are forgotten to make room
                if gone in self._labels.judged:
                    self._settle_missing(gone)
        if not self._plain or some is not None or told is not None:
            part = self._part(some)
            self._enter(told)
        if running.has_baselines:
            baseline = running.baseline_of(
                part, None if expected is None else self._scaled(expected)
            )
        if count > 1:
            running.record_baselines()
        keyed = key if key is None or isinstance(key, Served) else running.keys.word(key)
        if running.kept and part is None and type(baseline) is tuple:
            self._unfinished = undone_by(
                running.calls.init
            )  # what is derived changes until all are drawn
        among = running if part is None else running.only(part)
        first = waiting.made + 1
        if count == 1 and len(waiting.decisions) < waiting.most:
            pending = self._drawn(first, among, part, baseline, keyed, exploiting)
            made = [pending[0]]
            # Without a call among them, these are one step: no handler of a signal runs in between.
            waiting.decisions[pending[0].id] = pending
            waiting.made = first
            self._unfinished = None
        else:
            made = self._draw_often(
                range(first, first + count), among, part, baseline, keyed, exploiting
            )
        if part is not None:  # they were drawn in a copy
            running.count_events(waiting.made)
        return made

    def _draw_often(self, numbers: range, *how: Any) -> list[Decision]:
        waiting = self._waiting
        made = [self._drawn(number, *how) for number in numbers]
        oldest = waiting.oldest(len(made))
        if oldest:
            self._keep_drawn()
        self._commit(self._wait_for, made, numbers[-1], oldest, waiting.forgotten + len(oldest))
        return [pending[0] for pending in made]

    def explore(
        self,
        *,
        context: Context | None = None,
        available: Iterable[Arm] | None = None,
        baseline: Predictions | None = None,
    ) -> Decision:
        """Make a decision that only explores: its `exploit` is None.

        Args:
            context: what is known of the request, as in `decide`; None for nothing.
            available: the arms to choose from, as in `decide`; None for all.
            baseline: your predictions of each arm's loss in this round, as in `decide`; None for none.

        Raises:
            UnsupportedError: if the policy plays the standard game, where the arm played is the arm seen.

        >>> import decoupled as dc
        >>> learner = dc.FTPL().start(arms=["a", "b", "c"], seed=7)
        >>> learner.explore().exploit is None
        True
        """
        self._refuse_coupled("explore()")
        told = None if context is None else (context, None)
        expected = None if baseline is None else self._predictions(baseline)
        return self._decide((1, listed_available(available), expected, None, told, False))[0]

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
            UnsupportedError: if the policy plays the standard game, where the arm played is the arm seen.

        >>> import decoupled as dc
        >>> learner = dc.FTPL().start(arms=["a", "b", "c"], seed=7)
        >>> [learner.exploit().exploit for _ in range(4)], learner.round, len(learner.pending)
        (['b', 'c', 'a', 'b'], 1, 0)
        >>> learner.guardrails = dc.Guardrails(pinned="c")
        >>> learner.exploit()
        Served(exploit='c', drawn='a', guard='pinned', limited_by=None)
        """
        self._refuse_coupled("exploit()")
        told = None if context is None and advice is None else (context, advice)
        return self._serve(
            listed_available(available), None if key is None else key_text(key), told
        )

    def _refuse_coupled(
        self, call: str, where: str = "the arm played is the arm seen; use decide(), or"
    ) -> None:
        if self._policy.coupled:
            game = f"{type(self._policy).__name__} plays the standard game"
            raise UnsupportedError(f"{call}: {game}, where {where} a decoupled policy such as FTPL")

    def _predictions(self, baseline: Predictions) -> Any:
        if not self._running.has_baselines or self._policy.cumulative is None:
            rule = f"the estimator of {type(self._policy).__name__} has none, so a prediction would change nothing"
            remedy = "leave it out, or use a centred estimator such as Ladder()"
            raise UnsupportedError(f"baseline: {rule}; {remedy}")
        return listed_predictions(baseline)

    def _scaled(self, expected: Any) -> tuple[Ints, Floats]:
        places, values = self._losses._predictions(expected, self._arms)
        if self._labels is not None:
            values = 0.5 + (values - 0.5) / self._labels.rules.width
        return places, values

    def _drawn(
        self,
        number: int,
        among: Running,
        part: Ints | None,
        baseline: Recorded,
        keyed: int | Served | None,
        exploiting: bool,
    ) -> Pending:
        """The decision of this number, as it will be kept."""
        running, names = self._running, self._arms.names
        exploit, explore, weight, propensity = among.calls.decide()
        name = f"{self._waiting.tag}-{number}"
        if part is not None:
            exploit, explore = int(part[exploit]), int(part[explore])
        elif running.kept and type(baseline) is tuple:
            running.keep_with(baseline, explore, name)
        guarded = covered = why = None
        if keyed is not None or not self._plain:
            exploit, guarded = self._guarded(exploit, among, part, keyed, exploiting)
        known = propensity if propensity == propensity else None  # NaN means unknown
        served = names[exploit] if exploiting else None
        fields = name, running.round, served, names[explore], known, weight
        asked = None if self._labels is None else self._labels.ask(number, running.stream.tobytes())
        serial, contexts = running.serials.of_one(explore), running.contexts
        if part is not None:
            covered = tuple(running.serials.of(part).tolist())
        if contexts is not None:
            baseline, why = (
                contexts.record(among.state, among.serials, serial),
                contexts.why(among.state),
            )
        return marked(fields, guarded, why, asked), serial, covered, baseline

    def _guarded(
        self,
        drawn: int,
        among: Running,
        part: Ints | None,
        keyed: int | Served | None,
        exploiting: bool,
    ) -> tuple[int, tuple[Arm, str] | None]:
        """The arm to exploit, of a key or by guardrails; with what the policy drew and the guardrail, if one chose it."""
        if isinstance(keyed, Served):
            guarded = None if keyed.guard is None else (keyed.drawn, keyed.guard)
            return self._arms.place(keyed.exploit), guarded
        if keyed is not None:
            place = among.keys.arm(keyed)
            drawn = place if part is None else int(part[place])
        if not exploiting or not self._guard.rules:
            return drawn, None
        exploit, guard = self._served(drawn, part, keyed)
        return exploit, None if guard is None else (self._arms.names[drawn], guard)

    def _wait_for(self, made: list[Pending], number: int, gone: list[str], forgotten: int) -> None:
        """Wait for the feedback of decisions, the last of this number, and forget others; this may be repeated."""
        waiting = self._waiting
        for pending in made:
            waiting.decisions[pending[0].id] = pending
        if self._watch is not None and len(made) > 1:
            self._watch.note_batch([pending[0].id for pending in made])
        for key in gone:
            waiting.decisions.pop(key, None)
            if self._watch is not None:
                self._watch.forget(key)
        waiting.made, waiting.forgotten = number, forgotten

    def _part(self, some: Listed) -> Ints | None:
        """The places of the available arms. The caller must hold the lock, since places shift."""
        return self._guard.available(None if some is None else self._arms.places(some), self._arms)

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

        Do not report the loss of the exploited arm: it is suffered and not seen. Give exactly one of `loss`, `reward`
        and `preference`, and do not mix preferences with losses.

        With `labels`, give `judged` for every decision, and the label as one of the three if `decision.label` is true, in the
        same call or a later one. Until its label comes, the decision stays pending.

        Args:
            decision: the decision, or its id.
            loss: the loss of the explored arm, within `loss_range`.
            reward: its reward in place of the loss: the mirror image of the loss within `loss_range`.
            preference: which of the two arms did better, in place of a number; see `preference_loss`.
            judged: what the judge says: a loss within `loss_range`, or a preference. Only with `labels`.
            position: how much the judge preferred what it saw first: 1 if that won, -1 if the second did, 0 for a tie; None
                if you do not know. It changes nothing but `inference.judge()`.

        Raises:
            FeedbackError: if the decision is not pending: its feedback has arrived already, it was forgotten, or it
                belongs to another learner. Also for a label that was not asked for, or comes before the judgement.
            LossError: if the loss is missing, given twice, not a number, or outside `loss_range`.
            UnsupportedError: if a policy of the standard game is given a preference.

        >>> import decoupled as dc
        >>> learner = dc.FTPL().start(arms=["a", "b"], seed=7, loss_range=(0, 250))
        >>> late, prompt = learner.decide(count=2)
        >>> learner.observe(prompt, loss=120)
        >>> learner.observe(late.id, reward=200)
        """
        if self._labels is None and preference is None and judged is None and position is None:
            self._observe((decision, self._losses.scaled(loss, reward), False))
            return
        compared = preference is not None or isinstance(judged, str)
        if preference is not None:
            loss = self._preferred(preference, loss, reward)
        if self._labels is None:
            if judged is not None or position is not None:
                name = "position" if judged is None else "judged"
                rule = "this learner has no labels, so what a judge says is its loss"
                remedy = "give loss=, or start it with labels=dc.Labels(share=0.1)"
                raise ParameterError(f"{name}: {rule}; {remedy}")
            self._observe((decision, self._losses.scaled(loss, reward), compared))
            return
        label = (
            None
            if judged is not None and loss is None is reward
            else self._losses.scaled(loss, reward)
        )
        if isinstance(judged, str):
            judged = self._preferred(judged, None, None)
        found = None if judged is None else self._losses.scaled_as("judged", judged)
        self._observe_judged((decision, found, checked_position(position), label, compared))

    @in_turn_with
    def _observe(self, told: tuple[Decision | str, float, bool]) -> None:
        decision, loss, compared = told
        if self._watch is None and self._plain and not compared and type(decision) is Decision:
            key, waiting = decision[0], self._waiting.decisions
            pending = waiting.get(key) if type(key) is str else None
            if pending is not None and pending[0] is decision and pending[2] is None:
                due, undo = self._running.undo(pending)
                if due != NEVER:  # what `_settle` would do, with fewer calls
                    self._unfinished = due, self._resettled, (key, loss, None), undo
                    self._running.learn(pending[1], decision[5], loss, pending[3], key)
                    del waiting[key]  # no call up to the end, so this is one step
                    self._unfinished = None
                    return
        pending = self._found(decision, compared)
        self._note_feedback(compared)
        self._settle(pending, loss)

    def _found(self, decision: Decision | str, compared: bool) -> Pending:
        pending = self._waiting.find(decision)
        if compared and pending[0].exploit is None:
            problem = f"decision {pending[0].id!r}: has no exploited arm to compare with"
            raise FeedbackError(Message(problem, "make decisions to compare with decide()"))
        if compared and self._watch is not None:
            if not self._watch.sequences.drift:
                refuse_constant_means("preference", PREFERENCES)
            self._guard.rules.check_takes_preferences()
        return pending

    def _note_feedback(self, compared: bool) -> None:
        """Note whether feedback that was checked is a preference."""
        if compared and self._watch is not None:
            self._watch.has_preferences = True

    def _settle(
        self,
        pending: Pending,
        loss: float,
        labelled: tuple[LabelSums, int, Judgement] | None = None,
    ) -> None:
        """Learn a loss on a scale from 0 to 1; with labels, also their new sums, how many are missing, and what was judged."""
        running, watch, key = self._running, self._watch, pending[0].id
        if watch is not None:
            watch.keep_drawn(self._waiting, running)
        due, undo = running.undo(pending)
        self._unfinished = due, self._resettled, (key, loss, labelled), undo
        running.settle(pending, loss)
        if watch is None and due != NEVER and labelled is None:
            del self._waiting.decisions[key]  # no call up to the end, so this is one step
            self._unfinished = None
        else:
            self._commit(self._settled, key, loss, labelled)
            if watch is not None:
                self._judge_incumbent(watch)
        if self._guard.rules:
            self._judge()

    # Labels

    @in_turn_with
    def _observe_judged(
        self, told: tuple[Decision | str, float | None, float | None, float | None, bool]
    ) -> None:
        decision, judged, position, label, compared = told
        pending, labels = self._found(decision, compared), self._labels
        decision, key = pending[0], pending[0].id
        asked = decision.label_request
        assert labels is not None
        assert asked is not None
        labels.check(decision, judged, label)
        self._note_feedback(compared)
        said = labels.judged[key] if judged is None else Judged(judged, position)
        for overdue in labels.overdue(self._waiting.made):
            if overdue != key:
                self._settle_missing(overdue)
        if label is None and asked.wanted:
            self._keep_drawn()
            missing = labels.fed(asked, said.loss, labels.rules.missing)
            self._commit(self._expect, key, said, missing)
            return
        sums = labels.sums if label is None else with_label(labels.sums, said.loss, label)
        loss = labels.fed(asked, said.loss, label)
        self._settle(pending, loss, (sums, labels.missing, Judgement(said, label, None)))

    def _expect(self, key: str, said: Judged, fallback: float) -> None:
        assert self._labels is not None
        self._labels.expect(key, said)
        if self._watch is not None:
            self._watch.note_judged(key, Judgement(said, None, fallback))

    def _settle_missing(self, key: str) -> None:
        """Learn from a decision whose label never came."""
        labels, pending = self._labels, self._waiting.decisions[key]
        asked = pending[0].label_request
        assert labels is not None
        assert asked is not None
        said = labels.judged[key]
        loss = labels.fed(asked, said.loss, labels.rules.missing)
        self._settle(pending, loss, (labels.sums, labels.missing + 1, Judgement(said, None, loss)))

    @in_turn
    def _give_up(self, decision: Decision | str) -> None:
        key = self._waiting.find(decision)[0].id
        self._keep_drawn()
        if self._watch is None:
            raise not_watched()
        self._commit(self._watch.forget, key)

    @in_turn
    def expire(self, decision: Decision | str, loss: float) -> None:
        """Learn the loss that you declared for decisions whose feedback never comes, such as 1 for a timeout.

        Without labels, this is `observe`. With labels, it also settles a decision that nobody judged, and it says nothing
        about the judge.

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
        pending, scaled = self._waiting.find(decision), self._losses.scaled(loss)
        self._settle(
            pending, scaled if self._labels is None else self._labels.rules.to_unit(scaled)
        )

    def _keep_drawn(self) -> None:
        """Keep what is watched of new decisions, before they or the state change, are asked about or saved."""
        if self._watch is not None:
            self._watch.keep_drawn(self._waiting, self._running)

    def _settled(
        self, key: str, loss: float, labelled: tuple[LabelSums, int, Judgement] | None
    ) -> None:
        self._waiting.decisions.pop(key, None)
        judgement, labels = None, self._labels
        if labelled is not None and labels is not None:
            sums, missing, judgement = labelled
            if sums is not labels.sums or missing != labels.missing:
                labels.set_sums(sums, missing)
            labels.judged.pop(key, None)
        if self._watch is not None:
            self._watch.settle(key, loss, judgement)

    def _resettled(self, *rest: Any) -> None:
        self._running.start_round()  # an interrupted `Running.settle` may not have come to it
        self._settled(*rest)

    def _preferred(self, preference: Preference, loss: object, reward: object) -> float:
        if loss is not None or reward is not None:
            given = "loss" if loss is not None else "reward"
            raise LossError(Message(f"preference, {given}: both were given", "give one of them"))
        self._refuse_coupled("preference", "a decision has one arm; use")
        return preference_loss(preference, self.loss_range)

    def replay(self, records: Iterable[RecordLike], *, unrandomised: bool = False) -> int:
        """Learn from a log.

        The propensity of a record is the probability with which the logging policy explored its arm. All records are
        checked before the first is applied.

        A log without propensities raises an error. So does a log whose propensities are all 1, unless the policy keeps
        means, which do not depend on propensities. The reason: the sums that other policies learn from such a log show
        how often an arm was tried, not how good it is. If a log of two or more records leaves out arms whose losses the
        learner has never seen, an `UnseenArmWarning` names them.

        Args:
            records: the log: tuples (explored arm, propensity, loss), or mappings with the keys "explore", "propensity"
                and "loss", and "context" for a contextual policy. A learner with `labels` takes the loss for a label. With
                the keys "judged" and "label_probability", `decision.label_request.rho`, the loss is left out where no label
                was asked for.
            unrandomised: accept a log whose propensities are all 1; only if it has a record of every arm for every round.

        Returns:
            The number of records.

        >>> import decoupled as dc
        >>> learner = dc.FTPL().start(arms=["a", "b"], seed=7)
        >>> learner.replay([("a", 0.5, 0.9), {"explore": "b", "propensity": 0.5, "loss": 0.2}])
        2
        >>> learner.estimates().tolist()
        [1.8, 0.4]
        """
        return self._replay((listed_records(records), unrandomised))

    @in_turn_with
    def _replay(self, given: tuple[list[Any], bool]) -> int:
        records, unrandomised = given
        labels = self._labels
        how = self._arms, self._losses, labels is not None, self._running.contexts
        checked = [checked_record(place, record, *how) for place, record in enumerate(records)]
        if not unrandomised:
            check_randomised(checked, self._arms, self._running)
        warn_of_unseen(checked, self._arms, self._running)  # first, since warnings may be errors
        self._keep_drawn()
        watch = self._watch if self._watch is None else self._watch.copy()
        incumbent = self._guard.rules.incumbent is not None
        self._unfinished = undone_by(self._running.undo_all(each.context for each in checked))
        learned = None if labels is None else Labelling(labels.rules, labels.sums, labels.missing)
        for record in checked:
            loss = record.loss if learned is None else learned.learn_logged(record)
            assert loss is not None
            self._running.learn_logged(record.arm, record.weight, loss, record.context)
            if watch is not None:
                serial = self._running.serials.of_one(record.arm)
                watch.replay(serial, record.weight, loss, record.rho, incumbent=incumbent)
        self._commit(self._replayed, watch, learned)
        self._judge()
        return len(checked)

    def _replayed(self, watch: "Watch | None", learned: Labelling | None) -> None:
        self._watch = watch
        if learned is not None and self._labels is not None:
            self._labels.set_sums(learned.sums, learned.missing)

    @in_turn
    def forget(self, decision: Decision | str) -> None:
        """Give up on the feedback of a pending decision. Estimates stay unbiased if your choice depends on no loss.

        A watched learner counts it as `expired_loss`, or leaves it out; see `watch`. A label that it awaits counts as `Labels.missing`.

        Args:
            decision: the pending decision, or its id.

        >>> import decoupled as dc
        >>> learner = dc.FTPL().start(arms=2, seed=7)
        >>> learner.forget(learner.decide())
        >>> learner.pending, learner.pending.forgotten
        ((), 1)
        """
        key = self._waiting.find(decision)[0].id
        if self._labels is not None and key in self._labels.judged:
            self._settle_missing(key)
            return
        self._keep_drawn()
        self._commit(self._wait_for, [], self._waiting.made, [key], self._waiting.forgotten + 1)

    # Adding and retiring arms

    def add_arms(self, names: Iterable[Arm]) -> None:
        """Add arms at the end of the list. The round and the random stream do not change.

        If the policy sums losses, a new arm starts with everything that the leader, the arm with the smallest sum, has
        learned. So it is level with the best and tried at once, like every arm in round 1. If the policy keeps means,
        the arm is one it has not seen yet. Pending decisions could not choose it, so when their feedback arrives it is
        charged the loss seen, like any unavailable arm.

        Args:
            names: strings or whole numbers that no arm of this learner has. A new arm may reuse a retired name.

        >>> import decoupled as dc
        >>> learner = dc.FTPL().start(arms=["a", "b"], seed=7)
        >>> learner.replay([("a", 0.5, 0.9), ("b", 0.5, 0.2)])
        2
        >>> learner.add_arms(["c"])
        >>> learner.arms, learner.estimates().tolist()
        (('a', 'b', 'c'), [1.8, 0.4, 0.4])
        """
        refuse_set("names", names)
        self._add_arms(listed("names", names))

    @in_turn
    def _add_arms(self, given: list[object]) -> None:
        if given:
            arms, running = self._arms.extended(given), self._running.extended(len(given))
            waiting = self._waiting.with_arm(self._running.serials.born)
            guard = self._guard.with_arms(len(arms))
            watch = self._watching_arms(running)
            self._replace(arms=arms, running=running, waiting=waiting, guard=guard, watch=watch)
            self._judge()

    def retire_arms(self, names: Iterable[Arm]) -> None:
        """Retire arms: they are not drawn again, and the estimates of the others stay as they are.

        You can still send the feedback of a decision that explored such an arm. It counts as a round and changes the
        other arms as usual, so that their estimates stay unbiased. Nothing is learned about the retired arm, even if
        a new arm has its name. At least two arms must stay.

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
        self._retire_arms(listed("names", names))

    @in_turn
    def _retire_arms(self, given: list[object]) -> None:
        gone = self._arms.places(given)
        if len(gone) > 0:
            self._guard.rules.check_retiring(given)
            arms, running = self._arms.without(gone), self._running.without(gone)
            guard = self._guard.following(self._guard.rules.without(given))
            if guard.frozen is not None:
                guard.frozen = np.delete(guard.frozen, gone)
            self._replace(
                arms=arms, running=running, guard=guard, watch=self._watching_arms(running)
            )
            self._judge()

    def _watching_arms(self, running: Running) -> "Watch | None":
        if self._watch is None:
            return None
        check_watchable(running.state.floats.shape[1])
        self._keep_drawn()
        return self._watch.following(running.serials)

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
        told = None if context is None and advice is None else (context, advice)
        return self._law("exploitation_law", listed_available(available), told, guarded=guarded)

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
        told = None if context is None else (context, None)
        return self._law("exploration_law", listed_available(available), told)

    @in_turn
    def _law(self, name: str, some: Listed, told: Told | None, *, guarded: bool = False) -> Floats:
        part = self._part(some)
        self._keep_evidence()
        self._enter(told, new=False)
        # Before the law, whose copy of some arms may leave the context.
        good = self._good_enough() if guarded else ()
        segment = self._segment_at_hand()
        law = self._running.law(name, part)
        if not guarded or not self._guard.rules:
            return law
        return self._guard.law(law, self._arms, part, good, segment)

    @in_turn
    def estimates(self) -> Floats:
        """What is learned about each arm, for losses scaled to [0, 1]; see the policy for the meaning.

        With `labels`, these are estimates on the map of `Labels.to_unit`.

        >>> import decoupled as dc
        >>> dc.FTPL().start(arms=3, seed=7).estimates().tolist()
        [0.0, 0.0, 0.0]
        """
        return self._running.form.estimates(self._running.state)

    # Watching

    @in_turn
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

        Call this before the first decision: earlier ones do not count. Each feedback then takes some 25 microseconds longer.

        Losses count in the order of decisions: each waits until all earlier decisions are settled. So delays may
        depend on the arm or on the loss. The policy learns from every loss at once.

        Args:
            risk: the probability that any interval of a family ever fails; see `decoupled.inference.Sequences`.
            drift: whether losses may drift. If no arm's mean loss ever changes, False mostly gives narrower intervals. Contexts
                and preferences need True.
            patience: how many newer decisions wait for one without feedback, up to 10,000; None for 250, with those of its own
                `decide(count=...)` on top, and for the deadline of labels once it was judged and awaits its label. After
                that, or after `forget`, it counts as `expired_loss`, or with `Labels.missing` if only its label is
                missing. Later feedback still reaches the policy. Give what nearly all of your feedback arrives within.
            expired_loss: the loss that it counts as, within `loss_range`. None leaves it out, and calls the verdict provisional:
                then you assume that whether a loss arrives in time depends on neither the arm nor the loss.
            by_segment: also keep confidence sequences of each segment of a `ContextualLadder`, for
                `inference.verdict(context=...)`. They have a second risk of this size, which segments share.

        Raises:
            ParameterError: if the learner is watched already.
            UnsupportedError: if it has more than 10,000 arms; with `drift=False`, if the policy looks at contexts; or with
                `by_segment=True`, if it tells no segments apart.

        >>> import decoupled as dc
        >>> learner = dc.ContextualLadder(segments=("subject",)).start(arms=["small", "large"], seed=7)
        >>> learner.watch(by_segment=True)
        >>> best = {"law": "large", "art": "small"}
        >>> for turn in range(500):
        ...     subject = "law" if turn % 2 else "art"
        ...     decision = learner.decide(context={"subject": subject})
        ...     learner.observe(decision, loss=0.2 if decision.explore == best[subject] else 0.6)
        >>> print(learner.inference.verdict(context={"subject": "law"}))
        large is better than small (99.2401 %, decided at round 72)
        """
        if self._watch is not None:
            raise ParameterError("watch(): this learner is watched already; call it once")
        if not drift and self._running.contexts is not None:
            refuse_constant_means("watch()", CONTEXTS)
        if by_segment and not self._tells_segments:
            refuse_by_segment("watch(by_segment=True)")
        wait = None if patience is None else checked_patience(patience)
        expired = (
            None if expired_loss is None else self._losses.scaled_as("expired_loss", expired_loss)
        )
        watch = self._new_watch(risk, drift, wait, expired)
        watch.by_segment = bool(by_segment)
        self._replace(watch=watch.with_segments(kept=by_segment or watch.segments is not None))

    @in_turn
    def _is_decided(self, every: float) -> bool:
        """Whether an arm is decided to be the best, without an alarm since, for a budget with a `decided_share`."""
        if self._watch is None:
            rule = "this learner is not watched, so nothing is ever decided; call watch() first"
            raise UnsupportedError(f"budget.decided_share: {rule}")
        if self._running.contexts is not None:
            rule = "the verdict is about all requests, and a contextual policy may still learn what is best for some"
            raise UnsupportedError(f"budget.decided_share: {rule}; leave it out")
        self._keep_drawn()  # so that it depends on decisions and their feedback alone
        if self._watch.lookout is None or self._watch.lookout.every != every:
            self._replace(watch=self._watch.looking_out(every))
        return self._watch.lookout is not None and self._watch.lookout.alarm.decided is not None

    @in_turn
    def _unwatch(self) -> None:
        self._replace(watch=None)

    @in_turn
    def _configure_watch(self, patience: int, expired_loss: float | None) -> None:
        if self._watch is None:
            raise not_watched()
        expired = (
            None if expired_loss is None else self._losses.scaled_as("expired_loss", expired_loss)
        )
        if expired is not None and self._labels is not None:
            expired = self._labels.rules.to_unit(expired)
        wait = checked_patience(patience)
        watch = self._watch.copy()
        watch.patience = wait
        watch.label_patience = wait
        watch.spares_batches = False
        watch.later = {}
        watch.expired = expired
        self._replace(watch=watch)

    @in_turn
    def _asked(self, question: "Callable[[Watch, Parts], _Answer]") -> _Answer:
        """The answer to a question about what is watched."""
        if self._watch is None:
            raise not_watched()
        self._keep_drawn()
        return question(self._watch, self._parts)

    def _new_watch(
        self, risk: float, drift: bool, patience: int | None = None, expired: float | None = None
    ) -> "Watch":
        from ..inference.sequences import Sequences
        from .watch import Watch

        check_watchable(len(self._arms))
        serials, policy = self._running.serials, self._policy
        rules = None if self._labels is None else self._labels.rules
        share = 1.0 if rules is None else rules.share
        sequences = Sequences(
            serials.born, risk, drift=drift, coupled=policy.coupled, label_share=share
        )
        weighs, wait = policy.cumulative is not None, PATIENCE if patience is None else patience
        watch = Watch(sequences, weighs, wait, expired)
        watch.spares_batches = patience is None
        if rules is not None:
            watch = watch.with_labels(rules)
            watch.label_patience = rules.deadline if patience is None else patience
        watch = watch.following(serials)
        watch.segments = {} if self._by_segment(self._guard.rules) else None
        watch.made = self._waiting.made  # nothing is kept of decisions that are made already
        return watch

    # Saving

    def fork(self, seed: Seed) -> Self:
        """Copy the learner with its own random stream.

        Two replicas that load the same saved state draw the same arms, so the second explores nothing new. Fork each
        replica with its own seed. Pending decisions are copied too.

        Args:
            seed: the seed of the copy's random stream; None draws fresh randomness.

        >>> import decoupled as dc
        >>> learner = dc.FTPL().start(arms=100, seed=7)
        >>> one, two = learner.fork(seed=1), learner.fork(seed=2)
        >>> one.decide().explore == two.decide().explore
        False
        """
        stream, tag = randomness(seed)
        copy = self.from_json(self.to_json())
        copy._renew(*copy._descended(stream, tag))
        return copy

    @in_turn
    def to_json(self) -> str:
        """The whole state as text: what is learned, the pending decisions and the random stream.

        >>> import decoupled as dc
        >>> learner = dc.FTPL().start(arms=3, seed=7)
        >>> twin = dc.Learner.from_json(learner.to_json())
        >>> twin.decide() == learner.decide()
        True
        """
        self._keep_drawn()
        return as_text(to_content(self._parts))

    @classmethod
    def from_json(cls, text: str | bytes) -> Self:
        """Restore the learner that `to_json` wrote. It continues bit for bit.

        Args:
            text: what `to_json` wrote.

        Raises:
            StateError: if the text is damaged, altered, or of a later version.

        >>> import decoupled as dc
        >>> text = dc.Exp3().start(arms=3, seed=7).to_json()
        >>> dc.Learner.from_json(text.replace('"round":1', '"round":9'))
        Traceback (most recent call last):
            ...
        decoupled.errors.StateError: state: does not match its checksum, so it was altered; give the text that Learner.to_json() wrote
        """
        learner = cls.__new__(cls)
        learner._set_parts(from_text(text))
        return learner

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
