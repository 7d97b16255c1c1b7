"""The outermost ASGI application: it authenticates, limits, counts and logs every request.

The routes that carry the traffic are answered here, without the framework; all other requests go on to it. So nothing can
be reached without being authenticated.
"""

import asyncio
import logging
import re
import time
from collections.abc import Sequence
from urllib.parse import urlsplit

from fastapi import FastAPI
from starlette.routing import Route
from starlette.types import Message, Receive, Scope, Send

from decoupled.client import (
    BadRequest,
    Forbidden,
    Invalid,
    ServiceError,
    TooLarge,
    TooSlow,
    Unauthorized,
    UnsupportedMedia,
)
from decoupled.errors import shown

from ...experiment.request_context import ORIGIN, Origin, Trace
from ...memory.cache import KEYLESS
from ..admission import Access, Admission, Limits, is_streamed
from ..models.problem_json import FAULT, faults, log_fault
from ..observe.log_format import access_log, log_access
from ..observe.metrics import METHODS, UNKNOWN, Metrics, Recorder
from ..routes.decisions import FastRoutes, Headers
from .connection import Exchange
from .responses import JSON, REQUEST_IDS, Response

PUBLIC = frozenset(("/healthz", "/readyz"))  # a load balancer has no key
LOOPBACK = frozenset(("localhost", "127.0.0.1", "::1"))
_TRACEPARENT = re.compile(rb"(?!ff)[0-9a-f]{2}-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(?:-.*)?")


class ClientGone(Exception):  # noqa: N818
    """The client closed the connection before its request was complete."""


def trace_of(traceparent: bytes | None) -> Trace | None:
    """The place in a trace that a W3C traceparent header gives; None if it gives none.

    >>> trace_of(b"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")
    Trace(trace_id='0af7651916cd43dd8448eb211c80319c', span_id='b7ad6b7169203331', sampled=True)
    >>> trace_of(b"00-00000000000000000000000000000000-b7ad6b7169203331-01")
    """
    found = None if traceparent is None else _TRACEPARENT.fullmatch(traceparent)
    if found is None:
        return None
    trace, span = found[1].decode(), found[2].decode()
    sampled = bool(int(found[3], 16) & 1)
    return Trace(trace, span, sampled) if trace.strip("0") and span.strip("0") else None


