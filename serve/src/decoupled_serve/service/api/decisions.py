"""Decisions and their feedback: the calls, the commands that draw, apply and expire, once for each idempotency key."""

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from heapq import nsmallest
from typing import Any, NamedTuple, TypeAlias, TypedDict, Unpack

from decoupled.base import as_float
from decoupled.client import Conflict, Gone, Invalid, NotFound, ServiceError, StoreError
from decoupled.decision import Arm, Mode
from decoupled.errors import LossError, ParameterError, near_name, reworded, shown
from decoupled.learner import Key, Preference, checked_position, preference_loss

from ..commits.loop import SLICE, CommitLoop, Continuation
from ..commits.replies import Reply
from ..experiment.context import (
    Annotations,
    checked_key,
    hashed_key,
    place_of,
    stored_advice,
    stored_baseline,
    stored_context,
    stored_tags,
)
from ..experiment.live import LiveExperiment, Loss
from ..experiment.records import (
    MODES,
    MOST_DECISIONS,
    Decided,
    DecisionId,
    DecisionRecord,
    Feedback,
    Judgement,
    KeyRow,
    Settled,
    unknown_decision,
)
from ..experiment.settings import plain_text
from ..memory.session import Reference, Session

AT_ONCE = 8  # experiments in one transaction, so that nobody waits long


def expire(session: Session, running: LiveExperiment, seq: int, now: float) -> None:
    """Settle a pending decision without feedback, or without the label that it awaits."""
    loss, kind, labels = running.settings.expired_loss, "expired", running.settings.labels
    if seq in running.judged and labels is not None:
        low, high = running.losses
        loss, kind = min(low + labels.missing * (high - low), high), "missing"
    measured = None if loss is None else running.measured(loss)
    session.store.append(running.id, running.settle(seq, kind, measured, now))


def give_up(session: Session, running: LiveExperiment, now: float) -> None:
    """Log that the evidence waits no longer for decisions that have no feedback yet, and go on with what waited for them."""
    last = running.overdue_to(now)
    if last is not None:
        session.store.append(running.id, running.change("overdue", str(last), now))


def sweep(session: Session, running: LiveExperiment) -> None:
    """Expire what is due in one experiment, and settle decisions whose label is overdue.

    The deadline of an experiment, in seconds, is for what is judged. Once it is judged, a decision that asks for a label awaits it
    for as many newer decisions as `Labels.deadline` says, whatever the clock says.
    """
    for seq in running.overdue():
        expire(session, running, seq, running.now(session.clock()))
    now = running.now(session.clock())
    give_up(session, running, now)
    if running.settings.deadline is None:
        return
    while (row := running.oldest()) and row.expires_at is not None and now >= row.expires_at:
        expire(session, running, row.seq, now)


def sweep_all(session: Session, after: int) -> int:
    """Expire what is due in some experiments, those with an id above `after` first, in memory or not.

    Returns the last id; 0 if there are no more. So no experiment that cannot run keeps others from their turn.
    """
    due = session.store.expiring(session.clock(), after, AT_ONCE)
    for running in session.hold(due, unused=True) if due else ():
        sweep(session, running)
        expiry = running.first_expiry()
        if expiry != running.next_expiry:
            running.next_expiry = expiry
            session.store.update(running.id, next_expiry=expiry)
    return due[-1] if len(due) == AT_ONCE else 0


class DrawOptions(TypedDict, total=False):
    """What decisions to make; `DecideOptions` of the clients says what each means.

    There are `count` of them. `ignore_unknown` drops undeclared fields of the context, whatever the experiment says.
    """

    mode: Mode
    count: int
    available: Iterable[Arm] | None
    key: Key | None
    idempotency_key: str | None
    tags: Mapping[str, str] | None
    baseline: Mapping[Any, float] | Sequence[float] | None
    context: Mapping[str, Any] | None
    advice: Mapping[str, Any] | None
    ignore_unknown: bool
    why: bool


