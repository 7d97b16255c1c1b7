"""Ending the wait of a decision: with its loss, or because its time is over."""

from collections.abc import Sequence

from ..errors import LossError
from .problems import Conflict, Gone, Invalid, NotFound, ServiceError, StoreError
from .records import DecisionRecord
from .room import Reference, Room
from .rows import Decided, Settled
from .running import Running
from .views import decision_id, place_of, record


def look(room: Room, about: Reference, decision: str) -> DecisionRecord:
    """A decision and what became of it."""
    running = room.get(about)
    sweep(room, running)
    row, settled = _found(room, running, decision)
    return record(running, row, settled)


def feedback(
    room: Room, about: Reference, decision: str, loss: float | None, reward: float | None
) -> DecisionRecord:
    """Apply the loss of the explored arm, once; the same again is answered alike, another is refused."""
    running = room.get(about)
    seq = place_of(decision)[1]
    waiting = running.pending.get(seq)
    value = _loss(running, loss, reward)
    now = running.now(room.clock())
    if waiting is None:
        return _repeated(room, running, decision, value, now)
    row = waiting[0]
    if row.expires_at is not None and now >= row.expires_at:
        expire(room, running, row, now)
        raise _late(room, running, row, now)
    settled = running.settle(seq, "observed", value, now)
    room.append(running, settled)
    return record(running, row, settled)


def feedback_many(
    room: Room, tenant: str, items: Sequence[tuple[str, float | None, float | None]]
) -> list[DecisionRecord | ServiceError]:
    """Feedback for many decisions, each with its own result or error."""
    results: list[DecisionRecord | ServiceError] = []
    for decision, loss, reward in items:
        try:
            tag, _ = place_of(decision)
            results.append(feedback(room, ("tag", tenant, tag), decision, loss, reward))
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


def _loss(running: Running, loss: float | None, reward: float | None) -> float:
    """A loss from a loss or a reward. From here on everything is a loss: the log holds nothing else."""
    try:
        running.losses.scaled(loss, reward)
    except LossError as error:
        raise Invalid(str(error)) from None
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
        raise NotFound(f"decision {decision!r}: is not known; give the id that a decision carried")
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
        "and not applied; give the experiment a longer deadline"
    )
