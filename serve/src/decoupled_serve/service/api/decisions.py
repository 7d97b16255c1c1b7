"""Decisions and their feedback: the calls, and the commands for feedback."""

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import TypeAlias, Unpack

from decoupled.client import Conflict, Gone, Invalid, NotFound, ServiceError, StoreError
from decoupled.decision import Arm
from decoupled.errors import LossError, ParameterError, reworded, shown
from decoupled.learner import Preference, preference_loss

from ..commits.loop import SLICE, CommitLoop, Continuation
from ..commits.replies import Reply
from ..experiment.live import Form, LiveExperiment, Loss, T
from ..experiment.records import DecisionId, DecisionRecord, Feedback, unknown_decision
from ..experiment.rows import Decided, Settled
from ..memory.session import Reference, Session
from .deadlines import expire, sweep
from .draw import DrawOptions, draw

_OTHER_RANGE = "send one in that range, or create an experiment with another loss_range"
Item: TypeAlias = tuple[DecisionId | NotFound, Feedback]
Result: TypeAlias = DecisionRecord | ServiceError


class Decisions:
    """Make decisions and give feedback. Every call returns a reply, which arrives when its effect is on disk."""

    def __init__(self, commits: CommitLoop, max_pending: int) -> None:
        self._commits, self._max_pending = commits, max_pending

    def decide(self, tenant: str, name: str, **options: Unpack[DrawOptions]) -> Reply[list[DecisionRecord]]:
        """Make decisions. The same idempotency key again returns the same decisions."""
        return self.decide_as(LiveExperiment.record, tenant, name, **options)

    def decide_as(
        self,
        form: Form[T],
        tenant: str,
        name: str,
        *,
        permit: str | None = None,
        **options: Unpack[DrawOptions],
    ) -> Reply[list[T]]:
        """The same, where `form` makes what is returned for each decision.

        With a `permit`, the digest of an API key, only if that key is still valid.
        """
        about, count = Reference("name", tenant, name), options.get("count", 1)
        run = partial(draw, form=form, about=about, max_pending=self._max_pending, **options)
        return self._commits.submit(run, about, permit=permit, size=count if type(count) is int else 1)

    def get(self, tenant: str, id: str) -> Reply[DecisionRecord]:  # noqa: A002
        """A decision and its outcome."""
        decision = DecisionId.parse(id)
        return self._commits.run(_look, Reference("tag", tenant, decision.tag), decision=decision)

    def feedback(
        self,
        tenant: str,
        id: str,  # noqa: A002
        *,
        loss: float | None = None,
        reward: float | None = None,
        arm: Arm | None = None,
        preference: Preference | None = None,
        permit: str | None = None,
    ) -> Reply[DecisionRecord]:
        """Give the loss, or the reward, of the arm that a decision *explored*; any other `arm` is refused.

        An experiment of feedback "preference" takes a `preference` between both arms instead. `permit` is as in `decide`.
        """
        return self.feedback_as(
            LiveExperiment.record, tenant, Feedback(id, loss, reward, arm, preference), permit
        )

    def feedback_as(
        self, form: Form[T], tenant: str, given: Feedback, permit: str | None = None
    ) -> Reply[T]:
        """The same, where `form` makes what is returned, and `permit` is as in `decide_as`."""
        decision = DecisionId.parse(given.decision)
        about = Reference("tag", tenant, decision.tag)
        run = partial(_apply, form=form, about=about, decision=decision, given=given)
        return self._commits.submit(run, about, permit=permit)

    def forget(self, tenant: str, id: str) -> Reply[None]:  # noqa: A002
        """Expire a pending decision now, because no feedback will come."""
        decision = DecisionId.parse(id)
        about = Reference("tag", tenant, decision.tag)
        return self._commits.submit(partial(_forget, about=about, decision=decision), about)

    def feedback_many(self, tenant: str, items: Sequence[Feedback]) -> Reply[list[Result]]:
        """Give feedback for many decisions, with a result or an error for each; nothing is returned before all is on disk."""
        return self.feedback_many_as(LiveExperiment.record, tenant, items)

    def feedback_many_as(
        self, form: Form[T], tenant: str, items: Sequence[Feedback], permit: str | None = None
    ) -> Reply[list[T | ServiceError]]:
        """The same, where `form` makes each result."""
        parsed = [_parsed(each) for each in items]
        tags = {each.tag for each, _ in parsed if isinstance(each, DecisionId)}
        about = {tag: Reference("tag", tenant, tag) for tag in tags}
        run = partial(_apply_many, form=form, about=about, items=parsed)
        waiting = partial(run, wait_for=tuple(about.values()))
        return self._commits.submit(
            waiting, *about.values(), otherwise=run, permit=permit, size=len(parsed)
        )


def _parsed(given: Feedback) -> Item:
    try:
        return DecisionId.parse(given.decision), given
    except NotFound as error:
        return error, given


# Commands


def _look(session: Session, *, about: Reference, decision: DecisionId) -> DecisionRecord:
    running = _running(session, about, decision)
    sweep(session, running)
    return running.record(*_found(session, running, decision))


