"""Routes: decisions and their feedback. The two that carry the traffic are in `hot`; here they are described."""

from typing import Annotated, Any

from fastapi import APIRouter, Header, Path, Request, Response
from fastapi.responses import JSONResponse

from ...desk import Desk
from ...errors import ServiceError
from ...experiment.records import Feedback
from ..auth import Gate
from ..fast_routes import HotRoutes, check_plain
from ..futures import Bridge
from ..openapi import body_of, refusals
from ..problem_json import problem_of
from ..rate_limit import LONGEST_KEY
from ..schemas import (
    DecideIn,
    DecisionList,
    DecisionOut,
    FeedbackBatchIn,
    FeedbackBatchOut,
    FeedbackIn,
    decision_out,
)
from ..strict_routes import StrictRoute, access_of
from ..validation import one_rule
from .experiments import Name

Id = Annotated[str, Path(min_length=1, max_length=200, description="The id that the decision carried.")]
Key = Annotated[
    str | None,
    Header(
        alias="Idempotency-Key",
        pattern="^[!-~]+$",
        max_length=LONGEST_KEY,
        description="The same key and body again give the decisions already made, and draw no others.",
    ),
    one_rule(f"must be 1 to {LONGEST_KEY} visible ASCII characters"),
]


def decision_routes(desk: Desk, bridge: Bridge, gate: Gate, hot: HotRoutes) -> APIRouter:
    """Decide, look at a decision, send the loss of its explored arm."""
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
        reported; sent in its place it would teach the learner about the wrong arm.
        """
        return await _as_hot(request, hot.decide, name)

    @router.get("/decisions/{id}", response_model=DecisionOut, responses=refusals(404))
    async def get_decision(request: Request, id: Id) -> Response:  # noqa: A002
        """A decision, its status, and the loss of its explored arm once that is applied."""
        access = access_of(request)
        access.require("read")
        check_plain("decision", id)
        return JSONResponse(decision_out(await bridge.wait(desk.get_decision(access.tenant, id))))

    @router.put(
        "/decisions/{id}/feedback",
        response_model=DecisionOut,
        responses=refusals(400, 404, 409, 410),
        openapi_extra=body_of(FeedbackIn),
    )
    async def put_feedback(request: Request, id: Id) -> Response:  # noqa: A002
        """Send the loss (or reward) of the *explored* arm. It is applied exactly once.

        The same again: 200 and the same body. Another value: 409. After the deadline: 410.
        """
        return await _as_hot(request, hot.feedback, id)

    @router.post("/feedback", response_model=FeedbackBatchOut, responses=refusals(400))
    async def post_feedback(request: Request, body: FeedbackBatchIn) -> Response:
        """Send the losses of the explored arms of many decisions; each has a result of its own.

        All are committed together, in one transaction.
        """
        access = access_of(request)
        access.require("decide")
        gate.charge(access, len(body.items) - 1)
        results: list[dict[str, Any] | None] = [None] * len(body.items)
        given: dict[int, Feedback] = {}
        for place, item in enumerate(body.items):
            try:
                check_plain("decision", item.decision)
                given[place] = Feedback(item.decision, item.loss, item.reward, item.arm)
            except ServiceError as error:
                results[place] = _refused(item.decision, error)
        many = desk.feedback_many(access.tenant, list(given.values())) if given else None
        settled = [] if many is None else await bridge.wait(many)
        for place, outcome in zip(given, settled, strict=True):
            id = body.items[place].decision  # noqa: A001
            if isinstance(outcome, ServiceError):
                results[place] = _refused(id, outcome)
            else:
                results[place] = {"id": id, "status": 200, "decision": decision_out(outcome)}
        return JSONResponse({"results": results})

    return router


async def _as_hot(request: Request, handler: Any, name: str) -> Response:
    """What the front does, for one who mounts the application without it."""
    status, content = await handler(
        access_of(request), name, dict(request.scope["headers"]), await request.body()
    )
    return Response(content, status, media_type="application/json")


def _refused(id: str, error: ServiceError) -> dict[str, Any]:  # noqa: A002
    return {"id": id, "status": error.status, "problem": problem_of(error)}
