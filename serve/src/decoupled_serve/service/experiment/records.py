"""The values that go into the service, out of it, and into its store: settings, ids, times, records and rows."""

import json
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, Literal, NamedTuple, Self, TypeAlias, get_args

from decoupled.client import NotFound
from decoupled.decision import Arm, Mode, Why
from decoupled.errors import shown
from decoupled.inference import PATIENCE_OF_LOGS, Interval
from decoupled.learner import Budget, Guardrails, Labels, Preference

from .request_context import Origin

MODES: tuple[Mode, ...] = get_args(Mode)
FeedbackKind: TypeAlias = Literal["loss", "preference"]
KeyLog: TypeAlias = Literal["hashed", "plain", "off"]
FieldType: TypeAlias = Literal["text", "number", "boolean", "vector"]
FIELD_TYPES: tuple[FieldType, ...] = get_args(FieldType)
UnknownFields: TypeAlias = Literal["refuse", "ignore"]
ContextLog: TypeAlias = Literal["plain", "hashed"]
Status: TypeAlias = Literal["pending", "applied", "expired", "unobserved"]
ExperimentStatus: TypeAlias = Literal["compiling", "ready", "failed", "archived"]

MOST_DECISIONS = 1_000  # in one call, over HTTP or not
MOST_ARMS = 10_000
LONGEST_DEADLINE = 1e9  # seconds
# Seconds that the evidence waits for feedback where no deadline is set: clicks and judges take minutes, and people who take
# longer set a deadline.
DEFAULT_WAIT = 3_600.0
RISK = 0.05  # of intervals and verdicts


def moment(seconds: float | None) -> str | None:
    """A time, given in seconds since 1970, as clients see it: UTC, to the microsecond (RFC 3339).

    >>> moment(0.25)
    '1970-01-01T00:00:00.250000Z'
    """
    return None if seconds is None else _moment(seconds)


def microseconds(seconds: float) -> int:
    """Whole microseconds since 1970, as `moment` shows them.

    >>> microseconds(1.5)
    1500000
    """
    whole = math.floor(seconds)
    return whole * 1_000_000 + _rest(seconds, whole)


def _rest(seconds: float, whole: int) -> int:
    return min(int((seconds - whole) * 1e6), 999_999)


@lru_cache(4096)  # a decision shows its time again when its feedback comes
def _moment(seconds: float) -> str:
    whole = math.floor(seconds)
    return f"{_second(whole)}.{_rest(seconds, whole):06d}Z"


@lru_cache(1024)  # decisions made within one second share all but the last digits
def _second(whole: int) -> str:
    return f"{datetime.fromtimestamp(whole, UTC):%Y-%m-%dT%H:%M:%S}"


_ID = re.compile("([0-9A-Za-z]+)-([1-9][0-9]{0,17})")


class DecisionId(NamedTuple):
    """The id of a decision: the tag of its experiment, and its row in that experiment's log.

    >>> DecisionId.parse("1f2e-7")
    DecisionId(tag='1f2e', seq=7)
    >>> str(DecisionId("1f2e", 7))
    '1f2e-7'
    """

    tag: str
    seq: int

    @classmethod
    def parse(cls, text: object) -> Self:
        """The id that a text spells; `NotFound` for a text that no decision can have as its id."""
        found = _ID.fullmatch(text) if isinstance(text, str) else None
        if found is not None:
            return cls(found[1], int(found[2]))
        raise unknown_decision(text)

    def __str__(self) -> str:
        return f"{self.tag}-{self.seq}"


