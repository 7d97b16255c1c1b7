"""A budget for exploring: a share of the decisions, a rate, and money."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Self, cast

from ..base.validation import as_float, number_in, share_of, whole_number
from ..decision import Arm, ByArm
from ..errors import ParameterError

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
