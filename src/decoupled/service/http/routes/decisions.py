"""Routes: decisions and feedback. `http.decisions` answers those that carry the traffic; here they are declared."""

from typing import Annotated

from fastapi import APIRouter, Header, Path, Query, Response
from fastapi.responses import JSONResponse

from ...decision_service import DecisionService
from ...experiment.annotations import tag_filter
from ...experiment.records import Mode, Status
from ...parts.listing import DecisionSort
from ..decisions import (
    DecideIn,
    DecisionList,
    DecisionOut,
    DecisionPage,
    FeedbackBatchIn,
    FeedbackBatchOut,
    FeedbackIn,
    decision_out,
)
from ..fields import TagFilter
from ..limits import LONGEST_KEY
from ..openapi import body_of, refusals
from ..strict_json import one_rule
from ..strict_routes import Reader, StrictRoute
from .experiments import After, Limit, Name

Id = Annotated[str, Path(min_length=1, max_length=200, description="The id that the decision carried.")]
Key = Annotated[
    str | None,
    Header(
        alias="Idempotency-Key",
        pattern="^[!-~]+$",
        max_length=LONGEST_KEY,
        description="The same key and body again return the decisions already made, and draw no others.",
    ),
    one_rule(f"must be 1 to {LONGEST_KEY} visible ASCII characters"),
]

ANSWERED = (
    "the gateway answers this route; here it is declared, for the document and the methods of its path"
)


def decision_routes(service: DecisionService) -> APIRouter:
    """Make a decision, look at one, and send the loss of its explored arm."""
    router = APIRouter(prefix="/v1", tags=["decisions"], route_class=StrictRoute)

    @router.post(
        "/experiments/{name}/decisions",
        status_code=201,
        response_model=DecisionOut | DecisionList,
        responses=refusals(400, 404, 409),
        openapi_extra=body_of(DecideIn, required=False),
    )
    async def decide(name: Name, key: Key = None) -> Response:
        """Draw a decision: an arm to use (`exploit`) and an arm to try (`explore`).

        The loss to send back is that of the *explored* arm. The loss of the exploited arm is suffered and not
        reported; sent in its place, it would teach the learner about the wrong arm.
        """
        raise AssertionError(ANSWERED)

    @router.get("/experiments/{name}/decisions", response_model=DecisionPage, responses=refusals(404))
    async def list_decisions(
        access: Reader,
        name: Name,
        tag: TagFilter,
        after: After = None,
        limit: Limit = 100,
        sort: Annotated[
            DecisionSort, Query(description="By age; with a minus, the newest first.")
        ] = "-made_at",
        status: Annotated[Status | None, Query(description="Only those with this status.")] = None,
        mode: Annotated[Mode | None, Query(description="Only those of this mode.")] = None,
    ) -> Response:
        """The decisions of an experiment, the newest first.

        A page looks at 100,000 rows of the log at most. With filters it may be short, or empty, and still have a `next`.
        """
        page = await service.listing.decisions(
            access.tenant, name, after=after, limit=limit, sort=sort, status=status, mode=mode,
            tags=tag_filter(tag),
        )  # fmt: skip
        return JSONResponse({"decisions": [decision_out(each) for each in page.items], "next": page.next})

    @router.get("/decisions/{id}", response_model=DecisionOut, responses=refusals(404))
    async def get_decision(access: Reader, id: Id) -> Response:  # noqa: A002
        """A decision, its status, and the loss of its explored arm once that is applied."""
        return JSONResponse(decision_out(await service.decisions.get(access.tenant, id)))

    @router.put(
        "/decisions/{id}/feedback",
        response_model=DecisionOut,
        responses=refusals(400, 404, 409, 410),
        openapi_extra=body_of(FeedbackIn),
    )
    async def put_feedback(id: Id) -> Response:  # noqa: A002
        """Send the loss (or reward) of the *explored* arm, or a preference. It is applied exactly once.

        The same again: 200 and the same body. Another value: 409. After the deadline: 410.
        """
        raise AssertionError(ANSWERED)

    @router.post("/feedback", response_model=FeedbackBatchOut, responses=refusals(400))
    async def post_feedback(body: FeedbackBatchIn) -> Response:
        """Send the losses of the explored arms of many decisions; each has a result of its own.

        The answer comes when all of them are on disk.
        """
        raise AssertionError(ANSWERED)

    return router
