"""Routes for operators: health, metrics, backups, and what a key may do."""

import hashlib
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

from fastapi import APIRouter, Request, Response
from fastapi.responses import JSONResponse
from pydantic import BaseModel, Field

from ...decision_service import DecisionService
from ...errors import HOW_LONG, Compiling, Conflict, StoreError
from ..auth import REACH
from ..metrics import KIND, Metrics
from ..openapi import refusals
from ..strict_routes import StrictRoute, access_of


class Health(BaseModel):
    """The service is there."""

    status: str = Field(examples=["ok"])


class BackupOut(BaseModel):
    """A backup that was written to the folder of --backups."""

    file: str
    bytes: int
    sha256: str


class AccessOut(BaseModel):
    """The tenant and the role of a key."""

    tenant: str
    role: Literal["read", "decide", "admin"]
    may: list[Literal["read", "decide", "admin"]] = Field(
        description="Every role whose requests it may make: its own and those below."
    )
    mirror: str | None = Field(
        description="The experiment of the mirror that this service belongs to; null if it belongs to none."
    )


def operation_routes(
    service: DecisionService, metrics: Metrics, backups: Path | None, mirror: str | None
) -> APIRouter:
    """Watch the service, back it up, and see what a key may do."""
    router = APIRouter(tags=["operations"], route_class=StrictRoute)

    @router.get("/healthz", response_model=Health, responses=refusals(), openapi_extra={"security": []})
    async def healthz() -> Response:
        """Whether the process responds. Needs no key."""
        return JSONResponse({"status": "ok"})

    @router.get("/readyz", response_model=Health, responses=refusals(), openapi_extra={"security": []})
    async def readyz() -> Response:
        """Whether the store takes writes and the stored experiments can decide; 503 if not. Needs no key.

        After a start it is 503 until the policies of all experiments are compiled, or have failed to compile. An
        experiment that is created later does not change it.
        """
        if not service.ready():
            raise StoreError("store: does not take writes; see the service's log, and run decoupled doctor")
        if service.stored_to_compile():
            raise Compiling(f"policies: those of the stored experiments are being compiled; {HOW_LONG}")
        return JSONResponse({"status": "ok"})

    @router.get(
        "/metrics",
        response_class=Response,
        responses={
            200: {
                "description": "Prometheus's text format.",
                "content": {"text/plain": {"schema": {"type": "string"}}},
            },
            **refusals(),
        },
    )
    async def read_metrics(request: Request) -> Response:
        """Counters of the whole instance, for Prometheus. Needs a key of the operator's tenant."""
        access_of(request).require_operator("read")
        return Response(metrics.text(), media_type=KIND)

    @router.post("/v1/backups", status_code=201, response_model=BackupOut, responses=refusals(409))
    async def back_up(request: Request) -> Response:
        """Write a consistent copy of the whole store, while it runs, to a new file in the folder of --backups."""
        access_of(request).require_operator("admin")
        if backups is None:
            raise Conflict("backups: no folder is set; start the service with --backups FOLDER")
        name = f"decoupled-{datetime.now(UTC):%Y%m%dT%H%M%S}-{time.time_ns() % 10**9:09d}.db"
        path = backups / name
        await service.logs.backup(path)
        with path.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        return JSONResponse({"file": name, "bytes": path.stat().st_size, "sha256": digest}, 201)

    @router.get("/v1/access", response_model=AccessOut, responses=refusals())
    async def get_access(request: Request) -> Response:
        """What the key of this request may do. Without keys, on loopback, everyone is admin."""
        access = access_of(request)
        may = list(REACH[access.role])
        return JSONResponse({"tenant": access.tenant, "role": access.role, "may": may, "mirror": mirror})

    return router
