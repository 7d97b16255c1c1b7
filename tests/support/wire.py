"""A connection of the service without a socket: what is sent arrives in exactly the parts that a test chooses."""

import asyncio
import json
import re
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from functools import wraps
from typing import Any, NamedTuple

from uvicorn.server import ServerState

from decoupled_serve.service.http.admission import Limits
from decoupled_serve.service.http.app import create_app
from decoupled_serve.service.http.server import Serving, configuration
from decoupled_serve.service.http.transport.gateway import Gateway
from decoupled_serve.service.service import DecisionService

LENGTH = re.compile(rb"content-length: (\d+)")


class Answer(NamedTuple):
    status: int
    head: bytes
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class Wire(asyncio.Transport):
    """The transport of a connection, and the client at its other end."""

    def __init__(self) -> None:
        super().__init__()
        self.protocol: Any = None
        self.sent = b""
        self.closed = False
        self.reading = True
        self.buffered = 0  # bytes that the client has not taken yet
        self._more = asyncio.Event()

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return ("127.0.0.1", 4321) if name in ("peername", "sockname") else default

    def is_closing(self) -> bool:
        return self.closed

    def write(self, data: Any) -> None:
        assert not self.closed, "nothing is written to a connection that is closed"
        self.sent += bytes(data)
        self._more.set()

    def close(self) -> None:
        if not self.closed:
            self.closed = True
            self._more.set()
            asyncio.get_running_loop().call_soon(self.protocol.connection_lost, None)

    def abort(self) -> None:
        self.close()

    def can_write_eof(self) -> bool:
        return True

    def write_eof(self) -> None:
        """The client sees the end, and closes its side."""
        self.close()

    def get_write_buffer_size(self) -> int:
        return self.buffered

    def pause_reading(self) -> None:
        self.reading = False

    def resume_reading(self) -> None:
        self.reading = True

    # The client

    def send(self, *parts: bytes) -> None:
        """Send bytes, each part in a read of its own."""
        for part in parts:
            if part:
                self.protocol.data_received(part)

    def vanish(self) -> None:
        self.closed = True
        self.protocol.connection_lost(ConnectionResetError())

    def half_close(self) -> None:
        """Say that nothing more will be sent."""
        if not self.protocol.eof_received():
            self.close()

    async def answer(self) -> Answer:
        while True:
            head, found, rest = self.sent.partition(b"\r\n\r\n")
            length = LENGTH.search(head)
            size = int(length[1]) if length else 0
            if found and head.startswith(b"HTTP/1.1 100"):
                self.sent = rest
            elif found and len(rest) >= size:
                self.sent = rest[size:]
                return Answer(int(head[9:12]), head, rest[:size])
            else:
                assert not self.closed, f"closed after {self.sent!r}"
                self._more.clear()
                async with asyncio.timeout(30):
                    await self._more.wait()


class Wired(NamedTuple):
    """The gateway of a service, and what opens connections to it."""

    gateway: Gateway
    settings: Any
    state: ServerState

    def connect(self) -> Wire:
        wire = Wire()
        wire.protocol = self.settings.http_protocol_class(
            config=self.settings, server_state=self.state, app_state={}
        )
        wire.protocol.connection_made(wire)
        return wire


@asynccontextmanager
async def wired(
    service: DecisionService, *, limits: Limits | None = None, open_to_all: bool = True
) -> AsyncIterator[Wired]:
    """The HTTP side of a service, on this event loop."""
    limits = limits or Limits()
    gateway = create_app(service, open_to_all=open_to_all, limits=limits)
    settings = configuration(gateway, Serving(store="", limits=limits))
    settings.load()
    state = ServerState()
    yield Wired(gateway, settings, state)
    for connection in list(state.connections):
        connection.transport.close()
    await asyncio.gather(*state.tasks, return_exceptions=True)


def on_loop(test: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., None]:
    """A decorator for tests that run on an event loop."""

    @wraps(test)
    def run(*arguments: Any, **options: Any) -> None:
        asyncio.run(test(*arguments, **options))

    return run


def request(method: str, path: str, body: bytes = b"", *headers: str) -> bytes:
    lines = [
        f"{method} {path} HTTP/1.1",
        "Host: localhost",
        "Content-Type: application/json",
        f"Content-Length: {len(body)}",
        *headers,
    ]
    return "\r\n".join(lines).encode("latin-1") + b"\r\n\r\n" + body