def _apply(
    session: Session, *, form: Form[T], about: Reference, decision: DecisionId, given: Feedback
) -> T:
    """Apply the loss of the explored arm, once. The same loss again gets the same answer, another is refused."""
    running = _running(session, about, decision)
    if given.arm is not None:
        _check_arm(running, _found(session, running, decision)[0], given.arm)
    if given.preference is None and running.settings.feedback == "loss":
        loss = _measured(running, given)
    else:
        loss = _preferred(session, running, decision, given)
    now = running.now(session.clock())
    waiting = running.pending.get(decision.seq)
    if waiting is None:
        return form(running, *_repeated(session, running, decision, loss.value, now))
    row = waiting[0]
    if row.expires_at is not None and now >= row.expires_at:
        expire(session, running, row, now)
        raise _late(session, running, decision, now)
    settled = running.settle(decision.seq, "observed", loss, now)
    session.append(running, settled)
    return form(running, row, settled)


def _forget(session: Session, *, about: Reference, decision: DecisionId) -> None:
    running = _running(session, about, decision)
    waiting = running.pending.get(decision.seq)
    if waiting is not None:
        expire(session, running, waiting[0], running.now(session.clock()))


def _measured(running: LiveExperiment, given: Feedback) -> Loss:
    try:
        return running.measured(given.loss, given.reward)
    except LossError as error:
        raise Invalid(reworded(error, remedy=_OTHER_RANGE)) from None


def _preferred(session: Session, running: LiveExperiment, decision: DecisionId, given: Feedback) -> Loss:
    """The loss that stands for a preference. Losses and preferences in one experiment would not be comparable."""
    if running.settings.feedback == "loss":
        rule = "this experiment takes the loss of the explored arm"
        remedy = "send a loss or a reward, or create an experiment with feedback 'preference'"
        raise Invalid.of("preference", given.preference, rule, remedy)
    if given.preference is None or given.loss is not None or given.reward is not None:
        name, value = ("loss", given.loss) if given.reward is None else ("reward", given.reward)
        rule = "this experiment takes preferences"
        remedy = "send the preference, 'explore', 'tie' or 'exploit', and nothing else"
        raise Invalid.of(name, value, rule, remedy)
    row, _ = _found(session, running, decision)
    if row.exploit is None or row.explore is None:
        rule = f"this decision has the mode {row.mode!r}, so there are no two arms to compare"
        raise Invalid.of("preference", given.preference, rule, "use mode 'both'")
    try:
        return running.measured(preference_loss(given.preference, running.settings.loss_range))
    except ParameterError as error:
        raise Invalid(str(error)) from None


def _apply_many(
    session: Session,
    *,
    form: Form[T],
    about: Mapping[str, Reference],
    items: Sequence[Item],
    wait_for: Iterable[Reference] = (),
    done: Sequence[T | ServiceError] = (),
) -> list[T | ServiceError] | Continuation:
    session.check_loaded(wait_for)
    results = list(done)
    for id, given in items[len(done) :]:  # noqa: A001
        if len(results) % SLICE == 0 and len(results) > len(done) and session.others_wait():
            return Continuation(partial(_apply_many, form=form, about=about, items=items, done=results))
        try:
            if isinstance(id, NotFound):
                raise id
            results.append(_apply(session, form=form, about=about[id.tag], decision=id, given=given))
        except StoreError:
            raise
        except ServiceError as error:
            results.append(error)
    return results


def _running(session: Session, about: Reference, decision: DecisionId) -> LiveExperiment:
    running = session.find(about)
    if running is None:
        raise unknown_decision(decision)
    return running


def _found(
    session: Session, running: LiveExperiment, decision: DecisionId
) -> tuple[Decided, Settled | None]:
    waiting = running.pending.get(decision.seq)
    if waiting is not None:
        return waiting[0], None
    rows = session.store.decided(running.id, decision.seq)
    if not rows:
        raise unknown_decision(decision)
    return rows[0], session.store.settled(running.id, decision.seq)


def _check_arm(running: LiveExperiment, row: Decided, arm: Arm) -> None:
    """Refuse the loss of an arm that was not explored, most likely that of the exploited arm."""
    if row.explore is None:
        raise Invalid(
            f"arm = {shown(arm)}: this decision was made with mode 'exploit' and explored no arm; "
            "send no feedback for it"
        )
    explored = running.names[row.explore]
    if arm != explored or type(arm) is not type(explored):
        raise Invalid(
            f"arm = {shown(arm)}: must be {shown(explored)}, the arm that this decision explored; "
            "send the loss of the explored arm, never that of the exploited one"
        )


def _repeated(
    session: Session, running: LiveExperiment, decision: DecisionId, loss: float, now: float
) -> tuple[Decided, Settled]:
    row, settled = _found(session, running, decision)
    if settled is None:
        raise Conflict(
            f"decision '{decision}': was made with mode 'exploit', which takes no feedback; "
            "send the loss of an explored arm only"
        )
    if settled.kind == "expired":
        raise _late(session, running, decision, now)
    if settled.loss != loss:
        raise Conflict(
            f"decision '{decision}': has the loss {settled.loss}, not {loss}; feedback is given once"
        )
    return row, settled


def _late(session: Session, running: LiveExperiment, decision: DecisionId, now: float) -> Gone:
    if session.store.mark_late(running.id, decision.seq, now):
        running.late += 1
    return Gone(
        f"decision '{decision}': its deadline has passed, so its feedback is counted as late and not applied; "
        "if losses arrive this late, create an experiment with a longer deadline"
    )
