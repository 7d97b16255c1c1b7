"""Reads the request of a client, and refuses what no arm should get."""

from dataclasses import dataclass

from starlette.types import Scope


class Refused(Exception):  # noqa: N818
    """A request that no arm gets. `reason` is how it is counted, `status` what the client is told."""

    def __init__(self, reason: str, status: int, problem: str) -> None:
        super().__init__(problem)
        self.reason, self.status = reason, status


@dataclass(frozen=True, slots=True)
class Arrived:
    """A request.

    Attributes:
        method: such as "GET".
        path: as it came, encoded.
        target: the path and the query, as they came.
        headers: with names in lower case, without trailers.
        client: the address of the client, if it is known.
        scheme: how the client reached the proxy.
        length: the length of the body as declared.
        chunked: whether the body comes in chunks instead.
    """

    method: str
    path: bytes
    target: bytes
    headers: list[tuple[bytes, bytes]]
    client: str | None
    scheme: str
    length: int
    chunked: bool

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
            raise Refused(
                "websocket", 501, "websockets are not mirrored; let clients connect to an upstream directly"
            )
        if name == b"content-length":
            length = int(value)  # the server has checked it
        elif name == b"transfer-encoding":
            chunked = True
    client = scope.get("client")
    return Arrived(
        scope["method"],
        scope["raw_path"],
        scope["decoupled.target"],
        headers,
        client[0] if client else None,
        scope["scheme"],
        length,
        chunked,
    )
