"""Replaying another log into an experiment, which learns from it as if it had explored itself.

The log, an export of this service or one of another system with the same columns, is checked as a whole in the background. Then it is learned in slices, each in a transaction of its own and each
a row of the experiment's log. If the service stops in between, the same log again goes on after the last slice, so every
record counts once.
"""

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from threading import Event
from typing import Annotated, Any, Literal, NamedTuple, TypeAlias, TypeVar

import numpy as np
from pydantic import Field

from decoupled.base import is_missing
from decoupled.client import CLOSED, Conflict, Invalid, StoreError
from decoupled.decision import Arm
from decoupled.errors import DecoupledError, Message, near_name, shown
from decoupled.inference import Log, columns_of, read_log, wrong_propensities
from decoupled.learner import unseen_arms

from ...fair_threads import pause
from ..commits.background import Background, in_background
from ..commits.loop import CommitLoop
from ..experiment.context import Declared, stored_context
from ..experiment.live import LiveExperiment
from ..memory.session import Reference, Session
from .decisions import sweep

LogFormat: TypeAlias = Literal["csv", "jsonl", "parquet"]
ForeignRecord: TypeAlias = tuple[Arm, float, float | None, str | None, float | None, float | None]
Said: TypeAlias = tuple[
    float | None, float | None
]  # what was judged, and the probability of a label
_NAMED = 10  # arms that a warning names
NO_PROPENSITY = (
    "log the probability with which each arm was explored. A log without it shows how often an arm was tried, not how "
    "good it is. If every arm was seen in every round, or the policy keeps means, as UCB1 does, pass unrandomised=true"
)
COUNTED = (
    "The replayed losses also count in the intervals and the verdict, which hold only if the propensities are those with "
    "which the arms were explored, and if whether a loss is missing depends on neither arm nor loss."
)
UNRANDOMISED = (
    "The log was taken as one that left nothing to chance. What was learned from it compares arms only if every arm was "
    "seen in every round, or if the policy keeps means; the intervals and the verdict count its losses, and no interval "
    "is claimed to hold for them."
)


class ForeignLog(NamedTuple):
    """What can be learned from a log."""

    # the explored arm, its propensity, its loss, its context as it is stored, what was judged and the probability of a label,
    # in the order of decisions
    records: list[ForeignRecord]
    rows: int  # the rows of the log
    left_out: int  # rows with a loss that could not explore every arm
    warnings: list[str]  # what its sender should know


class Target(NamedTuple):
    """The experiment that learns from a log."""

    arms: tuple[Arm, ...]
    loss_range: tuple[float, float]
    unseen: list[Arm]  # arms that the learner knows nothing about
    done: int  # records of the log that were learned before
    version: int
    declared: Declared | None  # what it says of contexts; None if its policy does not learn by them
    labelled: bool  # then a loss is a label, and rows may have been judged


def read(path: Path, kind: LogFormat, target: Target, *, unrandomised: bool) -> ForeignLog:
    """Read and check a log; `Invalid` if it cannot be used."""
    arms, declared = target.arms, target.declared
    try:
        columns = _columns(path, kind)
        for name in ("exploit", "tags", "baseline"):  # nobody saw the loss of the exploited arm
            columns.pop(name, None)
        given = columns.pop("context", None)
        if (explore := columns.get("explore")) is not None:
            listed = explore.tolist() if isinstance(explore, np.ndarray) else explore
            columns["explore"] = [_text(each) for each in listed]
        if unrandomised and "explore" in columns:
            columns["propensity"] = [None] * len(columns["explore"])
        texts: list[Arm] = [str(arm) for arm in arms]
        if len(set(texts)) < len(texts):
            rule = "has arms as text, and two arms of the experiment have the same text"
            raise Invalid(f"log: {rule}; rename one")
        log = read_log(columns, target.loss_range, texts, patience=0)
    except DecoupledError as error:  # the sender knows no name of the file
        raise Invalid(str(error).replace(f"log = {str(path)!r}: ", "log: ")) from None
    except (OSError, ValueError, KeyError) as error:  # of the libraries that read files
        problem = f"log: is not a {kind} file ({error})"
        raise Invalid(Message(problem, "send what its Content-Type says")) from None
    _check_arms(log, arms)
    _check_propensities(log, unrandomised)
    order = np.argsort(log.made_at, kind="stable")
    propensity = np.where(np.isnan(log.propensity), 1.0, log.propensity)[order].tolist()
    explored = [arms[place] for place in log.explore[order].tolist()]
    contexts: list[str | None] = [None] * len(explored)
    if declared is not None and given is not None:
        contexts = [_context(row, given[row], declared) for row in log.rows[order].tolist()]
    judged: list[Said] = [(None, None)] * len(explored)
    if "judged" in columns:
        judged = _judged(columns, log, order, target.labelled)
    losses = [None if loss != loss else loss for loss in log.logged_loss[order].tolist()]
    rows = zip(explored, propensity, losses, contexts, judged, strict=True)
    records = [(*record, *said) for *record, said in rows]
    return ForeignLog(
        records, log.size, log.left_out, _warnings(log, arms, target.unseen, unrandomised)
    )


