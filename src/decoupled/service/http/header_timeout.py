"""Closes a connection whose request headers are too large, or take too long to arrive.

The server itself would read headers without limit. The gateway limits bodies.
"""

import asyncio
import logging
from typing import Any, ClassVar

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from ..errors import BadRequest, HeadersTooLarge, ServiceError, TooSlow
from ..origin import REQUEST_IDS
from .limits import Limits
from .problem_json import PROBLEM, problem_of
from .strict_json import encoded

_log = logging.getLogger("decoupled.access")

PHRASES = {400: "Bad Request", 408: "Request Timeout", 431: "Request Header Fields Too Large"}


def refusal(error: ServiceError, request: str) -> bytes:
    """The whole answer to a request whose headers cannot be read: so it gets a new id, even if it sent one.

    >>> refusal(TooSlow("headers: must arrive within 20 s; send them at once"), "1f2e-7").splitlines()[0]
    b'HTTP/1.1 408 Request Timeout'
    """
    content = encoded({**problem_of(error), "request_id": request})
    head = (
        f"HTTP/1.1 {error.status} {PHRASES[error.status]}\r\ncontent-type: {PROBLEM.decode()}\r\n"
        f"content-length: {len(content)}\r\nx-request-id: {request}\r\nconnection: close\r\n\r\n"
    )
    return head.encode() + content


class LimitedConnection(HttpToolsProtocol):
    """The server's protocol, with limits on the headers of each request."""

    limits: ClassVar[Limits]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._waiting = True  # for the headers of a request
        self._received = 0  # bytes of them
        self._timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to wait for the first request."""
        super().connection_made(transport)
        self._start_timer()

    def on_message_begin(self) -> None:
        """A request begins."""
        super().on_message_begin()
        self._waiting, self._received = True, 0

    def on_headers_complete(self) -> None:
        """Its headers are there."""
        self._waiting = False
        super().on_headers_complete()

    def data_received(self, data: bytes) -> None:
        """Parse what came."""
        super().data_received(data)
        self._check_headers(len(data))

    def _check_headers(self, received: int) -> None:
        if not self._waiting:  # most requests arrive at once, and never need a timer
            if self._timer is not None:
                self._stop_timer()
            return
        self._received += received
        if self._received > self.limits.headers:
            rule = f"must not exceed {self.limits.headers:,} bytes"
            self._hang_up(HeadersTooLarge(f"headers: {rule}; send fewer, or a shorter address"))
        elif self._timer is None:
            self._start_timer()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop waiting."""
        self._stop_timer()
        super().connection_lost(exc)

    def _start_timer(self) -> None:
        self._timer = self.loop.call_later(self.limits.headers_seconds, self._hang_up_late)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def send_400_response(self, msg: str) -> None:
        """Refuse what is not well-formed."""
        remedy = "check the client, and use https:// only if the service has a certificate"
        self._hang_up(BadRequest(f"request: is not well-formed HTTP/1.1; {remedy}"))

    def _unsupported_upgrade_warning(self) -> None:
        """Ignore the wish for another protocol, as HTTP allows."""

    def _hang_up_late(self) -> None:
        rule = f"must arrive within {self.limits.headers_seconds:g} s"
        self._hang_up(TooSlow(f"headers: {rule}; send them at once"))

    def _hang_up(self, error: ServiceError) -> None:
        self._stop_timer()
        if not self.transport.is_closing():
            request = REQUEST_IDS.of(None)
            _log.info("a connection was closed: %s", error, extra={"fields": {"request_id": request}})
            self.transport.write(refusal(error, request))
            self.transport.close()
