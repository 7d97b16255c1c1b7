"""Keeps what shadows cost within a budget, by their real prices."""

import json
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

from ...base.files import write_atomically
from ...learner.budget import Budget
from ...learner.meter import Meter
from .saving import SavedSoon


class Spending:
    """A budget that is charged what shadows really cost.

    What a shadow of an arm may cost, at first `budget.cost`, is set aside before it is sent, and replaced by the real price
    when that is known. It is the most that one has cost so far. So only a shadow that is dearer than all of its arm before
    it can exceed a limit, by the difference.

    >>> spending = Spending(Budget(cost=0.01, total=0.05), ["small", "large"])
    >>> spending.allows(["small", "large"]), spending.begin("d1", "large"), spending.end("d1", 0.03)
    (True, None, None)
    >>> spending.meter.used(now=0.0), spending.allows(["small", "large"]), spending.allows(["small"])
    ({'total': 0.03}, False, True)
    """

    def __init__(
        self,
        budget: Budget,
        arms: Sequence[str],
        file: Path | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._clock, self._file = clock, file
        self._begun: dict[str, tuple[str, Decimal]] = {}  # the arm and what is set aside, by decision
        if budget.cost is not None:
            budget = replace(budget, cost={arm: budget.cost_of(arm) for arm in arms})
        self.meter = Meter(budget, clock=clock)
        if file is not None and file.exists():
            self.meter = Meter.from_dict(json.loads(file.read_text("utf-8")), clock=clock).following(budget)
        self._saved = None if file is None else SavedSoon(self._save)

    def allows(self, arms: Sequence[str]) -> bool:
        """Whether a request may have a shadow; counts it as one without if not."""
        now = self._clock()
        if self.meter.limit(arms, now) is None:
            return True
        self.meter.count(None, now)
        return False

    def begin(self, decision: str, arm: str) -> None:
        """Set aside what a shadow may cost."""
        before = self.meter.spent
        self.meter.count(arm, self._clock())
        self._begun[decision] = arm, self.meter.spent - before

    def end(self, decision: str, cost: float) -> None:
        """Replace what was set aside by the real price; 0 if nothing was sent."""
        arm, aside = self._begun.pop(decision, (None, Decimal(0)))
        budget = self.meter.budget
        if arm is None or budget.cost is None:
            return
        difference = Decimal(repr(cost)) - aside
        self.meter.spent += difference
        # What was set aside in an earlier period is not given back in this one.
        self.meter.spent_in_period = max(self.meter.spent_in_period + difference, Decimal(0))
        if self._saved is not None:
            self._saved.changed()
        if cost > budget.cost_of(arm) and isinstance(budget.cost, dict):
            self.meter = self.meter.following(replace(budget, cost={**budget.cost, arm: cost}))

    def _save(self) -> None:
        # With what is set aside, which counts as spent after a crash.
        assert self._file is not None
        write_atomically(self._file, json.dumps(self.meter.to_dict()))
