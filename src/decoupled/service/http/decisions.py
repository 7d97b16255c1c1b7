"""Decisions and feedback over HTTP: their models, and the routes that carry the traffic.

Those, `POST .../decisions`, `PUT .../feedback` and `POST /v1/feedback`, bypass the framework, which would cost more than a
decision. The models validate their bodies. Responses are written by hand for speed; the tests
hold them to their models.
"""

import re
from collections.abc import Callable, Sequence
from functools import partial
from typing import Annotated, Any, NamedTuple, Self, TypeAlias, TypeVar

from pydantic import BaseModel, ConfigDict, Field, StrictInt, StrictStr, ValidationError, model_validator

from ...base.names import is_name
from ...errors import shown
from ...learner.preferences import Preference
from ..decision_service import DecisionService
from ..errors import BadRequest, NotFound, ServiceError, neither_or_both
from ..experiment.records import MOST_DECISIONS, DecisionRecord, Feedback, Mode, Status, moment
from ..replies import Reply
from .auth import Access, Admission
from .fields import Arm, Loss, Model, Number, Problem, Tags, Whole
from .limits import LONGEST_KEY, MOST_FEEDBACK
from .problem_json import problem_of
from .strict_json import broken, parsed, text_of
from .validation import invalid_body
from .wire import decision_text

M = TypeVar("M", bound=BaseModel)
Headers: TypeAlias = dict[bytes, bytes]
Handler: TypeAlias = Callable[[Access, str, Headers, bytes], "Begun"]

DECISIONS = "/v1/experiments/{name}/decisions"
FEEDBACK = "/v1/decisions/{id}/feedback"
FEEDBACK_BATCH = "/v1/feedback"
EXPLORED = "The observed loss of the *explored* arm, in the experiment's loss range. Never that of the exploited arm."
_VISIBLE = re.compile(rb"[!-~]{1,%d}" % LONGEST_KEY)


class DecideIn(Model):
    """What to decide; an empty body asks for one decision with both arms."""

    mode: Mode = Field(
        default="both",
        description="both: an arm to use and an arm to try. exploit: only an arm to use, which takes no "
        "feedback. explore: only an arm to try.",
    )
    count: Annotated[StrictInt, Field(ge=1, le=MOST_DECISIONS), Whole] | None = Field(
        default=None,
        description="The number of decisions, returned in a list; if left out: one decision, by itself.",
        examples=[10],
    )
    available: Annotated[list[Arm], Field(min_length=1)] | None = Field(
        default=None,
        description="The arms that are available now; if left out: all.",
        examples=[["a", "b"]],
    )
    tags: Tags | None = Field(
        default=None,
        description="Stored with the decision, to find and filter it by. They change nothing that is decided.",
        examples=[{"country": "de"}],
    )
    baseline: Annotated[dict[str, Number], Field(min_length=1)] | None = Field(
        default=None,
        description="The losses that you expect of the arms in this decision, by arm, in the experiment's loss range. "
        "They are stored with it and make evaluations less noisy; they change nothing that is drawn or learned.",
        examples=[{"a": 0.3, "b": 0.5}],
    )


class SendFeedback(BaseModel):
    """What to send back, and where."""

    loss_of: Arm = Field(description="The explored arm: send the loss of this arm, and of no other.")
    to: str = Field(description="PUT it here.", examples=["/v1/decisions/1f2e/feedback"])


class DecisionOut(BaseModel):
    """A decision: use `exploit`, try `explore`, and send back the loss of `explore`."""

    id: str
    experiment: str
    mode: Mode
    exploit: Arm | None = Field(description="The arm to use. Its loss is suffered, and never sent back.")
    explore: Arm | None = Field(description="The arm to try. *Its* loss is the feedback.")
    send_feedback: SendFeedback | None = Field(
        description="Null if the decision takes no feedback (mode exploit)."
    )
    propensity: float | None = Field(
        description="The probability with which `explore` was drawn; null if only `weight` is known."
    )
    weight: float | None = Field(description="An unbiased estimate of 1 / propensity, which learning uses.")
    policy: str
    state_version: int = Field(
        description="The last row of the log that was part of the state it was drawn from."
    )
    made_at: str
    expires_at: str | None
    status: Status
    loss: float | None = Field(description="The loss of the explored arm that was applied.")
    settled_at: str | None
    drawn: Arm | None = Field(
        description="The arm that the policy drew to exploit; another than `exploit` if a guardrail replaced it."
    )
    guard: str | None = Field(
        description="The guardrail that chose `exploit`: pinned, holdout, floor or incumbent; null if the policy did."
    )
    limited_by: str | None = Field(
        description="The part of the budget that kept this decision from exploring, so that its mode is exploit: share, "
        "rate, total or allowance; null if none did."
    )
    tags: dict[str, str] = Field(
        description="What the caller attached to find it by.", examples=[{"country": "de"}]
    )
    baseline: dict[str, float] | None = Field(
        description="The losses that the caller predicted, by arm; null for none.", examples=[{"a": 0.3}]
    )


