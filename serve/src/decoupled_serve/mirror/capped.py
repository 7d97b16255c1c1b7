"""Sends a POST to somebody else's server and reads the answer, of which no more than a limit is ever held.

Both what comes and what it expands to are limited, so neither an endless body nor a small one that is compressed a
thousandfold can fill the memory. How long a body may take is up to the caller's timeout.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import httpx

from .exchange import Answer, Headers, Unreadable, readable

MOST_READ = 2**20  # bytes of an answer, as they come and as they are expanded
# The server may send an answer in pieces of a byte. After so many, others have their turn.
_PIECES_A_TURN = 32


class TooLarge(Exception):  # noqa: N818
    """An answer is larger than may be read."""


@dataclass(frozen=True, slots=True)
class Reply:
    """What a server answered, without codings."""

    status: int
    headers: Headers
    body: bytes

    @property
    def is_success(self) -> bool:
        """Whether the status is 2xx."""
        return 200 <= self.status < 300

    @property
    def text(self) -> str:
        """The body as text; bytes that are not UTF-8 are replaced."""
        return self.body.decode(errors="replace")


async def post(
    http: httpx.AsyncClient, url: str, content: Mapping[str, Any], limit: int = MOST_READ
) -> Reply:
    """Send JSON by POST, and read at most `limit` bytes of the answer, compressed or not.

    `TooLarge` if there are more, `Unreadable` if they have a coding other than gzip and deflate. Of an answer whose
    status is no success only the beginning is read, for an error message.
    """
    async with _asked(http, url, content) as response:
        body = await _beginning(response, limit + 1)
    is_cut = len(body) > limit
    if is_cut and response.is_success:
        raise TooLarge(f"{url} answered with more than {limit:,} bytes, and no more are read")
    headers = tuple(response.headers.items())
    answer = Answer("", response.status_code, headers, body[:limit], complete=not is_cut)
    try:
        expanded = await asyncio.to_thread(readable, answer, limit)
    except Unreadable as error:
        if not response.is_success:
            return Reply(response.status_code, headers, b"")
        raise Unreadable(error.reason, f"{url} answered, and {error.problem}") from None
    if not expanded.complete and response.is_success:
        told = f"more than {limit:,} bytes once expanded, or with something after them"
        raise TooLarge(f"{url} answered with {told}, and no more are read")
    return Reply(response.status_code, headers, expanded.body)


async def post_unread(http: httpx.AsyncClient, url: str, content: Mapping[str, Any]) -> int:
    """Send JSON by POST, and return the status. Nothing of the body is read."""
    async with _asked(http, url, content) as response:
        return response.status_code


@asynccontextmanager
async def _asked(
    http: httpx.AsyncClient, url: str, content: Mapping[str, Any]
) -> AsyncIterator[httpx.Response]:
    """An answer whose body is still to be read."""
    encoded = await asyncio.to_thread(_encoded, content)
    headers = {"Content-Type": "application/json", "Accept-Encoding": "identity"}
    async with http.stream("POST", url, content=encoded, headers=headers) as response:
        yield response


async def _beginning(response: httpx.Response, limit: int) -> bytes:
    """At most so many bytes of a body, as they come. Nothing beyond them is waited for."""
    body = bytearray()
    pieces = 0
    async for part in response.aiter_raw():
        body += part[: limit - len(body)]
        if len(body) == limit:
            break
        pieces += 1
        if pieces % _PIECES_A_TURN == 0:
            await asyncio.sleep(0)
    return bytes(body)


def _encoded(content: Mapping[str, Any]) -> bytes:
    """The content as JSON in UTF-8, which cannot have half of a surrogate pair."""
    return json.dumps(content, ensure_ascii=False).encode(errors="replace")
