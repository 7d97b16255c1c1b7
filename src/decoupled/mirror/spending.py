"""Holds the money that copies have cost against a budget."""

import json
import time
from collections.abc import Callable
from pathlib import Path

from ..base.files import write_atomically
from ..errors import ParameterError
from ..learner.budget import Budget


class Spending:
    """What was spent on copies, in all and in this period. A file keeps it over restarts.

    What a copy costs is known when it is answered. Until then it counts as much as the dearest so far, so only a copy
    that is dearer than all before it can exceed the budget.

    Args:
        budget: `total` and `allowance`; costs are those of the answers.
        dearest: what the first copies count until one is answered.
        file: where it is kept.
        clock: gives the time in seconds.

    >>> spending = Spending(Budget(cost=0.0, total=1.0), 0.25, Path("spent"))
    >>> spending.allows(waiting=2), spending.allows(waiting=3), spending.allows(waiting=4)
    (True, True, False)
    >>> spending.add(0.9)
    >>> spending.allows(waiting=0)
    False
    """

    def __init__(
        self, budget: Budget, dearest: float, file: Path, clock: Callable[[], float] = time.time
    ) -> None:
        self._budget, self._dearest, self._file, self._clock = budget, dearest, file, clock
        self._spent, self._in_period, self._period = 0.0, 0.0, 0
        self._changed = False
        if file.exists():
            try:
                self._spent, self._in_period, self._period, before = json.loads(file.read_bytes())
            except (ValueError, TypeError):
                raise ParameterError(f"{file}: cannot be read; remove it to count from 0") from None
            self._dearest = max(dearest, before)

    def allows(self, waiting: int) -> bool:
        """Whether the money suffices for another copy, beside those that wait for their answer."""
        budget, needed = self._budget, self._dearest * (waiting + 1)
        self._begin_period()
        if budget.allowance is not None and self._in_period + needed > budget.allowance[0]:
            return False
        return budget.total is None or self._spent + needed <= budget.total

    def add(self, cost: float) -> None:
        """Add what a copy has cost."""
        self._begin_period()
        self._spent += cost
        self._in_period += cost
        self._dearest, self._changed = max(self._dearest, cost), True

    def save(self) -> None:
        """Write what was spent, if it has changed."""
        if self._changed:
            self._changed = False
            kept = (self._spent, self._in_period, self._period, self._dearest)
            write_atomically(self._file, json.dumps(kept))

    def _begin_period(self) -> None:
        if self._budget.allowance is not None:
            period = int(self._clock() // self._budget.allowance[1])
            if period > self._period:  # a clock that goes back begins no period
                self._period, self._in_period = period, 0.0
