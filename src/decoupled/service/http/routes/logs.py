"""Routes: what was learned, the log, what the log says of each arm, and retention."""

import tempfile
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import JSONResponse, StreamingResponse

from ...desk import Desk
from ...errors import TooMany
from ..futures import Bridge
from ..openapi import refusals
from ..rate_limit import MOST_AT_ONCE
from ..schemas import EvaluationOut, RetentionIn, RetentionOut, StateOut, state_out
from ..strict_routes import StrictRoute, access_of
from .experiments import Name

KINDS = {"csv": "text/csv; charset=utf-8", "parquet": "application/vnd.apache.parquet"}
_LOG: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "One row for each decision, in the order of the log.",
        "content": {
            "text/csv": {"schema": {"type": "string"}},
            KINDS["parquet"]: {"schema": {"type": "string", "format": "binary"}},
        },
    }
}


CHUNK = 1 << 18


class Turns:
    """What reads a whole log takes long, so that a tenant has only a few of them at once."""

    def __init__(self) -> None:
        self._taken: Counter[str] = Counter()

    @contextmanager
    def one(self, tenant: str) -> Iterator[None]:
        """Take a turn for the length of a block, or refuse."""
        if self._taken[tenant] >= MOST_AT_ONCE:
            raise TooMany(f"logs: {MOST_AT_ONCE} are being read for this tenant; wait for one to end", 1)
        self._taken[tenant] += 1
        try:
            yield
        finally:
            self._taken[tenant] -= 1


def reading_routes(desk: Desk, bridge: Bridge) -> APIRouter:
    """Look at an experiment, and drop the old part of its log."""
    router = APIRouter(prefix="/v1/experiments/{name}", tags=["looking"], route_class=StrictRoute)
    turns = Turns()

    @router.get("/state", response_model=StateOut, responses=refusals(404))
    async def get_state(request: Request, name: Name) -> Response:
        """Exact probabilities, estimates, plays, what waits, and the regret with its interval at this moment."""
        access = access_of(request)
        access.require("read")
        return JSONResponse(state_out(await bridge.wait(desk.state(access.tenant, name))))

    @router.get("/evaluation", response_model=EvaluationOut, responses=refusals(404))
    async def get_evaluation(request: Request, name: Name) -> Response:
        """From the log alone: the mean loss of every arm, and of what was exploited, with intervals at this moment."""
        access = access_of(request)
        access.require("read")
        with turns.one(access.tenant):
            found = await bridge.wait(desk.evaluate(access.tenant, name))
        return JSONResponse(asdict(found))

    @router.get("/log", response_class=Response, responses={**_LOG, **refusals(404)})
    async def get_log(
        request: Request,
        name: Name,
        format: Annotated[Literal["csv", "parquet"], Query()] = "csv",  # noqa: A002
    ) -> Response:
        """The log, one row for each decision, with the exact probability with which `explore` was drawn.

        Times are UTC, as everywhere in this API. `loss` is that of the explored arm.
        """
        access = access_of(request)
        access.require("read")
        folder = tempfile.TemporaryDirectory(prefix="decoupled-log-")
        path = Path(folder.name) / f"{name}.{format}"
        try:
            with turns.one(access.tenant):
                await bridge.wait(desk.export(access.tenant, name, path, format))
        except BaseException:
            folder.cleanup()
            raise
        # Written whole before the first byte is sent: what fails is an error, and never half a file.
        headers = {
            "Content-Disposition": f'attachment; filename="{path.name}"',
            "Content-Length": str(path.stat().st_size),
        }
        return StreamingResponse(_chunks(folder, path), media_type=KINDS[format], headers=headers)

    @router.post("/retention", response_model=RetentionOut, responses=refusals(400, 404))
    async def drop_old(request: Request, name: Name, body: RetentionIn) -> Response:
        """Drop the log before a moment. Decisions that still wait are kept, and so is what was learned."""
        access = access_of(request)
        access.require("admin")
        with turns.one(access.tenant):
            dropped = await bridge.wait(desk.retention(access.tenant, name, body.before.timestamp()))
        return JSONResponse({"dropped": dropped})

    return router


async def _chunks(folder: "tempfile.TemporaryDirectory[str]", path: Path) -> AsyncIterator[bytes]:
    """A file in parts; its folder goes when the last is sent, or when nobody listens any more."""
    with folder, path.open("rb") as file:
        while chunk := file.read(CHUNK):
            yield chunk
