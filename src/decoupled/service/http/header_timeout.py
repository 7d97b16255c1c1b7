"""Closes a connection whose request headers are too large, or take too long to arrive.

The server itself would read headers without limit. The gateway limits bodies.
"""

import asyncio
import logging
from typing import Any, ClassVar

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from ..origin import REQUEST_IDS
from .limits import Limits
from .problem_json import PROBLEM
from .strict_json import encoded

_log = logging.getLogger("decoupled.access")

LATE = "408 Request Timeout"
LARGE = "431 Request Header Fields Too Large"
MALFORMED = "400 Bad Request"


def refusal(status: str, request: str) -> bytes:
    """The whole answer to a request whose headers cannot be read: so it gets a new id, even if it sent one.

    >>> refusal(LATE, "1f2e-7").splitlines()[0]
    b'HTTP/1.1 408 Request Timeout'
    """
    code, _, title = status.partition(" ")
    content = encoded(
        {
            "type": f"urn:decoupled:{title.lower().replace(' ', '-')}",
            "title": title,
            "status": int(code),
            "detail": _DETAILS[status],
            "request_id": request,
        }
    )
    head = (
        f"HTTP/1.1 {status}\r\ncontent-type: {PROBLEM.decode()}\r\ncontent-length: {len(content)}\r\n"
        f"x-request-id: {request}\r\nconnection: close\r\n\r\n"
    )
    return head.encode() + content


_DETAILS = {
    LATE: "headers: must arrive in time; send them at once",
    LARGE: "headers: are larger than the limit; send fewer or shorter ones",
    MALFORMED: "request: is not well-formed HTTP/1.1; check the client",
}


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
            self._hang_up(LARGE)
        elif self._timer is None:
            self._start_timer()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop waiting."""
        self._stop_timer()
        super().connection_lost(exc)

    def _start_timer(self) -> None:
        self._timer = self.loop.call_later(self.limits.headers_seconds, self._hang_up, LATE)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def send_400_response(self, msg: str) -> None:
        """Refuse what is not well-formed."""
        self._hang_up(MALFORMED)

    def _hang_up(self, status: str) -> None:
        self._stop_timer()
        if not self.transport.is_closing():
            request = REQUEST_IDS.of(None)
            _log.info("a connection was closed: %s", status, extra={"fields": {"request_id": request}})
            self.transport.write(refusal(status, request))
            self.transport.close()
