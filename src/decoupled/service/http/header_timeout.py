"""Connections: the headers of a request come whole and soon, or the connection is closed.

The server reads headers for as long as a client cares to send them, and keeps them all; a body meets its limits
in the front.
"""

import asyncio
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from .rate_limit import Limits

LATE = b"HTTP/1.1 408 Request Timeout\r\nconnection: close\r\ncontent-length: 0\r\n\r\n"
LARGE = b"HTTP/1.1 431 Request Header Fields Too Large\r\nconnection: close\r\ncontent-length: 0\r\n\r\n"


def connections_within(limits: Limits) -> type[asyncio.Protocol]:
    """The server's protocol, with limits on the headers of each request."""

    class Connection(HttpToolsProtocol):
        def __init__(self, *args: Any, **kwargs: Any) -> None:
            super().__init__(*args, **kwargs)
            self._waiting = True  # for a request's headers, or for the rest of them
            self._come = 0  # bytes of them
            self._patience: asyncio.TimerHandle | None = None

        def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
            super().connection_made(transport)
            self._be_patient()

        def on_message_begin(self) -> None:
            super().on_message_begin()
            self._waiting, self._come = True, 0

        def on_headers_complete(self) -> None:
            self._waiting = False
            super().on_headers_complete()

        def data_received(self, data: bytes) -> None:
            super().data_received(data)
            if not self._waiting:  # most requests come whole, and never have a clock
                self._end_patience()
                return
            self._come += len(data)
            if self._come > limits.headers:
                self._hang_up(LARGE)
            elif self._patience is None:
                self._be_patient()

        def connection_lost(self, exc: Exception | None) -> None:
            self._end_patience()
            super().connection_lost(exc)

        def _be_patient(self) -> None:
            self._patience = self.loop.call_later(limits.headers_seconds, self._hang_up, LATE)

        def _end_patience(self) -> None:
            if self._patience is not None:
                self._patience.cancel()
                self._patience = None

        def _hang_up(self, response: bytes) -> None:
            self._end_patience()
            if not self.transport.is_closing():
                self.transport.write(response)
                self.transport.close()

    return Connection
