"""A budget for exploring, a share of the decisions, a rate and money; and the meter of what is spent."""

import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any, Self, cast

from ..base.turns import TakesTurns, in_turn
from ..base.validation import as_float, number_in, share_of, whole_number
from ..decision import Arm, ByArm, Decision, Served
from ..errors import ParameterError, UnsupportedError

if TYPE_CHECKING:
    from .learner import Learner

MOST_IN_A_WINDOW = 10_000  # the times of that many explorations are kept


@dataclass(frozen=True)
class Budget:
    """How much may be explored. A decision that may not explore still gives an arm to use.

    Args:
        share: at most this share of the decisions explores, counted from the first.
        rate: (n, seconds): at most n decisions explore in any window of that many seconds; n is at most 10,000.
        cost: the price of exploring an arm: one number, or a mapping from arms to numbers. An arm that the mapping
            leaves out costs as much as its dearest.
        total: at most this much is spent in all.
        allowance: (amount, seconds): at most this amount is spent in each period of that many seconds. Periods are
            multiples of their length since the clock's zero, so those of 86,400 s are days (UTC) with `time.time`.

    Whether a decision explores is settled before the policy draws, because a rule that depended on the drawn arm would
    bias the estimates. So money must suffice for the dearest of the available arms, and up to that much is left over.

    >>> import decoupled as dc
    >>> dc.Budget(share=0.01, cost={"small": 0.2, "large": 3.0}, total=500)
    Budget(share=0.01, rate=None, cost={'small': 0.2, 'large': 3.0}, total=500.0, allowance=None)
    """

    share: float | None = None
    rate: tuple[int, float] | None = None
    cost: float | ByArm | None = None
    total: float | None = None
    allowance: tuple[float, float] | None = None

    def __post_init__(self) -> None:
        for name, check in _CHECKS.items():
            if (value := getattr(self, name)) is not None:
                object.__setattr__(self, name, check(name, value))
        limited = self.total is not None or self.allowance is not None
        if limited and self.cost is None:
            what = "total" if self.total is not None else "allowance"
            rule, remedy = "needs a cost", "set cost, the price of exploring an arm"
            raise ParameterError.of(what, getattr(self, what), rule, remedy)
        if self.cost is not None and not limited:
            rule, remedy = "limits nothing alone", "set total or allowance too"
            raise ParameterError.of("cost", self.cost, rule, remedy)

    def __hash__(self) -> int:
        return hash(repr(self))  # a mapping has no hash

    def __bool__(self) -> bool:
        """Whether there is any limit."""
        return any(each is not None for each in (self.share, self.rate, self.total, self.allowance))

    def cost_of(self, arm: Arm) -> float:
        """The price of exploring an arm; 0 if there is none.

        Args:
            arm: the arm to explore.

        >>> import decoupled as dc
        >>> budget = dc.Budget(cost={"a": 1.0, "b": 2.5}, total=10)
        >>> budget.cost_of("a"), budget.cost_of("new")
        (1.0, 2.5)
        """
        if isinstance(self.cost, Mapping):
            found = cast(Mapping[Arm, float], self.cost).get(arm)
            return max(self.cost.values()) if found is None else found
        return self.cost or 0.0

    def to_dict(self) -> dict[str, Any]:
        """The limits as plain values, without those that are None. Costs are pairs: an arm may be a number."""
        costs = [list(pair) for pair in self.cost.items()] if isinstance(self.cost, Mapping) else self.cost
        values = {
            "share": self.share,
            "rate": None if self.rate is None else list(self.rate),
            "cost": costs,
            "total": self.total,
            "allowance": None if self.allowance is None else list(self.allowance),
        }
        return {name: value for name, value in values.items() if value is not None}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """Read what `to_dict` wrote.

        Args:
            values: what `to_dict` returned.

        >>> import decoupled as dc
        >>> budget = dc.Budget(rate=(10, 60), cost={1: 0.5}, total=3)
        >>> dc.Budget.from_dict(budget.to_dict()) == budget
        True
        """
        cost = values.get("cost")
        return cls(**{**values, "cost": dict(cost) if isinstance(cost, list) else cost})


# The checks of the fields


def _pair(name: str, value: object, example: str) -> tuple[Any, Any]:
    try:
        first, second = cast(Any, value)
    except (TypeError, ValueError):
        raise ParameterError.of(name, value, "must be two numbers", f"for example {example}") from None
    return first, second


def _rate(name: str, value: object) -> tuple[int, float]:
    most, seconds = _pair(name, value, "(100, 60) for 100 a minute")
    count = whole_number(f"{name}[0]", most, 0, "it is a number of explorations")
    if count > MOST_IN_A_WINDOW:
        rule = f"must not exceed {MOST_IN_A_WINDOW:,}"
        raise ParameterError.of(f"{name}[0]", count, rule, "set a rate for a shorter time")
    return count, number_in(f"{name}[1]", seconds, 0.0, remedy="it is a number of seconds")


def _amount(name: str, value: object) -> float:
    number = as_float(value)
    if number is None or number < 0.0:
        raise ParameterError.of(name, value, "must be a number from 0 on", "it is an amount of money")
    return number + 0.0


def _cost(name: str, value: object) -> float | dict[Arm, float]:
    if not isinstance(value, Mapping):
        return _amount(name, value)
    if not value:
        raise ParameterError.of(name, value, "names no arm", "give one number for all arms")
    return {arm: _amount(f"{name}[{arm!r}]", each) for arm, each in value.items()}


def _allowance(name: str, value: object) -> tuple[float, float]:
    amount, seconds = _pair(name, value, "(50.0, 86400) for 50 a day")
    return _amount(f"{name}[0]", amount), number_in(
        f"{name}[1]", seconds, 0.0, remedy="it is a number of seconds"
    )


_CHECKS: dict[str, Callable[[str, object], object]] = {
    "share": partial(share_of, remedy="leave it out for all"),
    "rate": _rate,
    "cost": _cost,
    "total": _amount,
    "allowance": _allowance,
}


# A budget as it is spent: no limit is ever exceeded


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
