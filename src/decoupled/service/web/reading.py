"""Routes: what was learned, the log, and what the log says of each arm."""

from collections.abc import AsyncIterator
from dataclasses import asdict
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import JSONResponse, StreamingResponse

from ..desk import Desk
from .bridge import Bridge
from .experiments import Name
from .export import CSV, PARQUET, Page, as_csv, as_parquet
from .gate import Access
from .openapi import refusals
from .shapes import EvaluationOut, StateOut, state_out
from .strict import access_of

PAGE = 1_000  # rows asked of the desk at once: it decides for others in between
_LOG: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "One row for each decision, in the order of the log.",
        "content": {
            "text/csv": {"schema": {"type": "string"}},
            PARQUET: {"schema": {"type": "string", "format": "binary"}},
        },
    }
}


def reading_routes(desk: Desk, bridge: Bridge) -> APIRouter:
    """Look at an experiment."""
    router = APIRouter(prefix="/v1/experiments/{name}", tags=["looking"])

    @router.get("/state", response_model=StateOut, responses=refusals(404))
    async def get_state(request: Request, name: Name) -> Response:
        """Exact probabilities, estimates, plays, what waits, and an estimate of the regret."""
        access = access_of(request)
        access.require("read")
        return JSONResponse(state_out(await bridge.wait(desk.state(access.tenant, name))))

    @router.get("/evaluation", response_model=EvaluationOut, responses=refusals(404, 409))
    async def get_evaluation(request: Request, name: Name) -> Response:
        """From the log alone: the value of every arm, and of what was exploited, with intervals."""
        access = access_of(request)
        access.require("read")
        return JSONResponse(asdict(await bridge.wait(desk.evaluate(access.tenant, name))))

    @router.get("/log", response_class=Response, responses={**_LOG, **refusals(404)})
    async def get_log(
        request: Request,
        name: Name,
        format: Annotated[Literal["csv", "parquet"], Query()] = "csv",  # noqa: A002
        after: Annotated[int, Query(ge=0, lt=2**63, description="Only rows after this `seq`.")] = 0,
    ) -> Response:
        """The log, one row for each decision; `propensity` is the exact law that `explore` was drawn from.

        Times are seconds since 1970. `loss` is that of the explored arm.
        """
        access = access_of(request)
        access.require("read")
        first = await _page(access, name, after)  # before anything is sent: what is not there is a 404
        pages = _pages(access, name, first)
        if format == "csv":
            return StreamingResponse(as_csv(pages), media_type=CSV, headers=_file(name, "csv"))
        return StreamingResponse(as_parquet(pages), media_type=PARQUET, headers=_file(name, "parquet"))

    async def _page(access: Access, name: str, after: int) -> Page:
        rows = await bridge.wait(desk.log(access.tenant, name, after=after, limit=PAGE))
        return [asdict(row) for row in rows]

    async def _pages(access: Access, name: str, page: Page) -> AsyncIterator[Page]:
        while page:
            yield page
            page = await _page(access, name, page[-1]["seq"])

    return router


def _file(name: str, ending: str) -> dict[str, str]:
    return {"Content-Disposition": f'attachment; filename="{name}.{ending}"'}
