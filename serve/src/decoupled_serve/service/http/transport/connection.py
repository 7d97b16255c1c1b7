"""Connections: HTTP/1.1 in front of an application, with limits on what a client sends, keeps open and leaves unread.

The service and the mirror share it. httptools does the parsing: what a chunk is, what ends a body, what is not HTTP.
What follows a request waits until it is answered, so no client takes more turns than another.
"""

import asyncio
import contextvars
import logging
import re
from collections import OrderedDict, deque
from dataclasses import replace
from functools import partial
from http import HTTPStatus
from typing import Any
from urllib.parse import unquote

import httptools
import uvicorn
from starlette.types import ASGIApp, Message
from uvicorn.server import ServerState

from decoupled.client import BadRequest, HeadersTooLarge, ServiceError, TooSlow

from ...experiment.request_context import Origin, coming_from
from ..admission import LEAST_RATE, Limits
from ..models.problem_json import FAULT
from .responses import CLOSE, REQUEST_IDS, Header, refusal

try:
    import resource
except ImportError:  # on Windows
    resource = None  # type: ignore[assignment]

GONE = "the client is gone"
PART = 8_192  # bytes that are parsed in one turn of the event loop
AHEAD = 65_536  # bytes of a body that wait for the application
LINGER = 2.0  # seconds in which a client that is still sending can read why it was refused
_LINE = 4  # bytes of a header beside its name and value
_FRAMING = frozenset((b"content-length", b"transfer-encoding"))
_VERSIONS = frozenset(("1.1", "1.0"))
# A client that takes the service for a proxy sends a whole address (RFC 9112, 3.2.2).
_ABSOLUTE = re.compile(rb"^https?://[^/?#]*", re.IGNORECASE)
_PHRASES = {each.value: each.phrase.encode() for each in HTTPStatus}
_log, _access_log = logging.getLogger("decoupled.service"), logging.getLogger("decoupled.access")


class Exchange:
    """What an application reads by `receive` and writes by `send`. `keep_alive` is whether the connection goes on afterwards."""

    def __init__(self, connection: "Connection", scope: dict[str, Any], keep_alive: bool) -> None:
        self._connection, self.scope, self.keep_alive = connection, scope, keep_alive
        # What came of the body and was not received yet, whether more is to come, and whether its end was received.
        self.body, self.more, self._received = bytearray(), True, False
        expected = (value.lower() for name, value in scope["headers"] if name == b"expect")
        self._expects = b"100-continue" in expected and scope["http_version"] == "1.1"
        self.started = self._answered = self._gone = False
        self.task: asyncio.Task[None] | None = None
        self._came: asyncio.Event | None = None  # most bodies are here before they are asked for
        self._left: int | None = None  # bytes of the answer's body, if its length is declared
        self._chunked = self._bodyless = False

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
                self._connection.finished(self, whole=False)

    def add(self, body: bytes, *, more: bool = True) -> None:
        """A part of the body came."""
        self.body += body
        self.more = more
        self._wake()

    def lose(self, *, cancel: bool = False) -> None:
        """The client is gone."""
        self._gone = True
        self._wake()
        if cancel and self.task is not None:
            self.task.cancel(GONE)

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
                raise RuntimeError(
                    "the body of an answer has not the length that its head declares"
                )
        if self._chunked:
            body = (b"%x\r\n%b\r\n" % (len(body), body) if body else b"") + (
                b"" if more else b"0\r\n\r\n"
            )
        if body and not self._bodyless:
            self._connection.transport.write(body)
        if not more:
            self._answered = True
            self._wake()
            self._connection.finished(self)

    def _start(self, message: Message) -> None:
        lines: list[Header] = []
        status = message["status"]
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


