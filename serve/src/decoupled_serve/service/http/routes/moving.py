"""Routes: what an experiment has learned as a saved learner, and learning from another log."""

import tempfile
from pathlib import Path
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import JSONResponse
from pydantic import BaseModel, Field

from decoupled.client import Invalid, TooMany, UnsupportedMedia
from decoupled.errors import shown

from ...analysis.foreign_log import LogFormat
from ...service import DecisionService
from ..admission.body_file import REPLAY, save_body
from ..admission.limits import Limits
from ..framework import Admin, StrictRoute
from ..openapi import refusals
from .experiments import Name

FORMATS: dict[str, LogFormat] = {
    "text/csv": "csv",
    "application/x-ndjson": "jsonl",
    "application/vnd.apache.parquet": "parquet",
}
_BODY = {
    "requestBody": {
        "required": True,
        "content": {
            "text/csv": {"schema": {"type": "string"}},
            "application/x-ndjson": {"schema": {"type": "string"}},
            "application/vnd.apache.parquet": {"schema": {"type": "string", "format": "binary"}},
        },
    }
}
_LEARNER: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "The text that `Learner.from_json` reads.",
        "content": {"application/json": {"schema": {"type": "object"}}},
    }
}


class ReplayOut(BaseModel):
    """What was learned from a log."""

    experiment: str
    rows: int = Field(description="The rows of the log.")
    learned: int = Field(description="How many of them were learned now.")
    already: int = Field(description="How many had been learned before, when the same log was sent.")
    left_out: int = Field(description="Rows with a loss that could not explore every arm.")
    state_version: int
    warnings: list[str] = Field(description="What may be claimed now, and what may be wrong with the log.")


def moving_routes(service: DecisionService, limits: Limits) -> APIRouter:
    """Take out what was learned, and learn from another log."""
    router = APIRouter(prefix="/v1/experiments/{name}", tags=["moving"], route_class=StrictRoute)
    busy: set[str] = set()

    @router.get("/learner", response_class=Response, responses={**_LEARNER, **refusals(404)})
    async def get_learner(access: Admin, name: Name) -> Response:
        """What the experiment has learned, with its random stream, as a saved learner: it goes on bit for bit.

        Pending decisions are not part of it: their feedback belongs to the experiment. Needs the role admin, because
        who has the stream knows the draws to come.
        """
        text = await service.experiments.learner(access.tenant, name)
        headers = {"Content-Disposition": f'attachment; filename="{name}.json"'}
        return Response(text, media_type="application/json", headers=headers)

    @router.post(REPLAY, response_model=ReplayOut, responses=refusals(400, 404, 409), openapi_extra=_BODY)
    async def replay(
        request: Request,
        access: Admin,
        name: Name,
        unrandomised: Annotated[
            bool,
            Query(
                description="Take all propensities as 1: only if every arm was seen in every round, with a row for each, or "
                "if the policy keeps means."
            ),
        ] = False,
    ) -> Response:
        """Learn from a log: an export of this service, or of another system with the columns that evaluations read.

        It is checked as a whole first. A log without propensities is refused (422): it shows how often an arm was tried,
        not how good it is. The same log again learns nothing twice, and continues if it was interrupted.
        """
        kind = _format(request.headers.get("content-type", ""))
        if access.tenant in busy:
            raise TooMany("replay: a log is being replayed for this tenant; wait until it is finished", 1)
        busy.add(access.tenant)
        try:
            with tempfile.TemporaryDirectory(prefix="decoupled-replay-") as folder:
                path = Path(folder) / f"log.{kind}"
                if await save_body(request, path, limits) == 0:
                    raise Invalid("body: is empty; send the log")
                found = await service.replaying.replay(
                    access.tenant, name, path, kind, unrandomised=unrandomised
                )
        finally:
            busy.discard(access.tenant)
        return JSONResponse({field: getattr(found, field) for field in ReplayOut.model_fields})

    return router


def _format(content_type: str) -> LogFormat:
    kind = FORMATS.get(content_type.split(";")[0].strip().lower())
    if kind is None:
        rule = f"must be one of {', '.join(FORMATS)}"
        raise UnsupportedMedia(f"Content-Type = {shown(content_type)}: {rule}; say what the log is")
    return kind
