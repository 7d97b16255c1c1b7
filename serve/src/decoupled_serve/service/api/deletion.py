"""Deleting archived experiments. One disappears at once, and its rows are removed in slices in the background."""

import logging
from threading import Event

from decoupled.client import Conflict, ServiceError

from ..commits.background import Background, in_background
from ..commits.loop import CommitLoop
from ..experiment.records import moment
from ..memory.session import Reference, Session

DAY = 86_400.0
DELETE_AFTER = 30 * DAY
AT_ONCE = 5_000  # rows of each table removed in one transaction, so that nobody waits long

_log = logging.getLogger(__name__)


class Deletion:
    """Delete experiments that were archived long enough ago.

    Args:
        commits: runs the commands.
        checks: for calls, which must not wait until the rows of another experiment are removed.
        background: removes rows.
        after: for how many seconds an archived experiment is kept at least.
    """

    def __init__(
        self, commits: CommitLoop, checks: Background, background: Background, after: float
    ) -> None:
        self._commits, self._checks, self._background, self._after = commits, checks, background, after
        self._stop = Event()

    @in_background("_checks")
    def delete(self, tenant: str, name: str) -> float:
        """Delete an archived experiment and return the time; `Conflict` if it is not archived, or not long enough.

        From then on its name is free, and its decisions are `Gone`. A crash does not bring it back.
        """
        about = Reference("name", tenant, name)
        at = self._commits.run(_mark, about, alone=True, after=self._after).result()
        self.resume()
        return at

    def resume(self) -> None:
        """Go on removing the rows of deleted experiments that an earlier process left."""
        self._background.start(self._erase_all)

    def close(self) -> None:
        """Stop after the slice that is being removed; the rest stays for `resume`."""
        self._stop.set()
        self._background.close()

    # In the background

    def _erase_all(self) -> None:
        try:
            while not self._stop.is_set():
                if self._commits.submit(_erase, alone=True).result() == 0:
                    return
        except ServiceError as error:
            _log.warning("rows of deleted experiments are left for the next start: %s", error)


# Commands


def _mark(session: Session, *, about: Reference, after: float) -> float:
    """Take the experiment out of everybody's sight."""
    running = session.get(about)
    now = session.clock()
    if running.archived_at is None:
        raise Conflict(
            f"experiment {running.name!r}: is not archived, and only archived ones can be deleted; archive it first"
        )
    if now < running.archived_at + after:
        raise Conflict(
            f"experiment {running.name!r}: was archived at {moment(running.archived_at)} and is kept for "
            f"{after / DAY:g} days; delete it after {moment(running.archived_at + after)}, or change --delete-after"
        )
    session.store.mark_deleted(running.id, now)
    session.record("experiment.delete", running.tenant, running.name)
    session.drop(running)
    return now


def _erase(session: Session) -> int:
    """Remove a slice of the rows of a deleted experiment; returns how many deleted experiments still have some."""
    left = session.store.unerased(2)
    if left and session.store.erase(left[0], AT_ONCE) == 0:
        session.store.mark_erased(left[0])
        return len(left) - 1
    return len(left)
