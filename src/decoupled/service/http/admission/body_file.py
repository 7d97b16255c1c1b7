"""Bodies that are too large for memory: written to a file as they arrive, up to a limit of their own."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

from fastapi import Request
from starlette.requests import ClientDisconnect

from ...errors import BadRequest, TooLarge, TooSlow
from .limits import Limits

REPLAY = "/replay"


def is_streamed(method: str, path: str) -> bool:
    """Whether the route reads its body itself.

    >>> is_streamed("POST", "/v1/experiments/models/replay"), is_streamed("GET", "/v1/experiments/models/state")
    (True, False)
    """
    return method == "POST" and path.endswith(REPLAY) and path.startswith("/v1/experiments/")


async def save_body(request: Request, path: Path, limits: Limits) -> int:
    """Write the body of a request to a file, and return its size. Each part must arrive in time."""
    length = request.headers.get("content-length", "0")
    if not length.isdigit():
        raise BadRequest("Content-Length: must be a whole number")
    if len(length) > 15 or int(length) > limits.replay:
        raise _too_large(limits)
    size, parts = 0, request.stream().__aiter__()
    with path.open("wb") as file:
        while (part := await _next(parts, limits)) is not None:
            size += len(part)
            if size > limits.replay:
                raise _too_large(limits)
            await asyncio.to_thread(file.write, part)
    return size


async def _next(parts: AsyncIterator[bytes], limits: Limits) -> bytes | None:
    try:
        async with asyncio.timeout(limits.body_seconds):
            return await anext(parts, None)
    except TimeoutError:
        raise TooSlow(f"body: nothing arrived for {limits.body_seconds:g} s; send it again") from None
    except ClientDisconnect:
        raise BadRequest("body: was cut off; send it again") from None


def _too_large(limits: Limits) -> TooLarge:
    return TooLarge(
        f"body: must not exceed {limits.replay:,} bytes; split the log, or start the service with a larger --replay-limit"
    )
