"""Routes: decisions and feedback.

Those that carry the traffic, `POST .../decisions`, `PUT .../feedback` and `POST /v1/feedback`, bypass the framework, which
would cost more than a decision: the gateway finds them here first. The framework has them, too, and documents them.
"""

import re
from collections.abc import Callable, Sequence
from functools import partial
from typing import Annotated, Any, NamedTuple, TypeAlias, TypeVar

from fastapi import APIRouter, Header, Path, Request, Response
from fastapi.responses import JSONResponse
from pydantic import BaseModel, ValidationError
from pydantic_core import to_json

from decoupled.base import is_name
from decoupled.client import BadRequest, NotFound, ServiceError, TooLarge
from decoupled.decision import Mode
from decoupled.errors import shown

from ...api.listing import DecisionSort
from ...commits.replies import Reply
from ...experiment.context import tag_filter
from ...experiment.records import DecisionRecord, Feedback, Status
from ...service import DecisionService
from ..admission import LONGEST_KEY, MOST_FEEDBACK, Access, Admission
from ..framework import Decider, Reader, StrictRoute, access_of, body_of, refusals
from ..models.decisions import (
    DecideIn,
    DecisionList,
    DecisionOut,
    DecisionPageOut,
    FeedbackBatchIn,
    FeedbackBatchOut,
    FeedbackIn,
    LabelIn,
    LabelQueueOut,
    LogsIn,
    LogsOut,
    ScoreKind,
    decision_out,
)
from ..models.fields import TagFilter, asked, json_of, parsed
from ..models.problem_json import invalid, problem_of
from .experiments import After, Limit, Name

M = TypeVar("M", bound=BaseModel)
Headers: TypeAlias = dict[bytes, bytes]
Handler: TypeAlias = Callable[[Access, str, Headers, bytes], "Begun"]

DECISIONS = "/v1/experiments/{name}/decisions"
FEEDBACK = "/v1/decisions/{id}/feedback"
LABEL = "/v1/decisions/{id}/label"
FEEDBACK_BATCH = "/v1/feedback"
_VISIBLE = re.compile(rb"[!-~]{1,%d}" % LONGEST_KEY)
Id = Annotated[
    str, Path(min_length=1, max_length=200, description="The id that the decision carried.")
]
Key = Annotated[
    str | None,
    Header(
        alias="Idempotency-Key",
        pattern="^[!-~]+$",
        max_length=LONGEST_KEY,
        description="The same key and body again return the decisions already made, and draw no others.",
    ),
]


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
        elif method == "PUT" and path.endswith("/label") and path.startswith("/v1/decisions/"):
            route, handler, name = LABEL, self.label, path[14:-6]
        elif method == "POST" and path == FEEDBACK_BATCH:
            return FEEDBACK_BATCH, self.feedback_batch, ""
        else:
            return None
        return (route, handler, name) if name and "/" not in name else None

    def decide(self, access: Access, name: str, headers: Headers, body: bytes) -> Begun:
        """`POST /v1/experiments/{name}/decisions`."""
        access.require("decide")
        if not is_name(name):  # not every string is a valid name
            raise NotFound(f"experiment {shown(name)}: is not known; check the name")
        wanted = validated(DecideIn, body) if body else _ONE
        again = _idempotency_key(headers.get(b"idempotency-key"))
        count = wanted.count or 1
        self._admission.charge(access, count - 1)
        options: Any = {**vars(wanted), "count": count, "idempotency_key": again}
        reply = self._decisions.decide(access.tenant, name, permit=access.permit, **options)
        return Begun(reply, 201, partial(_made, one=wanted.count is None, why=wanted.why))

    def feedback(self, access: Access, id: str, headers: Headers, body: bytes) -> Begun:  # noqa: A002
        """`PUT /v1/decisions/{id}/feedback`."""
        access.require("decide")
        sent = validated(FeedbackIn, body)
        reply = self._decisions.feedback(access.tenant, id, permit=access.permit, **vars(sent))
        return Begun(reply, 200, lambda applied: to_json(decision_out(applied)))

    def label(self, access: Access, id: str, headers: Headers, body: bytes) -> Begun:  # noqa: A002
        """`PUT /v1/decisions/{id}/label`."""
        access.require("decide")
        sent = validated(LabelIn, body)
        reply = self._decisions.label(access.tenant, id, permit=access.permit, **vars(sent))
        return Begun(reply, 200, lambda applied: to_json(decision_out(applied)))

    def feedback_batch(self, access: Access, _: str, headers: Headers, body: bytes) -> Begun:
        """`POST /v1/feedback`."""
        access.require("decide")
        return self.give(access, validated(FeedbackBatchIn, body).given())

    def give(self, access: Access, given: Sequence[Feedback]) -> Begun:
        """Give the feedback of a batch."""
        self._admission.charge(access, len(given) - 1)
        reply = self._decisions.feedback_many(access.tenant, given, access.permit)
        return Begun(reply, 200, partial(_results, given))


