"""Route: what the key of a request may do, so that a page need not offer what would be refused."""

from typing import Literal

from fastapi import APIRouter, Request, Response
from fastapi.responses import JSONResponse
from pydantic import BaseModel, Field

from ...api_keys import ROLES, reaches
from ..openapi import refusals
from ..strict_routes import StrictRoute, access_of


class AccessOut(BaseModel):
    """Whose key it is and what it may do."""

    tenant: str
    role: Literal["read", "decide", "admin"]
    may: list[Literal["read", "decide", "admin"]] = Field(
        description="Every role whose requests it may make: its own and those below."
    )


def access_routes() -> APIRouter:
    """Say who is asking."""
    router = APIRouter(tags=["operations"], route_class=StrictRoute)

    @router.get("/v1/access", response_model=AccessOut, responses=refusals())
    async def get_access(request: Request) -> Response:
        """What the key of this request may do. Without keys, on loopback, everyone is admin."""
        access = access_of(request)
        may = [role for role in ROLES if reaches(access.role, role)]
        return JSONResponse({"tenant": access.tenant, "role": access.role, "may": may})

    return router
