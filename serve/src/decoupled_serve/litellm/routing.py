"""Routes the requests of one model group: which arm serves, and what becomes of the shadow. It knows no LiteLLM."""

import json
import math
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from decoupled.errors import ParameterError
from decoupled.learner import key_text

from ..mirror.backend import Traits
from ..mirror.config import NOT_ITS_OWN, CopyConfig, JudgeConfig, LossConfig
from ..mirror.copies import Copies, Copy
from ..mirror.counts import MirrorCounts
from ..mirror.exchange import Answer, Request, Unreadable
from ..mirror.headers import CREDENTIALS
from ..mirror.judges import CopyLoss, Judge
from ..mirror.spending import Spending
from .deciding import Decider
from .shadow_arm import Fields, ShadowArm, context_of, copied, headers_of

OPEN_SECONDS = 600.0  # for an answer to be served; a longer one has no shadow


def refuse_own_judge(judge: JudgeConfig | None, arms: Sequence[str]) -> None:
    """Refuse a model as judge that is an arm, too, unless it may. Only LiteLLM knows the addresses of arms.

    >>> refuse_own_judge(JudgeConfig(model="gpt-5", url="http://a"), ["openai/gpt-5"])
    Traceback (most recent call last):
        ...
    decoupled.errors.ParameterError: loss.judge.model = 'gpt-5': is the arm 'openai/gpt-5', too; models prefer their own answers: name another, or set self_judging = true
    """
    if judge is None or judge.model is None or judge.self_judging:
        return
    for arm in arms:
        if judge.model in (arm, arm.rpartition("/")[2]):
            rule = f"is the arm {arm!r}, too"
            raise ParameterError.of("loss.judge.model", judge.model, rule, NOT_ITS_OWN)


def refuse_unkept(
    money: Mapping[str, object], judge: JudgeConfig | None, file: Path | None
) -> None:
    """Refuse limits of money, by name, that would be forgotten, or that a judge could exceed.

    >>> refuse_unkept({"allowance": (5.0, 86400)}, None, None)
    Traceback (most recent call last):
        ...
    decoupled.errors.ParameterError: budget.allowance = (5.0, 86400): is forgotten when the proxy is started again; give a file, save
    """
    for name, value in money.items():
        if file is None:
            rule = "is forgotten when the proxy is started again"
            raise ParameterError.of(f"budget.{name}", value, rule, "give a file, save")
        if judge is not None and judge.model is not None and not judge.dearest:
            rule = (
                "needs the most that a judgement costs, and the judge has neither ceiling nor cost"
            )
            remedy = "give it ceiling, beside its prices or cost_header, or cost"
            raise ParameterError.of(f"budget.{name}", value, rule, remedy)


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

    def copy(self, served: Answer) -> Copy:
        """The shadow. It is made when the client has its answer, because a long body takes time to write."""
        content = json.dumps(self.body, default=str).encode()
        seen = tuple(each for each in self.headers if each[0] not in CREDENTIALS)
        request = Request("POST", self.target, self.headers, content)
        shown = Request("POST", self.target, seen, content)
        return Copy(self.decision, self.explore, request, shown, served)


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
        self._decider, self._spending, self._clock = decider, spending, clock
        self._timed = loss.latency is not None or loss.duration is not None
        self._session_header = None if session_header is None else session_header.lower()
        self._context = tuple(context)
        self._forward = tuple(name.lower() for name in forward_headers)
        self._copy_fields = tuple(copy_fields)
        self._open: OrderedDict[str, Open] = OrderedDict()
        self._last: str | None = None
        self._shadows = {arm.name: arm for arm in arms}
        self.copies = Copies(
            self._shadows,
            CopyConfig(concurrency=concurrency, queue=queue),
            CopyLoss(loss, judge),
            decider,
            self.counts,
            None if loss.judge is None else loss.judge.otherwise,
            spending,
            read=self._priced,
        )

    def _priced(self, answer: Answer) -> Answer:
        """The answer; `Unreadable` if its cost is no price, and its call then counts as the dearest."""
        if answer.cost is None or 0.0 <= answer.cost < math.inf:
            return answer
        budget = self._spending.meter.budget
        declared = 0.0 if budget.cost is None else budget.cost_of(answer.arm)
        raise Unreadable("price", "its cost is not a finite number from 0", declared)

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
        # A slow client stretches a streamed answer, which may stand for a shadow.
        streams = self._timed and request.get("stream")
        found = None if streams else copied(request, messages, self._copy_fields)
        about = Traits(
            self._key(headers), context_of(request, self._context) if self._context else None
        )
        while self._open and next(iter(self._open.values())).began < self._clock() - OPEN_SECONDS:
            self.copies.give_up("client_gone", self._open.popitem(last=False)[0])
        # What a shadow may cost is set aside before anything is awaited, while others ask for theirs.
        reason = "not_repeatable" if found is None else self.copies.reserve()
        try:
            decision = await self._decider.draw("exploit" if reason else "both", available, about)
        except BaseException:
            if reason is None:
                self.copies.release()
            raise
        mark, serves = "", decision is not None and decision.exploit in available
        if found is None or reason is not None:
            self.counts.not_mirrored[str(reason)] += 1
        elif decision is None or decision.explore is None:
            self.copies.release()
        elif not serves:
            self.copies.give_up("refused", decision.id)
        else:
            passed = tuple((each, headers[each]) for each in self._forward if each in headers)
            mark = decision.id
            self._open[mark] = Open(mark, decision.explore, *found, passed, self._clock())
        if decision is not None and serves:
            self._last = decision.exploit
            return decision.exploit, Mark(mark)
        self.counts.repeated += 1
        last = self._last
        return last if last is not None and last in available else available[0], Mark()

    def served(
        self, mark: str, target: str | None, answer: Callable[[], Answer], arm: str = ""
    ) -> None:
        """Send the shadow of a request that was served, by its mark. Must be called in the event loop.

        `target` is the kind of call, None if none that is copied. `answer`, what was served, is asked for only with a shadow.
        If it raises an error, the answer of `arm` counts as failed.
        """
        each = self._open.pop(mark, None)
        if each is None:
            return
        if each.target != target:
            self.copies.give_up("refused", each.decision)
            return
        try:
            served = answer()
        except Exception as error:  # such as text that is no Unicode
            served = self.copies.unreadable(Answer(arm, None), error)
        copy = each.copy(served)
        if served.arm == each.explore:  # nothing is sent twice to the model that served
            copy.mirrored = self._shadows[served.arm].in_time(served)
            self.counts.reused[served.arm] += 1
        self.copies.start(copy)

    def not_served(self, mark: str) -> None:
        """Give up the shadow of a request that no model answered."""
        each = self._open.pop(mark, None)
        if each is not None:
            self.copies.give_up("client_gone", each.decision)

    def _key(self, headers: Mapping[str, str]) -> str | None:
        """The key of a request; None if it has none, or none that can be one."""
        if self._session_header is None:
            return None
        try:
            return key_text(headers.get(self._session_header))
        except ParameterError:
            return None
