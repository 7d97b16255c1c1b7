"""Errors as callers see them: their one shape (RFC 9457), and what Pydantic found wrong in a request."""

import logging
from collections.abc import Mapping, Sequence
from typing import Any

from decoupled.client import (
    Compiling,
    Invalid,
    NotCompiled,
    ServiceError,
    StoreError,
    TooMany,
    Unauthorized,
)

from ...experiment.request_context import ORIGIN
from .fields import CHOICES

PROBLEM = b"application/problem+json"
FAULT = "an error of the service itself, described in its log; try again"
# What a database says may name its host, its user or its path.
NO_STORE = "store: cannot be read or written; nothing was acknowledged; try again, or see the log and decoupled doctor"
faults = logging.getLogger("decoupled.service")


def problem_of(error: ServiceError) -> dict[str, Any]:
    """An error in the shape of RFC 9457. The details of an internal error, or of the store's, are only in the log.

    >>> problem_of(Invalid("confirm = 'a': must be the name of the experiment; pass confirm=b"))["type"]
    'urn:decoupled:invalid-request'
    """
    unexpected = error.status == 500 and not isinstance(error, NotCompiled)
    detail = NO_STORE if isinstance(error, StoreError) else FAULT if unexpected else str(error)
    content = problem(error.title, error.status, detail)
    if isinstance(error, Invalid) and error.errors:
        content["errors"] = error.errors
    return content


def problem(title: str, status: int, detail: str) -> dict[str, Any]:
    """What is wrong with the present request, in the shape of RFC 9457."""
    content: dict[str, Any] = {
        "type": f"urn:decoupled:{title.lower().replace(' ', '-')}",
        "title": title,
        "status": status,
        "detail": detail,
    }
    request = ORIGIN.get().request
    return content if request is None else content | {"request_id": request}


def log_fault(error: ServiceError) -> None:
    """Log an error that is the service's own. A policy that is being compiled is in the log already."""
    if error.status >= 500 and not isinstance(error, Compiling):
        faults.error("%s: %s", error.title, error)


def headers_of(error: ServiceError) -> list[tuple[bytes, bytes]]:
    """The headers that go with an error."""
    if isinstance(error, Unauthorized):
        return [(b"www-authenticate", b'Bearer realm="decoupled"')]
    if isinstance(error, TooMany):
        return [(b"retry-after", str(error.retry_after).encode())]
    return [(b"retry-after", b"1")] if error.status == 503 else []


# Errors that Pydantic found in a request: its messages, and their places. Values are never shown.
_LISTED = 20  # errors in a response
_DETAILED = 2_000  # characters of their messages that its detail repeats


def invalid(errors: Sequence[Mapping[str, Any]], *within: str) -> Invalid:
    """The refusal for a request. Each place starts with the part of the request, such as "body".

    >>> invalid([{"loc": ("items", 3, "loss"), "msg": "Input should be a valid number"}], "body").errors
    [{'field': 'items.3.loss', 'message': 'items.3.loss: Input should be a valid number'}]
    """
    found = []
    for each in errors[:_LISTED]:
        part, *place = (str(step) for step in (*within, *each["loc"]) if step not in CHOICES)
        name = ".".join(place) or part
        said = each["msg"].removeprefix("Value error, ").removeprefix(f"{name}: ")
        found.append({"field": name, "message": f"{name}: {said}"})
    detail, *left = (each["message"] for each in found)
    while left and len(detail) + len(left[0]) <= _DETAILED:
        detail += f"; {left.pop(0)}"
    refusal = Invalid(f"{detail}; and {len(left)} more, in errors" if left else detail)
    refusal.errors = found
    return refusal
