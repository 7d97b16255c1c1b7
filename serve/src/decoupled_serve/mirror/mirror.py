"""Puts the parts of a mirror together, and starts and ends them."""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

from decoupled.errors import DecoupledError
from decoupled.learner import Budget

from .backend import Backend
from .config import MirrorConfig
from .copies import Copies, keep_copies, take_copies
from .counts import MirrorCounts, MirrorMetrics
from .exchange import Answer
from .front import Front, FrontParts
from .judges import CopyLoss
from .judging import judge_of
from .labels import Labeller
from .news import News
from .prefetch import Prefetch
from .proxy import Proxy
from .sink import Sink
from .spending import Spending
from .upstream import ArmHealth, Upstream, trust_of

# Seconds between two looks at the verdict, at what is due, and at the guardrails: a pin holds for requests a second later.
LOOK_EVERY, _EVERY, _RULES_EVERY = 10.0, 10.0, 1.0
_log = logging.getLogger("decoupled.mirror")


class Mirror:
    """Everything between the two sockets of a mirror. Make it on the event loop that runs it."""

    def __init__(self, config: MirrorConfig, backend: Backend) -> None:
        self._config, self._name, self._backend = config, config.experiment.name, backend
        self.counts = MirrorCounts()
        trust = trust_of(config.arms)
        self._arms = [Upstream(arm, config.mirror, trust) for arm in config.arms]
        self._by_name = {arm.name: arm for arm in self._arms}
        judge = config.loss.judge
        limit = config.mirror.answer_limit
        self._judge = None if judge is None else judge_of(judge, config.folder, limit)
        loss = CopyLoss(config.loss, self._judge)
        backend.add_remark(lambda: self.counts.judge.problem)
        self._prefetch = Prefetch(self._backend)
        self._health = ArmHealth(self._arms, self._prefetch.restrict)
        self._spending: Spending | None = None
        if config.spending_limits:
            costs = {arm.name: arm.dearest for arm in config.arms}
            budget = Budget(cost=costs, **config.spending_limits)
            ceiling = 0.0 if judge is None else judge.dearest
            self._spending = Spending(budget, list(costs), config.file("spent"), judge=ceiling)
        self._labeller: Labeller | None = None
        if config.labels is not None:
            counts, folder = self.counts.labels, config.folder
            self._labeller = Labeller(config.labels, loss, self._backend, counts, folder, limit)
        # Nobody looks at the bodies of answers whose loss is in their status and times.
        self._is_seen = self._judge is not None or self._labeller is not None
        self._reads = any(arm.states_cost for arm in config.arms)
        self._helpers = [each for each in (self._judge, self._labeller) if each is not None]
        self._copies = Copies(
            self._by_name, config.mirror, loss, self._backend, self.counts,
            None if judge is None else judge.otherwise, self._spending,
            self._readable if self._reads or self._is_seen else None, self._labeller,
        )  # fmt: skip
        parts = FrontParts(self._arms, config, self._prefetch, self._copies, self.counts)
        self.front: Front = Sink(parts) if config.sink else Proxy(parts, self._health)
        self._news = News(self._name, config.file("events"), config.webhook, self.counts)
        self.metrics = MirrorMetrics(self.counts, self._gauges)
        self._background: list[asyncio.Task[None]] = []
        self._rules: object = None  # that held when they were last looked at

    async def start(self) -> None:
        """Create the experiment, look at the arms, draw decisions, and resume the copies of an earlier run."""
        for each in self._helpers:
            await each.start()
        await self._backend.prepare()
        await self._health.start()
        if not self._config.sink:  # whose copies can wait for a decision
            await self._prefetch.start()
        kept = take_copies(self._config.file("queue"))
        for copy in kept:
            if copy.arm in self._by_name:
                self._copies.resume(copy)
            else:
                self._copies.drop("shutdown", copy.decision)
        if kept:
            _log.info("%d copies of the run before are resumed", len(kept))
        steps = ((self._tidy, _EVERY), (self._follow_rules, _RULES_EVERY), (self._look, LOOK_EVERY))
        self._background = [asyncio.create_task(_repeat(*each)) for each in steps]

    async def finish(self) -> None:
        """Finish the copies, or keep them for the next start. Everything can still be looked at."""
        for task in self._background:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task
        await self._prefetch.stop()
        await self._health.stop()
        await self._news.stop()
        left = await self._copies.drain(float(self._config.drain))
        await self._save_spending()
        if left:
            keep_copies(self._config.file("queue"), left)
            _log.info("%d copies are kept for the next start", len(left))

    async def close(self) -> None:
        """Close all connections, and the store."""
        if self._spending is not None:
            await asyncio.to_thread(self._spending.close)
        for each in (*self._helpers, *self._arms):
            await each.close()
        await self._backend.close()

    def _readable(self, answer: Answer) -> Answer:
        """The answer with what it cost; `Unreadable` if it, or its price, cannot be read."""
        arm = self._by_name.get(answer.arm)  # that of an earlier run may be gone
        return answer if arm is None else arm.read(answer, is_seen=self._is_seen)

    def status(self) -> dict[str, Any]:
        """The counts, and how things stand now."""
        return {
            "experiment": self._name,
            "verdict": self._news.known.text,
            **self._gauges(),
            "in_flight": self.front.in_flight,
            "unused_decisions": self._prefetch.unused,
            **self.counts.to_dict(),
        }

    def _gauges(self) -> dict[str, Any]:
        up = {name: self._health.up(name) for name in self._by_name}
        known = self._news.known
        money = {"spent": {}, "left": {}} if self._spending is None else self._spending.shown()
        return {
            "budget_spent": money["spent"],
            "budget_left": money["left"],
            "queue": len(self._copies),
            "queue_bytes": self._copies.bytes,
            "judge_warning": int(known.warning is not None),
            "up": up,
            "decided": {name: known.decided[:1] == (name,) for name in up},
            "released": {} if known.incumbent is None else {known.incumbent: known.released},
        }

    async def _tidy(self) -> None:
        await self._save_spending()
        await self._backend.tidy()

    async def _save_spending(self) -> None:
        if self._spending is not None:
            await asyncio.to_thread(self._spending.save)

    async def _look(self) -> None:
        """Look what is decided, and tell."""
        self._news.learn(await self._backend.known(), time.time())

    async def _follow_rules(self) -> None:
        """Draw decisions anew when somebody has changed the guardrails or the budget."""
        held, self._rules = self._rules, await self._backend.rules()
        if held is not None and self._rules != held:
            self._prefetch.renew()


async def _repeat(step: Callable[[], Awaitable[None]], seconds: float) -> None:
    while True:
        try:
            await step()
        except (DecoupledError, OSError) as error:
            _log.warning("%s", error)
        await asyncio.sleep(seconds)
