"""A budget as it is spent: no limit is ever exceeded."""

import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from decimal import Decimal
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from ..base.turns import TakesTurns, in_turn
from ..decision import Arm, Decision, Served
from ..errors import UnsupportedError
from .budget import Budget

if TYPE_CHECKING:
    from .learner import Learner


class Meter(TakesTurns):
    """A budget as it is spent. Let it decide for your learner.

    Args:
        budget: the limits.
        clock: gives the time in seconds; `time.time` by default.

    >>> import decoupled as dc
    >>> learner = dc.FTPL().start(arms=["a", "b", "c"], seed=7)
    >>> meter = dc.Meter(dc.Budget(share=0.25))
    >>> for _ in range(8):
    ...     decision = meter.decide(learner)               # use decision.exploit
    ...     if isinstance(decision, dc.Decision):          # it may explore
    ...         learner.observe(decision, loss=0.3)
    >>> meter.explored, meter.decisions, learner.round
    (2, 8, 3)
    >>> meter.decide(learner).limited_by
    'share'
    """

    def __init__(self, budget: Budget, *, clock: Callable[[], float] = time.time) -> None:
        self.budget = budget
        self._clock = clock
        self.decisions = self.explored = 0
        self.spent = self.spent_in_period = Decimal(0)
        self._times: deque[float] = deque()  # of the explorations that count for the rate
        self._period: int | None = None
        self._open()

    def decide(self, learner: "Learner", *, available: Iterable[Arm] | None = None) -> Decision | Served:
        """A decision with both arms if the budget allows it, and otherwise an arm to use, which takes no feedback.

        Args:
            learner: the learner that decides. Its policy must be a decoupled one.
            available: the arms to choose from, as in `Learner.decide`; None for all.

        Returns:
            A `Decision` that explores, or a `Served` whose `limited_by` names the limit.
        """
        if learner.policy.coupled:
            name = type(learner.policy).__name__
            raise UnsupportedError(
                f"budget: {name} plays the standard game, where every decision explores; use a decoupled policy"
            )
        return self._decide(learner, None if available is None else list(available))

    @in_turn
    def _decide(self, learner: "Learner", some: list[Arm] | None) -> Decision | Served:
        now = self._clock()
        limit = self.limit(learner.arms if some is None else some, now)
        if limit is not None:
            served = learner.exploit(available=some)
            self.count(None, now)
            return served._replace(limited_by=limit)
        decision = learner.decide(available=some)
        self.count(decision.explore, now)
        return decision

    def limit(self, arms: Iterable[Arm], now: float) -> str | None:
        """The part of the budget that keeps the next decision from exploring one of these arms; None if it may.

        Args:
            arms: the arms that the decision may explore.
            now: the time in seconds.

        Returns:
            "share", "rate", "total" or "allowance"; None if it may explore.
        """
        budget = self.budget
        if budget.share is not None and self.explored + 1 > _exact(budget.share) * (self.decisions + 1):
            return "share"
        if budget.rate is not None and self._in_window(now) >= budget.rate[0]:
            return "rate"
        if budget.cost is not None:
            dearest = _exact(max(map(budget.cost_of, arms)))
            if budget.total is not None and self.spent + dearest > _exact(budget.total):
                return "total"
            if budget.allowance is not None:
                self._begin_period(now)
                if self.spent_in_period + dearest > _exact(budget.allowance[0]):
                    return "allowance"
        return None

    def count(self, explored: Arm | None, now: float) -> None:
        """Count a decision, and the arm that it explores, if any.

        Args:
            explored: the arm that the decision explores; None if it explores none.
            now: the time in seconds.
        """
        if explored is None:
            self.decisions += 1
            return
        cost = Decimal(0) if self.budget.cost is None else _exact(self.budget.cost_of(explored))
        self._begin_period(now)
        if self.budget.rate is not None:
            self._times.append(
                now
            )  # first: if there is an interrupt, one too many is counted rather than one too few
        self.decisions += 1
        self.explored += 1
        self.spent += cost
        self.spent_in_period += cost

    def _in_window(self, now: float) -> int:
        """How many explorations are in the window that ends now."""
        assert self.budget.rate is not None
        start = now - self.budget.rate[1]
        while self._times and self._times[0] <= start:
            self._times.popleft()
        return len(self._times)

    def _begin_period(self, now: float) -> None:
        if self.budget.allowance is None:
            return
        period = int(now // self.budget.allowance[1])
        if self._period is None or period > self._period:  # a clock that goes back begins no period
            self._period, self.spent_in_period = period, Decimal(0)

    def used(self, now: float) -> dict[str, float]:
        """What counts against each limit now, by its name. Nothing changes, so anyone may look at any time.

        Args:
            now: the time in seconds.

        >>> import decoupled as dc
        >>> meter = dc.Meter(dc.Budget(rate=(5, 60), cost=0.5, total=3))
        >>> meter.count("a", now=0.0)
        >>> meter.used(now=30.0), meter.used(now=60.0)
        ({'rate': 1, 'total': 0.5}, {'rate': 0, 'total': 0.5})
        """
        budget, found = self.budget, dict[str, float]()
        if budget.share is not None:
            found["share"] = self.explored / max(self.decisions, 1)
        if budget.rate is not None:
            found["rate"] = sum(now - budget.rate[1] < each for each in self._times)
        if budget.total is not None:
            found["total"] = float(self.spent)
        if budget.allowance is not None:
            over = self._period is not None and int(now // budget.allowance[1]) > self._period
            found["allowance"] = 0.0 if over else float(self.spent_in_period)
        return found

    def following(self, budget: Budget) -> "Meter":
        """The meter for another budget. What was spent stays spent; another share counts from now on.

        Args:
            budget: the new limits.
        """
        later = Meter(budget, clock=self._clock)
        if budget.share == self.budget.share:
            later.decisions, later.explored = self.decisions, self.explored
        if budget.rate is not None and self.budget.rate is not None:
            later._times.extend(self._times)
        if budget.cost is not None:
            later.spent = self.spent
        same = (
            budget.allowance and self.budget.allowance and budget.allowance[1] == self.budget.allowance[1]
        )
        if same:
            later._period, later.spent_in_period = self._period, self.spent_in_period
        return later

    def to_dict(self) -> dict[str, Any]:
        """The budget and what was spent, as plain values."""
        return {
            "budget": self.budget.to_dict(),
            "decisions": self.decisions,
            "explored": self.explored,
            "spent": str(self.spent),
            "spent_in_period": str(self.spent_in_period),
            "period": self._period,
            "times": list(self._times),
        }

    @classmethod
    def from_dict(cls, values: Mapping[str, Any], *, clock: Callable[[], float] = time.time) -> "Meter":
        """Restore what `to_dict` wrote.

        Args:
            values: what `to_dict` returned.
            clock: gives the time in seconds.

        >>> import decoupled as dc
        >>> meter = dc.Meter(dc.Budget(cost=0.1, total=3))
        >>> meter.count("a", now=0.0)
        >>> dc.Meter.from_dict(meter.to_dict()).used(now=1.0)
        {'total': 0.1}
        """
        meter = cls(Budget.from_dict(values["budget"]), clock=clock)
        meter.decisions, meter.explored = values["decisions"], values["explored"]
        meter.spent, meter.spent_in_period = Decimal(values["spent"]), Decimal(values["spent_in_period"])
        meter._period = values["period"]
        meter._times.extend(values["times"])
        return meter


@lru_cache(1024)  # limits and prices are few, and every decision asks
def _exact(value: float) -> Decimal:
    """A number as it is written: ten times 0.1 is 1, as in a price list."""
    return Decimal(repr(value))
