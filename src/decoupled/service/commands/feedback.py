"""Ending the wait of a decision: with its loss, or because its time is over."""

from collections.abc import Sequence

from ...decision import Arm
from ...errors import LossError, reworded, shown
from ..errors import Conflict, Gone, Invalid, ServiceError, StoreError
from ..experiment.live import Running
from ..experiment.records import DecisionRecord, Feedback
from ..experiment.rows import Decided, Settled
from ..session import Reference, Room
from .views import decision_id, place_of, record, unknown_decision

_OTHER_RANGE = "send one in that range, or create an experiment with another loss_range"


def look(room: Room, about: Reference, decision: str) -> DecisionRecord:
    """A decision and what became of it."""
    running = _running(room, about, decision)
    sweep(room, running)
    row, settled = _found(room, running, decision)
    return record(running, row, settled)


def feedback(room: Room, about: Reference, given: Feedback) -> DecisionRecord:
    """Apply the loss of the explored arm, once; the same again is answered alike, another is refused."""
    running = _running(room, about, given.decision)
    seq = place_of(given.decision)[1]
    if given.arm is not None:
        _check_arm(running, _found(room, running, given.decision)[0], given.arm)
    waiting = running.pending.get(seq)
    value = _loss(running, given.loss, given.reward)
    now = running.now(room.clock())
    if waiting is None:
        return _repeated(room, running, given.decision, value, now)
    row = waiting[0]
    if row.expires_at is not None and now >= row.expires_at:
        expire(room, running, row, now)
        raise _late(room, running, row, now)
    settled = running.settle(seq, "observed", value, now)
    room.append(running, settled)
    return record(running, row, settled)


def feedback_many(
    room: Room, tenant: str, items: Sequence[Feedback]
) -> list[DecisionRecord | ServiceError]:
    """Feedback for many decisions, each with its own result or error."""
    results: list[DecisionRecord | ServiceError] = []
    for given in items:
        try:
            tag, _ = place_of(given.decision)
            results.append(feedback(room, ("tag", tenant, tag), given))
        except StoreError:
            raise
        except ServiceError as error:
            results.append(error)
    return results


def expire(room: Room, running: Running, row: Decided, now: float) -> Settled:
    """End the wait of a decision without its feedback."""
    settled = running.settle(row.seq, "expired", running.settings.expired_loss, now)
    room.append(running, settled)
    return settled


def sweep(room: Room, running: Running) -> None:
    """Expire what is due in one experiment."""
    if running.settings.deadline is None:
        return
    now = running.now(room.clock())
    while (
        (oldest := running.oldest()) is not None
        and oldest.expires_at is not None
        and now >= oldest.expires_at
    ):
        expire(room, running, oldest, now)


def sweep_all(room: Room) -> None:
    """Expire what is due in every experiment in memory."""
    clock = room.clock()
    due = [
        running.id
        for running in room.all_running()
        if (oldest := running.oldest()) is not None
        and oldest.expires_at is not None
        and clock >= oldest.expires_at
    ]
    if due:
        for running in room.hold(due):
            sweep(room, running)


def _running(room: Room, about: Reference, decision: str) -> Running:
    running = room.find(about)
    if running is None:
        raise unknown_decision(decision)
    return running


def _check_arm(running: Running, row: Decided, arm: Arm) -> None:
    """Refuse the loss of an arm that was not explored: most likely that of the exploited arm."""
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


def _loss(running: Running, loss: float | None, reward: float | None) -> float:
    """A loss from a loss or a reward. From here on everything is a loss: the log holds nothing else."""
    try:
        running.losses.scaled(loss, reward)
    except LossError as error:
        raise Invalid(reworded(error, remedy=_OTHER_RANGE)) from None
    if loss is not None:
        return float(loss)
    low, high = running.losses
    return min(max(high - float(reward or 0.0) + low, low), high)


def _found(room: Room, running: Running, decision: str) -> tuple[Decided, Settled | None]:
    seq = place_of(decision)[1]
    waiting = running.pending.get(seq)
    if waiting is not None:
        return waiting[0], None
    rows = room.store.decided(running.id, seq)
    if not rows:
        raise unknown_decision(decision)
    return rows[0], room.store.settled(running.id, seq)


def _repeated(room: Room, running: Running, decision: str, loss: float, now: float) -> DecisionRecord:
    row, settled = _found(room, running, decision)
    if settled is None:
        raise Conflict(
            f"decision {decision!r}: was made with mode 'exploit', which awaits no feedback; "
            "the loss of an exploited arm is nobody's feedback"
        )
    if settled.kind == "expired":
        raise _late(room, running, row, now)
    if settled.loss != loss:
        raise Conflict(
            f"decision {decision!r}: has the loss {settled.loss}, not {loss}; feedback is given once"
        )
    return record(running, row, settled)


def _late(room: Room, running: Running, row: Decided, now: float) -> Gone:
    if room.store.mark_late(running.id, row.seq, now):
        running.late += 1
    return Gone(
        f"decision {decision_id(running, row.seq)!r}: its deadline has passed, so its feedback is counted as late "
        "and not applied; create an experiment with a longer deadline if losses come so late"
    )
