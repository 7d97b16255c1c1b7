"""What the clients return."""

from dataclasses import dataclass, field
from typing import Any

from ...decision import Arm
from ..errors import ServiceError
from .outbox import Undelivered


@dataclass(frozen=True)
class Decision:
    """A decision of the service: use `exploit`, try `explore`, and send back the loss of `explore`.

    `guard` names the guardrail that chose `exploit` in place of `drawn`, and `limited_by` the part of the budget that
    kept the decision from exploring; both are None most of the time.

    >>> decision = client.decide("models")
    >>> decision.exploit, decision.explore, decision.status
    ('small', 'large', 'pending')
    """

    id: str
    experiment: str
    mode: str
    exploit: Arm | None
    explore: Arm | None
    propensity: float | None
    weight: float | None
    policy: str
    state_version: int
    made_at: str
    expires_at: str | None
    status: str
    loss: float | None
    settled_at: str | None
    drawn: Arm | None = None
    guard: str | None = None
    limited_by: str | None = None
    tags: dict[str, str] = field(default_factory=dict, hash=False)
    baseline: dict[str, float] | None = field(default=None, hash=False)

    @classmethod
    def of(cls, content: dict[str, Any]) -> "Decision":
        """Read a decision from JSON, and ignore fields that a later release may add."""
        return cls(**{name: content[name] for name in cls.__dataclass_fields__ if name in content})


@dataclass(frozen=True)
class DecisionPage:
    """A page of decisions. `next` is the `after` of the following page; None on the last.

    With filters a page may be short, or empty, and still have a `next`.

    >>> client.decisions("models")
    DecisionPage(decisions=[], next=None)
    """

    decisions: list[Decision]
    next: str | None


@dataclass(frozen=True)
class Flushed:
    """The result of sending an outbox.

    Attributes:
        delivered: the decisions whose feedback was applied.
        refused: feedback that the service refused for good, each with the error. It is no longer in the outbox.
        left: how many items are still in the outbox.

    >>> client.flush()
    Flushed(delivered=[], refused=[], left=0)
    """

    delivered: list[Decision]
    refused: list[tuple[Undelivered, ServiceError]]
    left: int