class DecisionList(BaseModel):
    """The decisions of a request with `count`."""

    decisions: list[DecisionOut]


class DecisionPage(BaseModel):
    """A page of decisions. With filters it may be short, or empty, and not be the last."""

    decisions: list[DecisionOut]
    next: str | None = Field(description="Pass it as `after` for the next page; null on the last.")


class FeedbackIn(Model):
    """The loss of the *explored* arm, or its reward, or a preference between both arms: exactly one of them."""

    model_config = ConfigDict(
        json_schema_extra={
            "oneOf": [{"required": ["loss"]}, {"required": ["reward"]}, {"required": ["preference"]}]
        }
    )

    loss: Loss = Field(default=None, description=EXPLORED, examples=[0.25])  # type: ignore[assignment]
    reward: Loss = Field(  # type: ignore[assignment]
        default=None, description="In place of a loss: its mirror image in the loss range.", examples=[0.75]
    )
    preference: Preference = Field(
        default=None,  # type: ignore[arg-type]
        description="In place of a loss: which of the two arms did better, or tie. Only for experiments that were "
        "created with feedback preference.",
        examples=["explore"],
    )
    arm: Arm | None = Field(
        default=None,
        description="The arm whose loss it is, as a safeguard: any but the explored arm is refused (422).",
        examples=["a"],
    )

    @model_validator(mode="after")
    def _exactly_one(self) -> Self:
        loss, reward = self.loss is not None, self.reward is not None
        preference = self.preference is not None
        if loss + reward + preference != 1:
            raise broken(*neither_or_both(loss, reward, preference_given=preference) or ())
        return self


class FeedbackItem(FeedbackIn):
    """Feedback for one decision of a batch."""

    decision: Annotated[
        StrictStr,
        Field(min_length=1, max_length=200, description="The decision's id.", examples=["1f2e-7"]),
    ]


class FeedbackBatchIn(Model):
    """Feedback for many decisions; if one is refused, the others are still applied."""

    items: Annotated[
        list[FeedbackItem],
        Field(min_length=1, max_length=MOST_FEEDBACK, examples=[[{"decision": "1f2e-7", "loss": 0.25}]]),
    ]

    def given(self) -> list[Feedback]:
        """The items as the service takes them."""
        return [
            Feedback(each.decision, each.loss, each.reward, each.arm, each.preference)
            for each in self.items
        ]


class FeedbackResult(BaseModel):
    """The result for one item: 200 and the decision, or another status and the problem."""

    id: str
    status: int
    decision: DecisionOut | None = None
    problem: Problem | None = None


class FeedbackBatchOut(BaseModel):
    """A result for each item, in their order."""

    results: list[FeedbackResult]


def decision_out(record: DecisionRecord) -> dict[str, Any]:
    """A decision as JSON."""
    explore = record.explore
    to = None if explore is None else {"loss_of": explore, "to": f"/v1/decisions/{record.id}/feedback"}
    return {
        "id": record.id, "experiment": record.experiment, "mode": record.mode,
        "exploit": record.exploit, "explore": explore, "send_feedback": to,
        "propensity": record.propensity, "weight": record.weight,
        "policy": record.policy, "state_version": record.state_version,
        "made_at": moment(record.made_at), "expires_at": moment(record.expires_at),
        "status": record.status, "loss": record.loss, "settled_at": moment(record.settled_at),
        "drawn": record.drawn, "guard": record.guard, "limited_by": record.limited_by,
        "tags": record.tags, "baseline": record.baseline,
    }  # fmt: skip


class Begun(NamedTuple):
    """A request that waits for its commit: the reply to come, the status, and what makes the JSON of its value."""

    reply: Reply[Any]
    status: int
    content: Callable[[Any], bytes]


