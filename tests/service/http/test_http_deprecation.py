"""Marking a route or a field as deprecated: one line, which the document and the headers follow."""

import asyncio
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Annotated, Any

import httpx
import pytest
from fastapi import APIRouter, FastAPI, Query, Response
from fastapi.responses import JSONResponse
from pydantic import Field

from decoupled.errors import ParameterError
from decoupled.service.errors import NotFound
from decoupled.service.http.decisions import DECISIONS, FEEDBACK
from decoupled.service.http.deprecation import EXTENSION, NOTICE, deprecated_field, deprecated_route
from decoupled.service.http.fields import Model
from decoupled.service.http.strict_routes import StrictRoute, install
from support.http_service import openapi_document

SOON: dict[str, str] = {"since": "2027-01-01", "sunset": "2027-07-01", "instead": "the new one"}
LATER: dict[str, str] = {"since": "2027-02-01", "sunset": "2028-01-01", "instead": "the other new one"}


class Body(Model):
    """A body with a deprecated field."""

    new: int = 0
    old: int = Field(default=0, json_schema_extra=deprecated_field(**SOON))


@pytest.fixture(scope="module")
def app() -> FastAPI:
    made = FastAPI()
    install(made)
    router = APIRouter(route_class=StrictRoute)

    @router.get("/current")
    async def current(
        old: Annotated[int, Query(json_schema_extra=deprecated_field(**SOON))] = 0,
    ) -> Response:
        return JSONResponse({"old": old})

    @router.get("/old", **deprecated_route(**LATER))
    async def old() -> Response:
        return JSONResponse({})

    @router.post("/body")
    async def body(body: Body) -> Response:
        return JSONResponse({"old": body.old})

    @router.post("/old/body", **deprecated_route(**LATER))
    async def old_body(body: Body) -> Response:
        if body.new:
            raise NotFound("new: is not known; leave it out")
        return JSONResponse({"old": body.old})

    made.include_router(router)
    return made


def marked(answer: httpx.Response) -> tuple[datetime, datetime] | None:
    """Since when and until when, as a client reads it."""
    if "Deprecation" not in answer.headers:
        assert "Sunset" not in answer.headers
        return None
    since = answer.headers["Deprecation"]
    assert since.startswith("@"), "a date of RFC 9651"
    assert 'rel="deprecation"' in answer.headers["Link"]
    return datetime.fromtimestamp(int(since[1:]), UTC), parsedate_to_datetime(answer.headers["Sunset"])


def days(dates: dict[str, str]) -> tuple[datetime, datetime]:
    return tuple(datetime.fromisoformat(f"{dates[name]}T00:00:00Z") for name in ("since", "sunset"))  # type: ignore[return-value]


@pytest.mark.parametrize(
    ("method", "path", "body", "status", "expected"),
    [
        ("GET", "/old", None, 200, LATER),
        ("GET", "/current", None, 200, None),
        ("GET", "/current?old=1", None, 200, SOON),
        ("GET", "/current?old=x", None, 422, SOON),
        ("POST", "/body", {"new": 1}, 200, None),
        ("POST", "/body", {"old": 1}, 200, SOON),
        ("POST", "/old/body", {}, 200, LATER),
        ("POST", "/old/body", {"old": 1}, 200, SOON),  # what ends first
        ("POST", "/old/body", {"new": 1}, 404, LATER),
    ],
)
def test_what_is_used_decides_about_the_headers(
    app: FastAPI, method: str, path: str, body: Any, status: int, expected: dict[str, str] | None
) -> None:
    async def asked() -> httpx.Response:
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://test") as client:
            return await client.request(method, path, json=body)

    answer = asyncio.run(asked())
    assert answer.status_code == status
    assert marked(answer) == (None if expected is None else days(expected))


def test_the_document_has_the_mark_and_what_to_use_instead(app: FastAPI) -> None:
    document = app.openapi()
    old = document["paths"]["/old"]["get"]
    assert (old["deprecated"], old[EXTENSION]) == (True, LATER)
    field = document["components"]["schemas"]["Body"]["properties"]["old"]
    assert (field["deprecated"], field[EXTENSION]) == (True, SOON)
    [parameter] = document["paths"]["/current"]["get"]["parameters"]
    assert parameter["schema"]["deprecated"] is True
    assert "deprecated" not in document["paths"]["/current"]["get"]


def test_less_notice_than_promised_is_refused() -> None:
    short: dict[str, Any] = {"since": "2027-01-01", "sunset": "2027-03-01", "instead": "x"}
    for mark in (deprecated_route, deprecated_field):
        with pytest.raises(ParameterError, match=rf"sunset = '2027-03-01': must be at least {NOTICE.days}"):
            mark(**short)


def test_what_bypasses_the_framework_is_not_deprecated() -> None:
    paths = openapi_document()["paths"]
    for operation in (paths[DECISIONS]["post"], paths[FEEDBACK]["put"]):
        assert not operation.get("deprecated"), "the gateway would have to send the headers"


def test_the_document_states_the_policy() -> None:
    info = openapi_document()["info"]
    assert info["x-version-policy"]["version"] == "v1"
    assert info["x-version-policy"]["notice_days"] == NOTICE.days
    for word in ("Deprecation", "Sunset", "deprecated: true"):
        assert word in info["description"]
