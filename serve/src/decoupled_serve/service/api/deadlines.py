"""Expiring the decisions whose deadline has passed."""

from ..experiment.live import LiveExperiment
from ..experiment.records import Decided
from ..memory.session import Session

AT_ONCE = 8  # experiments in one transaction, so that nobody waits long


def expire(session: Session, running: LiveExperiment, row: Decided, now: float) -> None:
    """Settle a pending decision without feedback."""
    loss = running.settings.expired_loss
    measured = None if loss is None else running.measured(loss)
    session.append(running, running.settle(row.seq, "expired", measured, now))


def sweep(session: Session, running: LiveExperiment) -> None:
    """Expire what is due in one experiment."""
    if running.settings.deadline is None:
        return
    now = running.now(session.clock())
    while (row := running.oldest()) and row.expires_at is not None and now >= row.expires_at:
        expire(session, running, row, now)


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
