"""Reads from answers what they cost, and keeps copies within a budget by these prices."""

import json
import math
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any, NamedTuple

from decoupled.base import write_atomically
from decoupled.errors import ParameterError
from decoupled.learner import Budget, Meter

from ..nested import at, parsed
from .exchange import Answer

MILLION = 1e6


def stated_cost(answer: Answer, header: str | None, prices: Mapping[str, float]) -> float | None:
    """What an answer says that it cost; None if it does not say.

    Args:
        answer: the answer of an arm.
        header: the name of a header with the cost; None if there is none.
        prices: the price of a million of each field of `usage`, such as "completion_tokens".

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


class Aside(NamedTuple):
    """What is set aside for a copy, and when."""

    amount: Decimal
    since: float


class Spending:
    """A budget that is charged what copies really cost. A file may keep it over restarts.

    What a copy may cost, at first `budget.cost`, is set aside before it is sent, and replaced by the real price when that
    is known. It is the most that one of its arm has cost so far. So only copies that are dearer than all of their arm that
    were answered before they began can exceed a limit, each by the difference.

    Args:
        budget: the limits.
        arms: the arms that copies go to.
        file: where it is kept; None if it is not.
        clock: gives the time in seconds.
        judge: what judging a copy may cost at first, beside the copy.

    >>> spending = Spending(Budget(cost=0.01, total=0.05), ["small", "large"])
    >>> spending.allows(["small", "large"]), spending.end(spending.begin(["large"]), "large", 0.03)
    (True, None)
    >>> spending.meter.used(now=0.0), spending.allows(["small", "large"]), spending.allows(["small"])
    ({'total': 0.03}, False, True)
    """

    def __init__(
        self,
        budget: Budget,
        arms: Sequence[str],
        file: Path | None = None,
        clock: Callable[[], float] = time.time,
        judge: float = 0.0,
    ) -> None:
        self._clock, self._file, self._saved = clock, file, True
        self.on_change: Callable[[], None] = lambda: None
        before = None
        if file is not None and file.exists():
            try:
                before = Meter.from_dict(json.loads(file.read_bytes()), clock=clock)
            except (ValueError, TypeError, KeyError, ArithmeticError):
                raise ParameterError(f"{file}: cannot be read; remove it to count from 0") from None
        if budget.cost is not None:
            known = before.budget.cost if before is not None else None
            costs = known if isinstance(known, dict) else {}
            budget = replace(
                budget, cost={arm: max(budget.cost_of(arm) + judge, costs.get(arm, 0.0)) for arm in arms}
            )
        self.meter = Meter(budget, clock=clock) if before is None else before.following(budget)

    def allows(self, arms: Iterable[str]) -> bool:
        """Whether a request may have a copy to one of these arms; counts it as one without if not."""
        now = self._clock()
        if self.meter.limit(arms, now) is None:
            return True
        self.meter.count(None, now)
        return False

    def begin(self, arms: Iterable[str]) -> Aside:
        """Set aside what a copy to one of these arms may cost."""
        before, now = self.meter.spent, self._clock()
        self.meter.count(max(arms, key=self.meter.budget.cost_of), now)
        self._saved = False
        return Aside(self.meter.spent - before, now)

    def end(self, aside: Aside, arm: str | None = None, cost: float = 0.0) -> None:
        """Replace what was set aside by the real price; 0 if nothing was sent."""
        meter, budget, now = self.meter, self.meter.budget, self._clock()
        if budget.cost is None:
            return
        meter._begin_period(now)
        price = Decimal(repr(cost))
        meter.spent += price - aside.amount
        # What was set aside in an earlier period is not given back in this one.
        length = budget.allowance[1] if budget.allowance is not None else float("inf")
        meter.spent_in_period += price - (aside.amount if now // length == aside.since // length else 0)
        if arm is not None and cost > budget.cost_of(arm) and isinstance(budget.cost, dict):
            self.meter = meter.following(replace(budget, cost={**budget.cost, arm: cost}))
        self._saved = False
        self.on_change()

    def save(self) -> None:
        """Write what was spent, if it has changed, with what is set aside: that counts as spent after a crash."""
        if self._file is not None and not self._saved:
            self._saved = True
            write_atomically(self._file, json.dumps(self.meter.to_dict()))
