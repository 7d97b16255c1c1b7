"""Bodies: of requests as clients upload them, of answers as they are recorded, and JSON whose fields an arm sets."""

import math
import time
from collections.abc import AsyncIterator, Mapping
from typing import Any, TypeAlias

from starlette.types import Receive

from ..nested import parsed
from ..service.http.admission import Paced


class ClientDisconnected(Exception):  # noqa: N818
    """The client closed the connection."""


class UploadTimeout(Exception):  # noqa: N818
    """The client sent its request too slowly."""


class Content:
    """A body that is known already; `sent` is when it was handed over, after connecting."""

    def __init__(self, content: bytes = b"") -> None:
        self.kept: bytes | None = content
        self.started = False
        self.sent = 0.0

    async def __aiter__(self) -> AsyncIterator[bytes]:
        self.started, self.sent = True, time.perf_counter()
        if self.kept:
            yield self.kept


class Upload:
    """The body of a request as the client sends it. A copy is kept up to a limit, None without one.

    A client that falls behind for `seconds` is given up: `UploadTimeout`. What is read ahead is handed over all the same.
    `sent` is when its last byte was handed over, so that a slow upload does not count as a slow answer.
    """

    def __init__(self, receive: Receive, limit: int | None, seconds: float) -> None:
        self._receive, self._limit = Paced(receive, seconds), limit
        self._parts: list[bytes] | None = None if limit is None else []
        self._size = 0
        self._ahead: list[bytes] = []
        self._more = True
        self.failure: ClientDisconnected | UploadTimeout | None = None
        self.started = False
        self.complete = False
        self.sent = 0.0

    @property
    def kept(self) -> bytes | None:
        """The whole body; None if it is too large, or not complete."""
        return b"".join(self._parts) if self._parts is not None and self.complete else None

    async def read_ahead(self) -> bytes | None:
        """The whole body before any of it is handed over; None if it is too large, or does not come."""
        try:
            while self._more and self._parts is not None:
                self._ahead.append(await self._next())
        except (ClientDisconnected, UploadTimeout) as error:
            self.failure = error
            return None
        return None if self._parts is None else b"".join(self._parts)

    def replace(self, content: bytes) -> None:
        """Hand this over in place of what was read ahead, of which the copy is kept all the same."""
        self._ahead = [content]

    async def __aiter__(self) -> AsyncIterator[bytes]:
        self.started = True
        ahead, self._ahead = self._ahead, []
        for part in ahead:
            self.sent = time.perf_counter()
            if part:
                yield part
        if self.failure is not None:
            raise self.failure
        while self._more:
            part = await self._next()
            self.sent = time.perf_counter()
            if part:
                yield part
        self.complete = True

    async def _next(self) -> bytes:
        """The next part, of which a copy is kept."""
        try:
            message = await self._receive()
        except TimeoutError:
            raise UploadTimeout from None
        if message["type"] == "http.disconnect":
            raise ClientDisconnected
        part: bytes = message.get("body", b"")
        self._more = message.get("more_body", False)
        if self._parts is not None and self._limit is not None:
            self._size += len(part)
            self._parts.append(part)
            if self._size > self._limit:
                self._parts = None
        return part


Body: TypeAlias = Content | Upload


class Recording:
    """The bytes of an answer up to a limit, and how many there were."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._kept = bytearray()
        self.size = 0

    @property
    def body(self) -> bytes:
        """The bytes that were kept."""
        return bytes(self._kept)

    @property
    def whole(self) -> bool:
        """Whether all bytes were kept."""
        return len(self._kept) == self.size

    def add(self, part: bytes) -> None:
        """Keep a part, or the beginning of it."""
        self.size += len(part)
        room = self._limit - len(self._kept)
        if room > 0:
            self._kept += part[:room]


def json_object(body: bytes) -> dict[str, Any] | None:
    """The object that a body is; None if it is none, or has numbers that JSON cannot write again.

    >>> json_object(b'{"model": "router"}'), json_object(b"[1]"), json_object(b'{"a": 1e999}'), json_object(b"a=1")
    ({'model': 'router'}, None, None, None)
    """
    found = parsed(body, parse_float=_finite, parse_constant=_finite)
    return found if isinstance(found, dict) else None


def with_fields(content: Mapping[str, Any], fields: Mapping[str, Any]) -> dict[str, Any]:
    """The object with these fields set; tables in them set fields of what is inside.

    >>> with_fields({"model": "router", "n": 1, "options": {"seed": 7}}, {"model": "small", "options": {"top_k": 3}})
    {'model': 'small', 'n': 1, 'options': {'seed': 7, 'top_k': 3}}
    """
    found = dict(content)
    for name, value in fields.items():
        inside = found.get(name)
        nested = isinstance(value, Mapping)
        found[name] = (
            with_fields(inside if isinstance(inside, dict) else {}, value) if nested else value
        )
    return found


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(text)
    return number
