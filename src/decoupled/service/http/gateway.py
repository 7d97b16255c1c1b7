"""The outermost ASGI application: it authenticates, limits, counts and logs every request.

The two routes that carry the traffic are answered here, without the framework; all other requests go on to it. So
nothing can be reached without being authenticated.
"""

import asyncio
import logging
import time
from collections.abc import Sequence
from typing import NamedTuple
from urllib.parse import urlsplit

from fastapi import FastAPI
from starlette.routing import Route
from starlette.types import Message, Receive, Scope, Send

from ...errors import shown
from ..errors import (
    BadRequest,
    Forbidden,
    Invalid,
    ServiceError,
    TooLarge,
    TooSlow,
    Unauthorized,
    UnsupportedMedia,
)
from ..origin import ORIGIN, REQUEST_IDS, Origin, coming_from, trace_of
from ..permits import KEYLESS
from .access_log import access_log, log_access
from .auth import Access, Admission
from .body_file import is_streamed
from .decisions import DECISIONS, FEEDBACK, Begun, FastRoutes, Handler, Headers
from .limits import Limits
from .metrics import METHODS, Metrics
from .problem_json import FAULT, PROBLEM, headers_of, is_fault, problem_of
from .request_counts import Recorder
from .response_head import ALWAYS, JSON, REQUEST_ID, response_headers
from .strict_json import encoded

PUBLIC = frozenset(("/healthz", "/readyz"))  # a load balancer has no key
LOOPBACK = frozenset(("localhost", "127.0.0.1", "::1"))

faults = logging.getLogger("decoupled.service")


class ClientGone(Exception):  # noqa: N818
    """The client closed the connection before its request was complete."""


class HotRoute(NamedTuple):
    """A route that the connection itself recognises; see `hot_connection`."""

    method: str
    route: str
    handler: Handler


class Started(NamedTuple):
    """A request that waits for its commit, where it comes from, and what it may do."""

    begun: Begun
    origin: Origin
    access: Access


def origin_of(headers: Headers) -> Origin:
    """The origin of a request whose caller is not known yet."""
    request = REQUEST_IDS.of(headers.get(b"x-request-id"))
    return Origin(request, "-", "", trace_of(headers.get(b"traceparent")))


