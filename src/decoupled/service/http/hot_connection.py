"""Connections that answer the two hot routes themselves, without a task, a coroutine or the framework.

`POST /v1/experiments/{name}/decisions` and `PUT /v1/decisions/{id}/feedback` are nearly all of the traffic. Such a request
is recognised by its path, goes through the same checks of the gateway as any other, and is answered by a callback when
its commit is on disk. Whatever is not plain goes to the server's own protocol, as all other requests do: a request that
arrives in parts or behind another, that expects a 100, has a query, or whose key must be looked up.
"""

import asyncio
import re
from typing import Any, ClassVar

from httptools import HttpParserError, HttpParserUpgrade

from ...base.names import SHAPE
from ..origin import ORIGIN, Origin, coming_from
from ..replies import Reply
from .connection import LimitedConnection
from .gateway import Gateway, HotRoute, Started, as_refusal, origin_of
from .limits import Limits
from .problem_json import PROBLEM, headers_of, problem_of
from .response_head import CLOSE, JSON, Header, response_head
from .strict_json import encoded

_PATHS = re.compile(
    rb"/v1/(?:experiments/(%b)/decisions|decisions/([A-Za-z0-9]{1,64}-[0-9]{1,18})/feedback)"
    % SHAPE.encode()
)
_BROKEN = "Invalid HTTP request received."
_LARGEST = 16_384  # bytes of a body; the gateway limits larger ones
_SPECIAL = frozenset((b"expect", b"transfer-encoding", b"upgrade", b"connection", b"content-length"))


def connections_within(limits: Limits, app: object) -> type[asyncio.Protocol]:
    """The protocol for connections to an application, whose hot routes it answers if it is a gateway."""
    if isinstance(app, Gateway):
        return type("HotConnection", (HotConnection,), {"limits": limits, "gateway": app})
    return type("Connection", (LimitedConnection,), {"limits": limits})


class _NoEvent:
    """Stands for the event that tells a task that its client is gone."""

    def set(self) -> None:
        pass


class Exchange:
    """A hot request until it is answered. To the server it looks like one of its own request cycles."""

    __slots__ = (
        "connection",
        "disconnected",
        "keep_alive",
        "origin",
        "path",
        "response_complete",
        "route",
        "since",
    )

    message_event: ClassVar[_NoEvent] = _NoEvent()
    more_body: ClassVar[bool] = False

    def __init__(
        self, connection: "HotConnection", route: HotRoute, path: bytes, since: float, origin: Origin
    ) -> None:
        self.connection, self.route, self.path, self.since = connection, route, path, since
        self.origin = origin
        self.keep_alive = True
        self.disconnected = self.response_complete = False

    def begun(self, started: Started) -> None:
        """Answer when the commit is done."""
        begun, self.origin, access = started

        def finish(reply: Reply[Any]) -> None:
            try:
                content = begun.content(reply.result())
            except Exception as error:
                self.connection.gateway.refused(access, error)
                self.refuse(error)
            else:
                self.answer(begun.status, content)

        begun.reply.when_done(self.connection.loop, finish)

    def refuse(self, error: Exception) -> None:
        """Answer with an error."""
        with coming_from(self.origin):  # an answer comes from another context
            refusal = as_refusal(error)
            content = encoded(problem_of(refusal))
        self.answer(refusal.status, content, PROBLEM, headers_of(refusal))

    def answer(
        self, status: int, content: bytes, kind: bytes = JSON, further: list[Header] | None = None
    ) -> None:
        """Write the response, unless the client is gone."""
        self.response_complete = True
        connection, further = self.connection, further or []
        transport = connection.transport
        if not transport.is_closing():
            if not self.keep_alive:
                further = [*further, CLOSE]
            server = connection.server_state.default_headers
            request = self.origin.request or ""
            transport.write(response_head(status, kind, len(content), request, server, further) + content)
            if not self.keep_alive:
                transport.close()
        route = self.route
        connection.gateway.answered(
            self.since, route.method, route.route, self.path.decode("ascii"), status, self.origin
        )
        connection.on_response_complete()


