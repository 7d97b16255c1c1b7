"""Refusals that only HTTP knows, and the one shape in which every error leaves the service.

The desk's own errors (`decoupled.service.problems`) carry a status and a title; these add to them what
is refused before the desk is asked.
"""

import json
from collections.abc import Mapping
from typing import Any

from ..problems import Compiling, NotCompiled, ServiceError

PROBLEM = b"application/problem+json"
FAULT = "a fault of the service, which its log describes; try again"


class BadRequest(ServiceError):  # noqa: N818
    """What was sent is not JSON, or not HTTP as this service speaks it."""

    status, title = 400, "Bad request"


class Unauthorized(ServiceError):  # noqa: N818
    """No key, or one that is unknown or revoked."""

    status, title = 401, "Unauthorized"


class Forbidden(ServiceError):  # noqa: N818
    """A key whose role does not reach so far."""

    status, title = 403, "Forbidden"


class MethodNotAllowed(ServiceError):  # noqa: N818
    """A path that exists, with a method that it does not take."""

    status, title = 405, "Method not allowed"


class TooSlow(ServiceError):  # noqa: N818
    """A body that does not come."""

    status, title = 408, "Request timeout"


class TooLarge(ServiceError):  # noqa: N818
    """A body beyond the limit."""

    status, title = 413, "Content too large"


class UnsupportedMedia(ServiceError):  # noqa: N818
    """A body that does not say that it is JSON."""

    status, title = 415, "Unsupported media type"


class TooMany(ServiceError):  # noqa: N818
    """More requests than the limit; `retry_after` says in how many seconds there is room again."""

    status, title = 429, "Too many requests"

    def __init__(self, message: str, retry_after: int) -> None:
        super().__init__(message)
        self.retry_after = retry_after


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
