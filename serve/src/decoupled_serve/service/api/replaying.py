"""Replaying another log into an experiment, which learns from it as if it had explored itself.

The log is checked as a whole in the background. Then it is learned in slices, each in a transaction of its own and each
a row of the experiment's log. If the service stops in between, the same log again goes on after the last slice, so every
record counts once.
"""

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from threading import Event
from typing import Any, NamedTuple, TypeVar

from decoupled.client import CLOSED, Conflict, Invalid, StoreError
from decoupled.decision import Arm
from decoupled.errors import shown
from decoupled.learner import unseen_arms

from ..analysis.foreign_log import ForeignRecord, LogFormat, read
from ..commits.background import Background, in_background
from ..commits.loop import CommitLoop
from ..experiment.context import Declared
from ..experiment.live import LiveExperiment
from ..memory.session import Reference, Session
from .deadlines import sweep

T = TypeVar("T")
AT_ONCE = 500  # records learned in one transaction, so that nobody waits long


@dataclass(frozen=True, slots=True)
class Replayed:
    """What was learned from a log.

    Attributes:
        rows: the rows of the log.
        learned: the records that were learned now.
        already: those that an earlier call had learned: the log was sent before.
        left_out: rows with a loss that could not explore every arm.
        state_version: the last row of the experiment's own log that is part of what it has learned.
        warnings: what may be claimed now, and what may be wrong with the log.
    """

    experiment: str
    rows: int
    learned: int
    already: int
    left_out: int
    state_version: int
    warnings: list[str]


class _Target(NamedTuple):
    arms: tuple[Arm, ...]
    loss_range: tuple[float, float]
    unseen: list[Arm]
    done: int
    version: int
    declared: Declared | None


class Replaying:
    """Replay logs into experiments."""

    def __init__(self, commits: CommitLoop, background: Background) -> None:
        self._commits, self._background = commits, background
        self._stop = Event()

    @in_background()
    def replay(
        self, tenant: str, name: str, path: Path, kind: LogFormat, *, unrandomised: bool = False
    ) -> Replayed:
        """Learn from the log in a file. The same file again continues, and learns nothing twice.

        Args:
            tenant: whose experiment.
            name: the experiment.
            path: the file. Its name must end with its format, "csv" or "parquet", or be JSON lines.
            kind: its format.
            unrandomised: take all propensities as 1. Use it only if every arm was seen in every round, with a row for
                each, or if the policy keeps means.
        """
        about, digest = Reference("name", tenant, name), _digest(path, unrandomised)
        target = self._submit(_look, about, digest=digest)
        log = read(
            path, kind, target.arms, target.loss_range,
            unrandomised=unrandomised, unseen=target.unseen, declared=target.declared,
        )  # fmt: skip
        done, version = target.done, target.version
        for first in range(done, len(log.records), AT_ONCE):
            part = log.records[first : first + AT_ONCE]
            version = self._submit(_learn, about, digest=digest, first=first, records=part)
        learned = len(log.records) - done
        return Replayed(about.text, log.rows, learned, done, log.left_out, version, log.warnings)

    def close(self) -> None:
        """Stop after the slice that is being learned; the same log again goes on after it."""
        self._stop.set()
        self._background.close()

    def _submit(self, command: Callable[..., T], about: Reference, **arguments: Any) -> T:
        if self._stop.is_set():
            raise StoreError(CLOSED)
        return self._commits.run(command, about, alone=True, **arguments).result()


def _digest(path: Path, unrandomised: bool) -> str:
    with path.open("rb") as file:
        content = hashlib.file_digest(file, "sha256").hexdigest()
    return f"{content}{'-unrandomised' if unrandomised else ''}"


# Commands


def _look(session: Session, *, about: Reference, digest: str) -> _Target:
    running = _open(session, about)
    return _Target(
        running.learner.arms,
        running.settings.loss_range,
        unseen_arms(running.learner),
        running.replayed.get(digest, 0),
        running.version,
        running.declared._replace(unknown="ignore") if running.contextual else None,
    )


def _learn(
    session: Session,
    *,
    about: Reference,
    digest: str,
    first: int,
    records: list[ForeignRecord],
) -> int:
    """Learn a slice, and return the row of the experiment's log that holds it."""
    running = _open(session, about)
    sweep(session, running)
    if running.replayed.get(digest, 0) != first:
        raise Conflict(
            "log: another request is replaying it; wait for that, and send it again to see the result"
        )
    for arm, *_ in records:
        if arm not in running.places:
            raise Conflict(
                f"log: its arm {shown(arm)} was retired after {first} records were learned; leave it out and send the rest"
            )
    places = [(running.places[arm], *rest) for arm, *rest in records]
    if not running.contextual:
        places = [each[:3] for each in places]
    content = json.dumps({"log": digest, "records": places}, separators=(",", ":"), allow_nan=False)
    row = running.change("replayed", content, running.now(session.clock()))
    session.append(running, row)
    new = {"log": digest, "records": len(records), "before": first}
    session.record("log.replay", running.tenant, running.name, new=new)
    return row.seq


def _open(session: Session, about: Reference) -> LiveExperiment:
    running = session.get(about)
    if running.archived_at is not None:
        raise Conflict(f"experiment {running.name!r}: is archived and learns from no log; create another")
    if running.settings.feedback == "preference":
        raise Invalid(
            f"experiment {running.name!r}: learns from preferences, and a log has losses, which are not comparable; "
            "replay it into an experiment with feedback 'loss'"
        )
    return running
