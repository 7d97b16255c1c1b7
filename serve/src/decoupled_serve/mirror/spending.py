"""Reads from answers what they cost, and keeps copies within a budget by these prices.

The ledger of a budget is a small file. What a call may cost at most is in it, on disk, before the call goes out; the real
price replaces it later. So a program that is killed at any moment has never spent more than the file says.
"""

import asyncio
import json
import math
import os
import time
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from decimal import Decimal
from functools import partial
from importlib import import_module
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
_ABSURD = 1e12  # no call has that many tokens, and none costs that much
fcntl: Any
try:
    fcntl = import_module("fcntl")
except ImportError:  # Windows
    fcntl = None


def stated_cost(answer: Answer, header: str | None, prices: Mapping[str, float]) -> float | None:
    """What an answer says that it cost, in a header or by the prices of a million of fields of `usage`; None if it does not.

    Every field that has a price must be there, but for those inside another field, which many models leave out if they are 0.
    `Unreadable` if it states what no call can have, such as a negative number.

    >>> body = b'{"usage": {"prompt_tokens": 1000, "completion_tokens": 200}}'
    >>> stated_cost(Answer("small", 200, (), body), None, {"prompt_tokens": 2.5, "completion_tokens": 10.0})
    0.0045
    >>> stated_cost(Answer("small", 200, (("x-cost", "0.25"),)), "X-Cost", {})
    0.25
    """
    if header is not None:
        stated = answer.header(header)
        if stated is not None:
            return _stated_amount(_number_in(stated), header)
    if not prices or not answer.complete:
        return None
    counts: dict[str, Any] = {}
    for usage in _usages(answer):  # a stream may tell it in several events
        counts.update(usage)
    if not counts:
        return None
    total = 0.0
    for name, price in prices.items():
        value = at(counts, name)
        if value is not None:
            total += price * _stated_amount(value, f"usage.{name}")
        elif "." not in name:
            return None
    return _stated_amount(total / MILLION, "usage")


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


def amount_of(value: object) -> float | None:
    """A count or a price in JSON; None if it is not a number that a call can have.

    >>> amount_of(3), amount_of(-1), amount_of(True), amount_of("3"), amount_of(float("nan")), amount_of(10**401)
    (3.0, None, None, None, None, None)
    """
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number or not 0.0 <= value <= _ABSURD:  # type: ignore[operator]
        return None
    return float(value)  # type: ignore[arg-type]


def _number_in(text: str) -> float:
    """The number in a header; NaN if there is none."""
    try:
        return float(text)
    except ValueError:
        return math.nan


def _content(body: bytes) -> Any:
    """The content of what was declared as JSON; None if it is empty, as that of an answer to HEAD."""
    if not body.strip():
        return None
    try:
        return json.loads(body)
    except (ValueError, RecursionError) as error:
        problem = f"it is declared as JSON and is none ({type(error).__name__})"
        raise Unreadable("json", problem) from None


def _stated_amount(value: object, place: str) -> float:
    """A price or a count that an answer states there; `Unreadable` if no call can have it."""
    amount = amount_of(value)
    if amount is None:
        raise Unreadable("price", f"its {place} is not a finite number from 0 that a call can have")
    return amount


