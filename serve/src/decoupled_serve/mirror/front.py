"""What the proxy and the sink share: requests arrive, some are refused, and some become copies."""

import logging
import random
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, NamedTuple

from starlette.types import Receive, Scope, Send

from ..nested import parsed
from ..service.experiment.context import Value
from ..service.experiment.request_context import Origin, coming_from
from ..service.http.models.fields import encoded
from ..service.http.models.problem_json import PROBLEM, problem
from ..service.http.transport.responses import CLOSE, REQUEST_IDS, Response
from .backend import Routing
from .bodies import json_object
from .config import MirrorConfig
from .copies import Copies, Copy
from .counts import MirrorCounts
from .exchange import Request, Served
from .finders import ContextFinder
from .headers import Raw, as_text
from .prefetch import Prefetch
from .upstream import Upstream

_log = logging.getLogger("decoupled.mirror")


class Refused(Exception):  # noqa: N818
    """A request that no arm gets. `reason` is how it is counted, `status` what the client is told."""

    def __init__(self, reason: str, status: int, problem: str) -> None:
        super().__init__(problem)
        self.reason, self.status = reason, status


@dataclass(frozen=True, slots=True)
class Arrived:
    """A request."""

    method: str  # such as "GET"
    path: bytes  # as it came, encoded
    target: bytes  # the path and the query, as they came
    headers: list[tuple[bytes, bytes]]  # with names in lower case, without trailers
    client: str | None  # the address of the client, if it is known
    scheme: str  # how the client reached the proxy
    length: int  # the length of the body as declared
    chunked: bool  # whether the body comes in chunks instead

    @property
    def has_body(self) -> bool:
        """Whether a body follows."""
        return self.chunked or self.length > 0


def arrived(scope: Scope) -> Arrived:
    """The request of an ASGI scope; `Refused` if it is not for any arm."""
    headers = scope["headers"]
    length, chunked = 0, False
    for name, value in headers:
        if name == b"upgrade" and b"websocket" in value.lower():
            told = "websockets are not mirrored; let clients connect to an upstream directly"
            raise Refused("websocket", 501, told)
        if name == b"content-length":
            length = int(value)  # the server has checked it
        elif name == b"transfer-encoding":
            chunked = True
    path, target = scope["raw_path"], scope["decoupled.target"]
    client = scope["client"][0] if scope.get("client") else None
    return Arrived(scope["method"], path, target, headers, client, scope["scheme"], length, chunked)


class FrontParts(NamedTuple):
    """What a front is made of."""

    arms: Sequence[Upstream]
    config: MirrorConfig
    prefetch: Prefetch
    copies: Copies
    counts: MirrorCounts


class Front(ABC):
    """Takes requests. What becomes of one is up to `_respond`."""

    def __init__(self, parts: FrontParts) -> None:
        arms, config, self._prefetch, self._copies, self._counts = parts
        self._arms: Mapping[str, Upstream] = {arm.name: arm for arm in arms}
        self._clients, self._client_seconds = config.clients, config.client_timeout
        self._share, self._body_limit = config.mirror.share, config.mirror.body_limit
        self._rules, self._chance = config.mirror.rules(), random.Random(config.experiment.seed)
        self._credentials = frozenset(name.encode() for name in config.mirror.all_credentials())
        self._sets_json = any(arm.fields for arm in config.arms)
        self._context = ContextFinder(config, self._counts)
        self._finds_in_body = self._context.in_body
        self.in_flight = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            return
        self.in_flight += 1
        try:
            request = arrived(scope)
            if self.in_flight > self._clients:
                raise Refused("busy", 503, "too many requests at a time; ask again later")
            await self._respond(request, receive, send)
        except Refused as refused:
            self._counts.refused[refused.reason] += 1
            await refuse(send, scope["headers"], refused.status, str(refused), close=True)
        except Exception as error:
            with suppress(RuntimeError):  # the answer has begun, so it can only be cut off
                detail = "an error of the mirror itself; its log says more"
                await refuse(send, scope["headers"], 500, detail, error, close=True)
        finally:
            self.in_flight -= 1

    @abstractmethod
    async def _respond(self, request: Arrived, receive: Receive, send: Send) -> None:
        """Answer a request."""

    def _not_mirrored(self, request: Arrived, unset: str | None = None) -> str | None:
        """Why a request is not mirrored; None if it is, and then a place for its copy is reserved."""
        if self._share < 1.0 and self._chance.random() >= self._share:
            return "share"
        if not self._rules.allows(request.method, request.path, request.headers):
            return "not_repeatable"
        if request.length > self._body_limit:
            return "too_large"
        return unset or self._copies.reserve()

    def _read(self, body: bytes | None) -> tuple[dict[str, Any] | None, Any]:
        """The object in which an arm can set fields, and what keys and contexts are found in: read once, if at all."""
        fields = json_object(body) if body and self._sets_json else None
        if fields is not None or not body or not self._finds_in_body:
            return fields, fields
        return None, parsed(body)

    async def _known(
        self, request: Arrived, body: bytes | None, content: Any
    ) -> dict[str, Value] | None:
        """The context of a request; None if nothing is known."""
        found = self._context.find(request.method, request.path, request.headers, content)
        if self._context.computes:
            headers = as_text(request.headers, self._credentials)
            shown = Request(request.method, request.target.decode("latin-1"), headers, body or b"")
            found |= await self._context.compute(shown)
        return found or None

    def _copy(
        self, request: Arrived, body: bytes, decision: Routing, explore: str, served: Served
    ) -> Copy:
        """The copy of a request for an arm, without credentials that are not meant for it."""
        passed = self._arms[explore].headers(
            request.headers, request.client, request.scheme, copy=True
        )
        target = request.target.decode("latin-1")
        sent = Request(request.method, target, as_text(passed), body)
        shown = Request(request.method, target, as_text(passed, self._credentials), body)
        return Copy(decision.id, explore, sent, shown, served, label=decision.label)


async def refuse(
    send: Send,
    headers: Raw,
    status: int,
    why: str,
    error: Exception | None = None,
    *,
    close: bool = False,
) -> None:
    """Answer with an error of the mirror's own, whose id the log has as well."""
    given = next((value for name, value in headers if name == b"x-request-id"), None)
    origin = Origin(REQUEST_IDS.of(given))
    with coming_from(origin):
        level = logging.WARNING if status >= 500 else logging.INFO
        _log.log(level, "%d: %s", status, why, exc_info=error)
        content = encoded(problem(HTTPStatus(status).phrase, status, why))
    # A body may follow that nobody reads.
    await Response(send, origin).send(status, content, PROBLEM, (CLOSE,) if close else ())