def _made(records: Sequence[DecisionRecord], *, one: bool, why: bool) -> bytes:
    shown = [decision_out(each, why=why) for each in records]
    return to_json(shown[0] if one else {"decisions": shown})


def _results(given: Sequence[Feedback], outcomes: Sequence[DecisionRecord | ServiceError]) -> bytes:
    pairs = zip(given, outcomes, strict=True)
    return to_json({"results": [_result(each.decision, found) for each, found in pairs]})


def _result(id: str, outcome: DecisionRecord | ServiceError) -> dict[str, Any]:  # noqa: A002
    if isinstance(outcome, ServiceError):
        return {"id": id, "status": outcome.status, "problem": problem_of(outcome)}
    return {"id": id, "status": 200, "decision": decision_out(outcome)}


_ONE = DecideIn()


def validated(model: type[M], body: bytes) -> M:
    """A body as its model; an empty body is an empty object."""
    try:
        # What `model_validate` calls, without its own checks, which take half as long again.
        valid: M = model.__pydantic_validator__.validate_python(parsed(body) if body else {})
        return valid
    except ValidationError as error:
        raise invalid(error.errors(include_url=False, include_input=False), "body") from None


def _idempotency_key(header: bytes | None) -> str | None:
    if header is None:
        return None
    if not _VISIBLE.fullmatch(header):
        rule = f"must be 1 to {LONGEST_KEY} visible ASCII characters"
        raise BadRequest(
            f"Idempotency-Key = {shown(header.decode('latin-1'))}: {rule}; a UUID will do"
        )
    return header.decode("ascii")