def connections_within(limits: Limits, *, cancel: bool = False) -> Any:
    """What uvicorn makes connections with that keep to these limits for each client.

    With `cancel`, a request is cancelled with the message `GONE` when its client leaves, be it only by closing its own half.
    Else it is completed.
    """
    files = resource.getrlimit(resource.RLIMIT_NOFILE)[0] if resource else limits.connections
    most = min(limits.connections, files * 3 // 4)  # the store needs some, too
    limits = replace(limits, connections=most)
    return partial(Connection, limits=limits, cancel=cancel, waiting=OrderedDict())


class Connection(asyncio.Protocol):
    """One connection. The event loop calls what is here first, the parser the `on_` methods, and exchanges the rest."""

    def __init__(
        self,
        config: uvicorn.Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
        *,
        limits: Limits,
        cancel: bool,
        waiting: "OrderedDict[Connection, None]",
    ) -> None:
        self._app, self._idle_seconds = config.loaded_app, config.timeout_keep_alive
        self.server, self._state, self._limits = server_state, app_state, limits
        self._cancel = cancel
        # Connections of this server that others may take the place of: refused ones, then those without a request.
        self._waiting = waiting
        self._loop = _loop or asyncio.get_running_loop()
        self._context = (
            contextvars.copy_context()
        )  # else a request would inherit that of the one before
        self.transport: asyncio.Transport = None  # type: ignore[assignment]
        self._parser = httptools.HttpRequestParser(self)
        self._requests: deque[Exchange] = deque()  # the first is being answered
        self._headers: list[Header] = []
        self._unparsed = b""
        self._over = False  # whether nothing more is parsed
        self._begun = self._hurried = False  # a head has begun; and its time is running
        self._upgraded = False  # whether the parser begins again behind an `Upgrade`
        self._progress = False  # whether a part brought more than pieces of headers
        self._pieces = self._part = 0  # bytes that did not, and of the part that is parsed now
        self._refusal: ServiceError | None = None
        self._timer: asyncio.TimerHandle | None = None
        self.writable = asyncio.Event()
        self.writable.set()

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Wait for a request. If there are too many connections, that which waits for longest is closed."""
        self.transport = transport
        peer, here = transport.get_extra_info("peername"), transport.get_extra_info("sockname")
        self._scheme = "https" if transport.get_extra_info("sslcontext") else "http"
        self._client = peer[:2] if isinstance(peer, tuple) else None
        self._here = here[:2] if isinstance(here, tuple) else None
        self.server.connections.add(self)  # type: ignore[arg-type]
        self._waiting[self] = None
        self._hurry()
        if len(self.server.connections) > self._limits.connections:
            next(iter(self._waiting)).close()

    def data_received(self, data: bytes) -> None:
        """Parse what came, or keep it until there is room."""
        if not self._over:
            self._unparsed += data
            self.parse()

    def eof_received(self) -> bool:
        """Stay open for what was asked, if the client has only closed its own half. TLS cannot be half closed."""
        requests = self._requests
        if self._cancel or not requests or requests[-1].more or self._scheme == "https":
            return False
        requests[-1].keep_alive, self._over = False, True
        return True

    def connection_lost(self, exc: Exception | None) -> None:
        """Tell every request that its client is gone."""
        self.server.connections.discard(self)
        self._waiting.pop(self, None)
        self._stop()
        self._over = True
        for each in self._requests:
            each.lose(cancel=self._cancel)
        self._requests.clear()
        self.writable.set()

    def pause_writing(self) -> None:
        """The client reads slowly."""
        self.writable.clear()
        self._await_reader(self._limits.body_seconds)

    def resume_writing(self) -> None:
        """It has read."""
        self.writable.set()
        if self._requests:
            self._stop()
        elif not self._over:
            self._rest()

    def shutdown(self) -> None:
        """End after the answer that is being given. The server calls it."""
        if self._requests:
            self._requests[0].keep_alive, self._over = False, not self._requests[-1].more
        else:
            self.close()

    # Parsing

    def parse(self) -> None:
        """Parse a part of what came, if a request is wanted; what remains has its turn later, and its sender waits."""
        if self._unparsed and self._takes_more():
            part, self._unparsed = self._unparsed[:PART], self._unparsed[PART:]
            self._feed(part)
        if self._unparsed:
            self.transport.pause_reading()
            if self._takes_more():
                self._loop.call_soon(self.parse)
        elif not self.transport.is_closing():
            self.transport.resume_reading()

    def _takes_more(self) -> bool:
        last = self._requests[-1] if self._requests else None
        return not self._over and (last is None or (last.more and len(last.body) < AHEAD))

    def _feed(self, part: bytes) -> None:
        self._progress, self._part, data = False, len(part), part
        try:
            while data:
                try:
                    self._parser.feed_data(data)
                    break
                except httptools.HttpParserUpgrade as upgrade:
                    data = self._resumed() + data[upgrade.args[0] :]
        except httptools.HttpParserError as error:
            remedy = "check the client, and use https:// only if the service has a certificate"
            found = BadRequest(f"request: is not well-formed HTTP/1.1 ({error}); {remedy}")
            self._hang_up(self._refusal or found)
            return
        self._pieces = 0 if self._progress else self._pieces + len(part)
        if (
            self._pieces > self._limits.headers
        ):  # of headers, of trailers, or of what describes a chunk
            self._hang_up(self._too_large())
        elif self._begun and not self._hurried and not self._requests:
            self._hurry()  # most requests arrive at once, and never need it

    def _resumed(self) -> bytes:
        """A head in front of the body of a request that wishes for another protocol, which HTTP allows to ignore.

        The parser leaves such a body to that protocol. So another one begins, with a head that has only its length.
        """
        self._parser, self._upgraded = httptools.HttpRequestParser(self), True
        scope = self._requests[-1].scope
        lines = [b"%b: %b\r\n" % each for each in scope["headers"] if each[0] in _FRAMING]
        return b"POST / HTTP/1.1\r\n" + b"".join(lines) + b"\r\n"

    def on_message_begin(self) -> None:
        """A request begins."""
        self._target, self._headers, self._begun = b"", [], True

    def on_url(self, part: bytes) -> None:
        """The target, or a part of it."""
        self._target += part

    def on_header(self, name: bytes, value: bytes) -> None:
        """A header, or a trailer, which nobody reads: what is in front did not check it as a header."""
        self._headers.append((name.lower(), value.rstrip(b" \t")))

    def on_headers_complete(self) -> None:
        """Check the head, and begin the request."""
        self._begun, self._progress = False, True
        headers, self._headers = self._headers, []
        if self._upgraded:  # it has begun already
            self._upgraded = False
            return
        version = self._parser.get_http_version()
        path, mark, query = _ABSOLUTE.sub(b"", self._target, count=1).partition(b"?")
        path = path or b"/"
        self._refusal = self._problem(version, path, headers)
        if self._refusal is not None:
            raise self._refusal
        method = self._parser.get_method().decode()
        text = path.decode("ascii")
        scope = {
            "type": "http",
            "asgi": {"version": "3.0", "spec_version": "2.3"},
            "http_version": version,
            "server": self._here,
            "client": self._client,
            "scheme": self._scheme,
            "method": method,
            "root_path": "",
            "path": unquote(text) if "%" in text else text,
            "raw_path": path,
            "query_string": query,
            "decoupled.target": path + mark + query,
            "headers": headers,
            "state": self._state.copy(),
        }
        keep_alive = version == "1.1" and self._parser.should_keep_alive()
        self._requests.append(Exchange(self, scope, keep_alive))
        self._hurried = False
        self._waiting.pop(self, None)
        if len(self._requests) == 1:
            self._start()

    def _problem(self, version: str, path: bytes, headers: list[Header]) -> ServiceError | None:
        """Why a head is refused that can be parsed; what is in front may have read it in another way."""
        if self._pieces + self._part > self._limits.headers:
            size = len(self._target) + sum(
                len(name) + len(value) + _LINE for name, value in headers
            )
            if size > self._limits.headers:
                return self._too_large()
        hosts = codings = 0
        for name, value in headers:
            if name == b"host":
                hosts += 1
            elif name == b"transfer-encoding":
                codings += 1 if value.lower() == b"chunked" and version == "1.1" else 2
        if version not in _VERSIONS:
            return BadRequest(f"request: is in HTTP/{version}; use HTTP/1.1")
        if path[:1] != b"/" and path != b"*":
            return BadRequest(
                "request: is not well-formed HTTP/1.1 (no path); send one, such as /healthz"
            )
        if hosts > 1 or (hosts == 0 and version == "1.1"):
            return BadRequest(f"Host: is given {hosts} times; give it once")
        if codings > 1:
            return BadRequest(
                "Transfer-Encoding: must be chunked alone, in HTTP/1.1; use Content-Encoding"
            )
        return None

    def on_body(self, body: bytes) -> None:
        """A part of the body."""
        self._progress = True
        self._requests[-1].add(body)

    def on_message_complete(self) -> None:
        """The request is complete."""
        if not self._parser.should_upgrade():
            self._progress = True
            self._requests[-1].add(b"", more=False)

    # Requests

    def _start(self) -> None:
        if self.writable.is_set():
            self._stop()
        else:  # it has not read the answer before this one
            self._await_reader(self._limits.body_seconds)
        run = self._requests[0].run(self._app)
        self._requests[0].task = task = self._loop.create_task(run, context=self._context.copy())
        self.server.tasks.add(task)
        task.add_done_callback(self.server.tasks.discard)

    def finished(self, exchange: Exchange, *, whole: bool = True) -> None:
        """Go on with the next request. An answer that is not whole ends the connection, so that its client sees that."""
        if not self._requests or self._requests[0] is not exchange:  # the client is gone
            return
        self._requests.popleft()
        if (
            not whole and exchange.scope["http_version"] == "1.0"
        ):  # which takes that end for the answer's
            self.transport.abort()
        elif not whole or not exchange.keep_alive:
            self.close(linger=exchange.more)
        elif self._requests:
            self._start()
        else:
            self._waiting[self] = None
            if self.writable.is_set():
                self._rest()
            if self._unparsed:
                self.parse()

    def _rest(self) -> None:
        """Wait for a request, or for the rest of one."""
        if self._begun:
            self._hurry()
        else:
            self._after(self._idle_seconds, self.close)

    # Ends

    def close(self, *, linger: bool = False) -> None:
        """Close once everything is sent. A client that is still sending would lose what it has not read, so that waits."""
        self._over, self._unparsed = True, b""
        self._waiting.pop(self, None)
        self._requests.clear()
        if self.transport.is_closing():
            return
        if linger:
            self._waiting[self] = None
            self._waiting.move_to_end(self, last=False)  # the first to be closed for others
            self.transport.resume_reading()
            if self.transport.can_write_eof():
                self.transport.write_eof()
        else:
            self.transport.close()
        unread = (
            self.transport.get_write_buffer_size()
        )  # with TLS, it closes when the client agrees
        self._await_reader(self._limits.body_seconds if unread and not linger else LINGER)

    def _hang_up(self, error: ServiceError) -> None:
        """Refuse what cannot be read, unless its client could take that for the answer to an earlier request."""
        self._stop()
        self._over, self._unparsed = True, b""
        request = REQUEST_IDS.of(None)
        with coming_from(Origin(request, "-")):
            _access_log.info("a connection was closed: %s", error)
        broken = self._requests.pop() if self._requests and self._requests[-1].more else None
        if broken is not None:
            broken.lose()
        if self._requests:
            self._requests[-1].keep_alive = False
        elif broken is not None and broken.started:
            self.transport.abort()
        else:
            self.transport.write(refusal(error, request))
            self.close(linger=True)

    def _too_large(self) -> HeadersTooLarge:
        rule = f"must not exceed {self._limits.headers:,} bytes"
        return HeadersTooLarge(f"headers: {rule}; send fewer, or a shorter address")

    # Time

    def _hurry(self) -> None:
        rule = f"must arrive within {self._limits.headers_seconds:g} s"
        late = TooSlow(f"headers: {rule}; send them at once")
        self._hurried = True
        self._after(self._limits.headers_seconds, partial(self._hang_up, late))

    def _await_reader(self, seconds: float) -> None:
        """Look later whether the client has taken enough of what waits for it now."""
        waiting = self.transport.get_write_buffer_size()
        enough = min(waiting, LEAST_RATE * seconds)

        def look() -> None:
            left = self.transport.get_write_buffer_size()
            if left and waiting - left >= enough:
                self._await_reader(seconds)
            else:
                self.transport.abort()

        self._after(seconds, look)

    def _after(self, seconds: float, then: Any) -> None:
        self._stop()
        self._timer = self._loop.call_later(seconds, then)

    def _stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