def draw(
    session: Session,
    *,
    about: Reference,
    max_pending: int,
    options: DrawOptions,
    made: Sequence[DecisionRecord] = (),
) -> list[DecisionRecord] | Continuation:
    """Draw `count` decisions and log them, or return those that the idempotency key made before.

    A slice has one of its own: if the rest is interrupted, the same request again finds what was made, and makes the rest.
    """
    running = session.get(about)
    mode, count, key = options.get("mode", "both"), options.get("count", 1), options.get("key")
    idempotency_key, available = options.get("idempotency_key"), options.get("available")
    _check(mode, count, idempotency_key)
    places = None if available is None else _places(running, available)
    attached = _attached(running, options)
    text = None if key is None else _key(running, key, mode)
    request = ""
    if idempotency_key:
        # Salted, so that two requests with the same key cannot be linked where keys are not logged.
        known = (
            None if text is None else hashed_key(f"{idempotency_key}\n{text}", running.key_secret)
        )
        request = _digest(mode, count, places, attached, known)
    wanted = _Wanted(mode, places, attached, text, request, options.get("why", False))
    done = list(made)
    while len(done) < count:
        if len(done) > len(made) and session.others_wait():
            again = None if places is None else [running.names[each] for each in json.loads(places)]
            left: DrawOptions = {**options, "available": again}
            rest = partial(draw, about=about, max_pending=max_pending, options=left, made=done)
            return Continuation(rest)
        part = (
            idempotency_key
            if not idempotency_key or not done
            else f"{idempotency_key}\n{len(done)}"
        )
        done += _slice(session, running, wanted, part, min(SLICE, count - len(done)))
        while len(running.pending) > min(max_pending, running.learner.max_pending):
            unjudged, judged = running.oldest(), next(iter(running.judged), running.head)
            oldest = judged if unjudged is None else min(unjudged.seq, judged)
            expire(session, running, oldest, running.now(session.clock()))
    return done


def _attached(running: LiveExperiment, options: DrawOptions) -> Annotations:
    """What the caller attached, as it is stored."""
    tags, baseline = options.get("tags"), options.get("baseline")
    context, advice = options.get("context"), options.get("advice")
    arms, names, declared = running.places, running.names, running.declared
    if options.get("ignore_unknown"):
        declared = declared._replace(unknown="ignore")
    return Annotations(
        None if tags is None else stored_tags(tags),
        None if baseline is None else stored_baseline(baseline, arms, running.losses, names),
        None if context is None else stored_context(context, declared),
        None if advice is None else stored_advice(advice, running.advisers, arms, names),
    )


class _Wanted(NamedTuple):
    """What a request asks for, and the digest by which its idempotency key remembers it."""

    mode: Mode
    places: str | None
    attached: Annotations
    key: str | None
    request: str
    why: bool


def _slice(
    session: Session, running: LiveExperiment, wanted: _Wanted, key: str | None, count: int
) -> list[DecisionRecord]:
    """Draw some decisions, or return those that the idempotency key made before."""
    mode, places, attached, sticky, request, why = wanted
    if key is not None:
        before = session.store.key(running.id, key)
        if before is not None:
            return _again(session, running, before, wanted)
    if running.archived_at is not None:
        raise Conflict(
            f"experiment {running.name!r}: is archived and makes no decisions; create another"
        )
    if running.coupled and mode != "both":
        rule = f"{running.policy} plays the standard game, where the arm played is the arm seen"
        remedy = "use mode 'both', or create an experiment with a decoupled policy such as FTPL"
        raise Invalid.of("mode", mode, rule, remedy)
    if running.learner.guardrails.down and running.up(places) == "[]":
        rule = "every arm of this decision is down"
        raise Conflict(f"experiment {running.name!r}: {rule}; bring one up again")
    sweep(session, running)
    now = running.now(session.clock())
    first = running.head + 1
    rows = [running.draw(mode, places, now, attached, sticky) for _ in range(count)]
    for row in rows:
        session.store.append(running.id, row)
    if key is not None:
        session.store.add_key(KeyRow(running.id, key, request, first, count, now))
    return [running.record(row, why=why) for row in rows]


def _check(mode: str, count: int, idempotency_key: str | None) -> None:
    if mode not in MODES:
        rule = "must be 'both', 'exploit' or 'explore'"
        raise Invalid.of("mode", mode, rule, near_name(mode, MODES))
    if type(count) is not int or not 1 <= count <= MOST_DECISIONS:
        rule = f"must be a whole number from 1 to {MOST_DECISIONS:,}"
        raise Invalid.of("count", count, rule, "leave it out for a single decision")
    if idempotency_key is not None:
        plain_text("idempotency_key", idempotency_key)


def _key(running: LiveExperiment, key: Key, mode: Mode) -> str:
    text = checked_key(key, running.settings.log_keys)
    if running.coupled:
        rule = f"{running.policy} plays the standard game, where the arm played is the arm seen"
        raise Invalid(f"key: {rule}; leave it out, or use a decoupled policy such as FTPL")
    if mode == "explore":
        raise Invalid(
            "key: mode 'explore' serves no arm, so no key could keep it; leave the key out"
        )
    return text


