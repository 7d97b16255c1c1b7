"""Bodies that are too large for memory: written to a file as they arrive, up to a limit of their own."""

import asyncio
from pathlib import Path

from fastapi import Request
from starlette.requests import ClientDisconnect
from starlette.types import Message, Receive

from decoupled.client import BadRequest, TooLarge, TooSlow

from .limits import LEAST_RATE, Limits

REPLAY = "/replay"


def is_streamed(method: str, path: str) -> bool:
    """Whether the route reads its body itself.

    >>> is_streamed("POST", "/v1/experiments/models/replay"), is_streamed("GET", "/v1/experiments/models/state")
    (True, False)
    """
    return method == "POST" and path.endswith(REPLAY) and path.startswith("/v1/experiments/")


class Paced:
    """A `receive` that raises `TimeoutError` for a client that is too slow, however little it sends at a time.

    A client may take some seconds for a body, and gains time with every byte: at `LEAST_RATE`, as much as it takes.
    """

    def __init__(self, receive: Receive, seconds: float) -> None:
        self._receive, self._seconds, self._left = receive, seconds, seconds

    async def __call__(self) -> Message:
        """The next message. Only the time that is waited here counts."""
        now = asyncio.get_running_loop().time
        start = now()
        async with asyncio.timeout(self._left):
            message = await self._receive()
        gained = len(message.get("body", b"")) / LEAST_RATE
        self._left = min(self._seconds, self._left + gained - (now() - start))
        return message


async def save_body(request: Request, path: Path, limits: Limits) -> int:
    """Write the body of a request to a file, and return its size."""
    length = request.headers.get("content-length", "0")
    if not length.isdigit():
        raise BadRequest("Content-Length: must be a whole number")
    if len(length) > 15 or int(length) > limits.replay:
        raise _too_large(limits)
    size = 0
    try:
        with path.open("wb") as file:
            async for part in Request(request.scope, Paced(request.receive, limits.body_seconds)).stream():
                size += len(part)
                if size > limits.replay:
                    raise _too_large(limits)
                await asyncio.to_thread(file.write, part)
    except TimeoutError:
        rule = f"must arrive within {limits.body_seconds:g} s, or at {LEAST_RATE:,} bytes a second"
        raise TooSlow(f"body: {rule}; send it faster") from None
    except ClientDisconnect:
        raise BadRequest("body: was cut off; send it again") from None
    return size


def _too_large(limits: Limits) -> TooLarge:
    return TooLarge(
        f"body: must not exceed {limits.replay:,} bytes; split the log, or start the service with a larger --replay-limit"
    )
