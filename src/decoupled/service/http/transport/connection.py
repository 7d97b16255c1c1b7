"""Connections: HTTP/1.1 in front of an application, with limits on what a client sends, keeps open and leaves unread.

The service and the mirror share it. httptools does the parsing: what a chunk is, what ends a body, what is not HTTP.
What follows a request waits until it is answered, so no client takes more turns than another.
"""

import asyncio
import contextvars
import logging
import re
from collections import deque
from functools import partial
from typing import Any
from urllib.parse import unquote

import httptools
import uvicorn
from uvicorn.server import ServerState

from ...errors import BadRequest, HeadersTooLarge, ServiceError, TooSlow
from ...experiment.request_context import Origin, coming_from
from ..admission.limits import LEAST_RATE, Limits
from .exchange import Exchange
from .responses import REQUEST_IDS, refusal

PART = 8_192  # bytes that are parsed in one turn of the event loop
AHEAD = 65_536  # bytes of a body that wait for the application
LINGER = 2.0  # seconds in which a client that is still sending can read why it was refused
_LINE = 4  # bytes of a header beside its name and value
_FRAMING = frozenset((b"content-length", b"transfer-encoding"))
# A client that takes the service for a proxy sends a whole address (RFC 9112, 3.2.2).
_ABSOLUTE = re.compile(rb"https?://[^/?#]*", re.IGNORECASE)
_log = logging.getLogger("decoupled.access")


