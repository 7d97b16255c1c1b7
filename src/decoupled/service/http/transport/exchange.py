"""One request and its answer, between a connection and an application."""

import asyncio
import logging
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from starlette.types import ASGIApp, Message

from ...errors import ServiceError
from ..models.problem_json import FAULT
from .responses import CLOSE, REQUEST_IDS, refusal

if TYPE_CHECKING:
    from .connection import Connection

_PHRASES = {each.value: each.phrase.encode() for each in HTTPStatus}
_log = logging.getLogger("decoupled.service")


class Exchange:
    """What an application reads by `receive` and writes by `send`.

    Attributes:
        body: what came of the body and was not received yet.
        more: whether more of it is to come.
        keep_alive: whether the connection goes on afterwards.
        started: whether the answer has begun.
        to_the_end: whether only the end of the connection ends the answer.
    """

    def __init__(self, connection: "Connection", scope: dict[str, Any], keep_alive: bool) -> None:
        self._connection, self.scope, self.keep_alive = connection, scope, keep_alive
        self.body, self.more, self._received = bytearray(), True, False
        expected = (value.lower() for name, value in scope["headers"] if name == b"expect")
        self._expects = b"100-continue" in expected and scope["http_version"] == "1.1"
        self.started = self._answered = self._gone = False
        self._came: asyncio.Event | None = None  # most bodies are here before they are asked for
        self._left: int | None = None  # bytes of the answer's body, if its length is declared
        self._chunked = self._bodyless = self.to_the_end = False

    async def run(self, app: ASGIApp) -> None:
        """Let the application answer."""
        try:
            await app(self.scope, self.receive, self.send)
        except Exception as error:
            _log.error("an error of the application", exc_info=error)
            if not self.started and not self._gone:
                self._connection.transport.write(refusal(ServiceError(FAULT), REQUEST_IDS.of(None)))
        finally:
            if not self._answered:
                self._connection.cut(self)

    def add(self, body: bytes, *, more: bool = True) -> None:
        """A part of the body came."""
        self.body += body
        self.more = more
        self._wake()

    def lose(self) -> None:
        """The client is gone."""
        self._gone = True
        self._wake()

    async def receive(self) -> Message:
        """The next part of the body; a disconnect after its end, once the client is gone or has its answer."""
        while not (self._gone or self._answered or self.body or not (self.more or self._received)):
            if self._expects:
                self._expects = False
                self._connection.transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")
            self._came = self._came or asyncio.Event()
            self._came.clear()
            await self._came.wait()
        if self._gone or self._answered:
            return {"type": "http.disconnect"}
        body, self.body, self._received = bytes(self.body), bytearray(), not self.more
        if self.more:
            self._connection.parse()
        return {"type": "http.request", "body": body, "more_body": not self._received}

    async def send(self, message: Message) -> None:
        """Send the head of the answer, or a part of its body; nothing to a client that is gone."""
        if not self._connection.writable.is_set():
            await self._connection.writable.wait()
        if self._gone:
            return
        if self._answered or self.started == (message["type"] == "http.response.start"):
            raise RuntimeError(f"{message['type']}: was sent out of turn")
        if not self.started:
            self._start(message)
            return
        body, more = message.get("body", b""), message.get("more_body", False)
        if self._left is not None:
            self._left -= len(body)
            if self._left < 0 or (self._left and not more):
                raise RuntimeError("the body of an answer has not the length that its head declares")
        if self._chunked:
            body = (b"%x\r\n%b\r\n" % (len(body), body) if body else b"") + (b"" if more else b"0\r\n\r\n")
        if body and not self._bodyless:
            self._connection.transport.write(body)
        if not more:
            self._answered = True
            self._wake()
            self._connection.finished(self)

    def _start(self, message: Message) -> None:
        status, lines = message["status"], list[tuple[bytes, bytes]]()
        self._bodyless = self.scope["method"] == "HEAD" or status in (204, 304)
        length: bytes | None = None
        for name, value in (*self._connection.server.default_headers, *message.get("headers", ())):
            if (name := name.lower()) == b"connection":
                self.keep_alive = self.keep_alive and b"close" not in value.lower()
            elif name == b"content-length":
                length = value
            elif name != b"transfer-encoding":
                lines.append((name, value))
        if length is not None and status != 204:
            lines.append((b"content-length", length))
            self._left = None if self._bodyless else int(length)
        elif not self._bodyless:
            self._chunked = self.scope["http_version"] == "1.1"
            self.to_the_end = not self._chunked
            if self._chunked:
                lines.append((b"transfer-encoding", b"chunked"))
        self.keep_alive = self.keep_alive and not self.more  # nobody reads what is still to come
        if not self.keep_alive:
            lines.append(CLOSE)
        head = b"HTTP/1.1 %d %b\r\n" % (status, _PHRASES.get(status, b""))
        head += b"".join([b"%b: %b\r\n" % each for each in lines])
        if head.count(b"\r") != len(lines) + 1 or head.count(b"\n") != len(lines) + 1:
            raise RuntimeError("a header of an answer contains the end of a line")
        self.started = True
        self._connection.transport.write(head + b"\r\n")

    def _wake(self) -> None:
        if self._came is not None:
            self._came.set()
