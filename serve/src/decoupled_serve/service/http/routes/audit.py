"""Routes: the audit trail."""

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query, Response
from fastapi.responses import JSONResponse
from pydantic import BaseModel, Field

from decoupled.base import LONGEST_NAME
from decoupled.client import Forbidden

from ...experiment.audited import ACTIONS, OPERATOR, AuditRecord
from ...experiment.records import moment
from ...service import DecisionService
from ..admission.limits import MOST_LISTED
from ..framework import Admin, StrictRoute
from ..models.fields import fields_of
from ..models.schemas import NAME
from ..openapi import refusals

Action = Literal[ACTIONS]  # type: ignore[valid-type]


class AuditEntryOut(BaseModel):
    """One change: what, when, by whom, and what it was before."""

    id: int
    at: str
    tenant: str
    action: str = Field(examples=list(ACTIONS))
    subject: str = Field(description="The experiment, the id of the key, or the file that was changed.")
    caller: str = Field(
        description="`key ID`, `address ADDRESS` (of a service without keys), `command line`, or `program`.",
        examples=["key 3f29c1a0b7de"],
    )
    label: str = Field(description="The label of the key, or the user of the command line.")
    request_id: str | None = Field(description="The id of the request that made the change.")
    old: Any = Field(description="What was changed, as it was before; null if there was nothing.")
    new: Any = Field(description="What was changed, as it is now; null if there is nothing.")


class AuditOut(BaseModel):
    """A page of changes, newest first."""

    entries: list[AuditEntryOut]
    next: int | None = Field(description="Pass it as `before` for the next page; null on the last.")


def audit_routes(service: DecisionService) -> APIRouter:
    """Who changed what."""
    router = APIRouter(prefix="/v1", tags=["operations"], route_class=StrictRoute)

    @router.get("/audit", response_model=AuditOut, responses=refusals())
    async def get_audit(
        access: Admin,
        subject: Annotated[str | None, Query(min_length=1, max_length=255, examples=["checkout"])] = None,
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
                raise Forbidden(f"tenant = {tenant!r}: must be your own, {access.tenant!r}; leave it out")
            tenant = access.tenant
        found = await service.audit.read(tenant, subject=subject, action=action, before=before, limit=limit)
        following = found[-1].id if len(found) == limit else None
        return JSONResponse({"entries": [audit_out(each) for each in found], "next": following})

    return router


def audit_out(entry: AuditRecord) -> dict[str, Any]:
    """A change as JSON."""
    known = fields_of(entry, AuditEntryOut) | {"at": moment(entry.at), "request_id": entry.request}
    return {name: known[name] for name in AuditEntryOut.model_fields}
