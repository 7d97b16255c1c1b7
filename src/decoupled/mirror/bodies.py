"""Bodies of requests as clients upload them, and of answers as they are recorded."""

import asyncio
import time
from collections.abc import AsyncIterator

from starlette.types import Receive


class ClientDisconnected(Exception):  # noqa: N818
    """The client closed the connection."""


class UploadTimeout(Exception):  # noqa: N818
    """The client sent no byte of its request for too long."""


class Content:
    """A body that is known already; `sent` is when it was handed over, after connecting."""

    def __init__(self, content: bytes = b"") -> None:
        self.kept: bytes | None = content
        self.started = False
        self.sent = 0.0

    async def __aiter__(self) -> AsyncIterator[bytes]:
        self.started, self.sent = True, time.perf_counter()
        if self.kept:
            yield self.kept


class Upload:
    """The body of a request as the client sends it. A copy is kept up to a limit, None without one.

    A client that sends nothing for `seconds` is given up: `UploadTimeout`. What is read ahead is handed over all the same.
    `sent` is when its last byte was handed over, so that a slow upload does not count as a slow answer.
    """

    def __init__(self, receive: Receive, limit: int | None, seconds: float) -> None:
        self._receive, self._limit, self._seconds = receive, limit, seconds
        self._parts: list[bytes] | None = None if limit is None else []
        self._size = 0
        self._ahead: list[bytes] = []
        self._more = True
        self.failure: ClientDisconnected | UploadTimeout | None = None
        self.started = False
        self.complete = False
        self.sent = 0.0

    @property
    def kept(self) -> bytes | None:
        """The whole body; None if it is too large, or not complete."""
        return b"".join(self._parts) if self._parts is not None and self.complete else None

    async def read_ahead(self) -> bytes | None:
        """The whole body before any of it is handed over; None if it is too large, or does not come."""
        try:
            while self._more and self._parts is not None:
                self._ahead.append(await self._next())
        except (ClientDisconnected, UploadTimeout) as error:
            self.failure = error
            return None
        return None if self._parts is None else b"".join(self._parts)

    def replace(self, content: bytes) -> None:
        """Hand this over in place of what was read ahead, of which the copy is kept all the same."""
        self._ahead = [content]

    async def __aiter__(self) -> AsyncIterator[bytes]:
        self.started = True
        ahead, self._ahead = self._ahead, []
        for part in ahead:
            self.sent = time.perf_counter()
            if part:
                yield part
        if self.failure is not None:
            raise self.failure
        while self._more:
            part = await self._next()
            self.sent = time.perf_counter()
            if part:
                yield part
        self.complete = True

    async def _next(self) -> bytes:
        """The next part, of which a copy is kept."""
        try:
            async with asyncio.timeout(self._seconds):
                message = await self._receive()
        except TimeoutError:
            raise UploadTimeout from None
        if message["type"] == "http.disconnect":
            raise ClientDisconnected
        part: bytes = message.get("body", b"")
        self._more = message.get("more_body", False)
        if self._parts is not None and self._limit is not None:
            self._size += len(part)
            self._parts.append(part)
            if self._size > self._limit:
                self._parts = None
        return part


class Recording:
    """The bytes of an answer up to a limit, and how many there were."""

    def __init__(self, limit: int) -> None:
        self._limit, self._parts, self._held = limit, list[bytes](), 0
        self.size = 0

    @property
    def body(self) -> bytes:
        """The bytes that were kept."""
        return b"".join(self._parts)

    @property
    def whole(self) -> bool:
        """Whether all bytes were kept."""
        return self._held == self.size

    def add(self, part: bytes) -> None:
        """Keep a part, or the beginning of it."""
        self.size += len(part)
        room = self._limit - self._held
        if room > 0:
            self._parts.append(part[:room])
            self._held += min(len(part), room)


# Seconds after which the proxy begins to look whether the client is still there. Most answers are faster.
WATCH_AFTER = 0.1


class CancelOnDisconnect:
    """Cancels the task that serves a request when the client goes away while an answer is awaited."""

    def __init__(self, receive: Receive, body: Content | Upload) -> None:
        self._receive, self._body = receive, body
        self._serving = asyncio.current_task()
        self._task: asyncio.Task[None] | None = None
        self._timer = asyncio.get_running_loop().call_later(WATCH_AFTER, self._start)
        self.gone = False

    def stop(self) -> None:
        """Look no longer."""
        self._timer.cancel()
        if self._task is not None:
            self._task.cancel()

    def _start(self) -> None:
        if isinstance(self._body, Upload) and not self._body.complete:  # it notices by itself
            self._timer = asyncio.get_running_loop().call_later(WATCH_AFTER, self._start)
        else:
            self._task = asyncio.create_task(self._look())

    async def _look(self) -> None:
        while (await self._receive())["type"] != "http.disconnect":
            pass
        self.gone = True
        if self._serving is not None:
            self._serving.cancel()