def unknown_decision(id: object) -> NotFound:  # noqa: A002
    """The error for an id that names no decision of this tenant."""
    name = str(id) if isinstance(id, DecisionId) else id
    return NotFound(f"decision {shown(name)}: is not known; give the id that a decision carried")


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings of an experiment, fixed when it is created; `ExperimentSettings` of the clients says what each means.

    Here the policy is as `policy.to_dict()` writes it, `deadline` is in seconds, and `imported` is the SHA-256 digest of the saved learner that it starts from; None if it starts anew.
    Left out, `patience` is the deadline of labels, or the usual one without labels. After `wait` seconds the evidence no longer
    waits for a decision without feedback; None if only a deadline or newer decisions end its wait.

    >>> Settings({"name": "FTPL"}, ("a", "b"), deadline=3600.0).expired_loss is None
    True
    """

    policy: dict[str, Any]
    arms: Sequence[Arm]
    loss_range: tuple[float, float] = (0.0, 1.0)
    deadline: float | None = None
    expired_loss: float | None = None
    demo: bool = False
    feedback: FeedbackKind = "loss"
    guardrails: Guardrails = field(default_factory=Guardrails)
    budget: Budget = field(default_factory=Budget)
    risk: float = RISK
    drift: bool = True
    imported: str | None = None
    log_keys: KeyLog = "hashed"
    context: dict[str, FieldType] = field(default_factory=dict, hash=False)
    unknown_context: UnknownFields = "refuse"
    log_context: ContextLog = "plain"
    patience: int = None  # type: ignore[assignment]
    labels: Labels | None = None
    wait: float | None = None

    def __post_init__(self) -> None:
        usual = PATIENCE_OF_LOGS if self.labels is None else self.labels.deadline
        given: int | None = self.patience
        object.__setattr__(self, "patience", usual if given is None else given)


class Feedback(NamedTuple):
    """The loss, or the reward, of the arm that a decision *explored*, or, in some experiments, which of its two arms did better.

    `arm` names the explored arm, as a safeguard: any other arm is refused. In an experiment with labels, `judged` is what the
    judge said, a loss or a preference, `position` how much it preferred what it saw first, and the others are the label, at
    once or later. `cost` is the real price of the look and its judgement; without it, a budget counts what it declares.

    >>> Feedback("1f2e-7", loss=0.25).arm is None
    True
    """

    decision: str
    loss: float | None = None
    reward: float | None = None
    arm: Arm | None = None
    preference: Preference | None = None
    judged: float | Preference | None = None
    position: float | None = None
    cost: float | None = None


@dataclass(frozen=True, slots=True)
class Experiment:
    """An experiment as it is now; `arms` can be chosen, `retired` no longer, and the guardrails and the budget hold now."""

    tenant: str
    name: str
    settings: Settings
    arms: Sequence[Arm]
    retired: tuple[Arm, ...]
    created_at: float
    archived_at: float | None
    state_version: int
    seed: int
    status: ExperimentStatus  # "failed" if its policy does not compile, and `problem` says why
    problem: str | None = None
    guardrails: Guardrails = field(default_factory=Guardrails)
    budget: Budget = field(default_factory=Budget)


# Every answer is one, and a frozen one takes three times as long to make.
@dataclass(slots=True, unsafe_hash=True)
class DecisionRecord:
    """One decision and its outcome. The loss to send back is that of `explore`, never of `exploit`.

    The clients' `RemoteDecision` says what each field means. Times are in seconds since 1970 here.
    """

    id: str
    experiment: str
    mode: Mode
    exploit: Arm | None
    explore: Arm | None
    propensity: float | None
    weight: float | None
    policy: str
    state_version: int
    made_at: float
    expires_at: float | None
    status: Status
    loss: float | None = None
    settled_at: float | None = None
    drawn: Arm | None = None
    guard: str | None = None
    limited_by: str | None = None
    tags: dict[str, str] = field(default_factory=dict, hash=False)
    baseline: dict[str, float] | None = field(default=None, hash=False)
    key: str | None = None
    context: dict[str, Any] | None = field(default=None, hash=False)
    advice: dict[str, Any] | None = field(default=None, hash=False)
    label: bool = False
    label_probability: float | None = None
    judged: float | None = None
    position: float | None = None
    why: Why | None = field(default=None, hash=False)

    @property
    def send_feedback(self) -> dict[str, Arm] | None:
        """What to send back, and where, over HTTP; None if it takes no feedback."""
        if self.explore is None:
            return None
        return {"loss_of": self.explore, "to": f"/v1/decisions/{self.id}/feedback"}


@dataclass(frozen=True, slots=True)
class ExperimentState:
    """What an experiment has learned; lists are in the order of `arms`, and `StateOut` says what each field means."""

    experiment: str
    state_version: int
    round: int
    arms: tuple[Arm, ...]
    exploitation: tuple[float, ...]
    exploration: tuple[float, ...]
    estimates: tuple[float, ...]
    plays_exploit: tuple[int, ...]
    plays_explore: tuple[int, ...]
    decisions: int
    pending: int
    applied: int
    expired: int
    late: int
    regret: Interval | None
    budget_used: tuple[tuple[str, float], ...] = ()
    incumbent_released: bool | None = None


# The rows of the log: one for each event in an experiment, numbered 1, 2, 3, ...
class Decided(NamedTuple):
    """A decision was drawn. An arm is given by its place in the list of all arms the experiment ever had.

    `available` is a JSON list of places, None for all arms; `stream` is the random stream before the draw;
    `version` is the last row that was part of the learned state. `drawn` is what the policy drew if a guardrail, `guard`,
    chose `exploit`. `limited_by` is the part of the budget that turned it into mode "exploit". `tags`, `baseline`, `context`
    and `advice` are what the caller attached. `key` is what is logged of the key that drew `exploit`, None without one. In an
    experiment with labels, `label` is 1 if it wants one, which was so with `label_probability`. `share` is the probability
    with which the budget let it explore, settled before its arms were drawn; None without such a limit.
    """

    seq: int
    mode: Mode
    available: str | None
    exploit: int | None
    explore: int | None
    propensity: float | None
    weight: float | None
    round: int
    version: int
    stream: bytes
    made_at: float
    expires_at: float | None
    drawn: int | None = None
    guard: str | None = None
    limited_by: str | None = None
    tags: str | None = None
    baseline: str | None = None
    context: str | None = None
    advice: str | None = None
    key: str | None = None
    label: int | None = None
    label_probability: float | None = None
    share: float | None = None


class Judgement(NamedTuple):
    """A pending decision that asks for a label was judged, at this `cost` if it is known, and awaits its label."""

    seq: int
    decision: int
    judged: float
    position: float | None
    at: float
    cost: float | None = None


class Settled(NamedTuple):
    """A pending decision was settled: "observed" with its loss, "expired" (with a loss, or None), or its label is "missing".

    In an experiment with labels, `judged` is what the judge said, and the loss is the label: None if none was wanted, and what
    counts in its place if it is missing. What was judged and awaited its label has `judged`, `position` and `cost` again.
    """

    seq: int
    decision: int
    kind: str
    loss: float | None
    at: float
    judged: float | None = None
    position: float | None = None
    cost: float | None = None


Outcome: TypeAlias = Settled | Judgement | None  # what became of a decision


class Changed(NamedTuple):
    """The experiment itself changed: arms "added" or "retired", its "guardrails" or "budget", it was "archived", or it
    learned a slice of another log, which was "replayed". Or the evidence gave up decisions that are "overdue": all up to the one
    in `content` that are pending and were not judged. Their feedback may still reach the policy.
    """

    seq: int
    kind: str
    content: str
    at: float


Row: TypeAlias = Decided | Settled | Judgement | Changed


class ExperimentRow(NamedTuple):
    """A stored experiment. `head` is its last row, `version` the last row that changed what is learned.

    `guardrails` and `budget` are JSON, None if there are none. A deleted experiment has a `deleted_at` and no name of its
    own any more. No pending decision expires before `next_expiry`; None if none expires. Keys are hashed with `key_secret`.
    """

    id: int
    tenant: str
    name: str
    tag: str
    settings: str
    seed: str
    created_at: float
    archived_at: float | None
    arms: str
    retired: str
    head: int
    version: int
    late: int
    key_secret: str
    guardrails: str | None = None
    budget: str | None = None
    deleted_at: float | None = None
    next_expiry: float | None = None


class KeyRow(NamedTuple):
    """The request that used an idempotency key, and the decisions it made: `size` rows from `first`."""

    experiment: int
    key: str
    request: str
    first: int
    size: int
    at: float


# The audit trail: what was changed, when, by whom, and what it was before.
OPERATOR = "local"  # the tenant whose keys also manage the whole instance: metrics, backups, the trail of all tenants
# Every kind of change.
ACTIONS = (
    "experiment.create", "experiment.archive", "experiment.delete", "arms.add", "arms.retire", "guardrails.change",
    "budget.set", "incumbent.release", "verdict.decide", "log.drop", "log.replay", "key.add", "key.rotate", "key.revoke",
    "backup.write", "store.restore",
)  # fmt: skip


class AuditRecord(NamedTuple):
    """One change. `old` and `new` have what was changed, before and after, as JSON can hold it.

    `subject` is an experiment, the id of a key, or a file. `request`, `caller` and `label` are those of its `Origin`.
    """

    id: int
    at: float
    tenant: str
    action: str
    subject: str
    caller: str
    label: str
    request: str | None
    old: Any
    new: Any


# The columns of a change in the store, which gives it its id.
AUDIT_COLUMNS = (*AuditRecord._fields[1:-2], "old_value", "new_value")


def audit_row(
    at: float,
    origin: Origin,
    action: str,
    tenant: str,
    subject: str,
    old: Any = None,
    new: Any = None,
) -> tuple[Any, ...]:
    """A change as a row of the store.

    >>> audit_row(1.5, Origin("r-1", "key 3f29", "till"), "arms.add", "local", "models", new=["d"])[2:]
    ('arms.add', 'models', 'key 3f29', 'till', 'r-1', None, '["d"]')
    """
    whose = origin.caller, origin.label, origin.request
    return at, tenant, action, subject, *whose, _text(old), _text(new)


def audit_record(id: int, *row: Any) -> AuditRecord:  # noqa: A002
    """A stored change as it is shown.

    >>> audit_record(7, 1.5, "local", "arms.add", "models", "key 3f29", "till", "r-1", None, '["d"]').new
    ['d']
    """
    *before, old, new = row
    return AuditRecord._make((id, *before, _value(old), _value(new)))


def _text(value: Any) -> str | None:
    return None if value is None else json.dumps(value, sort_keys=True, allow_nan=False)


def _value(text: str | None) -> Any:
    return None if text is None else json.loads(text)
