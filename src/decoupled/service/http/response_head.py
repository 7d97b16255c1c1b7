"""The head of every response that the service writes itself: what it always says belongs here."""

from collections.abc import Iterable, Sequence
from functools import lru_cache
from http import HTTPStatus
from typing import TypeAlias

Header: TypeAlias = tuple[bytes, bytes]

JSON = b"application/json"
ALWAYS: list[Header] = [(b"cache-control", b"no-store"), (b"x-content-type-options", b"nosniff")]
CLOSE: Header = (b"connection", b"close")
REQUEST_ID = b"x-request-id"


def response_headers(
    kind: bytes, length: int, request: bytes, further: Iterable[Header] = ()
) -> list[Header]:
    """The headers of a response to the request with that id, for the server that writes them."""
    return [
        (b"content-type", kind),
        (b"content-length", b"%d" % length),
        *ALWAYS,
        (REQUEST_ID, request),
        *further,
    ]


def response_head(
    status: int,
    kind: bytes,
    length: int,
    request: str,
    server: Sequence[Header],
    further: Iterable[Header] = (),
) -> bytes:
    """The same headers, with those of the server, as they are sent.

    >>> response_head(201, JSON, 2, "1f2e-7", [(b"date", b"today")]).splitlines()[:3]
    [b'HTTP/1.1 201 Created', b'content-type: application/json', b'cache-control: no-store']
    """
    more = b"".join([b"%b: %b\r\n" % each for each in (*server, *further)])
    start = _start(status, kind)
    return b"%b%bx-request-id: %b\r\ncontent-length: %d\r\n\r\n" % (start, more, request.encode(), length)


@lru_cache(256)
def _start(status: int, kind: bytes) -> bytes:
    lines = [b"%b: %b\r\n" % each for each in ((b"content-type", kind), *ALWAYS)]
    return b"HTTP/1.1 %d %b\r\n" % (status, _phrase(status)) + b"".join(lines)


def _phrase(status: int) -> bytes:
    try:
        return HTTPStatus(status).phrase.encode()
    except ValueError:
        return b""