def _places(running: LiveExperiment, available: Iterable[Arm]) -> str:
    if isinstance(available, (str, bytes)) or not isinstance(available, Iterable):
        rule = "must be a list of arms"
        raise Invalid.of("available", available, rule, "put the names in a list")
    places = {place_of("available", each, running.places, running.names) for each in available}
    if not places:
        raise Invalid("available = []: names no arm; leave it out if every arm is available")
    return json.dumps(sorted(places), separators=(",", ":"))


@lru_cache(1024)
def _digest(
    mode: str, count: int, places: str | None, attached: Annotations, key: str | None
) -> str:
    return hashlib.sha256(json.dumps([mode, count, places, *attached, key]).encode()).hexdigest()[
        :32
    ]


def _again(
    session: Session, running: LiveExperiment, before: KeyRow, wanted: _Wanted
) -> list[DecisionRecord]:
    called = f"idempotency key {before.key!r}"
    if before.request != wanted.request:
        rule = f"was used for another request on {running.name!r}"
        raise Conflict(f"{called}: {rule}; use a new key for a new request")
    rows = session.store.decided(running.id, before.first, before.size)
    if len(rows) < before.size:
        raise Conflict(f"{called}: its decisions were dropped by retention; use a new key")
    settled = session.store.settled
    return [running.record(row, settled(running.id, row.seq), why=wanted.why) for row in rows]


@dataclass(frozen=True, slots=True)
class LabelQueue:
    """The decisions of an experiment that await a label, oldest first, and `LabelStatus` of its learner."""

    experiment: str
    used: int
    missing: int
    awaiting: int
    lam: float
    decisions: list[DecisionRecord]


_OTHER_RANGE = "send one in that range, or create an experiment with another loss_range"
Item: TypeAlias = tuple[DecisionId | NotFound, Feedback]
Result: TypeAlias = DecisionRecord | ServiceError


class Decisions:
    """Make decisions and give feedback. Every call returns a reply, which arrives when its effect is on disk."""

    def __init__(self, commits: CommitLoop, max_pending: int) -> None:
        self._commits, self._max_pending = commits, max_pending

    def decide(
        self, tenant: str, name: str, *, permit: str | None = None, **options: Unpack[DrawOptions]
    ) -> Reply[list[DecisionRecord]]:
        """Make decisions, those of the idempotency key again; with a `permit`, the digest of an API key, only if it is still valid."""
        about, count = Reference("name", tenant, name), options.get("count", 1)
        run = partial(draw, about=about, max_pending=self._max_pending, options=options)
        return self._commits.submit(
            run, about, permit=permit, size=count if type(count) is int else 1
        )

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
        judged: float | Preference | None = None,
        position: float | None = None,
        cost: float | None = None,
        permit: str | None = None,
    ) -> Reply[DecisionRecord]:
        """Give the loss of the arm that a decision *explored*; `Feedback` says what else may be given. `permit` is as in `decide`."""
        given = Feedback(id, loss, reward, arm, preference, judged, position, cost)
        return self._give(tenant, given, permit)

    def label(
        self,
        tenant: str,
        id: str,  # noqa: A002
        *,
        loss: float | None = None,
        reward: float | None = None,
        preference: Preference | None = None,
        permit: str | None = None,
    ) -> Reply[DecisionRecord]:
        """Give the label of a decision that was judged and wants one: the true loss, or reward, of the explored arm."""
        return self._give(
            tenant, Feedback(id, loss, reward, None, preference), permit, labelling=True
        )

    def _give(
        self, tenant: str, given: Feedback, permit: str | None, *, labelling: bool = False
    ) -> Reply[DecisionRecord]:
        decision = DecisionId.parse(given.decision)
        about = Reference("tag", tenant, decision.tag)
        run = partial(_apply, about=about, decision=decision, given=given, labelling=labelling)
        return self._commits.submit(run, about, permit=permit)

    def awaiting_labels(self, tenant: str, name: str, limit: int = 100) -> Reply[LabelQueue]:
        """The decisions that were judged and await a label, oldest first, at most `limit`, with counts."""
        return self._commits.run(_awaiting, Reference("name", tenant, name), limit=limit)

    def forget(self, tenant: str, id: str) -> Reply[None]:  # noqa: A002
        """Expire a pending decision now, because no feedback will come."""
        decision = DecisionId.parse(id)
        return self._commits.run(_forget, Reference("tag", tenant, decision.tag), decision=decision)

    def feedback_many(
        self, tenant: str, items: Sequence[Feedback], permit: str | None = None
    ) -> Reply[list[Result]]:
        """Give feedback for many decisions, with a result or an error for each; nothing is returned before all is on disk."""
        parsed = [_parsed(each) for each in items]
        tags = {each.tag for each, _ in parsed if isinstance(each, DecisionId)}
        about = {tag: Reference("tag", tenant, tag) for tag in tags}
        run = partial(_apply_many, about=about, items=parsed)
        some = tuple(about.values())
        waiting = partial(run, wait_for=some)
        return self._commits.submit(waiting, *some, otherwise=run, permit=permit, size=len(parsed))


