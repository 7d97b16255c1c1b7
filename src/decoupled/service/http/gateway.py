"""The front of the service, outermost of all: who asks, how much, how large, and the two hot routes.

A plain ASGI application. The two routes that carry the traffic are answered here, past the routing and
validation of the framework, which would cost more than the decision; every other request goes on to it.
So nothing behind this can be reached without passing the gate.
"""

import asyncio
import json
import logging
import time
from typing import TypeAlias
from urllib.parse import urlsplit

from fastapi import FastAPI
from starlette.types import Message, Receive, Scope, Send

from ..errors import BadRequest, Forbidden, Invalid, ServiceError, TooLarge, TooSlow
from .auth import Access, Gate
from .fast_routes import HotRoutes
from .metrics import Metrics
from .problem_json import FAULT, PROBLEM, encoded, headers_of, is_fault, problem_of
from .rate_limit import Limits
from .strict_json import check_content_type

PUBLIC = frozenset(("/healthz", "/readyz"))  # a load balancer has no key
LOOPBACK = frozenset(("localhost", "127.0.0.1", "::1"))
ALWAYS = [(b"cache-control", b"no-store"), (b"x-content-type-options", b"nosniff")]
JSON = b"application/json"

Headers: TypeAlias = dict[bytes, bytes]
access_log = logging.getLogger("decoupled.access")
faults = logging.getLogger("decoupled.service")


class ClientGone(Exception):  # noqa: N818
    """The client hung up before its request was whole: nobody is left to answer."""


class Front:
    """Everything that happens to each request, in this order: gate, body, route, count, log."""

    def __init__(
        self,
        inner: FastAPI,
        hot: HotRoutes,
        gate: Gate,
        metrics: Metrics,
        *,
        limits: Limits,
        public: frozenset[str] = PUBLIC,
        loopback_only: bool = False,
    ) -> None:
        self.inner = inner
        self._hot, self._gate, self._metrics = hot, gate, metrics
        self._limits, self._public, self._loopback_only = limits, public, loopback_only
        self._good_hosts: set[bytes] = set()
        self._log = access_log.isEnabledFor(logging.INFO)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            await self.inner(scope, receive, send)
            return
        started, answer = time.perf_counter(), _Answer(send)
        self._metrics.in_flight += 1
        try:
            await self._answer(scope, receive, answer)
        except ServiceError as error:
            if is_fault(error):
                faults.error("%s: %s", error.title, error)
            await answer.refuse(error)
        except ClientGone:
            answer.status = 499
        except Exception:
            faults.exception("a fault of the service")
            await answer.refuse(ServiceError(FAULT))
        finally:
            self._metrics.in_flight -= 1
            seconds = time.perf_counter() - started
            route = answer.route or getattr(scope.get("route"), "path", "other")
            self._metrics.count(scope["method"], route, answer.status, seconds)
            if self._log:
                # JSON keeps a path with line breaks on one line. Query strings and headers stay out: someone's
                # key may be in them.
                path, caller = json.dumps(scope["path"]), answer.caller
                access_log.info(
                    "%s %s %d %.1f ms %s", scope["method"], path, answer.status, 1e3 * seconds, caller
                )

    async def _answer(self, scope: Scope, receive: Receive, answer: "_Answer") -> None:
        headers: Headers = dict(scope["headers"])
        self._check_origin(headers)
        access: Access | None = None
        if scope["path"] not in self._public:
            client = scope.get("client")
            access = await self._gate.admit(headers.get(b"authorization"), client[0] if client else "local")
            answer.caller = access.caller
        body = await self._body(headers, receive)
        if body:
            check_content_type(headers.get(b"content-type"))
        if access is not None:
            hot = self._hot.find(scope["method"], scope["path"])
            if hot is not None:
                answer.route, handler, argument = hot
                if scope["query_string"]:
                    raise Invalid("query: this path takes no query parameters; put fields into the body")
                status, content = await handler(access, argument, headers, body)
                await answer.give(status, content, JSON)
                return
        scope["access"] = access
        await self.inner(scope, _replayed(body, receive), answer.passed_on)

    async def _body(self, headers: Headers, receive: Receive) -> bytes:
        length = headers.get(b"content-length")
        if length is None:
            if b"transfer-encoding" not in headers:
                return b""
        elif not length.isdigit():
            raise BadRequest("Content-Length: must be a whole number")
        elif len(length) > 15 or int(length) > self._limits.body:
            raise self._too_large()
        elif length == b"0":
            return b""
        try:
            async with asyncio.timeout(self._limits.body_seconds):
                return await self._gathered(receive)
        except TimeoutError:
            raise TooSlow(
                f"body: must come within {self._limits.body_seconds:g} s; send it at once"
            ) from None

    async def _gathered(self, receive: Receive) -> bytes:
        body, more = b"", True
        while more:
            message = await receive()
            if message["type"] == "http.disconnect":
                raise ClientGone
            body += message.get("body", b"")
            more = message.get("more_body", False)
            if len(body) > self._limits.body:
                raise self._too_large()
        return body

    def _too_large(self) -> TooLarge:
        return TooLarge(f"body: must not exceed {self._limits.body:,} bytes; send it in smaller parts")

    def _check_origin(self, headers: Headers) -> None:
        """Another site's page, open in a browser of this machine, may not use a service without keys."""
        host = headers.get(b"host", b"")
        if self._loopback_only and host not in self._good_hosts:
            if _name(host) not in LOOPBACK:
                raise Forbidden(
                    f"Host = {host.decode('latin-1')!r}: must be a name of the loopback; "
                    "without keys no other is served"
                )
            if len(self._good_hosts) < 100:
                self._good_hosts.add(host)
        origin = headers.get(b"origin")
        if origin is not None and origin.rpartition(b"://")[2].lower() != host.lower():
            raise Forbidden("Origin: pages of other sites may not call this service from a browser")


def _name(host: bytes) -> str:
    """The name in a Host header, without its port."""
    try:
        return urlsplit(f"//{host.decode('latin-1')}").hostname or ""
    except ValueError:
        return ""


def _replayed(body: bytes, receive: Receive) -> Receive:
    """A `receive` that gives the body already read, then what comes after it."""
    given = False

    async def replay() -> Message:
        nonlocal given
        if given:
            return await receive()
        given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return replay


class _Answer:
    """What goes back, and what the counters and the log must know of it."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self._started = self._finished = False
        self.status = 500
        self.route = ""
        self.caller = "-"

    async def give(
        self, status: int, content: bytes, kind: bytes, further: list[tuple[bytes, bytes]] | None = None
    ) -> None:
        self.status, self._started = status, True
        headers = [
            (b"content-type", kind),
            (b"content-length", str(len(content)).encode()),
            *ALWAYS,
            *(further or ()),
        ]
        await self._send({"type": "http.response.start", "status": status, "headers": headers})
        await self._send({"type": "http.response.body", "body": content})

    async def refuse(self, error: ServiceError) -> None:
        if self._finished:
            return
        if self._started:  # in the middle of a stream: breaking it off is all that is left
            raise error
        await self.give(error.status, encoded(problem_of(error)), PROBLEM, headers_of(error))

    async def passed_on(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status, self._started = message["status"], True
            message["headers"] = [*message.get("headers", ()), *ALWAYS]
        elif not message.get("more_body"):
            self._finished = True
        await self._send(message)