def as_refusal(error: Exception) -> ServiceError:
    """An error as callers see it; an unexpected one is logged, and its details are only in the log."""
    if not isinstance(error, ServiceError):
        faults.error("an error of the service itself", exc_info=error)
        return ServiceError(FAULT)
    if is_fault(error):
        faults.error("%s: %s", error.title, error)
    return error


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
        self.hot = (HotRoute("POST", DECISIONS, fast.decide), HotRoute("PUT", FEEDBACK, fast.feedback))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            await self.inner(scope, receive, send)
            return
        headers: Headers = dict(scope["headers"])
        response = _Response(send, origin_of(headers))
        ORIGIN.set(response.origin)
        started = self.arrived()
        try:
            await self._respond(scope, headers, receive, response)
        except ClientGone:
            response.status = 499
        except Exception as error:
            await response.refuse(as_refusal(error))
        finally:
            route = (
                response.route or getattr(scope.get("route"), "path", None) or self._route(scope["path"])
            )
            self.answered(started, scope["method"], route, scope["path"], response.status, response.origin)

    def _route(self, path: str) -> str:
        """The route of a path that was refused before the framework looked for it."""
        return next((each.path for each in self._routes if each.path_regex.match(path)), "other")

    def begin(
        self, route: HotRoute, name: str, headers: Headers, body: bytes, address: str
    ) -> Started | None:
        """Begin a request of a hot route, whole and without a query, as `_respond` does for all.

        None, and nothing is done, if it has to wait for something other than its commit. `ORIGIN` must be set.
        """
        _check_site(headers)
        access = self._admission.admit_known(headers.get(b"authorization"), address)
        if access is None:
            return None
        self._check_host(access, headers)
        request, _, _, trace = ORIGIN.get()
        origin = Origin(request, access.caller, access.label, trace)
        ORIGIN.set(origin)
        if body:
            _check_content_type(headers.get(b"content-type"))
        return Started(route.handler(access, name, headers, body), origin, access)

    def refused(self, access: Access, error: Exception) -> None:
        """A key that was valid when the request came was refused in the transaction: look it up next time."""
        if isinstance(error, Unauthorized):
            self._admission.forget(access)

    def arrived(self) -> float:
        """Count a request in; returns the time for `answered`."""
        self._metrics.in_flight += 1
        return time.perf_counter()

    def withdrawn(self) -> None:
        """Forget a request that `arrived` counted, because it arrives again in another way."""
        self._metrics.in_flight -= 1

    def answered(
        self, started: float, method: str, route: str, path: str, status: int, origin: Origin
    ) -> None:
        """Count and log a request that is over."""
        self._metrics.in_flight -= 1
        seconds = time.perf_counter() - started
        self._count(method, route, status, seconds)
        if self._log:
            with coming_from(origin):
                log_access(method, path, route, status, seconds)

    def _count(self, method: str, route: str, status: int, seconds: float) -> None:
        recorder = self._recorders.get((method, route, status))
        if recorder is None:
            recorder = self._metrics.recorder(method, route, status)
            if method in METHODS:  # others are made up by callers, and would fill the memory
                self._recorders[method, route, status] = recorder
        recorder(seconds)

    async def _respond(
        self, scope: Scope, headers: Headers, receive: Receive, response: "_Response"
    ) -> None:
        _check_site(headers)
        access: Access | None = None
        fast = None
        if scope["path"] not in self._public:
            fast = self._fast.find(scope["method"], scope["path"])
            response.route = "" if fast is None else fast[0]
            client = scope.get("client")
            address = client[0] if client else "local"
            access = await self._admission.admit(
                headers.get(b"authorization"), address, checked_later=fast is not None
            )
            request, _, _, trace = response.origin
            response.origin = Origin(request, access.caller, access.label, trace)
            ORIGIN.set(response.origin)
            self._check_host(access, headers)
        if access is not None and fast is None and is_streamed(scope["method"], scope["path"]):
            scope["access"] = access
            await self.inner(scope, receive, response.forward)
            return
        body = await self._body(headers, receive)
        if body:
            _check_content_type(headers.get(b"content-type"))
        if access is not None and fast is not None:
            _, handler, argument = fast
            if scope["query_string"]:
                raise Invalid("query: this path takes no query parameters; put fields into the body")
            begun = handler(access, argument, headers, body)
            try:
                content = begun.content(await begun.reply)
            except ServiceError as error:
                self.refused(access, error)
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
        try:
            async with asyncio.timeout(self._limits.body_seconds):
                return await self._gathered(receive)
        except TimeoutError:
            raise TooSlow(
                f"body: must arrive within {self._limits.body_seconds:g} s; send it at once"
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

    def _check_host(self, access: Access, headers: Headers) -> None:
        """Refuse requests without a key that were not meant for this machine: a site's name may lead anywhere."""
        host = headers.get(b"host", b"")
        if access.permit != KEYLESS or host in self._good_hosts:
            return
        if _name(host) not in LOOPBACK:
            raise Forbidden(
                f"Host = {host.decode('latin-1')!r}: must be a loopback name while the service has no keys; "
                "use localhost, or add a key and send it"
            )
        if len(self._good_hosts) < 100:
            self._good_hosts.add(host)


def _check_site(headers: Headers) -> None:
    """Refuse the pages of other sites, which could use a service without keys from this machine's browser."""
    origin = headers.get(b"origin")
    if origin is not None and origin.rpartition(b"://")[2].lower() != headers.get(b"host", b"").lower():
        raise Forbidden("Origin: pages of other sites may not call this service from a browser")


def _check_content_type(content_type: bytes | None) -> None:
    """Refuse a body that is not declared as JSON, because a form on another site's page cannot declare it."""
    if content_type is None or content_type.split(b";")[0].strip().lower() != b"application/json":
        sent = (content_type or b"").decode("latin-1")
        raise UnsupportedMedia(
            f"Content-Type = {shown(sent)}: must be application/json; send JSON with that header"
        )


def _name(host: bytes) -> str:
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


class _Response:
    """The response, and what the metrics and the log need to know about it."""

    def __init__(self, send: Send, origin: Origin) -> None:
        self._send, self.origin = send, origin
        self._request = (origin.request or "").encode()
        self._started = self._finished = False
        self.status = 500
        self.route = ""

    async def send(
        self, status: int, content: bytes, kind: bytes, further: list[tuple[bytes, bytes]] | None = None
    ) -> None:
        self.status, self._started = status, True
        headers = response_headers(kind, len(content), self._request, further or ())
        await self._send({"type": "http.response.start", "status": status, "headers": headers})
        await self._send({"type": "http.response.body", "body": content})

    async def refuse(self, error: ServiceError) -> None:
        if self._finished:
            return
        if self._started:  # in the middle of a stream, which can only be cut off
            raise error
        await self.send(error.status, encoded(problem_of(error)), PROBLEM, headers_of(error))

    async def forward(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status, self._started = message["status"], True
            message["headers"] = [
                *message.get("headers", ()),
                *ALWAYS,
                (REQUEST_ID, self._request),
            ]
        elif not message.get("more_body"):
            self._finished = True
        await self._send(message)