class FastRoutes:
    """Handlers that take the access, the name in the path, the headers and the body, and begin the request."""

    def __init__(self, service: DecisionService, admission: Admission) -> None:
        self._decisions, self._admission = service.decisions, admission

    def find(self, method: str, path: str) -> tuple[str, Handler, str] | None:
        """The route, its handler, and the name in the path; None for any other path."""
        handler: Handler
        if method == "POST" and path.endswith("/decisions") and path.startswith("/v1/experiments/"):
            route, handler, name = DECISIONS, self.decide, path[16:-10]
        elif method == "PUT" and path.endswith("/feedback") and path.startswith("/v1/decisions/"):
            route, handler, name = FEEDBACK, self.feedback, path[14:-9]
        elif method == "POST" and path == FEEDBACK_BATCH:
            return FEEDBACK_BATCH, self.feedback_batch, ""
        else:
            return None
        return (route, handler, name) if name and "/" not in name else None

    def decide(self, access: Access, name: str, headers: Headers, body: bytes) -> Begun:
        """`POST /v1/experiments/{name}/decisions`."""
        access.require("decide")
        if not is_name(name):  # a database cannot look for every text
            raise NotFound(f"experiment {shown(name)}: is not known; check the name")
        wanted = _validated(DecideIn, body) if body else _ONE
        key = _idempotency_key(headers.get(b"idempotency-key"))
        count = wanted.count or 1
        self._admission.charge(access, count - 1)
        reply = self._decisions.decide_as(
            decision_text, access.tenant, name, mode=wanted.mode, count=count, available=wanted.available, key=key,
            tags=wanted.tags, baseline=wanted.baseline, permit=access.permit,
        )  # fmt: skip
        return Begun(reply, 201, _only if wanted.count is None else _listed)

    def feedback(self, access: Access, id: str, headers: Headers, body: bytes) -> Begun:  # noqa: A002
        """`PUT /v1/decisions/{id}/feedback`."""
        access.require("decide")
        sent = _validated(FeedbackIn, body)
        given = Feedback(id, sent.loss, sent.reward, sent.arm, sent.preference)
        reply = self._decisions.feedback_as(decision_text, access.tenant, given, access.permit)
        return Begun(reply, 200, str.encode)

    def feedback_batch(self, access: Access, _: str, headers: Headers, body: bytes) -> Begun:
        """`POST /v1/feedback`."""
        access.require("decide")
        return self.give(access, _validated(FeedbackBatchIn, body).given())

    def give(self, access: Access, given: Sequence[Feedback]) -> Begun:
        """Give the feedback of a batch."""
        self._admission.charge(access, len(given) - 1)
        reply = self._decisions.feedback_many_as(decision_text, access.tenant, given, access.permit)
        return Begun(reply, 200, partial(_results, given))


def _only(texts: list[str]) -> bytes:
    return texts[0].encode()


def _listed(texts: list[str]) -> bytes:
    return f'{{"decisions":[{",".join(texts)}]}}'.encode()


def _results(given: Sequence[Feedback], outcomes: Sequence[str | ServiceError]) -> bytes:
    texts = [_result(each.decision, outcome) for each, outcome in zip(given, outcomes, strict=True)]
    return f'{{"results":[{",".join(texts)}]}}'.encode()


def _result(id: str, outcome: str | ServiceError) -> str:  # noqa: A002
    if isinstance(outcome, str):
        return f'{{"id":{text_of(id)},"status":200,"decision":{outcome}}}'
    return text_of({"id": id, "status": outcome.status, "problem": problem_of(outcome)})


# Bodies


_ONE = DecideIn()


def _validated(model: type[M], body: bytes) -> M:
    """A body as its model; an empty body is an empty object."""
    try:
        # What `model_validate` calls, without its own checks, which take half as long again.
        valid: M = model.__pydantic_validator__.validate_python(parsed(body) if body else {})
        return valid
    except ValidationError as error:
        raise invalid_body(error, model) from None


def _idempotency_key(header: bytes | None) -> str | None:
    if header is None:
        return None
    if not _VISIBLE.fullmatch(header):
        raise BadRequest(
            f"Idempotency-Key = {shown(header.decode('latin-1'))}: must be 1 to {LONGEST_KEY} visible ASCII "
            "characters; a UUID will do"
        )
    return header.decode("ascii")