# Routes of the framework
def decision_routes(service: DecisionService, fast: FastRoutes) -> APIRouter:
    """Make a decision, look at one, and send the loss of its explored arm."""

    async def answered(handler: Handler, request: Request, name: str = "") -> Response:
        begun = handler(
            access_of(request), name, dict(request.scope["headers"]), await request.body()
        )
        return Response(
            begun.content(await begun.reply), begun.status, media_type="application/json"
        )

    router = APIRouter(prefix="/v1", tags=["decisions"], route_class=StrictRoute)

    @router.post(
        "/experiments/{name}/decisions",
        status_code=201,
        response_model=DecisionOut | DecisionList,
        responses=refusals(400, 404, 409),
        openapi_extra=body_of(DecideIn, required=False),
    )
    async def decide(request: Request, name: Name, key: Key = None) -> Response:
        """Draw a decision: an arm to use (`exploit`) and an arm to try (`explore`).

        The loss to send back is that of the *explored* arm. The loss of the exploited arm is suffered and not
        reported; sent in its place, it would teach the learner about the wrong arm.
        """
        return await answered(fast.decide, request, name)

    @router.get(
        "/experiments/{name}/decisions", response_model=DecisionPageOut, responses=refusals(404)
    )
    async def list_decisions(
        access: Reader,
        name: Name,
        tag: TagFilter,
        after: After = None,
        limit: Limit = 100,
        sort: Annotated[
            DecisionSort, asked("By age; with a minus, the newest first.")
        ] = "-made_at",
        status: Annotated[Status | None, asked("Only those with this status.")] = None,
        mode: Annotated[Mode | None, asked("Only those of this mode.")] = None,
    ) -> Response:
        """The decisions of an experiment, the newest first.

        A page looks at 100,000 rows of the log at most. With filters it may be short, or empty, and still have a `next`.
        """
        page = await service.listing.decisions(
            access.tenant, name, after=after, limit=limit, sort=sort, status=status, mode=mode,
            tags=tag_filter(tag),
        )  # fmt: skip
        return JSONResponse(
            {"decisions": [decision_out(each) for each in page.items], "next": page.next}
        )

    @router.get("/decisions/{id}", response_model=DecisionOut, responses=refusals(404))
    async def get_decision(access: Reader, id: Id) -> Response:  # noqa: A002
        """A decision, its status, and the loss of its explored arm once that is applied."""
        return JSONResponse(decision_out(await service.decisions.get(access.tenant, id)))

    settled: dict[str, Any] = {
        "response_model": DecisionOut,
        "responses": refusals(400, 404, 409, 410),
    }

    @router.put("/decisions/{id}/feedback", **settled, openapi_extra=body_of(FeedbackIn))
    async def put_feedback(request: Request, id: Id) -> Response:  # noqa: A002
        """Send the loss (or reward) of the *explored* arm, or a preference. It is applied exactly once.

        In an experiment with labels, send what a judge said, and the label with it or later, if the decision wants one.
        The same again: 200 and the same body. Another value: 409. After the deadline: 410.
        """
        return await answered(fast.feedback, request, id)

    @router.put("/decisions/{id}/label", **settled, openapi_extra=body_of(LabelIn))
    async def put_label(request: Request, id: Id) -> Response:  # noqa: A002
        """Send the label of a decision that was judged and wants one: the true loss of the *explored* arm.

        The same again: 200 and the same body. Another value, a decision that wants no label, or one that was not judged: 409.
        After as many newer decisions as the experiment's `labels.deadline`: 410.
        """
        return await answered(fast.label, request, id)

    @router.get("/experiments/{name}/labels", response_model=LabelQueueOut, responses=refusals(404))
    async def get_labels(access: Reader, name: Name, limit: Limit = 100) -> Response:
        """The decisions that were judged and await a label, oldest first, and how many labels were used and are missing."""
        queue = await service.decisions.awaiting_labels(access.tenant, name, limit)
        decisions = [decision_out(each) for each in queue.decisions]
        return JSONResponse(json_of(queue, LabelQueueOut, decisions=decisions))

    @router.post(
        "/feedback",
        response_model=FeedbackBatchOut,
        responses=refusals(400),
        openapi_extra=body_of(FeedbackBatchIn),
    )
    async def post_feedback(request: Request) -> Response:
        """Send the losses of the explored arms of many decisions; each has a result of its own.

        The answer comes when all of them are on disk.
        """
        return await answered(fast.feedback_batch, request)

    @router.post(
        "/logs", response_model=LogsOut, responses=refusals(400), openapi_extra=body_of(LogsIn)
    )
    async def post_logs(
        access: Decider,
        request: Request,
        evaluation: Annotated[
            str | None, asked("Take only evaluations with this `gen_ai.evaluation.name`.")
        ] = None,
        score: Annotated[
            ScoreKind, asked("What a score is, in the experiment's loss range.")
        ] = "reward",
    ) -> Response:
        """Send evaluations as OpenTelemetry's `gen_ai.evaluation.result` events, by OTLP over HTTP with JSON.

        Each is the feedback of its decision. Other records are ignored.
        """
        given, wrong = validated(LogsIn, await request.body()).given(evaluation, score)
        if len(given) > MOST_FEEDBACK:
            rule = f"resourceLogs: has {len(given):,} evaluations, and at most {MOST_FEEDBACK:,} fit one request"
            raise TooLarge(f"{rule}; send smaller batches")
        for each in await fast.give(access, given).reply if given else ():
            if isinstance(each, ServiceError):
                if each.status == 503:  # all of it may come again, and counts once
                    raise each
                wrong.append(str(each))
        told = {"rejectedLogRecords": str(len(wrong)), "errorMessage": wrong[0]} if wrong else {}
        return JSONResponse({"partialSuccess": told})

    return router
