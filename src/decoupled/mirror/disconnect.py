"""Notices that a client has disconnected while its answer is awaited."""

import asyncio

from starlette.types import Receive

from .bodies import Content, Upload

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
