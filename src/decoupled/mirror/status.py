"""Serves the counts of the mirror, its metrics, and the console of the embedded service."""

import json
from collections.abc import Callable
from typing import Any

from starlette.types import ASGIApp, Receive, Scope, Send

from ..service.http.transport.gateway import LOOPBACK
from .counts import MirrorMetrics

_JSON, _TEXT = b"application/json", b"text/plain; version=0.0.4; charset=utf-8"


class StatusApp:
    """Answers `/mirror` and `/mirror/metrics`; passes all else on to the embedded decision service."""

    def __init__(
        self, status: Callable[[], dict[str, Any]], metrics: MirrorMetrics, service: ASGIApp | None
    ) -> None:
        self._status, self._metrics, self._service = status, metrics, service

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        path = scope.get("path", "")
        if scope["type"] == "http" and path in ("/mirror", "/mirror/metrics"):
            if not _is_local(scope):
                await _send(send, 403, b"use a loopback name, such as localhost\n", b"text/plain")
            elif path == "/mirror":
                await _send(send, 200, json.dumps(self._status(), indent=1).encode() + b"\n", _JSON)
            else:
                await _send(send, 200, self._metrics.text(), _TEXT)
        elif self._service is not None:
            await self._service(scope, receive, send)
        elif scope["type"] == "http":
            await _send(send, 404, b"the paths here are /mirror and /mirror/metrics\n", b"text/plain")


def _is_local(scope: Scope) -> bool:
    """Whether a request names this machine: the page of another site could otherwise read it through a browser."""
    host = next((value for name, value in scope["headers"] if name == b"host"), b"").decode("latin-1")
    name = host.rpartition(":")[0] if host.rpartition(":")[2].isdecimal() else host
    return name.removeprefix("[").removesuffix("]") in LOOPBACK


async def _send(send: Send, status: int, content: bytes, kind: bytes) -> None:
    length = str(len(content)).encode()
    headers = [(b"content-type", kind), (b"content-length", length), (b"cache-control", b"no-store")]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": content})
