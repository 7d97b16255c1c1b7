"""Reads from answers what they cost, and keeps copies within a budget by these prices."""

import json
import math
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from threading import Lock
from typing import Any

from decoupled.base import write_atomically
from decoupled.errors import ParameterError
from decoupled.learner import Aside, Budget, Learner, Meter

from ..nested import at, parsed
from .chat import event_data
from .exchange import Answer, Unreadable

MILLION = 1e6


def stated_cost(answer: Answer, header: str | None, prices: Mapping[str, float]) -> float | None:
    """What an answer says that it cost, in a header or by the prices of a million of fields of `usage`; None if it does not.

    `Unreadable` if it says something that is no price.

    >>> body = b'{"usage": {"prompt_tokens": 1000, "completion_tokens": 200}}'
    >>> stated_cost(Answer("small", 200, (), body), None, {"prompt_tokens": 2.5, "completion_tokens": 10.0})
    0.0045
    >>> stated_cost(Answer("small", 200, (("x-cost", "0.25"),)), "X-Cost", {})
    0.25
    """
    if header is not None and (stated := answer.header(header)) is not None:
        return _amount(stated, header)
    if not prices or not answer.complete:
        return None
    counts: dict[str, Any] = {}
    for usage in _usages(answer):  # a stream may tell it in several events
        counts.update(usage)
    found = {name: at(counts, name) for name in prices}
    known = [
        price * _amount(found[name], f"usage.{name}")
        for name, price in prices.items()
        if found[name] is not None
    ]
    return _amount(sum(known) / MILLION, "usage") if known else None


def _usages(answer: Answer) -> Iterator[dict[str, Any]]:
    """Every `usage` in an answer, whether it is one object or a stream of events, at its top or one level below."""
    kind = (answer.header("content-type") or "").lower()
    streams = kind.startswith("text/event-stream")
    events: Iterable[bytes] = [answer.body]
    if streams:
        events = (data for data in event_data(answer.body) if b'"usage"' in data)
    has_to_be_json = streams or kind.partition(";")[0].strip().endswith("json")
    for event in events:
        content = _content(event) if has_to_be_json else parsed(event)
        if not isinstance(content, dict):
            continue
        if not isinstance(content.get("usage"), dict | None):
            raise Unreadable("price", "its usage is no object")
        for place in (content, *content.values()):
            if isinstance(place, dict) and isinstance(usage := place.get("usage"), dict):
                yield usage


def _content(body: bytes) -> Any:
    """The content of what was declared as JSON; None if it is empty, as that of an answer to HEAD."""
    if not body.strip():
        return None
    try:
        return json.loads(body)
    except (ValueError, RecursionError) as error:
        problem = f"it is declared as JSON and is none ({type(error).__name__})"
        raise Unreadable("json", problem) from None


def _amount(value: object, place: str) -> float:
    """A price or a count; `Unreadable` if it is none."""
    try:
        number = float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if not (number >= 0.0 and math.isfinite(number)):
        raise Unreadable("price", f"its {place} is not a finite number from 0")
    return number


class Spending:
    """A budget that is charged what copies really cost. A file may keep it over restarts. Any thread may use it.

    The most that a copy and its judgement may cost, as `budget.cost` and `judge` declare it, is set aside before the copy is
    sent, and replaced by the real price when that is known. So real prices and what is set aside never exceed a limit
    together, as long as no price is above the declared one. One that is gets paid, and counted in `meter.above`.

    `judge` is the most that judging a copy costs, `learner` that whose verdict a `decided_share` goes by, and `seed` that of
    the coin of a share.

    >>> spending = Spending(Budget(cost=0.02, total=0.05), ["small", "large"])
    >>> aside = spending.reserve(["small", "large"])
    >>> spending.end(aside, "large", 0.04)
    True
    >>> spending.meter.used(now=0.0), spending.reserve(["small", "large"])
    ({'total': 0.04, 'above': 1}, None)
    """

    def __init__(
        self,
        budget: Budget,
        arms: Sequence[str],
        file: Path | None = None,
        clock: Callable[[], float] = time.time,
        judge: float = 0.0,
        learner: Learner | None = None,
        seed: int | None = None,
    ) -> None:
        self._clock, self._file, self._saved, self._learner = clock, file, True, learner
        self._lock = Lock()
        self.on_change: Callable[[], None] = lambda: None
        before = None
        if file is not None and file.exists():
            try:
                before = Meter.from_dict(json.loads(file.read_bytes()), clock=clock)
            except (ValueError, TypeError, KeyError, ArithmeticError):
                raise ParameterError(f"{file}: cannot be read; remove it to count from 0") from None
        if budget.cost is not None:
            budget = replace(budget, cost={arm: budget.cost_of(arm) + judge for arm in arms})
        self.meter = Meter(budget, clock=clock, seed=seed) if before is None else before.following(budget)

    def reserve(self, arms: Iterable[str]) -> Aside | None:
        """Set aside what a copy to one of these arms may cost; None, and a request without a copy, if there is too little."""
        with self._lock:
            now, meter = self._clock(), self.meter
            if meter.limit(arms, now, meter.share(self._learner)) is None:
                return self._begin(arms, now)
            meter.count(None, now)
            return None

    def resume(self, arm: str) -> Aside:
        """Set aside what a copy may cost that an earlier run has begun, whatever is left."""
        with self._lock:
            return self._begin([arm], self._clock())

    def _begin(self, arms: Iterable[str], now: float) -> Aside:
        self._saved = False
        return self.meter.count(max(arms, key=self.meter.budget.cost_of), now)

    def end(self, aside: Aside, arm: str | None = None, cost: float = 0.0) -> bool:
        """Replace what was set aside by a copy's real price, 0 if none was sent; returns whether that is above the declared one."""
        budget = self.meter.budget
        if budget.cost is None:
            return False
        # Of all arms, the dearest was set aside.
        declared = None if arm is None else budget.cost_of(arm)
        with self._lock:
            self.meter.charge(aside, cost, declared)
            self._saved = False
        self.on_change()
        return declared is not None and cost > declared

    def shown(self) -> dict[str, dict[str, float]]:
        """What is spent, what is set aside included, and what is left of each limit; and the copies above their ceiling."""
        with self._lock:
            used, budget = self.meter.used(self._clock()), self.meter.budget
        limits = {"total": budget.total, "allowance": budget.allowance and budget.allowance[0]}
        left = {name: limit - used[name] for name, limit in limits.items() if limit is not None}
        return {"spent": {name: used[name] for name in left}, "left": left}

    def save(self) -> None:
        """Write what was spent, if it has changed, with what is set aside: that counts as spent after a crash."""
        if self._file is not None and not self._saved:
            with self._lock:
                self._saved, content = True, json.dumps(self.meter.to_dict())
            write_atomically(self._file, content)
