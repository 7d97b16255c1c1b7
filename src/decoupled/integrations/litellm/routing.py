"""Routes the requests of one model group: which arm serves, and what becomes of the shadow. It knows no LiteLLM."""

import json
import logging
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from ...errors import ParameterError
from ...learner.keys import key_text
from ...mirror.backend import Traits
from ...mirror.config import CopyConfig, LossConfig
from ...mirror.copies import Copies, Copy
from ...mirror.counts import MirrorCounts
from ...mirror.exchange import Answer, Request
from ...mirror.headers import CREDENTIALS
from ...mirror.judges import Judge
from ...mirror.loss import CopyLoss, failed
from ...mirror.spending import Aside, Spending
from .deciding import Decider
from .requests import Fields, context_of, copied, headers_of
from .shadow_arm import NOT_SENT, ShadowArm

Failures = Literal["loss", "missing"]
OPEN_SECONDS = 600.0  # for an answer to be served; a longer one has no shadow
_log = logging.getLogger("decoupled.litellm")


class Mark(str):
    """The decision of a request, in LiteLLM's notes about it. A client can send such a text, but not such an object."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Open:
    """A request that is being served, and what its shadow will be."""

    decision: str
    explore: str
    target: str
    body: Mapping[str, Any]
    headers: tuple[tuple[str, str], ...]
    began: float
    aside: Aside

    def copy(self, served: Answer) -> Copy:
        """The shadow. It is made when the client has its answer, because a long body takes time to write."""
        content = json.dumps(self.body, default=str).encode()
        seen = tuple(each for each in self.headers if each[0] not in CREDENTIALS)
        request = Request("POST", self.target, self.headers, content)
        shown = Request("POST", self.target, seen, content)
        return Copy(self.decision, self.explore, request, shown, served, aside=self.aside)


class ShadowLoss(CopyLoss):
    """The loss of a shadow."""

    def __init__(self, config: LossConfig, judge: Judge | None, failures: Failures) -> None:
        super().__init__(config, judge)
        self._missing = failures == "missing"

    async def of(
        self, decision: str, request: Request, served: Answer | None, mirrored: Answer
    ) -> float | None:
        """The loss of the shadow; None if there is none."""
        if failed(mirrored):
            # If the router found no deployment, the model has not failed.
            not_sent = (mirrored.problem or "").startswith(NOT_SENT)
            if self._missing or not_sent:
                _log.warning(
                    "decision %s: no loss, because its shadow failed: %s", decision, mirrored.problem
                )
                return None
        return await super().of(decision, request, served, mirrored)


class Routing:
    """Chooses the arms of requests, and hands on the shadows of those that were served."""

    def __init__(
        self,
        arms: Sequence[ShadowArm],
        decider: Decider,
        loss: LossConfig,
        judge: Judge | None,
        spending: Spending,
        *,
        failures: Failures = "loss",
        session_header: str | None = None,
        context: Sequence[str] = (),
        forward_headers: Sequence[str] = (),
        copy_fields: Sequence[str] = (),
        concurrency: int = 16,
        queue: int = 1_000,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.arms = [arm.name for arm in arms]
        self.counts = MirrorCounts()
        self._decider, self._spending, self._clock, self._queue = decider, spending, clock, queue
        self._timed = loss.latency is not None or loss.duration is not None
        self._session_header = None if session_header is None else session_header.lower()
        self._context = tuple(context)
        self._forward = tuple(name.lower() for name in forward_headers)
        self._copy_fields = tuple(copy_fields)
        self._open: OrderedDict[str, Open] = OrderedDict()
        self._last: str | None = None
        self._config = CopyConfig(concurrency=concurrency)
        self.copies = Copies(
            {arm.name: arm for arm in arms},
            self._config,
            ShadowLoss(loss, judge, failures),
            decider,
            self.counts,
            None if loss.judge is None else loss.judge.otherwise,
            spending,
        )

    @property
    def spent(self) -> float:
        """What the shadows have cost, in dollars, if the budget is one of money."""
        return float(self._spending.meter.spent)

    async def choose(
        self, request: Fields, messages: Sequence[Any] | None, available: Sequence[str]
    ) -> tuple[str, Mark]:
        """The arm that serves a request, out of those available, and the mark by which its answer is known.

        Without a decision it is the arm of the one before, or the first of the list.
        """
        headers = headers_of(request)
        found = None if self._not_copied(request) else copied(request, messages, self._copy_fields)
        explores = found is not None and self._spending.allows(available)
        about = Traits(self._key(headers), context_of(request, self._context) if self._context else None)
        decision = await self._decider.draw("both" if explores else "exploit", available, about)
        if decision is None or decision.exploit not in available:
            self.counts.repeated += 1
            last = self._last
            return last if last is not None and last in available else available[0], Mark()
        self._last = decision.exploit
        if found is None or decision.explore is None:
            return decision.exploit, Mark()
        target, body = found
        self._begin(decision.id, decision.explore, target, body, headers)
        return decision.exploit, Mark(decision.id)

    def served(self, mark: str, target: str | None, answer: Callable[[], Answer]) -> None:
        """Send the shadow of a request that was served. Must be called in the event loop.

        Args:
            mark: what `choose` returned.
            target: the kind of call that it was; None if it is none that is copied.
            answer: gives what was served; it is not called if there is no shadow.
        """
        each = self._open.pop(mark, None)
        if each is None:
            return
        full = len(self.copies) >= self._queue or self.copies.bytes >= self._config.queue_bytes
        if each.target != target or full:
            self._give_up(each, "refused")
            return
        served = answer()
        copy = each.copy(served)
        if served.arm == each.explore:  # nothing is sent twice to the model that served
            copy.mirrored = served
            self.counts.reused[served.arm] += 1
        self.copies.resume(copy)

    def not_served(self, mark: str) -> None:
        """Give up the shadow of a request without an answer."""
        each = self._open.pop(mark, None)
        if each is not None:
            self._give_up(each, "client_gone")

    def _key(self, headers: Mapping[str, str]) -> str | None:
        """The key of a request; None if it has none, or none that can be one."""
        if self._session_header is None:
            return None
        try:
            return key_text(headers.get(self._session_header))
        except ParameterError:
            return None

    def _not_copied(self, request: Fields) -> bool:
        # A slow client stretches a streamed answer, which may stand for a shadow.
        return self._timed and bool(request.get("stream"))

    def _begin(
        self, decision: str, explore: str, target: str, body: Mapping[str, Any], headers: Mapping[str, str]
    ) -> None:
        now = self._clock()
        while self._open and (
            len(self._open) >= self._queue or next(iter(self._open.values())).began < now - OPEN_SECONDS
        ):
            self._give_up(self._open.popitem(last=False)[1], "client_gone")
        passed = tuple((name, headers[name]) for name in self._forward if name in headers)
        aside = self._spending.begin([explore])
        self._open[decision] = Open(decision, explore, target, body, passed, now, aside)

    def _give_up(self, each: Open, reason: str) -> None:
        self._spending.end(each.aside)
        self.counts.dropped[reason] += 1