def _columns(path: Path, kind: LogFormat) -> dict[str, Any]:
    if kind != "jsonl":
        return columns_of(path)
    with path.open(encoding="utf-8") as file:
        return columns_of([_row(number, line) for number, line in enumerate(file) if line.strip()])


def _row(number: int, line: str) -> dict[str, Any]:
    pause()
    try:
        row = json.loads(line)
    except (ValueError, RecursionError):
        row = None
    if not isinstance(row, dict):
        rule, remedy = "is not a JSON object", "send one object on each line"
        raise Invalid.of(f"log[{number}]", line.rstrip()[:200], rule, remedy)
    return row


def _text(arm: Any) -> str | None:
    """The name of an arm as an export has it: a column has one type."""
    if is_missing(arm) or arm == "":
        return None
    return str(int(arm)) if isinstance(arm, float) and arm.is_integer() else str(arm)


def _context(row: int, given: Any, declared: Declared) -> str | None:
    """The context of a row as it is stored: an object, or its JSON in a file whose columns are texts."""
    try:
        found = json.loads(given) if isinstance(given, str) and given else given
        return None if is_missing(found) or found == "" else stored_context(found, declared)
    except ValueError:
        raise Invalid(
            f"log[{row}].context: is not JSON; give an object, or leave it empty"
        ) from None
    except Invalid as error:
        raise Invalid(f"log[{row}].{error}") from None


def _judged(columns: dict[str, Any], log: Log, order: Any, labelled: bool) -> list[Said]:
    """What a judge said of each decision, and the probability of a label; `Invalid` if it cannot be learned from."""
    names, found = ("judged", "label_probability"), list[Said]()
    for row, loss in zip(log.rows[order].tolist(), log.logged_loss[order].tolist(), strict=True):
        judged, rho = (columns[name][row] for name in names)
        if is_missing(judged) or judged == "":
            found.append((None, None))
            continue
        if not labelled:
            rule = "is what a judge said, and this experiment has no labels, so what it learns are losses"
            raise Invalid.of(f"log[{row}].judged", judged, rule, "replay it into one with labels")
        if loss != loss and float(rho) == 1.0:
            rule = "was to have a label, and has no loss"
            raise Invalid(f"log[{row}]: {rule}; give the value of Labels.missing as its loss")
        found.append((float(judged), float(rho)))
    return found


def _check_arms(log: Log, arms: Sequence[Arm]) -> None:
    unknown = np.flatnonzero(log.explore >= len(arms))
    if len(unknown) > 0:
        row, name = int(log.rows[unknown[0]]), log.arms[log.explore[unknown[0]]]
        hint = near_name(name, arms)
        raise Invalid(
            f"log[{row}].explore = {shown(name)}: is not an arm of this experiment; {hint}"
        )


def _check_propensities(log: Log, unrandomised: bool) -> None:
    if len(log) == 0:
        if log.left_out > 0:
            why = "their propensities are 1, or some arms were not available"
            problem = (
                f"log: none of the {log.left_out} rows with a loss could explore every arm: {why}"
            )
            raise Invalid(Message(problem, NO_PROPENSITY))
        raise Invalid(Message(f"log: has {log.size} rows and no loss", "send rows with a loss"))
    missing = int(np.isnan(log.propensity).sum())
    if missing > 0 and not unrandomised:
        problem = f"log: {missing} of {len(log)} rows with a loss have no propensity"
        raise Invalid(Message(problem, NO_PROPENSITY))


