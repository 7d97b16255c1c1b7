"""Draws decisions ahead, so that no request waits for one.

The service puts a decision on disk before it answers, which takes milliseconds. A request takes one that is there
already; drawing more goes on in the background. Each decision carries its own propensity, so a loss is weighed
correctly however old its decision is. The price is that a decision knows nothing of the few losses that arrived
after it was drawn.

Keys and contexts are not known ahead, so a request with either waits for its own decision, but never long.
"""

import asyncio
import logging
import time
from collections import deque
from collections.abc import Iterable
from contextlib import suppress

from decoupled.decision import Mode
from decoupled.errors import DecoupledError

from .backend import Routing, ServiceCalls, Traits

# How many decisions of a kind are held at least and at most; between the two, as many as the traffic needs.
FEWEST: dict[Mode, int] = {"exploit": 8, "both": 4}
MOST = 512
_PAUSE = 1.0  # seconds until the next attempt after the service failed
_PATIENCE = 1.0  # seconds that a request with a key waits for its decision
_IDLE = 5.0  # seconds without a request that could have used those that are ready
_log = logging.getLogger("decoupled.mirror")


class Prefetch:
    """Decisions that are ready to be used: `exploit` to serve only, `both` to serve and to mirror."""

    def __init__(self, backend: ServiceCalls) -> None:
        self._backend = backend
        self._ready: dict[Mode, deque[Routing]] = {"exploit": deque(), "both": deque()}
        self._wanted = dict(FEWEST)
        self._asked: dict[Mode, int] = {"exploit": 0, "both": 0}  # while a draw is due or under way
        self._available: list[str] | None = None
        self._generation = 0  # of the rules: decisions drawn by others are not used
        self._needed = asyncio.Event()
        self._filling: asyncio.Task[None] | None = None
        # No decision for a key is asked for until then, because the last one failed.
        self._resting_until = 0.0
        self._taken = float("-inf")  # when one to mirror was last asked for
        self.last: str | None = None  # the arm that the newest decision exploits
        self.unused = 0

    async def start(self) -> None:
        """Draw the first decisions; raises the error if the service refuses them."""
        for mode in self._ready:
            await self._draw(mode)
        self._filling = asyncio.create_task(self._fill())

    async def stop(self) -> None:
        """Stop drawing. What was not used is never used."""
        if self._filling is not None:
            self._filling.cancel()
            with suppress(asyncio.CancelledError):
                await self._filling
        self._discard()

    def take(self, mode: Mode) -> Routing | None:
        """A decision that is ready; None, without waiting, if there is none."""
        ready = self._ready[mode]
        decision = ready.popleft() if ready else None
        if mode == "both":
            self._taken = time.monotonic()
        if self._is_low(mode):
            self._asked[mode] += 1
            self._needed.set()
        return decision

    async def draw_for(
        self, about: Traits, mode: Mode, seconds: float = _PATIENCE, rest: float = _PAUSE
    ) -> Routing | None:
        """A decision of its own for a request; None if none comes in time, or for `rest` seconds after that has failed."""
        now = asyncio.get_running_loop().time
        if now() < self._resting_until:
            return None
        try:
            async with asyncio.timeout(seconds):
                [decision] = await self._backend.decide(mode, 1, self._available, about)
            if time.monotonic() - self._taken > _IDLE:
                # Verdicts take losses in the order of decisions, and nobody may ever use these.
                self._leave(self._ready["both"])
                self._ready["both"].clear()
            return decision
        except (
            DecoupledError,
            TimeoutError,
        ):  # the draws for other requests fail as well, and say why
            self._resting_until = now() + rest
            return None

    def restrict(self, available: list[str] | None) -> None:
        """From now on choose among these arms only; None for all."""
        self._available = available
        if available is not None and self.last not in available:
            self.last = available[0]
        self.renew()

    def renew(self) -> None:
        """Use no decision that is ready, because other rules hold for the next ones."""
        self._generation += 1
        self._discard()
        self._needed.set()

    def _is_low(self, mode: Mode) -> bool:
        return 2 * len(self._ready[mode]) < self._wanted[mode]

    def _discard(self) -> None:
        for ready in self._ready.values():
            self._leave(ready)
            ready.clear()

    def _leave(self, unused: Iterable[Routing]) -> None:
        for decision in unused:
            self.unused += 1
            if decision.explore is not None:
                self._backend.forget(decision.id)

    async def _fill(self) -> None:
        while True:
            await self._needed.wait()
            self._needed.clear()
            try:
                await asyncio.gather(
                    *(self._draw(mode) for mode in self._ready if self._is_low(mode))
                )
            except Exception as error:
                # Whatever it is, clients are served, and the next attempt may succeed.
                known = isinstance(error, DecoupledError)
                told = "no decisions, so %r serves and nothing is mirrored: %s"
                _log.warning(told, self.last, error, exc_info=None if known else error)
                self._needed.set()
                await asyncio.sleep(_PAUSE)

    async def _draw(self, mode: Mode) -> None:
        ready, generation = self._ready[mode], self._generation
        drawn = await self._backend.decide(mode, self._wanted[mode] - len(ready), self._available)
        # The half that is left when a draw is due must last until it is done, with something to spare.
        steady = self._wanted[mode] - 1 - self._wanted[mode] // 50
        self._wanted[mode] = min(max(FEWEST[mode], 3 * self._asked[mode], steady), MOST)
        self._asked[mode] = 0
        if generation != self._generation:
            self._leave(drawn)
            self._needed.set()
            return
        ready.extend(drawn)
        if self._is_low(mode):  # more are wanted since this draw began
            self._needed.set()
        self.last = drawn[-1].exploit