class Gateway:
    """Handles each request in this order: authentication, body, route, count, log."""

    def __init__(
        self,
        inner: FastAPI,
        fast: FastRoutes,
        admission: Admission,
        metrics: Metrics,
        *,
        limits: Limits,
        routes: Sequence[Route] = (),
        public: frozenset[str] = PUBLIC,
    ) -> None:
        self.inner, self._routes = inner, routes
        self._fast, self._admission, self._metrics = fast, admission, metrics
        self._recorders: dict[tuple[str, str, int], Recorder] = {}
        self._limits, self._public = limits, public
        self._good_hosts: set[bytes] = set()
        self._log = access_log.isEnabledFor(logging.INFO)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            await self.inner(scope, receive, send)
            return
        headers: Headers = dict(scope["headers"])
        request, trace = headers.get(b"x-request-id"), trace_of(headers.get(b"traceparent"))
        origin = Origin(REQUEST_IDS.of(request), "-", "", trace)  # whose caller is not known yet
        response = scope["decoupled.response"] = Response(send, origin)
        ORIGIN.set(response.origin)
        self._metrics.in_flight += 1
        started = time.perf_counter()
        try:
            await self._respond(scope, headers, receive, response)
        except ClientGone:
            response.status = 499
        except ServiceError as error:
            log_fault(error)
            await response.refuse(error)
        except Exception as error:  # whose details are only in the log
            faults.error("an error of the service itself", exc_info=error)
            await response.refuse(ServiceError(FAULT))
        finally:
            self._metrics.in_flight -= 1
            found = response.route or getattr(scope.get("route"), "path", None)
            response.route = route = found or self._route(scope["path"])
            seconds = time.perf_counter() - started
            self._count(scope["method"], route, response.status, seconds)
            if self._log:
                log_access(scope["method"], scope["path"], route, response.status, seconds)

    def _route(self, path: str) -> str:
        """The route of a path that was refused before the framework looked for it."""
        return next((each.path for each in self._routes if each.path_regex.match(path)), UNKNOWN)

    def _count(self, method: str, route: str, status: int, seconds: float) -> None:
        recorder = self._recorders.get((method, route, status))
        if recorder is None:
            recorder = self._metrics.recorder(method, route, status)
            if method in METHODS:  # others are made up by callers, and would fill the memory
                self._recorders[method, route, status] = recorder
        recorder(seconds)

    async def _respond(
        self, scope: Scope, headers: Headers, receive: Receive, response: Response
    ) -> None:
        _check_site(headers)
        access: Access | None = None
        fast = None
        if scope["path"] not in self._public:
            fast = self._fast.find(scope["method"], scope["path"])
            response.route = "" if fast is None else fast[0]
            client = scope.get("client")
            address = client[0] if client else "local"
            key = headers.get(b"authorization")
            access = await self._admission.admit(key, address, checked_later=fast is not None)
            request, _, _, trace = response.origin
            response.origin = Origin(request, access.caller, access.label, trace)
            ORIGIN.set(response.origin)
            self._check_host(access, headers)
        if access is not None and fast is None and is_streamed(scope["method"], scope["path"]):
            scope["access"] = access
            await self.inner(scope, receive, response.forward)
            return
        body = (
            b"" if access is None else await self._body(headers, receive)
        )  # public paths need none
        if body:
            _check_content_type(headers.get(b"content-type"))
        if access is not None and fast is not None:
            _, handler, argument = fast
            if scope["query_string"]:
                raise Invalid(
                    "query: this path takes no query parameters; put fields into the body"
                )
            begun = handler(access, argument, headers, body)
            try:
                content = begun.content(await begun.reply)
            except Unauthorized:  # the key was valid when the request came
                self._admission.forget(access)
                raise
            await response.send(begun.status, content, JSON)
            return
        scope["access"] = access
        await self.inner(scope, _replayed(body, receive), response.forward)

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
        exchange = getattr(receive, "__self__", None)
        if (
            isinstance(exchange, Exchange) and not exchange.more
        ):  # all of it is here, as of most requests
            return await self._gathered(receive)
        try:
            async with asyncio.timeout(self._limits.body_seconds):
                return await self._gathered(receive)
        except TimeoutError:
            rule = f"must arrive within {self._limits.body_seconds:g} s"
            raise TooSlow(f"body: {rule}; send it at once") from None

    async def _gathered(self, receive: Receive) -> bytes:
        body, more = bytearray(), True
        while more:
            message = await receive()
            if message["type"] == "http.disconnect":
                raise ClientGone
            body += message.get("body", b"")
            more = message.get("more_body", False)
            if len(body) > self._limits.body:
                raise self._too_large()
        return bytes(body)

    def _too_large(self) -> TooLarge:
        return TooLarge(
            f"body: must not exceed {self._limits.body:,} bytes; send it in smaller parts"
        )

    def _check_host(self, access: Access, headers: Headers) -> None:
        """Refuse requests without a key that were not meant for this machine: a site's name may lead anywhere."""
        host = headers.get(b"host", b"")
        if access.permit != KEYLESS or host in self._good_hosts:
            return
        if name_in(host) not in LOOPBACK:
            rule = "must be a loopback name while the service has no keys"
            remedy = "use localhost, or add a key and send it"
            raise Forbidden(f"Host = {host.decode('latin-1')!r}: {rule}; {remedy}")
        if len(self._good_hosts) < 100:
            self._good_hosts.add(host)


def _check_site(headers: Headers) -> None:
    """Refuse the pages of other sites, which could use a service without keys from this machine's browser."""
    origin = headers.get(b"origin")
    if (
        origin is not None
        and origin.rpartition(b"://")[2].lower() != headers.get(b"host", b"").lower()
    ):
        raise Forbidden("Origin: pages of other sites may not call this service from a browser")


def _check_content_type(content_type: bytes | None) -> None:
    """Refuse a body that is not declared as JSON, because a form on another site's page cannot declare it."""
    if content_type is None or content_type.split(b";")[0].strip().lower() != b"application/json":
        rule, sent = "must be application/json", (content_type or b"").decode("latin-1")
        raise UnsupportedMedia(f"Content-Type = {shown(sent)}: {rule}; send JSON with that header")


def name_in(host: bytes) -> str:
    """The name in a Host header, without its port."""
    try:
        return urlsplit(f"//{host.decode('latin-1')}").hostname or ""
    except ValueError:
        return ""


def _replayed(body: bytes, receive: Receive) -> Receive:
    """A `receive` that returns the body already read, then what comes after it."""
    given = False

    async def replay() -> Message:
        nonlocal given
        if given:
            return await receive()
        given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return replay
