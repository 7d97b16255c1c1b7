"""Tracks which arms are up, by asking them at intervals and by failed connections."""

import asyncio
import logging
from collections.abc import Callable, Sequence
from contextlib import suppress

from .upstream import Upstream

EVERY = 5.0  # seconds between two checks of an arm
SECONDS = 2.0  # for one check
_log = logging.getLogger("decoupled.mirror")


class ArmHealth:
    """The arms that are up. `changed` is called with their names, None for all, when that changes.

    If every arm is down, all count as up: a client is better served by an error of an arm than by one of the proxy.
    """

    def __init__(
        self, arms: Sequence[Upstream], changed: Callable[[list[str] | None], None], every: float = EVERY
    ) -> None:
        self._arms, self._changed, self._every = arms, changed, every
        self._down: set[str] = set()
        self._tasks: list[asyncio.Task[None]] = []

    def up(self, name: str) -> bool:
        """Whether an arm is up."""
        return name not in self._down

    def available(self) -> list[str] | None:
        """The arms to choose from; None for all."""
        names = [arm.name for arm in self._arms if arm.name not in self._down]
        return names if self._down and names else None

    def failed(self, name: str) -> None:
        """Note that an arm could not be connected to."""
        self._note(name, up=False)

    async def start(self) -> None:
        """Check every arm that has a health check, then go on in the background."""
        await asyncio.gather(*(self._check(arm) for arm in self._arms if arm.config.health is not None))
        self._tasks = [asyncio.create_task(self._watch(arm)) for arm in self._arms]

    async def stop(self) -> None:
        """End the checks."""
        for task in self._tasks:
            task.cancel()
        for task in self._tasks:
            with suppress(asyncio.CancelledError):
                await task

    async def _watch(self, arm: Upstream) -> None:
        while True:
            await asyncio.sleep(self._every)
            if arm.config.health is not None or arm.name in self._down:
                await self._check(arm)

    async def _check(self, arm: Upstream) -> None:
        self._note(arm.name, up=await arm.healthy(SECONDS))

    def _note(self, name: str, *, up: bool) -> None:
        if up == (name not in self._down):
            return
        if up:
            self._down.discard(name)
        else:
            self._down.add(name)
        _log.log(logging.INFO if up else logging.WARNING, "arm %r: is %s", name, "up" if up else "down")
        self._changed(self.available())
