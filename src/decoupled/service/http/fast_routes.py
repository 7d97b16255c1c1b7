"""The two routes that carry the traffic, without the framework: POST decisions and PUT feedback."""

import re
from collections.abc import Awaitable, Callable
from typing import TypeAlias

from ...errors import shown
from ..desk import Desk
from ..errors import NotFound
from . import strict_json as bodies
from .auth import Access, Gate
from .futures import Bridge
from .problem_json import encoded
from .schemas import decision_out

DECISIONS = "/v1/experiments/{name}/decisions"
FEEDBACK = "/v1/decisions/{id}/feedback"
_PLAIN = re.compile(r"[A-Za-z0-9._:-]{1,200}")  # nothing else can be a name or an id

Headers: TypeAlias = dict[bytes, bytes]
Handler: TypeAlias = Callable[[Access, str, Headers, bytes], Awaitable[tuple[int, bytes]]]


class HotRoutes:
    """Each handler takes who asks, the name in the path, the headers and the body; it gives status and JSON."""

    def __init__(self, desk: Desk, bridge: Bridge, gate: Gate) -> None:
        self._desk, self._bridge, self._gate = desk, bridge, gate

    def find(self, method: str, path: str) -> tuple[str, Handler, str] | None:
        """The route, its handler, and the name in the path; None for any other path."""
        handler: Handler
        if method == "POST" and path.endswith("/decisions") and path.startswith("/v1/experiments/"):
            route, handler, name = DECISIONS, self.decide, path[16:-10]
        elif method == "PUT" and path.endswith("/feedback") and path.startswith("/v1/decisions/"):
            route, handler, name = FEEDBACK, self.feedback, path[14:-9]
        else:
            return None
        return (route, handler, name) if name and "/" not in name else None

    async def decide(self, access: Access, name: str, headers: Headers, body: bytes) -> tuple[int, bytes]:
        """`POST /v1/experiments/{name}/decisions`."""
        access.require("decide")
        check_plain("experiment", name)
        wanted = bodies.wanted(body)
        key = bodies.idempotency_key(headers.get(b"idempotency-key"))
        count = wanted.count or 1
        self._gate.charge(access, count - 1)
        made = await self._bridge.wait(
            self._desk.decide(
                access.tenant, name, mode=wanted.mode, count=count, available=wanted.available, key=key
            )
        )
        if wanted.count is None:
            return 201, encoded(decision_out(made[0]))
        return 201, encoded({"decisions": [decision_out(each) for each in made]})

    async def feedback(self, access: Access, id: str, headers: Headers, body: bytes) -> tuple[int, bytes]:  # noqa: A002
        """`PUT /v1/decisions/{id}/feedback`."""
        access.require("decide")
        check_plain("decision", id)
        sent = bodies.feedback(id, body)
        applied = await self._bridge.wait(
            self._desk.feedback(access.tenant, id, loss=sent.loss, reward=sent.reward, arm=sent.arm)
        )
        return 200, encoded(decision_out(applied))


def check_plain(what: str, name: str) -> None:
    """A name that no experiment or decision can have is not looked up."""
    if not _PLAIN.fullmatch(name):
        raise NotFound(f"{what} {shown(name)}: is not known; check the name")