def _parsed(given: Feedback) -> Item:
    try:
        return DecisionId.parse(given.decision), given
    except NotFound as error:
        return error, given


def _look(session: Session, *, about: Reference, decision: DecisionId) -> DecisionRecord:
    running = _running(session, about, decision)
    sweep(session, running)
    return running.record(*_found(session, running, decision))


def _awaiting(session: Session, *, about: Reference, limit: int) -> LabelQueue:
    running = session.get(about)
    sweep(session, running)
    if running.learner.labels is None:
        raise _without_labels("labels")
    some = nsmallest(limit, running.judged)
    records = [running.record(running.pending[seq][0]) for seq in some]
    return LabelQueue(running.name, *running.learner.labels, records)


class _Told(NamedTuple):
    """What feedback says, measured: in an experiment with labels, what the judge said, and the label."""

    loss: Loss | None
    judged: Loss | None = None
    position: float | None = None
    cost: float | None = None


def _apply(
    session: Session,
    *,
    about: Reference,
    decision: DecisionId,
    given: Feedback,
    labelling: bool = False,
) -> DecisionRecord:
    """Apply the loss of the explored arm, once. The same loss again gets the same answer, another is refused."""
    running = _running(session, about, decision)
    if given.arm is not None:
        _check_arm(running, _found(session, running, decision)[0], given.arm)
    told = _told(session, running, decision, given, labelling)._replace(cost=_cost(given.cost))
    now = running.now(session.clock())
    for seq in running.overdue():
        expire(session, running, seq, now)
    give_up(session, running, now)
    waiting = running.pending.get(decision.seq)
    if waiting is None:
        return running.record(*_repeated(session, running, decision, told, now))
    row, known = waiting[0], running.judged.get(decision.seq)
    if known is None and row.expires_at is not None and now >= row.expires_at:
        expire(session, running, row.seq, now)
        raise _late(session, running, decision, now)
    loss, judged, position, cost = told
    if known is not None and known.cost is not None:
        _check_cost(decision, known.cost, cost)
        cost = None
    if running.settings.labels is not None:
        _check_labelled(decision, row, known, told)
        if known is not None:
            judged = position = None
        if loss is None and row.label:
            if judged is not None:
                session.store.append(
                    running.id, running.judge(decision.seq, judged, position, now, cost)
                )
            return running.record(row)
    settled = running.settle(decision.seq, "observed", loss, now, judged, position, cost)
    session.store.append(running.id, settled)
    return running.record(row, settled)


def _told(
    session: Session,
    running: LiveExperiment,
    decision: DecisionId,
    given: Feedback,
    labelling: bool,
) -> _Told:
    """Feedback as it is measured; `Invalid` for what the experiment does not take."""
    name = "label" if labelling else "position" if given.judged is None else "judged"
    if running.settings.labels is None and (
        labelling or (given.judged, given.position) != (None, None)
    ):
        raise _without_labels(name)
    if given.judged is None:
        if given.position is not None:
            rule = "is about a judgement, and there is none"
            raise Invalid.of("position", given.position, rule, "give judged= too")
        return _Told(_loss_of(session, running, decision, given))
    alone = (given.loss, given.reward, given.preference) == (None, None, None)
    try:
        position = checked_position(given.position)
        said: dict[str, Any] = {
            "preference" if isinstance(given.judged, str) else "loss": given.judged
        }
        judged = _loss_of(session, running, decision, Feedback(given.decision, **said))
    except Invalid as error:
        raise Invalid(reworded(error, argument="judged")) from None
    except ParameterError as error:
        raise Invalid(str(error)) from None
    return _Told(None if alone else _loss_of(session, running, decision, given), judged, position)


def _cost(value: object) -> float | None:
    cost = as_float(value)
    if value is not None and (cost is None or cost < 0.0):
        raise Invalid.of(
            "cost", value, "must be a number from 0 on", "it is what the look really cost"
        )
    return cost


def _check_cost(decision: DecisionId, known: float | None, cost: float | None) -> None:
    """Raise `Conflict` if feedback says another cost than before."""
    if cost is not None and cost != known:
        was = "no cost" if known is None else f"the cost {known}"
        raise Conflict(f"decision '{decision}': has {was}, not {cost}; what it cost is given once")


