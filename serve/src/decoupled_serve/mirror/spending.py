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
from .exchange import Answer

MILLION = 1e6


def stated_cost(answer: Answer, header: str | None, prices: Mapping[str, float]) -> float | None:
    """What an answer says that it cost, in a header or by the prices of a million of fields of `usage`; None if it does not.

    >>> body = b'{"usage": {"prompt_tokens": 1000, "completion_tokens": 200}}'
    >>> stated_cost(Answer("small", 200, (), body), None, {"prompt_tokens": 2.5, "completion_tokens": 10.0})
    0.0045
    >>> stated_cost(Answer("small", 200, (("x-cost", "0.25"),)), "X-Cost", {})
    0.25
    """
    if header is not None and (stated := _amount(answer.header(header))) is not None:
        return stated
    if not prices or not answer.complete:
        return None
    counts: dict[str, Any] = {}
    for usage in _usages(answer):  # a stream may tell it in several events
        counts.update(usage)
    found = {name: _amount(at(counts, name)) for name in prices}
    known = [price * count for name, price in prices.items() if (count := found[name]) is not None]
    return sum(known) / MILLION if known else None


def _usages(answer: Answer) -> Iterator[dict[str, Any]]:
    """Every `usage` in an answer, whether it is one object or a stream of events, at its top or one level below."""
    events = [answer.body]
    if (answer.header("content-type") or "").startswith("text/event-stream"):
        lines = answer.body.splitlines()
        events = [line[5:] for line in lines if line.startswith(b"data:") and b'"usage"' in line]
    for event in events:
        content = parsed(event)
        for place in (content, *(content.values() if isinstance(content, dict) else ())):
            if isinstance(place, dict) and isinstance(usage := place.get("usage"), dict):
                yield usage


def _amount(value: object) -> float | None:
    try:
        number = float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return None
    return number if number >= 0.0 and math.isfinite(number) else None


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
