"""Marking a route or a field as deprecated: in the document, and in the headers of its responses.

`Deprecation` (RFC 9745) says since when, `Sunset` (RFC 8594) when it may be removed, and the document what to use
instead. The mark is the only place that knows; see docs/versioning.md for what it promises. The two routes that bypass the
framework would not send the headers, and a test keeps them from being marked.
"""

from collections.abc import Iterable, Mapping
from datetime import UTC, date, datetime, time, timedelta
from email.utils import format_datetime
from typing import Any, NamedTuple, TypeAlias

from pydantic.fields import FieldInfo

from ...errors import ParameterError, invalid_value

EXTENSION = "x-deprecation"  # in the document, next to `deprecated`
NOTICE = timedelta(days=90)  # the least time between the announcement and the end
POLICY = {
    "version": "v1",
    "promise": "Within /v1, nothing is removed or changes its meaning unless it was deprecated before. Routes, fields of "
    "responses and optional fields of requests may be added at any time: ignore what you do not know.",
    "deprecation": "deprecated: true in this document, with x-deprecation: since, sunset and instead; and the headers "
    "Deprecation (RFC 9745) and Sunset (RFC 8594) in every response to a request that uses it.",
    "notice_days": NOTICE.days,
}
Headers: TypeAlias = list[tuple[str, str]]


class Deprecation(NamedTuple):
    """Since when something is deprecated, when it may be removed, and what to use instead.

    >>> old = Deprecation(date(2027, 1, 1), date(2027, 7, 1), "GET /v1/new")
    >>> old.headers()[:2]
    [('Deprecation', '@1798761600'), ('Sunset', 'Thu, 01 Jul 2027 00:00:00 GMT')]
    """

    since: date
    sunset: date
    instead: str

    def headers(self) -> Headers:
        """The headers of a response to a request that uses it."""
        announced, ends = (datetime.combine(day, time(), UTC) for day in (self.since, self.sunset))
        return [
            ("Deprecation", f"@{int(announced.timestamp())}"),
            ("Sunset", format_datetime(ends, usegmt=True)),
            ("Link", '</docs>; rel="deprecation"; type="text/html"'),
        ]

    def mark(self) -> dict[str, Any]:
        """The mark in the document."""
        described = {"since": str(self.since), "sunset": str(self.sunset), "instead": self.instead}
        return {"deprecated": True, EXTENSION: described}


def _checked(since: str, sunset: str, instead: str) -> Deprecation:
    found = Deprecation(date.fromisoformat(since), date.fromisoformat(sunset), instead)
    if found.sunset - found.since < NOTICE:
        rule = f"must be at least {NOTICE.days} days after since = {since!r}"
        raise ParameterError(
            invalid_value("sunset", sunset, rule, f"use {found.since + NOTICE}, or a later day")
        )
    return found


def deprecated_route(*, since: str, sunset: str, instead: str) -> dict[str, Any]:
    """Arguments that deprecate a route: `@router.get("/old", **deprecated_route(...))`.

    >>> deprecated_route(since="2027-01-01", sunset="2027-07-01", instead="GET /v1/new")["deprecated"]
    True
    """
    mark = _checked(since, sunset, instead).mark()
    return {"deprecated": True, "openapi_extra": {EXTENSION: mark[EXTENSION]}}


def deprecated_field(*, since: str, sunset: str, instead: str) -> dict[str, Any]:
    """The mark of a deprecated field of a body, or query parameter: `Field(json_schema_extra=deprecated_field(...))`.

    >>> deprecated_field(since="2027-01-01", sunset="2027-07-01", instead="rate")["deprecated"]
    True
    """
    return _checked(since, sunset, instead).mark()


def of_extra(extra: object) -> Deprecation | None:
    """The deprecation that a part of the document describes, if it does."""
    mark = extra.get(EXTENSION) if isinstance(extra, Mapping) else None
    if mark is None:
        return None
    return Deprecation(
        date.fromisoformat(mark["since"]), date.fromisoformat(mark["sunset"]), mark["instead"]
    )


def of_fields(fields: Mapping[str, FieldInfo]) -> dict[str, Deprecation]:
    """The deprecated fields among those of a model, or of a route's query."""
    found = {name: of_extra(field.json_schema_extra) for name, field in fields.items()}
    return {name: each for name, each in found.items() if each is not None}


def first_to_end(used: Iterable[Deprecation]) -> Headers:
    """The headers for a request that uses all of these: those of what ends first."""
    ordered = sorted(used, key=lambda each: each.sunset)
    return ordered[0].headers() if ordered else []