def _without_labels(name: str) -> Invalid:
    remedy = "send the loss alone, or create an experiment with labels"
    return Invalid(f"{name}: this experiment has no labels; {remedy}")


def _check_labelled(
    decision: DecisionId, row: Decided, known: Judgement | None, told: _Told
) -> None:
    """Raise `Conflict` if feedback says something else than before, or gives a label that is not wanted."""
    loss, judged, position, _ = told
    if judged is None and known is None:
        rule = "was not judged, and a label alone would bias what is learned"
        raise Conflict(f"decision '{decision}': {rule}; send judged first, or with it")
    if loss is not None and not row.label:
        rule = "wants no label, and one that was not drawn by chance would bias what is learned"
        raise Conflict(f"decision '{decision}': {rule}; label those whose `label` is true")
    said = None if judged is None else (judged.value, position)
    if said and known is not None and (known.judged, known.position) != said:
        raise _judged_otherwise(decision, known)


def _judged_otherwise(decision: DecisionId, known: Judgement | Settled) -> Conflict:
    was = f"{known.judged}" + ("" if known.position is None else f" at position {known.position}")
    return Conflict(f"decision '{decision}': was judged {was}; what the judge says is given once")


def _loss_of(
    session: Session, running: LiveExperiment, decision: DecisionId, given: Feedback
) -> Loss:
    if given.preference is not None or running.settings.feedback == "preference":
        return _preferred(session, running, decision, given)
    try:
        return running.measured(given.loss, given.reward)
    except LossError as error:
        raise Invalid(reworded(error, remedy=_OTHER_RANGE)) from None


def _forget(session: Session, *, about: Reference, decision: DecisionId) -> None:
    running = _running(session, about, decision)
    if decision.seq in running.pending:
        expire(session, running, decision.seq, running.now(session.clock()))


def _preferred(
    session: Session, running: LiveExperiment, decision: DecisionId, given: Feedback
) -> Loss:
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
    about: Mapping[str, Reference],
    items: Sequence[Item],
    wait_for: Iterable[Reference] = (),
    done: Sequence[Result] = (),
) -> list[Result] | Continuation:
    session.check_loaded(wait_for)
    results = list(done)
    for id, given in items[len(done) :]:  # noqa: A001
        if len(results) % SLICE == 0 and len(results) > len(done) and session.others_wait():
            return Continuation(partial(_apply_many, about=about, items=items, done=results))
        try:
            if isinstance(id, NotFound):
                raise id
            results.append(_apply(session, about=about[id.tag], decision=id, given=given))
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
    """A decision, and the row that settled it."""
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
        rule = "this decision was made with mode 'exploit' and explored no arm"
        raise Invalid(f"arm = {shown(arm)}: {rule}; send no feedback for it")
    explored = running.names[row.explore]
    if arm != explored or type(arm) is not type(explored):
        rule = f"must be {shown(explored)}, the arm that this decision explored"
        remedy = "send the loss of the explored arm, never that of the exploited one"
        raise Invalid(f"arm = {shown(arm)}: {rule}; {remedy}")


def _repeated(
    session: Session, running: LiveExperiment, decision: DecisionId, told: _Told, now: float
) -> tuple[Decided, Settled]:
    """A settled decision, if its feedback is the same again; an error if it is not, or came too late."""
    row, settled = _found(session, running, decision)
    if settled is None:
        rule = "was made with mode 'exploit', which takes no feedback"
        raise Conflict(f"decision '{decision}': {rule}; send the loss of an explored arm only")
    loss, judged, position, cost = told
    again = judged is not None and (settled.judged, settled.position) == (judged.value, position)
    if again and loss is None:  # of a decision that has its label by now, or will never have it
        return row, settled
    if settled.kind != "observed":
        raise _late(session, running, decision, now)
    if judged is not None and not again:
        raise _judged_otherwise(decision, settled)
    if loss is not None and settled.loss is None:
        _check_labelled(decision, row, None, told._replace(judged=loss))
    if loss is not None and settled.loss != loss.value:
        rule = f"has the loss {settled.loss}, not {loss.value}"
        raise Conflict(f"decision '{decision}': {rule}; feedback is given once")
    _check_cost(decision, settled.cost, cost)
    return row, settled


def _late(session: Session, running: LiveExperiment, decision: DecisionId, now: float) -> Gone:
    if session.store.mark_late(running.id, decision.seq, now):
        running.late += 1
    rule = "its deadline has passed, so its feedback is counted as late and not applied"
    remedy = "if losses arrive this late, create an experiment with a longer deadline"
    return Gone(f"decision '{decision}': {rule}; {remedy}")
