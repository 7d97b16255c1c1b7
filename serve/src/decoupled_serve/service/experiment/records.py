"""The values that go into the service and come out of it: settings, ids, times, records."""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, Literal, NamedTuple, Self, TypeAlias, get_args

from decoupled.client import NotFound
from decoupled.decision import Arm, Mode
from decoupled.errors import shown
from decoupled.inference import PATIENCE, Interval
from decoupled.learner import Budget, Guardrails, Preference

MODES: tuple[Mode, ...] = get_args(Mode)
FeedbackKind: TypeAlias = Literal["loss", "preference"]
FEEDBACK_KINDS: tuple[FeedbackKind, ...] = get_args(FeedbackKind)
KeyLog: TypeAlias = Literal["hashed", "plain", "off"]
KEY_LOGS: tuple[KeyLog, ...] = get_args(KeyLog)
FieldType: TypeAlias = Literal["text", "number", "boolean"]
FIELD_TYPES: tuple[FieldType, ...] = get_args(FieldType)
UnknownFields: TypeAlias = Literal["refuse", "ignore"]
UNKNOWN_FIELDS: tuple[UnknownFields, ...] = get_args(UnknownFields)
ContextLog: TypeAlias = Literal["plain", "hashed"]
CONTEXT_LOGS: tuple[ContextLog, ...] = get_args(ContextLog)
Status: TypeAlias = Literal["pending", "applied", "expired", "unobserved"]
ExperimentStatus: TypeAlias = Literal["compiling", "ready", "failed", "archived"]

MOST_DECISIONS = 1_000  # in one call, over HTTP or not
LONGEST_DEADLINE = 1e9  # seconds
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

    Here the policy is as `policy.to_dict()` writes it, `deadline` is in seconds, more than 10,000 arms that are numbers are
    a range, and `imported` is the SHA-256 digest of the saved learner that it starts from; None if it starts anew.

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
    patience: int = PATIENCE


class Feedback(NamedTuple):
    """The loss, or the reward, of the arm that a decision *explored*, or which of its two arms did better.

    `arm` names the explored arm, as a safeguard: any other arm is refused.

    >>> Feedback("1f2e-7", loss=0.25).arm is None
    True
    """

    decision: str
    loss: float | None = None
    reward: float | None = None
    arm: Arm | None = None
    preference: Preference | None = None


@dataclass(frozen=True, slots=True)
class Experiment:
    """An experiment as it is now; `arms` can be chosen, `retired` no longer.

    Attributes:
        status: "compiling" until its policy is compiled, then "ready"; "failed" if the policy does not compile
            (`problem` says why); "archived".
        guardrails, budget: those that hold now.
    """

    tenant: str
    name: str
    settings: Settings
    arms: Sequence[Arm]
    retired: tuple[Arm, ...]
    created_at: float
    archived_at: float | None
    state_version: int
    seed: int
    status: ExperimentStatus
    problem: str | None = None
    guardrails: Guardrails = field(default_factory=Guardrails)
    budget: Budget = field(default_factory=Budget)


@dataclass(frozen=True, slots=True)
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


@dataclass(frozen=True, slots=True)
class ExperimentState:
    """What an experiment has learned; lists are in the order of `arms`.

    With more than 10,000 arms, `arms` are those that were exploited most, and the probabilities are left out.

    Attributes:
        exploitation, exploration: the exact probabilities of the next decision; with a contextual policy, of one in the context that
            was asked about, or of which nothing is known.
        estimates: the policy's estimate for each arm, from losses scaled to [0, 1].
        late: decisions whose feedback came after their deadline.
        regret: of the exploited arms against the arm that looks best now, on the experiment's own scale of losses, over
            the decisions observed since arms were last added; None if nothing can be compared. Its interval holds at
            every moment at once.
        budget_used: what counts against each limit of the budget now, by its name.
        incumbent_released: whether another arm was found to be better than the incumbent; None if there is none.
    """

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
