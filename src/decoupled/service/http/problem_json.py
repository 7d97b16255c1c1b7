"""The one shape in which every error leaves the service (RFC 9457)."""

import json
from collections.abc import Mapping
from typing import Any

from ..errors import Compiling, NotCompiled, ServiceError, TooMany, Unauthorized

PROBLEM = b"application/problem+json"
FAULT = "a fault of the service, which its log describes; try again"


def problem(
    status: int, title: str, detail: str, errors: list[dict[str, str]] | None = None
) -> dict[str, Any]:
    """An error as RFC 9457 has it; `errors` names each field that is wrong.

    >>> problem(409, "Conflict", "decision 'x': another loss was applied before")["type"]
    'urn:decoupled:conflict'
    """
    content: dict[str, Any] = {
        "type": f"urn:decoupled:{title.lower().replace(' ', '-')}",
        "title": title,
        "status": status,
        "detail": detail,
    }
    if errors:
        content["errors"] = errors
    return content


def problem_of(error: ServiceError) -> dict[str, Any]:
    """The shape of an error of the service. Of a fault the log tells more, and callers nothing."""
    detail = FAULT if error.status == 500 and not isinstance(error, NotCompiled) else str(error)
    return problem(error.status, error.title, detail, getattr(error, "errors", None))


def is_fault(error: ServiceError) -> bool:
    """Whether an error is for the service's log. A policy that is being compiled is there already."""
    return error.status >= 500 and not isinstance(error, Compiling)


def headers_of(error: ServiceError) -> list[tuple[bytes, bytes]]:
    """The headers that go with an error."""
    if isinstance(error, Unauthorized):
        return [(b"www-authenticate", b'Bearer realm="decoupled"')]
    if isinstance(error, TooMany):
        return [(b"retry-after", str(error.retry_after).encode())]
    return [(b"retry-after", b"1")] if error.status == 503 else []


_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode


def encoded(content: Mapping[str, Any]) -> bytes:
    """JSON as it goes over the wire."""
    return _encode(content).encode()
