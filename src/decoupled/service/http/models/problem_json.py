"""Errors as callers see them: their one shape (RFC 9457), and how they name JSON values and fields."""

import json
import logging
from collections.abc import Iterable
from typing import Any

from ....errors import near_name, shown
from ...errors import Compiling, Invalid, NotCompiled, ServiceError, StoreError, TooMany, Unauthorized
from ...experiment.request_context import ORIGIN

PROBLEM = b"application/problem+json"
FAULT = "an error of the service itself, described in its log; try again"
# What a database says may name its host, its user or its path.
NO_STORE = "store: cannot be read or written; nothing was acknowledged; try again, or see the log and decoupled doctor"
faults = logging.getLogger("decoupled.service")
_LONGEST = 500  # characters of a value; ids and names are shorter, and never cut


def problem_of(error: ServiceError) -> dict[str, Any]:
    """An error in the shape of RFC 9457. The details of an internal error, or of the store's, are only in the log.

    >>> problem_of(Invalid("count = 0: must be at least 1; for example 10"))["type"]
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


# Messages


def as_json(value: object) -> str:
    """A value as it was sent; only a very long one is cut.

    >>> as_json(None), as_json(["red"]), as_json("é")
    ('null', '["red"]', '"é"')
    """
    try:
        text = json.dumps(value, ensure_ascii=False)
    except (TypeError, ValueError, RecursionError):
        return shown(value)
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 3]}..."


def kind_of(value: object) -> str:
    """The kind of a JSON value.

    >>> kind_of("0.5"), kind_of(None), kind_of(True), kind_of([])
    ('a string', 'null', 'a boolean', 'a list')
    """
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "a boolean"
    if isinstance(value, (int, float)):
        return "a number"
    names: dict[type, str] = {str: "a string", list: "a list", dict: "an object"}
    return names.get(type(value), type(value).__name__)


def problem_with(place: str, value: object, rule: str, remedy: str) -> str:
    """A message: the place in the request, the value sent, the rule, and the remedy.

    >>> problem_with("count", 0, "must be at least 1", "for example 10")
    'count = 0: must be at least 1; for example 10'
    """
    return f"{place} = {as_json(value)}: {rule}; {remedy}"


def unknown_field(place: str, value: object, fields: Iterable[str]) -> str:
    """The message for a field that the request does not have.

    >>> unknown_field("colour", "red", ["loss", "arm"])
    'colour = "red": is not a field of this request; the fields are arm, loss'
    >>> unknown_field("items.0.lose", 1, ["loss", "arm"])
    "items.0.lose = 1: is not a field of this request; did you mean 'loss'?"
    """
    known = sorted(fields)
    hint = near_name(place.rpartition(".")[2], known)
    remedy = hint if hint.startswith("did") else f"the fields are {', '.join(known)}"
    return problem_with(place, value, "is not a field of this request", remedy)
