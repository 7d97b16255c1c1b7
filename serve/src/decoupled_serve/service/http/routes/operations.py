"""Routes for operators: health, metrics, backups, what a key may do, the audit trail, and the OpenAPI document."""

import asyncio
import hashlib
import json
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, Literal

from fastapi import APIRouter, FastAPI, Query, Request, Response
from fastapi.responses import JSONResponse
from pydantic import BaseModel, Field

from decoupled.base import LONGEST_NAME
from decoupled.client import HOW_LONG, Compiling, Conflict, Forbidden, StoreError

from ...experiment.records import ACTIONS, OPERATOR
from ...service import DecisionService
from ..admission import MOST_LISTED, REACH
from ..framework import Admin, StrictRoute, access_of, refusals
from ..models.fields import json_of, told
from ..models.schemas import NAME

Action = Literal[ACTIONS]  # type: ignore[valid-type]


class AuditEntryOut(BaseModel):
    """One change: what, when, by whom, and what it was before."""

    id: int
    at: str
    tenant: str
    action: str = Field(examples=list(ACTIONS))
    subject: str = told("The experiment, the id of the key, or the file that was changed.")
    caller: str = told(
        "`key ID`, `address ADDRESS` (of a service without keys), `command line`, or `program`.",
        "key 3f29c1a0b7de",
    )
    label: str = told("The label of the key, or the user of the command line.")
    request_id: str | None = told("The id of the request that made the change.")
    old: Any = told("What was changed, as it was before; null if there was nothing.")
    new: Any = told("What was changed, as it is now; null if there is nothing.")


class AuditOut(BaseModel):
    """A page of changes, newest first."""

    entries: list[AuditEntryOut]
    next: int | None = told("Pass it as `before` for the next page; null on the last.")


def audit_routes(service: DecisionService) -> APIRouter:
    """Who changed what."""
    router = APIRouter(prefix="/v1", tags=["operations"], route_class=StrictRoute)

    @router.get("/audit", response_model=AuditOut, responses=refusals())
    async def get_audit(
        access: Admin,
        subject: Annotated[
            str | None, Query(min_length=1, max_length=255, examples=["checkout"])
        ] = None,
        action: Annotated[Action | None, Query()] = None,
        tenant: Annotated[
            str | None, Query(max_length=LONGEST_NAME, pattern=NAME, examples=["shop"])
        ] = None,
        before: Annotated[int | None, Query(ge=1, lt=2**63)] = None,
        limit: Annotated[int, Query(ge=1, le=MOST_LISTED)] = 100,
    ) -> Response:
        """Who changed what, newest first. Keys of the tenant `local` see the changes of all tenants."""
        if access.tenant != OPERATOR:
            if tenant not in (None, access.tenant):
                raise Forbidden(
                    f"tenant = {tenant!r}: must be your own, {access.tenant!r}; leave it out"
                )
            tenant = access.tenant
        found = await service.audit.read(
            tenant, subject=subject, action=action, before=before, limit=limit
        )
        following = found[-1].id if len(found) == limit else None
        entries = [json_of(each, AuditEntryOut, request_id=each.request) for each in found]
        return JSONResponse({"entries": entries, "next": following})

    return router


METRICS = "text/plain; version=0.0.4; charset=utf-8"  # of Prometheus
DOCUMENT = "/v1/openapi.json"


class HealthOut(BaseModel):
    """The service is there."""

    status: str = Field(examples=["ok"])


class BackupOut(BaseModel):
    """A backup that was written to the folder of --backups."""

    file: str
    bytes: int
    sha256: str


Role = Literal["read", "decide", "admin", "label"]


class AccessOut(BaseModel):
    """The tenant and the role of a key."""

    tenant: str
    role: Role
    may: list[Role] = told("Every role whose requests it may make.")
    mirror: str | None = told(
        "The experiment of the mirror that this service belongs to; null if it belongs to none."
    )


def operation_routes(
    service: DecisionService, metrics: Callable[[], bytes], backups: Path | None, mirror: str | None
) -> APIRouter:
    """Watch the service, back it up, and see what a key may do."""
    router = APIRouter(tags=["operations"], route_class=StrictRoute)

    @router.get(
        "/healthz", response_model=HealthOut, responses=refusals(), openapi_extra={"security": []}
    )
    async def healthz() -> Response:
        """Whether the process responds. Needs no key."""
        return JSONResponse({"status": "ok"})

    @router.get(
        "/readyz", response_model=HealthOut, responses=refusals(), openapi_extra={"security": []}
    )
    async def readyz() -> Response:
        """Whether the store takes writes and the stored experiments can decide; 503 if not. Needs no key.

        After a start it is 503 until the policies of all experiments are compiled, or have failed to compile. An
        experiment that is created later does not change it.
        """
        if not service.ready():
            raise StoreError("store: does not take writes")
        if service.stored_to_compile():
            raise Compiling(
                f"policies: those of the stored experiments are being compiled; {HOW_LONG}"
            )
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
        return Response(metrics(), media_type=METRICS)

    @router.post("/v1/backups", status_code=201, response_model=BackupOut, responses=refusals(409))
    async def back_up(request: Request) -> Response:
        """Write a consistent copy of the whole store, while it runs, to a new file in the folder of --backups."""
        access_of(request).require_operator("admin")
        if backups is None:
            raise Conflict("backups: no folder is set; start the service with --backups FOLDER")
        name = f"decoupled-{datetime.now(UTC):%Y%m%dT%H%M%S}-{time.time_ns() % 10**9:09d}.db"
        path = backups / name
        await service.logs.backup(path)
        digest = await asyncio.to_thread(_digest, path)
        return JSONResponse({"file": name, "bytes": path.stat().st_size, "sha256": digest}, 201)

    @router.get("/v1/access", response_model=AccessOut, responses=refusals())
    async def get_access(request: Request) -> Response:
        """What the key of this request may do. Without keys, on loopback, everyone is admin."""
        access = access_of(request)
        may = list(REACH[access.role])
        return JSONResponse(
            {"tenant": access.tenant, "role": access.role, "may": may, "mirror": mirror}
        )

    return router


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def document_routes(app: FastAPI) -> APIRouter:
    """Serve the OpenAPI document of an application. It is the same for everyone, so it needs no key."""
    router = APIRouter(include_in_schema=False)
    written: list[tuple[bytes, str]] = []

    @router.api_route(DOCUMENT, methods=["GET", "HEAD"])
    async def get_document(request: Request) -> Response:
        """Return the document, or 304 if the caller has it already."""
        if not written:
            # Describing every route takes most of a second, in which decisions must not wait.
            content = json.dumps(await asyncio.to_thread(app.openapi), ensure_ascii=False).encode()
            written.append((content, f'"{hashlib.sha256(content).hexdigest()[:32]}"'))
        content, tag = written[0]
        if request.headers.get("if-none-match") == tag:
            return Response(status_code=304, headers={"ETag": tag})
        return Response(content, media_type="application/json", headers={"ETag": tag})

    return router
