"""Where responses are written: what every one of them says, and what is known of it when it is over."""

import os
import re
from collections.abc import Iterable
from http import HTTPStatus
from itertools import count
from typing import TypeAlias

from starlette.types import Message, Send

from decoupled.client import ServiceError

from ...experiment.request_context import Origin
from ..models.fields import encoded
from ..models.problem_json import PROBLEM, headers_of, problem_of

Header: TypeAlias = tuple[bytes, bytes]

JSON = b"application/json"
ALWAYS: list[Header] = [(b"cache-control", b"no-store"), (b"x-content-type-options", b"nosniff")]
CLOSE: Header = (b"connection", b"close")
_SANE_ID = re.compile(rb"[A-Za-z0-9][A-Za-z0-9._:/=+@-]{0,127}")


class RequestIds:
    """Ids for requests: that of the client if it is sane, or a new one, a random text for this process and a number.

    >>> ids = RequestIds("1f2e")
    >>> ids.of(None), ids.of(b"checkout-7"), ids.of(b"two words")
    ('1f2e-1', 'checkout-7', '1f2e-2')
    """

    def __init__(self, prefix: str | None = None) -> None:
        self._prefix = f"{os.urandom(6).hex() if prefix is None else prefix}-"
        self._numbers = count(1)

    def of(self, header: bytes | None) -> str:
        """The id in an X-Request-Id header if it is sane, or a new one."""
        if header is not None and _SANE_ID.fullmatch(header):
            return header.decode("ascii")
        return f"{self._prefix}{next(self._numbers):x}"


REQUEST_IDS = RequestIds()  # of this process


class Response:
    """The response to one request, and what the metrics and the log need to know about it."""

    def __init__(self, send: Send, origin: Origin) -> None:
        self._send, self.origin = send, origin
        self._request: Header = (b"x-request-id", (origin.request or "").encode())
        self._started = self._finished = False
        self.status = 500
        self.route = ""

    async def send(
        self, status: int, content: bytes, kind: bytes, further: Iterable[Header] = ()
    ) -> None:
        """Send a whole response."""
        self.status, self._started = status, True
        headers = _headers(content, kind, self._request, further)
        await self._send({"type": "http.response.start", "status": status, "headers": headers})
        await self._send({"type": "http.response.body", "body": content})

    async def refuse(self, error: ServiceError, further: Iterable[Header] = ()) -> None:
        """Send an error, unless the response is complete; one that has begun can only be cut off."""
        if self._finished:
            return
        if self._started:
            raise error
        content = encoded(problem_of(error))
        await self.send(error.status, content, PROBLEM, (*headers_of(error), *further))

    async def forward(self, message: Message) -> None:
        """Pass on what the framework sends."""
        if message["type"] == "http.response.start":
            self.status, self._started = message["status"], True
            message["headers"] = [*message.get("headers", ()), *ALWAYS, self._request]
        elif not message.get("more_body"):
            self._finished = True
        await self._send(message)


def refusal(error: ServiceError, request: str) -> bytes:
    """The whole response, as it is sent, to a request whose headers cannot be read.

    >>> from decoupled.client.errors import TooSlow
    >>> refusal(TooSlow("headers: must arrive within 20 s; send them at once"), "1f2e-7").splitlines()[0]
    b'HTTP/1.1 408 Request Timeout'
    """
    content = encoded({**problem_of(error), "request_id": request})
    headers = _headers(content, PROBLEM, (b"x-request-id", request.encode()), (CLOSE,))
    start = f"HTTP/1.1 {error.status} {HTTPStatus(error.status).phrase}\r\n".encode()
    return start + b"".join([b"%b: %b\r\n" % each for each in headers]) + b"\r\n" + content


def _headers(
    content: bytes, kind: bytes, request: Header, further: Iterable[Header]
) -> list[Header]:
    return [
        (b"content-type", kind),
        (b"content-length", b"%d" % len(content)),
        *ALWAYS,
        request,
        *further,
    ]
