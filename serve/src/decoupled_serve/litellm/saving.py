"""Writes a file soon after what it holds has changed, and when the process ends."""

import asyncio
import atexit
import logging
from collections.abc import Callable

SECONDS = 1.0  # between a change and the file that has it
_log = logging.getLogger("decoupled.litellm")


class SavedSoon:
    """Something that is saved by a function."""

    def __init__(self, save: Callable[[], None]) -> None:
        self._save = save
        self._saving: asyncio.Task[None] | None = None
        atexit.register(save)

    def changed(self) -> None:
        """Save it soon, in a thread. Must be called in the event loop."""
        if self._saving is None or self._saving.done():
            self._saving = asyncio.create_task(self._save_soon())

    async def _save_soon(self) -> None:
        await asyncio.sleep(SECONDS)
        try:
            await asyncio.to_thread(self._save)
        except OSError as error:  # such as a full disk
            _log.error("what was learned cannot be saved: %s", error)