def connections_within(limits: Limits, *, half_open: bool = True) -> Any:
    """What uvicorn makes connections with that keep to these limits.

    Args:
        limits: for each client.
        half_open: whether a client that has closed its own half still waits for answers; else it is gone.
    """
    return partial(Connection, limits=limits, half_open=half_open, waiting={})


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
        half_open: bool,
        waiting: "dict[Connection, None]",
    ) -> None:
        self._app, self._idle_seconds = config.loaded_app, config.timeout_keep_alive
        self.server, self._state, self._limits = server_state, app_state, limits
        self._half_open = half_open
        self._waiting = (
            waiting  # connections of this server without a request, the one that waits for longest first
        )
        self._loop = _loop or asyncio.get_running_loop()
        self._context = contextvars.copy_context()  # else a request would inherit that of the one before
        self.transport: asyncio.Transport = None  # type: ignore[assignment]
        self._parser = httptools.HttpRequestParser(self)
        self._requests: deque[Exchange] = deque()  # the first is being answered
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
        self._hurried = True
        self._after(self._limits.headers_seconds, self._late)
        if len(self.server.connections) > self._limits.connections:
            next(iter(self._waiting)).close()

    def data_received(self, data: bytes) -> None:
        """Parse what came, or keep it until there is room."""
        if not self._over:
            self._unparsed += data
            self.parse()

    def eof_received(self) -> bool:
        """Stay open for what was asked, if the client may close its own half. TLS cannot be half closed."""
        requests = self._requests
        if not self._half_open or not requests or requests[-1].more or self._scheme == "https":
            return False
        requests[-1].keep_alive, self._over = False, True
        return True

    def connection_lost(self, exc: Exception | None) -> None:
        """Tell every request that its client is gone."""
        self.server.connections.discard(self)  # type: ignore[arg-type]
        self._waiting.pop(self, None)
        self._stop()
        self._over = True
        for each in self._requests:
            each.lose()
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

    def shutdown(self) -> None:
        """End after the answer that is being given. The server calls it."""
        if self._requests:
            self._requests[0].keep_alive, self._over = False, True
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
        self._progress, self._part = False, len(part)
        try:
            try:
                self._parser.feed_data(part)
            except httptools.HttpParserUpgrade as upgrade:
                self._resume(part[upgrade.args[0] :])
        except httptools.HttpParserError as error:
            remedy = "check the client, and use https:// only if the service has a certificate"
            found = BadRequest(f"request: is not well-formed HTTP/1.1 ({error}); {remedy}")
            self._hang_up(self._refusal or found)
            return
        self._pieces = 0 if self._progress else self._pieces + len(part)
        if self._pieces > self._limits.headers:  # of headers, of trailers, or of what describes a chunk
            self._hang_up(self._too_large())
        elif (
            self._begun and not self._hurried and not self._requests
        ):  # most requests arrive at once, and never need a timer
            self._hurry()

    def _resume(self, rest: bytes) -> None:
        """Read the body of a request that wishes for another protocol, which HTTP allows to ignore.

        The parser leaves such a body to that protocol. So another one begins, with a head that has only its length.
        """
        self._parser, self._upgraded = httptools.HttpRequestParser(self), True
        scope = self._requests[-1].scope
        lines = [b"%b: %b\r\n" % each for each in scope["headers"] if each[0] in _FRAMING]
        self._parser.feed_data(b"POST / HTTP/1.1\r\n" + b"".join(lines) + b"\r\n" + rest)

    def on_message_begin(self) -> None:
        """A request begins."""
        self._target, self._headers = b"", list[tuple[bytes, bytes]]()
        self._begun = True

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
        target, version = self._target, self._parser.get_http_version()
        if self._pieces + self._part > self._limits.headers:
            size = len(target) + sum(len(name) + len(value) + _LINE for name, value in headers)
            if size > self._limits.headers:
                self._refusal = self._too_large()
                raise self._refusal
        codings = [value.lower() for name, value in headers if name == b"transfer-encoding"]
        if codings and (codings != [b"chunked"] or version != "1.1"):
            sent = b", ".join(codings).decode("latin-1")
            rule = "must be chunked alone, in HTTP/1.1"
            self._refusal = BadRequest(f"Transfer-Encoding = {sent!r}: {rule}; use Content-Encoding")
            raise self._refusal
        path, mark, query = (
            target if target[:1] == b"/" else _ABSOLUTE.sub(b"", target, count=1)
        ).partition(b"?")
        path = path or b"/"
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
        keep_alive = version == "1.1" and method != "CONNECT" and self._parser.should_keep_alive()
        self._requests.append(Exchange(self, scope, keep_alive))
        self._hurried = False
        self._waiting.pop(self, None)
        if len(self._requests) == 1:
            self._start()

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
        self._stop()
        exchange = self._requests[0]
        task = self._loop.create_task(exchange.run(self._app), context=self._context.copy())
        self.server.tasks.add(task)
        task.add_done_callback(self.server.tasks.discard)

    def finished(self, exchange: Exchange) -> None:
        """A request is answered: go on with the next."""
        if not self._requests or self._requests[0] is not exchange:  # the client is gone
            return
        self._requests.popleft()
        if not exchange.keep_alive:
            self.close(linger=exchange.more)
        elif self._requests:
            self._start()
        else:
            self._waiting[self] = None
            if self._begun:
                self._hurry()
            else:
                self._after(self._idle_seconds, self.close)
            if self._unparsed:
                self.parse()

    def cut(self, exchange: Exchange) -> None:
        """An answer ends before it is complete, and its client must see that."""
        if self._requests and self._requests[0] is exchange:
            self._requests.popleft()
            if exchange.to_the_end:  # of the connection, which would look as if all were here
                self.transport.abort()
            self.close(linger=exchange.more)

    # Ends

    def close(self, *, linger: bool = False) -> None:
        """Close once everything is sent. A client that is still sending would lose what it has not read, so that waits."""
        self._over, self._unparsed = True, b""
        self._waiting.pop(self, None)
        self._requests.clear()
        if self.transport.is_closing():
            return
        if linger:
            self.transport.resume_reading()
            if self.transport.can_write_eof():
                self.transport.write_eof()
        else:
            self.transport.close()
        self._await_reader(LINGER if linger else self._limits.body_seconds)

    def _hang_up(self, error: ServiceError) -> None:
        """Refuse what cannot be read, unless its client could take that for the answer to an earlier request."""
        self._stop()
        self._over, self._unparsed = True, b""
        request = REQUEST_IDS.of(None)
        with coming_from(Origin(request, "-")):
            _log.info("a connection was closed: %s", error)
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
        self._hurried = True
        self._after(self._limits.headers_seconds, self._late)

    def _late(self) -> None:
        rule = f"must arrive within {self._limits.headers_seconds:g} s"
        self._hang_up(TooSlow(f"headers: {rule}; send them at once"))

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
