"""What may be said of a watched learner's arms at any time: intervals, differences and verdicts, by
their names.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeVar

from ..base.validation import LEAST_RISK, check_number, whole_number
from ..decision import Arm, Decision
from ..errors import UnsupportedError
from ..inference.ordering import MOST_PATIENCE, PATIENCE
from .context import Context, Segment
from .guardrails import refuse_by_segment, refuse_constant_means

if TYPE_CHECKING:  # loaded when a learner is watched
    from ..inference.boundary import Interval
    from ..inference.judging import JudgeReport, JudgeSums
    from ..inference.lookout import Alarm
    from ..inference.ordering import Awaited
    from ..inference.sequences import Sequences
    from ..inference.sums import Observation
    from ..inference.verdicts import Verdict
    from .parts import Parts
    from .watch import Watch

_Answer = TypeVar("_Answer")

MOST_WATCHED = 10_000  # arms


class Query(Protocol):
    """Answers a question about what is watched and the parts of the learner."""

    def __call__(self, question: "Callable[[Watch, Parts], _Answer]", /) -> _Answer:
        """The answer to one question."""


class WatchCalls(NamedTuple):
    """What `Inference` may do with a learner that is watched, each in one turn of the learner.

    Attributes:
        query: answers a question about what is watched and the parts of the learner.
        configure: changes how long evidence waits for feedback.
        give_up: lets the evidence wait no longer for a decision.
        stop: drops the confidence sequences.
        loss_range: the lowest and the highest possible loss.
    """

    query: Query
    configure: Callable[[int, float | None], None]
    give_up: Callable[[Decision | str], None]
    stop: Callable[[], None]
    loss_range: tuple[float, float]


def check_watchable(arms: int) -> None:
    """Raise an error if a learner has too many arms to be watched: with 10^6 of them, a verdict
    takes minutes.
    """
    if arms > MOST_WATCHED:
        rule = f"confidence sequences are kept of at most {MOST_WATCHED:,}"
        why = "because they say next to nothing about so many; do without, or choose fewer arms"
        raise UnsupportedError(f"watch(): this learner has {arms:,} arms, and {rule}, {why}")


def checked_patience(patience: object) -> int:
    """For how many newer decisions the evidence waits for a decision without feedback.

    >>> checked_patience(100)
    100
    """
    return whole_number("patience", patience, 1, f"the default is {PATIENCE:,}", MOST_PATIENCE)


def not_watched() -> UnsupportedError:
    """The error of asking what only a watch can tell."""
    rule = "this learner is not watched; call watch() before the first decision"
    return UnsupportedError(f"inference: {rule}")


class Progress(NamedTuple):
    """How much evidence a watched learner has: `Inference.catch_up`.

    Attributes:
        observed: how many losses count.
        left_out: how many decisions were left out, because no feedback came.
        waiting: how many losses came and wait for the feedback of earlier decisions.
        awaited: the decision that they wait for, and for how long it still may hold them up; None
            if none does.
    """

    observed: int
    left_out: int
    waiting: int
    awaited: "Awaited | None"


class Evidence(NamedTuple):
    """A copy of the evidence of a watched learner: `Inference.copy_evidence`.

    Attributes:
        sequences: the confidence sequences, as `Inference.sequences` gives them.
        waiting: how many losses came and wait for the feedback of earlier decisions.
        awaited: the decision that they wait for, and for how long it still may hold them up; None
            if none does.
        judged: with labels, the confidence sequences of what the judge says alone; else None.
        judge: with labels, the sums about the judge, for `decoupled.inference.judge_report`; else
            None.
    """

    sequences: "Sequences"
    waiting: int
    awaited: "Awaited | None"
    judged: "Sequences | None"
    judge: "JudgeSums | None"


class Inference:
    """Always-valid statements about the arms of a learner. Call `Learner.watch` to get them as
    `Learner.inference`.

    They hold at every moment at once, so look as often as you like. Losses are in the learner's
    own range, and arms have their names.

    Args:
        calls: the calls of a learner that answer. `Learner.inference` fills this in.

    >>> import decoupled as dc
    >>> learner = dc.Ladder().start(arms=["small", "large"], seed=7)
    >>> learner.watch()
    >>> for _ in range(1_000):
    ...     decision = learner.decide()
    ...     learner.observe(decision, loss=0.2 if decision.explore == "large" else 0.6)
    >>> print(learner.inference.verdict())
    large is better than small (95 %, decided at round 31)
    >>> low, high = learner.inference.intervals()["large"][1:]
    >>> low < 0.2 < high
    True
    >>> learner.inference.difference("small", "large").low > 0.0
    True
    >>> estimate, low, high = learner.inference.regret()
    >>> low < estimate < high
    True
    """

    def __init__(self, calls: WatchCalls) -> None:
        self._calls = calls

    @property
    def sequences(self) -> "Sequences":
        """A copy of the confidence sequences. They number arms in order of arrival, retired ones
        included.

        >>> import decoupled as dc
        >>> learner = dc.FTPL().start(arms=["a", "b"], seed=7)
        >>> learner.watch()
        >>> learner.inference.sequences
        <Sequences of 2 arms, risk 0.05, 0 observations>
        """
        return self._calls.query(lambda watch, _: watch.sequences.copy())

    @property
    def incumbent_released(self) -> bool | None:
        """Whether another arm was found to be better than the incumbent; None if the guardrails
        name none.

        With `by_segment`, whether that is so in any segment; `incumbent_released_in` lists them.

        >>> import decoupled as dc
        >>> learner = dc.FTPL().start(arms=["a", "b"], seed=7)
        >>> learner.guardrails = dc.Guardrails(incumbent="a", risk=0.05)
        >>> for _ in range(1_000):
        ...     decision = learner.decide()
        ...     learner.observe(decision, loss=0.3 if decision.explore == "a" else 0.6)
        >>> learner.inference.incumbent_released, decision.exploit, decision.guard
        (False, 'a', 'incumbent')
        """
        guard = self._calls.query(lambda _, parts: parts.guard)
        return None if guard.rules.incumbent is None else guard.was_released

    @property
    def incumbent_released_in(self) -> tuple[Segment, ...] | None:
        """The segments in which the incumbent was released; None unless the guardrails leave it by
        segment.

        A segment is given by its values, as in `Learner.segments`.

        >>> import decoupled as dc
        >>> learner = dc.ContextualLadder(segments=("subject",)).start(arms=["old", "new"], seed=7)
        >>> learner.guardrails = dc.Guardrails(incumbent="old", by_segment=True)
        >>> for turn in range(2_000):
        ...     subject = "law" if turn % 2 else "art"
        ...     decision = learner.decide(context={"subject": subject})
        ...     better = "new" if subject == "law" else "old"
        ...     learner.observe(decision, loss=0.2 if decision.explore == better else 0.6)
        >>> learner.inference.incumbent_released_in
        (('law',),)
        >>> learner.decide(context={"subject": "art"}).exploit
        'old'
        """

        def released_segments(_: "Watch", parts: "Parts") -> tuple[Segment, ...] | None:
            guard = parts.guard
            contexts = parts.policy_state.contexts
            if contexts is None or not guard.rules.by_segment:
                return None
            return tuple(
                contexts.encoder.name(place)
                for place in sorted(guard.released_in)
                if guard.was_released_in(place)
            )

        return self._calls.query(released_segments)

    def verdict(
        self,
        *,
        context: Context | None = None,
        risk: float | None = None,
        drift: bool | None = None,
    ) -> "Verdict":
        """Say which arm is best, if that is decided; see `decoupled.inference.Verdict`.

        The verdict of a segment is about the requests of that segment, by its own losses. The s-th
        segment to appear has the share 6 / (pi s)^2 of the risk, so the verdicts of all segments
        hold together. The verdict over all requests has a risk of its own.

        Args:
            context: a request, for the verdict of its segment; None for all requests. It needs
                `watch(by_segment=True)` or guardrails that compare arms by segment. A segment that
                never appeared has no evidence; nor have those beyond the first 1,000 (fewer with
                more than 10 arms), or the records of `replay`.
            risk: a risk other than the one given to `watch`; None for that one. Choose it before
                you look.
            drift: whether losses may drift; None for what `watch` was told. Contexts and
                preferences need True.

        Raises:
            UnsupportedError: if `context` is given and no evidence is kept by segment.

        >>> import decoupled as dc
        >>> policy = dc.ContextualLadder(segments=("subject",))
        >>> learner = policy.start(arms=["small", "large"], seed=7)
        >>> learner.watch(by_segment=True)
        >>> print(learner.inference.verdict(context={"subject": "law"}))
        too early: there is no loss to judge by yet
        """

        def verdict_asked_for(watch: "Watch", parts: "Parts") -> "Verdict":
            if context is None:
                return _verdict(watch, parts, risk, drift=drift)
            return _verdict_of_segment(watch, parts, context, risk)

        return self._query_watch("verdict()", verdict_asked_for, drift=drift)

    def _query_watch(
        self, name: str, question: "Callable[[Watch, Parts], _Answer]", *, drift: bool | None
    ) -> "_Answer":
        """The answer to a question that may assume constant means, if nothing is known against
        that.
        """

        def answer_unless_refused(watch: "Watch", parts: "Parts") -> "_Answer":
            reason = watch.why_means_may_change()
            if drift is not None and not drift and reason is not None:
                refuse_constant_means(f"inference.{name}", reason)
            return question(watch, parts)

        return self._calls.query(answer_unless_refused)

    def judge(self) -> "JudgeReport":
        """How far the judge can be trusted: its agreement with labels, and its biases. Only with
        `labels`.

        >>> import decoupled as dc, random
        >>> chance = random.Random(1)
        >>> learner = dc.Ladder().start(["short", "long"], seed=7, labels=dc.Labels(share=0.2))
        >>> learner.watch()
        >>> for _ in range(1_500):                        # the judge likes "long", which is worse
        ...     decision = learner.decide()
        ...     long = decision.explore == "long"
        ...     loss = float(chance.random() < (0.5 if long else 0.2))
        ...     judged = float(chance.random() < (0.1 if long else 0.6))
        ...     learner.observe(decision, judged=judged, loss=loss if decision.label else None)
        >>> print(learner.inference.judge())
        agreement 0.460 (0.350 to 0.570), 446 labels
        bias on short: +0.422 (+0.232 to +0.595)
        bias on long: -0.312 (-0.582 to +0.003)
        alone it would say: long is better than short (95 %, decided at round 58)
        >>> print(learner.inference.verdict())
        short is better than long (95 %, decided at round 183)
        >>> learner.inference.verdict().warning[:53]
        'the judge alone would choose long, and labels show th'
        """
        from ..inference.judging import judge_report

        def report_on_judge(watch: "Watch", parts: "Parts") -> "JudgeReport":
            if watch.judge_sums is None or watch.judged_sequences is None or parts.labels is None:
                rule = "this learner has no labels; start it with labels=dc.Labels(share=0.1)"
                raise UnsupportedError(f"inference.judge(): {rule}")
            serials = [parts.policy_state.serials.id_at(place) for place in range(len(parts.arms))]
            return judge_report(
                watch.judge_sums,
                watch.judged_sequences,
                _names(watch, parts),
                serials,
                parts.losses,
                waiting=watch.queue.waiting,
                awaiting=len(parts.labels.judged),
                lam=parts.labels.lam,
            )

        return self._calls.query(report_on_judge)

    def intervals(self) -> "dict[Arm, Interval]":
        """The estimated mean loss of each arm, with its interval.

        It covers the mean over the rounds that looked at the arm, whatever drifts; with contexts,
        over the requests of these rounds. See `decoupled.inference.Sequences.bounds` for how rounds
        weigh.
        """

        def intervals_by_name(watch: "Watch", parts: "Parts") -> "dict[Arm, Interval]":
            intervals = watch.sequences.arms()
            serials = parts.policy_state.serials
            return {
                name: intervals[serials.id_at(place)].scaled(*parts.losses)
                for place, name in enumerate(parts.arms.names)
            }

        return self._query_watch("intervals()", intervals_by_name, drift=None)

    def exploited(self, *, drift: bool | None = None) -> "Interval":
        """The estimated mean loss of the exploited arms, with its interval.

        Args:
            drift: whether losses may drift; None for what `watch` was told. Contexts and
                preferences need True.
        """
        interval = self._query_watch(
            "exploited()", lambda watch, _: watch.sequences.served(drift=drift), drift=drift
        )
        return interval.scaled(*self._calls.loss_range)

    def regret(self, *, drift: bool | None = None) -> "Interval | None":
        """The total loss of the exploited arms, less that of always exploiting the arm that looks
        best now.

        With its interval; None if nothing can be compared yet. See `decoupled.inference.regret`.

        Args:
            drift: whether losses may drift; None for what `watch` was told. Contexts and
                preferences need True.
        """
        from ..inference.verdicts import regret

        interval = self._query_watch(
            "regret()", lambda watch, _: regret(watch.sequences, drift=drift), drift=drift
        )
        if interval is None:
            return None
        return interval.scaled(*self._calls.loss_range, difference=True)

    def difference(
        self, arm: Arm, other: Arm | None = None, *, drift: bool | None = None
    ) -> "Interval":
        """The mean loss of an arm minus that of another, or of the exploited arms, with its
        interval.

        It is above 0 if the arm is worse.

        Args:
            arm: the arm.
            other: the arm to compare it with; None for the exploited arms.
            drift: whether losses may drift; None for what `watch` was told. Contexts and
                preferences need True.
        """

        def interval_of_difference(watch: "Watch", parts: "Parts") -> "Interval":
            serials = parts.policy_state.serials
            serial = serials.id_at(parts.arms.place(arm))
            if other is None:
                interval = watch.sequences.against_served(serial, drift=drift)
            else:
                other_serial = serials.id_at(parts.arms.place(other))
                interval = watch.sequences.difference(serial, other_serial, drift=drift)
            return interval.scaled(*parts.losses, difference=True)

        return self._query_watch("difference()", interval_of_difference, drift=drift)

    @property
    def alarm(self) -> "Alarm | None":
        """The state of a `decided_share` of a budget; None if there never was one. See
        `decoupled.inference.Alarm`.
        """

        def alarm_with_name(watch: "Watch", parts: "Parts") -> "Alarm | None":
            if watch.lookout is None:
                return None
            alarm = watch.lookout.alarm
            if alarm.decided is None:
                return alarm
            return alarm._replace(decided=_names(watch, parts)[alarm.decided])

        return self._calls.query(alarm_with_name)

    # For programs that run many learners, such as a service

    def catch_up(self) -> Progress:
        """Count the decisions made until now, and say how much evidence there is.

        Whatever you ask does that first, and so does the next feedback: after many decisions
        without feedback, it takes a while. If your answers must be quick, call this every 64
        decisions or so. It changes no answer.

        >>> import decoupled as dc
        >>> learner = dc.FTPL().start(arms=["a", "b"], seed=7)
        >>> learner.watch()
        >>> first, second = learner.decide(count=2)
        >>> learner.observe(second, loss=0.5)
        >>> progress = learner.inference.catch_up()
        >>> progress.waiting, progress.awaited.decision == first.id
        (1, True)
        """

        def progress_until_now(watch: "Watch", _: "Parts") -> Progress:
            return Progress(
                observed=watch.sequences.observed,
                left_out=watch.sequences.left_out,
                waiting=watch.queue.waiting,
                awaited=watch.queue.awaited,
            )

        return self._calls.query(progress_until_now)

    def copy_evidence(self) -> Evidence:
        """Copy all evidence as it is now, to compute verdicts and reports in another thread while
        the learner goes on.

        >>> import decoupled as dc
        >>> from decoupled.inference import verdict
        >>> learner = dc.FTPL().start(arms=["a", "b"], seed=7)
        >>> learner.watch()
        >>> evidence = learner.inference.copy_evidence()
        >>> verdict(evidence.sequences, learner.arms) == learner.inference.verdict()
        True
        """

        def evidence_until_now(watch: "Watch", _: "Parts") -> Evidence:
            judged_sequences = watch.judged_sequences
            judge_sums = watch.judge_sums
            return Evidence(
                sequences=watch.sequences.copy(),
                waiting=watch.queue.waiting,
                awaited=watch.queue.awaited,
                judged=None if judged_sequences is None else judged_sequences.copy(),
                judge=None if judge_sums is None else judge_sums.copy(),
            )

        return self._calls.query(evidence_until_now)

    def take_released(self) -> "dict[str, Observation | None]":
        """Take what was added to the confidence sequences since the last call, to keep sequences of
        your own.

        The first call returns nothing: recording begins with it.

        Returns:
            The observations in their order, by the ids of the decisions; None for a decision that
            was left out. Arms are numbered as in `sequences`. Records of `replay` are not among
            them.

        >>> import decoupled as dc
        >>> learner = dc.FTPL().start(arms=["a", "b"], seed=7)
        >>> learner.watch()
        >>> learner.inference.take_released()
        {}
        >>> decision = learner.decide()
        >>> learner.observe(decision, loss=0.5)
        >>> learner.inference.take_released()[decision.id].loss
        0.5
        """
        return self._calls.query(lambda watch, _: watch.take_released())

    def configure(self, *, patience: int, expired_loss: float | None) -> None:
        """Change from now on how long evidence waits for feedback, as for a learner that moves to
        another program.

        Args:
            patience: how many newer decisions wait for one without feedback, as in `Learner.watch`.
            expired_loss: the loss that it then counts as, within `loss_range`; None leaves it out.

        >>> import decoupled as dc
        >>> learner = dc.FTPL().start(arms=["a", "b"], seed=7)
        >>> learner.watch()
        >>> learner.inference.configure(patience=1, expired_loss=None)
        >>> decisions = learner.decide(count=3)
        >>> learner.inference.catch_up()
        Progress(observed=0, left_out=2, waiting=0, awaited=None)
        """
        self._calls.configure(patience, expired_loss)

    def awaits(self, decision: Decision | str) -> bool:
        """Whether the feedback of a decision would still become evidence.

        Args:
            decision: the decision, or its id.

        >>> import decoupled as dc
        >>> learner = dc.FTPL().start(arms=["a", "b"], seed=7)
        >>> learner.watch()
        >>> decision = learner.decide()
        >>> learner.inference.awaits(decision)
        True
        """
        decision_id = decision if isinstance(decision, str) else decision.id
        return self._calls.query(lambda watch, _: watch.queue.is_awaited(decision_id))

    def give_up(self, decision: Decision | str) -> None:
        """Let the evidence wait no longer for a pending decision. Its feedback may still reach the
        policy.

        The evidence counts it as `expired_loss`, or leaves it out: see `Learner.watch`.

        Args:
            decision: the decision, or its id.

        Raises:
            FeedbackError: if the decision is not pending.

        >>> import decoupled as dc
        >>> learner = dc.FTPL().start(arms=["a", "b"], seed=7)
        >>> learner.watch()
        >>> decision = learner.decide()
        >>> learner.inference.give_up(decision)
        >>> learner.inference.awaits(decision), len(learner.pending)
        (False, 1)
        """
        self._calls.give_up(decision)

    def stop(self) -> None:
        """Drop the confidence sequences. What the learner has learned stays as it is.

        >>> import decoupled as dc
        >>> learner = dc.FTPL().start(arms=["a", "b"], seed=7)
        >>> learner.watch()
        >>> learner.inference.stop()
        >>> learner.inference  # doctest: +NORMALIZE_WHITESPACE
        Traceback (most recent call last):
            ...
        decoupled.errors.UnsupportedError: inference: this learner is not watched; call watch()
        before the first decision
        """
        self._calls.stop()


def _names(watch: "Watch", parts: "Parts") -> list[Arm]:
    """The name of each arm by its serial; empty for retired arms."""
    names: list[Arm] = [""] * watch.sequences.count
    for place, name in enumerate(parts.arms.names):
        names[parts.policy_state.serials.id_at(place)] = name
    return names


def _verdict_of_segment(
    watch: "Watch", parts: "Parts", context: Context, risk: float | None
) -> "Verdict":
    """The verdict of the segment of a context, by the share of the risk that the segment has."""
    from ..inference.sequences import empty_like
    from ..inference.sums import share_of_segment
    from ..inference.verdicts import verdict

    contexts = parts.policy_state.contexts
    if contexts is None or len(contexts.policy.segments) == 0:
        refuse_by_segment("inference.verdict(context=...)")
    if watch.segments is None:
        rule = "evidence is kept of all requests together"
        remedy = "call watch(by_segment=True) before the first decision"
        raise UnsupportedError(f"inference.verdict(context=...): {rule}; {remedy}")
    risk_of_all = watch.sequences.risk
    if risk is not None:
        risk_of_all = check_number("risk", risk, "the default is 0.05", above=LEAST_RISK, below=1.0)
    place, _ = contexts.encoder.encode(context, new=False)
    sequences = watch.segments.get(place)
    if sequences is None:
        return verdict(empty_like(watch.sequences, drift=True), _names(watch, parts))
    share = share_of_segment(1 + list(watch.segments).index(place))
    waiting = watch.waiting_in_segment(place)
    awaited = watch.queue.awaited if waiting > 0 else None
    names = _names(watch, parts)
    return verdict(sequences, names, risk=risk_of_all * share, waiting=waiting, awaited=awaited)


def _verdict(
    watch: "Watch", parts: "Parts", risk: float | None, *, drift: bool | None
) -> "Verdict":
    """The verdict of all requests; with labels, it says what the judge alone would choose."""
    from ..inference.judging import verdict_with_judge
    from ..inference.verdicts import verdict

    names = _names(watch, parts)
    waiting = watch.queue.waiting
    awaited = watch.queue.awaited
    by_labels = verdict(
        watch.sequences, names, risk=risk, drift=drift, waiting=waiting, awaited=awaited
    )
    if watch.judged_sequences is None or watch.judge_sums is None:
        return by_labels
    by_judge_alone = verdict(
        watch.judged_sequences, names, risk=risk, drift=drift, waiting=waiting, awaited=awaited
    )
    return verdict_with_judge(by_labels, by_judge_alone, watch.judge_sums.missing)