class HotConnection(LimitedConnection):
    """One connection. The parser calls the `on_` methods for the parts of a request, in their order."""

    gateway: ClassVar[Gateway]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._address = "local"
        self._plain = True  # whether the headers have nothing special
        self._hot: tuple[HotRoute, str] | None = (
            None  # the route and name of a request that is not complete yet
        )
        self._body = b""
        self._answered_at = 0.0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Note who is at the other end."""
        super().connection_made(transport)
        self._address = self.client[0] if self.client else "local"

    def data_received(self, data: bytes) -> None:
        """Parse what came, and begin the requests that are complete."""
        trailing = self._trailing
        try:
            self.parser.feed_data(data)
        except HttpParserError:
            self._hot = None
            self.logger.warning(_BROKEN)
            self.send_400_response(_BROKEN)
        except HttpParserUpgrade:
            self._unsupported_upgrade_warning()
        if self._hot is not None:  # its body comes in parts
            self._pass_on(complete=False)
        self._parsed(len(data), trailing)

    # What the parser finds

    def on_message_begin(self) -> None:
        """A request begins."""
        self.url, self.headers, self.expect_100_continue = b"", [], False
        self._begin_head()
        self._plain = True

    def on_header(self, name: bytes, value: bytes) -> None:
        """One header, and whether it makes the request special."""
        super().on_header(name, value)
        if (name := name.lower()) in _SPECIAL:
            self._see(name, value)

    def _see(self, name: bytes, value: bytes) -> None:
        if name == b"content-length":
            largest = min(_LARGEST, self.limits.body)
            self._plain = self._plain and len(value) < 6 and value.isdigit() and int(value) <= largest
        elif name != b"connection" or value.lower() != b"keep-alive":
            self._plain = False

    def _begin_request(self) -> None:
        """Choose the way of the request."""
        if (
            self._plain
            and (self.cycle is None or self.cycle.response_complete)
            and not self.flow.write_paused
        ):
            found = _PATHS.fullmatch(self.url)
            if found is not None and self.parser.get_http_version() == "1.1":
                name, id = found.groups()  # noqa: A001
                route = self.gateway.hot[name is None]
                if self.parser.get_method() == route.method.encode():
                    self._hot = (route, (name or id).decode("ascii"))
                    self._body = b""
                    return
        self._hand_over()

    def on_body(self, body: bytes) -> None:
        """A part of the body."""
        if self._hot is None:
            super().on_body(body)
        else:
            self._body += body

    def on_message_complete(self) -> None:
        """The request is complete."""
        if self._hot is None:
            super().on_message_complete()
        else:
            self._answer(*self._hot)

    # Requests

    def _answer(self, route: HotRoute, name: str) -> None:
        gateway = self.gateway
        headers = dict(self.headers)
        origin = origin_of(headers)
        exchange = Exchange(self, route, self.url, gateway.arrived(), origin)
        started = None
        with coming_from(origin):  # the context is that of the connection, if not of all connections
            try:
                started = gateway.begin(route, name, headers, self._body, self._address)
            except Exception as error:
                self._hot, self.cycle = None, exchange  # type: ignore[assignment]
                exchange.origin = ORIGIN.get()  # with the caller, if it was admitted
                exchange.refuse(error)
                return
        if started is None:
            gateway.withdrawn()
            self._pass_on(complete=True)
            return
        self._hot, self.cycle = None, exchange  # type: ignore[assignment]
        exchange.begun(started)

    def _pass_on(self, *, complete: bool) -> None:
        """Give a request that looked hot to the server."""
        self._hot = None
        self._hand_over()
        if self._body:
            super().on_body(self._body)
        if complete:
            super().on_message_complete()

    def _hand_over(self) -> None:
        """Begin a request as the server does; it wants to see the headers from their beginning."""
        url, headers, expects = self.url, self.headers, self.expect_100_continue
        LimitedConnection.on_message_begin(self)
        self._waiting = False
        self.url, self.expect_100_continue = url, expects
        self.headers.extend(headers)
        super()._begin_request()

    # Idle connections. The server sets and cancels a timer for every request; here one timer looks again if it finds that
    # the connection was used meanwhile.

    def on_response_complete(self) -> None:
        """Go on with the next request, or wait for one."""
        self.server_state.total_requests += 1
        if self.transport.is_closing():
            return
        self.flow.resume_reading()
        if self.pipeline:
            self._start_asgi_task(*self.pipeline.pop())
        self._answered_at = self.loop.time()
        if self.timeout_keep_alive_task is None:
            self._look_after(self.timeout_keep_alive)

    def _look_after(self, seconds: float) -> None:
        self.timeout_keep_alive_task = self.loop.call_later(seconds, self.timeout_keep_alive_handler)

    def timeout_keep_alive_handler(self) -> None:
        """Close the connection if it has been idle for long enough."""
        self.timeout_keep_alive_task = None
        left = self._answered_at + self.timeout_keep_alive - self.loop.time()
        busy = self._timer is not None or not self.cycle.response_complete
        if busy or left > 0.0:
            self._look_after(self.timeout_keep_alive if busy else left)
        else:
            super().timeout_keep_alive_handler()
