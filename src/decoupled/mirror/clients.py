"""Limits how long a client may send nothing or read nothing.

Everything about HTTP is uvicorn's and h11's: what a chunk is, that trailers are not headers, that HTTP/1.0 knows no
chunks, that a 304 has no body. What happens on a connection is told to uvicorn's protocol and to nobody else; this one
stands before it and looks at the clock.
"""

import asyncio
from typing import Any, ClassVar

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from ..service.http.server import uvicorn_config

HEADER_SECONDS = 20.0  # for the headers of a request to arrive
LARGEST_HEADERS = 65_536


class ClientConnection(asyncio.Protocol):
    """One connection. The application finds it in `scope["state"]["connection"]`."""

    seconds: ClassVar[float]

    def __init__(
        self, config: uvicorn.Config, server_state: Any, app_state: dict[str, Any], **rest: Any
    ) -> None:
        state = {**app_state, "connection": self}
        self._http = H11Protocol(config, server_state, state, **rest)
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport = None  # type: ignore[assignment]
        self._reading: asyncio.TimerHandle | None = None  # until the headers of a request are here
        self._writing: asyncio.TimerHandle | None = None  # until the client has taken what waits for it
        self._paused = False
        self._busy = 0  # requests that are being answered

    # What the event loop calls

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Wait for a request."""
        self._transport = transport
        self._http.connection_made(transport)
        self._await_headers()

    def data_received(self, data: bytes) -> None:
        """Pass on what came. If it is the beginning of a request, its headers must come soon."""
        if self._reading is None and not self._busy:
            self._await_headers()
        self._http.data_received(data)

    def eof_received(self) -> None:
        """The client has closed its side, so it is gone."""
        self._http.eof_received()

    def connection_lost(self, error: Exception | None) -> None:
        """It is over."""
        self._stop_reading()
        self._stop_writing()
        self._http.connection_lost(error)

    def pause_writing(self) -> None:
        """The client reads slowly, so the arm waits; not for ever."""
        self._paused = True
        self._http.pause_writing()
        self._await_reader()

    def resume_writing(self) -> None:
        """The client has read."""
        self._paused = False
        self._stop_writing()
        self._http.resume_writing()

    # What the application calls

    def begin(self) -> None:
        """The headers of a request are here."""
        self._busy += 1
        self._stop_reading()
        if not self._paused:
            self._stop_writing()

    def end(self) -> None:
        """It is answered, but for what the client has yet to read."""
        self._busy -= 1
        self._await_reader()

    def abort(self) -> None:
        """Cut the connection at once; what is not sent yet is lost."""
        self._transport.abort()

    def _await_headers(self) -> None:
        self._reading = self._loop.call_later(HEADER_SECONDS, self._transport.close)

    def _stop_reading(self) -> None:
        if self._reading is not None:
            self._reading.cancel()
            self._reading = None

    def _await_reader(self) -> None:
        """Look later whether the client has taken anything of what waits for it now."""
        waiting = self._transport.get_write_buffer_size()
        if self._writing is None and waiting:
            self._writing = self._loop.call_later(self.seconds, self._look, waiting)

    def _look(self, waiting: int) -> None:
        self._writing = None
        if self._transport.get_write_buffer_size() >= waiting:
            self.abort()
        else:
            self._await_reader()

    def _stop_writing(self) -> None:
        if self._writing is not None:
            self._writing.cancel()
            self._writing = None


def server_settings(app: object, drain: int, seconds: float) -> uvicorn.Config:
    """The configuration of the server in front of the proxy. An answer has the date and the server of its arm."""
    http = type("Connection", (ClientConnection,), {"seconds": seconds})
    return uvicorn_config(
        app, http, drain, date_header=False, h11_max_incomplete_event_size=LARGEST_HEADERS
    )
