"""What the clients return."""

from dataclasses import dataclass, field
from typing import Any

from ..decision import Arm
from .outbox import Undelivered
from .service_errors import ServiceError


@dataclass(frozen=True)
class RemoteDecision:
    """A decision of the service: use `exploit`, try `explore`, and send back the loss of `explore`.

    Attributes:
        id: identifies the decision in the service.
        experiment: the name of its experiment.
        mode: "both", "exploit" or "explore".
        exploit: the arm to use; None if the mode is "explore".
        explore: the arm to try, whose loss is the feedback; None if the decision explores nothing.
        propensity: the probability with which `explore` was drawn; None if it is not known.
        weight: the factor by which learning multiplies the loss, an unbiased 1 / propensity; None without an explored
            arm.
        policy: the name of the policy that drew it.
        state_version: the last row of the log that the state contained from which it was drawn.
        made_at: when it was made, as an ISO 8601 time in UTC.
        expires_at: until when feedback is taken; None if there is no deadline.
        status: "pending", "applied", "expired" or "unobserved".
        loss: the loss that was learned; None before that.
        settled_at: when it was applied or expired; None before that.
        drawn: the arm that the policy drew to exploit; another than `exploit` if a guardrail replaced it.
        guard: the guardrail that chose `exploit` in place of `drawn`; None if the policy did.
        limited_by: the part of the budget that kept the decision from exploring; None if nothing did.
        tags: the tags it was made with.
        baseline: the losses that were predicted for the arms, by arm; None if there were none.
        key: what the service logs of the key that drew `exploit`, by default a keyed hash; None without a key.
        context: what was known of the request, by field, as the service logs it; None if nothing was.
        advice: what advisers said, by their names; None if there was none.
        why: if that was asked for, why a contextual policy drew `exploit`: the "rung", the "segment", and the "weights" of
            the rungs; None otherwise.

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
    key: str | None = None
    context: dict[str, Any] | None = field(default=None, hash=False)
    advice: dict[str, Any] | None = field(default=None, hash=False)
    why: dict[str, Any] | None = field(default=None, hash=False)

    @classmethod
    def of(cls, content: dict[str, Any]) -> "RemoteDecision":
        """Read a decision from JSON, and ignore fields that a later release may add.

        Args:
            content: a decision in an answer of the service.
        """
        return cls(**{name: content[name] for name in cls.__dataclass_fields__ if name in content})


@dataclass(frozen=True)
class DecisionPage:
    """A page of decisions.

    With filters a page may be short, or empty, and still have a `next`.

    Attributes:
        decisions: the decisions of the page.
        next: the `after` of the following page; None on the last.

    >>> client.decisions("models")
    DecisionPage(decisions=[], next=None)
    """

    decisions: list[RemoteDecision]
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

    delivered: list[RemoteDecision]
    refused: list[tuple[Undelivered, ServiceError]]
    left: int