def _warnings(
    log: Log, arms: Sequence[Arm], unseen: Sequence[Arm], unrandomised: bool
) -> list[str]:
    notes = [UNRANDOMISED if unrandomised else COUNTED]
    if log.left_out > 0:
        notes.append(
            f"{log.left_out:,} rows with a loss could not explore every arm and are left out: some arms were not "
            "available, or the propensity is 1."
        )
    explored = set(log.explore.tolist())
    never = [arm for place, arm in enumerate(arms) if place not in explored]
    unknown = [shown(arm) for arm in never if arm in unseen]
    if unknown:
        rest = f" and {len(unknown) - _NAMED} more" if len(unknown) > _NAMED else ""
        notes.append(
            f"Nothing is known about {', '.join(unknown[:_NAMED])}{rest}: not in the log, and never observed. Such an arm "
            "may be exploited at once."
        )
    if not unrandomised:
        for place in sorted(explored):
            wrong = wrong_propensities(log, place)
            if wrong is not None:
                notes.append(f"{wrong[0].upper()}{wrong[1:]}.")
    return notes


T = TypeVar("T")
AT_ONCE = 500  # records learned in one transaction, so that nobody waits long


@dataclass(frozen=True, slots=True)
class Replayed:
    """What was learned from a log."""

    experiment: str
    rows: Annotated[int, Field(description="The rows of the log.")]
    learned: Annotated[int, Field(description="How many of them were learned now.")]
    already: Annotated[
        int, Field(description="How many had been learned before, when the same log was sent.")
    ]
    left_out: Annotated[
        int, Field(description="Rows with a loss that could not explore every arm.")
    ]
    state_version: int
    warnings: Annotated[
        list[str], Field(description="What may be claimed now, and what may be wrong with the log.")
    ]


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

        The name of the file must end with its format, "csv" or "parquet", or be JSON lines. If `unrandomised`, all
        propensities are 1: only if every arm was seen in every round, with a row for each, or if the policy keeps means.
        """
        with path.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        digest += "-unrandomised" if unrandomised else ""
        about = Reference("name", tenant, name)
        target = self._submit(_look, about, digest=digest)
        log = read(path, kind, target, unrandomised=unrandomised)
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


def _look(session: Session, *, about: Reference, digest: str) -> Target:
    running = _open(session, about)
    return Target(
        running.learner.arms,
        running.settings.loss_range,
        unseen_arms(running.learner),
        running.replayed.get(digest, 0),
        running.version,
        running.declared._replace(unknown="ignore") if running.contextual else None,
        running.settings.labels is not None,
    )


def _learn(
    session: Session, *, about: Reference, digest: str, first: int, records: list[ForeignRecord]
) -> int:
    """Learn a slice, and return the row of the experiment's log that holds it."""
    running = _open(session, about)
    sweep(session, running)
    if running.replayed.get(digest, 0) != first:
        remedy = "wait for that, and send it again to see the result"
        raise Conflict(f"log: another request is replaying it; {remedy}")
    for arm, *_ in records:
        if arm not in running.places:
            rule = f"its arm {shown(arm)} was retired after {first} records were learned"
            raise Conflict(f"log: {rule}; leave it out and send the rest")
    places = [(running.places[arm], *rest) for arm, *rest in records]
    if running.settings.labels is None:
        places = [each[: 4 if running.contextual else 3] for each in places]
    content = json.dumps({"log": digest, "records": places}, separators=(",", ":"), allow_nan=False)
    row = running.change("replayed", content, running.now(session.clock()))
    session.store.append(running.id, row)
    new = {"log": digest, "records": len(records), "before": first}
    session.record("log.replay", running.tenant, running.name, new=new)
    return row.seq


def _open(session: Session, about: Reference) -> LiveExperiment:
    running = session.get(about)
    if running.archived_at is not None:
        raise Conflict(
            f"experiment {running.name!r}: is archived and learns from no log; create another"
        )
    if running.settings.feedback == "preference":
        rule = "learns from preferences, and a log has losses, which are not comparable"
        remedy = "replay it into an experiment with feedback 'loss'"
        raise Invalid(f"experiment {running.name!r}: {rule}; {remedy}")
    return running
