"""Closes a connection whose request is not HTTP, or whose headers are too large or take too long to arrive.

The server itself would read headers without limit, and answer in its own words. The gateway limits bodies.
"""

import asyncio
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from ..errors import BadRequest, HeadersTooLarge, ServiceError, TooSlow
from .limits import Limits
from .problem_json import PROBLEM, problem_of
from .strict_json import encoded


def _farewell(phrase: str, error: ServiceError) -> bytes:
    """A whole response, after which the connection is closed."""
    content = encoded(problem_of(error))
    head = (
        f"HTTP/1.1 {error.status} {phrase}\r\ncontent-type: {PROBLEM.decode()}\r\ncontent-length: {len(content)}\r\n"
        "connection: close\r\n\r\n"
    )
    return head.encode() + content


def connections_within(limits: Limits) -> type[asyncio.Protocol]:
    """The server's protocol, with limits on the headers of each request."""
    malformed = _farewell(
        "Bad Request",
        BadRequest(
            "request: is not well-formed HTTP/1.1; check the client, and use https:// only if the service has a "
            "certificate"
        ),
    )
    late = _farewell(
        "Request Timeout",
        TooSlow(f"headers: must arrive within {limits.headers_seconds:g} s; send them at once"),
    )
    large = _farewell(
        "Request Header Fields Too Large",
        HeadersTooLarge(
            f"headers: must not exceed {limits.headers:,} bytes; send fewer, or a shorter address"
        ),
    )

    class Connection(HttpToolsProtocol):
        def __init__(self, *args: Any, **kwargs: Any) -> None:
            super().__init__(*args, **kwargs)
            self._waiting = True  # for the headers of a request
            self._received = 0  # bytes of them
            self._timer: asyncio.TimerHandle | None = None

        def send_400_response(self, msg: str) -> None:
            """Answer what could not be read."""
            self._hang_up(malformed)

        def _unsupported_upgrade_warning(self) -> None:
            """Ignore the wish for another protocol, as HTTP allows."""

        def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
            super().connection_made(transport)
            self._start_timer()

        def on_message_begin(self) -> None:
            super().on_message_begin()
            self._waiting, self._received = True, 0

        def on_headers_complete(self) -> None:
            self._waiting = False
            super().on_headers_complete()

        def data_received(self, data: bytes) -> None:
            super().data_received(data)
            if not self._waiting:  # most requests arrive at once, and never need a timer
                self._stop_timer()
                return
            self._received += len(data)
            if self._received > limits.headers:
                self._hang_up(large)
            elif self._timer is None:
                self._start_timer()

        def connection_lost(self, exc: Exception | None) -> None:
            self._stop_timer()
            super().connection_lost(exc)

        def _start_timer(self) -> None:
            self._timer = self.loop.call_later(limits.headers_seconds, self._hang_up, late)

        def _stop_timer(self) -> None:
            if self._timer is not None:
                self._timer.cancel()
                self._timer = None

        def _hang_up(self, response: bytes) -> None:
            self._stop_timer()
            if not self.transport.is_closing():
                self.transport.write(response)
                self.transport.close()

    return Connection