class Spending:
    """A budget that is charged what copies really cost. A file may keep it over restarts. Any thread may use it.

    The most that a copy and its judgement may cost, as `budget.cost` and `judge` declare it, is set aside before the copy is
    sent, and replaced by the real price when that is known. So real prices and what is set aside never exceed a limit
    together, as long as no price is above the declared one. One that is gets paid, and counted in `meter.above`.

    With a file, nothing may be sent before `secured`: what is set aside is on disk then, and counts as spent after a crash.
    The file belongs to one `Spending` until `close`; others are refused.

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
        self.judge = judge
        self._clock = clock
        self._learner = learner
        self.on_change: Callable[[], None] = lambda: None
        self._lock = Lock()  # of the meter
        self._writing = Lock()  # of the file
        self._committing = asyncio.Lock()
        self._changes = self._reservations = 0
        self._saved_changes = self._saved_reservations = 0
        self._file = file
        self._is_closed = False
        if file is not None:
            # Also if nobody closes it.
            self._let_go = weakref.finalize(self, _lock_beside(file))
        try:
            before = None if file is None else _meter_in(file, clock)
            if budget.cost is not None:
                budget = replace(budget, cost={arm: budget.cost_of(arm) + judge for arm in arms})
            self.meter = (
                Meter(budget, clock=clock, seed=seed)
                if before is None
                else before.with_budget(budget)
            )
        except BaseException:
            if file is not None:
                self._let_go()
            raise

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

    def extend(self, aside: Aside, amount: float) -> Aside | None:
        """Set aside more for a copy, as for another attempt of its judge; None if there is too little."""
        budget, more = self.meter.budget, Decimal(repr(amount))
        if budget.cost is None or not more:
            return aside
        with self._lock:
            before = self.meter.spent_in_period
            self.meter.charge(aside, float(aside.amount + more), float(aside.amount + more))
            extended = aside._replace(amount=aside.amount + more)
            # In no period but its own: what is left of one before the current one is not known.
            is_current = self.meter.spent_in_period != before
            within = budget.total is None or self.meter.spent <= Decimal(repr(budget.total))
            if within and budget.allowance is not None:
                within = is_current and self.meter.spent_in_period <= Decimal(
                    repr(budget.allowance[0])
                )
            if not within:
                self.meter.charge(extended, float(aside.amount), float(aside.amount))
                return None
            self._changes += 1
            self._reservations += 1
            return extended

    def _begin(self, arms: Iterable[str], now: float) -> Aside:
        self._changes += 1
        if self.meter.budget.cost is not None:  # else a crash may forget it: it is no money
            self._reservations += 1
        return self.meter.count(max(arms, key=self.meter.budget.cost_of), now)

    def most(self, arm: str) -> float:
        """The most that a copy to an arm costs, without its judge: what counts if its real price is not known."""
        return max(self.meter.budget.cost_of(arm) - self.judge, 0.0)

    def end(self, aside: Aside, arm: str | None = None, cost: float = 0.0) -> bool:
        """Replace what was set aside by a copy's real price, 0 if none was sent; returns whether that is above the declared one.

        A cost that no call can have counts as the declared one.
        """
        budget = self.meter.budget
        if budget.cost is None:
            return False
        declared = None if arm is None else budget.cost_of(arm) + self._added(aside)
        known = amount_of(cost)
        price = float(aside.amount) if known is None else known
        with self._lock:
            self.meter.charge(aside, price, declared)
            self._changes += 1
        self.on_change()
        return declared is not None and price > declared

    def _added(self, aside: Aside) -> float:
        """What `extend` has added to what was set aside for the dearest arm."""
        cost = self.meter.budget.cost
        dearest = max(cost.values()) if isinstance(cost, Mapping) else float(cost or 0.0)
        return max(float(aside.amount) - dearest, 0.0)

    def shown(self) -> dict[str, dict[str, float]]:
        """What is spent, what is set aside included, and what is left of each limit; and the copies above their ceiling."""
        with self._lock:
            used, budget = self.meter.used(self._clock()), self.meter.budget
        limits = {"total": budget.total, "allowance": budget.allowance and budget.allowance[0]}
        left = {name: limit - used[name] for name, limit in limits.items() if limit is not None}
        return {"spent": {name: used[name] for name in left}, "left": left}

    async def secured(self) -> None:
        """Wait until what is set aside is on disk; `OSError` if it cannot be. Those who wait together share one write."""
        if self._file is None:
            return
        wanted = self._reservations
        async with self._committing:
            if self._saved_reservations < wanted:
                await asyncio.to_thread(self.save)

    def save(self) -> None:
        """Write what was spent, if it has changed, with what is set aside: that counts as spent after a crash."""
        if self._file is None:
            return
        with self._writing:
            with self._lock:
                changes, reservations = self._changes, self._reservations
                if changes == self._saved_changes:
                    return
                content = self.meter.to_dict()
            if self._is_closed:  # another program may have the file
                raise OSError(f"{self._file}: is closed")
            write_atomically(self._file, json.dumps(content), tidy=self._saved_changes == 0)
            _sync_folder(self._file.parent)
            self._saved_changes = changes
            self._saved_reservations = reservations

    def close(self) -> None:
        """Write what was spent, and let another program use the file."""
        if self._file is None or self._is_closed:
            return
        try:
            self.save()
        finally:
            self._is_closed = True
            self._let_go()


def _meter_in(file: Path, clock: Callable[[], float]) -> Meter | None:
    """What a file says was spent; None if there is no file."""
    try:
        content = file.read_bytes()
    except FileNotFoundError:
        return None
    try:
        return Meter.from_dict(json.loads(content), clock=clock)
    except (ValueError, TypeError, KeyError, ArithmeticError):
        raise ParameterError(f"{file}: cannot be read; remove it to count from 0") from None


def _lock_beside(file: Path) -> Callable[[], None]:
    """Lock a file beside this one until the result is called, or this process ends, however it ends. Windows has no lock."""
    if fcntl is None:
        return lambda: None
    descriptor = os.open(file.with_name(f"{file.name}.lock"), os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        rule = (
            "another program counts its spending in this file, and two would spend the budget twice"
        )
        remedy = "end that program, or give this one an experiment or a folder of its own"
        raise ParameterError(f"{file}: {rule}; {remedy}") from None
    return partial(os.close, descriptor)


def _sync_folder(folder: Path) -> None:
    """Have the name of a new file on disk, too, where the system can."""
    with suppress(OSError, AttributeError):  # Windows cannot open a folder
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
