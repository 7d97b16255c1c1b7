"""Reads the request of a client, and refuses what no arm should get."""

import re
from dataclasses import dataclass

from starlette.types import Scope

from .clients import LARGEST_HEADERS

# A client that takes the mirror for a proxy of its own sends a whole address (RFC 9112, 3.2.2).
_ABSOLUTE = re.compile(rb"https?://[^/?#]*", re.IGNORECASE)


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
        target: the path and the query.
        headers: with names in lower case, without trailers.
        client: the address of the client, if it is known.
        scheme: how the client reached the proxy.
        length: the length of the body as declared.
        chunked: whether the body comes in chunks instead.
        old: whether the client speaks HTTP/1.0.
    """

    method: str
    path: bytes
    target: bytes
    headers: list[tuple[bytes, bytes]]
    client: str | None
    scheme: str
    length: int
    chunked: bool
    old: bool

    @property
    def has_body(self) -> bool:
        """Whether a body follows."""
        return self.chunked or self.length > 0


def arrived(scope: Scope) -> Arrived:
    """The request of an ASGI scope; `Refused` if it is not for any arm."""
    headers, version = scope["headers"], scope["http_version"]
    if version not in ("1.0", "1.1"):
        raise Refused("version", 505, f"HTTP/{version} is not spoken here; use HTTP/1.1")
    if sum(len(name) + len(value) for name, value in headers) > LARGEST_HEADERS:
        raise Refused("headers", 431, f"the headers are longer than {LARGEST_HEADERS:,} bytes; send fewer")
    path, query = scope["raw_path"], scope["query_string"]
    if not path.startswith(b"/") and path != b"*":
        authority = _ABSOLUTE.match(path)
        if authority is None or scope["method"] == "CONNECT":
            raise Refused("target", 400, "the target is not a path; send one, such as /v1/items")
        path = path[authority.end() :] or b"/"
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
        path,
        path + b"?" + query if query else path,
        headers,
        client[0] if client else None,
        scope["scheme"],
        length,
        chunked,
        version == "1.0",
    )
