"""Expiring the decisions whose deadline has passed."""

from ..experiment.live import Running
from ..experiment.rows import Decided
from ..session import Session


def expire(session: Session, running: Running, row: Decided, now: float) -> None:
    """Settle a pending decision without feedback."""
    loss = running.settings.expired_loss
    measured = None if loss is None else running.measured(loss)
    session.append(running, running.settle(row.seq, "expired", measured, now))


def sweep(session: Session, running: Running) -> None:
    """Expire what is due in one experiment."""
    if running.settings.deadline is None:
        return
    now = running.now(session.clock())
    while (oldest := running.oldest()) is not None and _is_due(oldest, now):
        expire(session, running, oldest, now)


def sweep_all(session: Session) -> None:
    """Expire what is due in every experiment in memory."""
    clock = session.clock()
    due = [running.id for running in session.all_running() if _is_due(running.oldest(), clock)]
    if due:
        for running in session.hold(due):
            sweep(session, running)


def _is_due(row: Decided | None, now: float) -> bool:
    return row is not None and row.expires_at is not None and now >= row.expires_at
