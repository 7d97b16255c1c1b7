"""A budget for exploring, a share of the decisions, a rate and money; and the meter of what is
spent.
"""

import secrets
import time
from bisect import bisect_right
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any, NamedTuple, Self, cast

from ..base.turns import Turns
from ..base.validation import check_number, whole_number
from ..decision import Arm, ByArm, Decision, Served
from ..errors import ParameterError, StateError, UnsupportedError
from .arms import ArmNames, listed_available

if TYPE_CHECKING:
    from .learner import Learner

MOST_IN_A_WINDOW = 10_000  # the times of that many explorations are kept
ALARM_EVERY = 100_000  # looks
MOST_SPELLS = 128  # stretches of time whose spending is kept apart
SPELLS_IN_A_PERIOD = 16
SPELL_SECONDS = 900.0  # of a budget without an allowance


@dataclass(frozen=True)
class Budget:
    """Limits on exploring. A decision that may not explore still has an arm to use.

    Args:
        share: the probability with which a decision may explore, by a coin of the meter's own.
        rate: (n, seconds): at most n decisions explore in any window of that many seconds; n is at
            most 10,000.
        cost: the most that exploring an arm costs, its judgement included: one number, or a mapping
            from arms to numbers. An arm that it leaves out costs as much as the most expensive one.
            It is set aside until the real price is known.
        total: at most this much is spent in all.
        allowance: (amount, seconds): at most this amount is spent in each period of that many
            seconds. Periods are multiples of their length since the clock's zero, so those of
            86,400 s are days (UTC) with `time.time`.
        decided_share: replaces `share` once the verdict of a watched learner is decided, until an
            alarm.
        alarm_every: the mean number of looks until a false alarm is at least this; None for
            100,000. Of runs in which the decided arm stays the best, at most n / alarm_every raise
            an alarm within n looks.

    Whether a decision explores is settled before the policy draws, because a rule that depended on
    the drawn arm would bias the estimates. So the money left must cover the most expensive
    available arm, and as much can stay unspent.

    >>> import decoupled as dc
    >>> budget = dc.Budget(share=0.01, cost={"small": 0.2, "large": 3.0}, total=500)
    >>> budget  # doctest: +NORMALIZE_WHITESPACE
    Budget(share=0.01, rate=None, cost={'small': 0.2, 'large': 3.0}, total=500.0, allowance=None,
           decided_share=None, alarm_every=None)
    """

    share: float | None = None
    rate: tuple[int, float] | None = None
    cost: float | ByArm | None = None
    total: float | None = None
    allowance: tuple[float, float] | None = None
    decided_share: float | None = None
    alarm_every: float | None = None

    def __post_init__(self) -> None:
        for name, check in _CHECKS.items():
            value = getattr(self, name)
            if value is not None:
                object.__setattr__(self, name, check(name, value))
        limited = self.total is not None or self.allowance is not None
        if limited and self.cost is None:
            what = "total" if self.total is not None else "allowance"
            rule = "needs a cost"
            remedy = "set cost, the price of exploring an arm"
            raise ParameterError.of(what, getattr(self, what), rule, remedy)
        if self.cost is not None and not limited:
            raise ParameterError.of(
                "cost", self.cost, "limits nothing alone", "set total or allowance too"
            )
        full = 1.0 if self.share is None else self.share
        if self.decided_share is not None and self.decided_share > full:
            rule = f"must not exceed share, {full:g}"
            remedy = "lower it"
            raise ParameterError.of("decided_share", self.decided_share, rule, remedy)
        if self.alarm_every is not None and self.decided_share is None:
            rule = "needs a decided_share"
            remedy = "set the share to explore once it is decided"
            raise ParameterError.of("alarm_every", self.alarm_every, rule, remedy)

    def __hash__(self) -> int:
        return hash(repr(self))  # a mapping has no hash

    def __bool__(self) -> bool:
        """Whether there is any limit."""
        return any(limit is not None for limit in vars(self).values())

    def cost_of(self, arm: Arm) -> float:
        """The declared price of exploring an arm; 0 if there is none.

        Args:
            arm: the arm to explore.

        >>> import decoupled as dc
        >>> budget = dc.Budget(cost={"a": 1.0, "b": 2.5}, total=10)
        >>> budget.cost_of("a"), budget.cost_of("new")
        (1.0, 2.5)
        """
        if isinstance(self.cost, Mapping):
            cost = cast(Mapping[Arm, float], self.cost).get(arm)
            return max(self.cost.values()) if cost is None else cost
        return self.cost or 0.0

    def to_dict(self) -> dict[str, Any]:
        """The limits as plain values, without those that are None.

        Costs are pairs: an arm may be a number.
        """
        values = {name: value for name, value in vars(self).items() if value is not None}
        if isinstance(self.cost, Mapping):
            values["cost"] = tuple(list(pair) for pair in self.cost.items())
        return {
            name: list(value) if isinstance(value, tuple) else value
            for name, value in values.items()
        }

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
        limits = dict(values)
        if isinstance(limits.get("cost"), list):
            limits["cost"] = dict(limits["cost"])
        return cls(**limits)


def _per(name: str, value: object, example: str) -> tuple[Any, float]:
    """How much, and the seconds that it is for."""
    try:
        most, seconds = cast(Any, value)
    except (TypeError, ValueError):
        raise ParameterError.of(
            name, value, "must be two numbers", f"for example {example}"
        ) from None
    return most, check_number(f"{name}[1]", seconds, "it is a number of seconds", above=0.0)


def _rate(name: str, value: object) -> tuple[int, float]:
    most, seconds = _per(name, value, "(100, 60) for 100 a minute")
    remedy = "it is a number of explorations; if there are more, set a shorter time"
    return whole_number(f"{name}[0]", most, 0, remedy, MOST_IN_A_WINDOW), seconds


def _amount(name: str, value: object) -> float:
    return check_number(name, value, "it is an amount of money", at_least=0.0)


def _cost(name: str, value: object) -> float | dict[Arm, float]:
    if not isinstance(value, Mapping):
        return _amount(name, value)
    if not value:
        raise ParameterError.of(name, value, "names no arm", "give one number for all arms")
    return {arm: _amount(f"{name}[{arm!r}]", amount) for arm, amount in value.items()}


def _allowance(name: str, value: object) -> tuple[float, float]:
    amount, seconds = _per(name, value, "(50.0, 86400) for 50 a day")
    return _amount(f"{name}[0]", amount), seconds


def _decided_share(name: str, value: object) -> float:
    share = check_number(name, value, "leave it out to go on as before", at_least=0.0, at_most=1.0)
    if share == 0.0:  # no look could ever raise an alarm
        raise ParameterError.of(
            name, value, "must be above 0", "look now and then, for example 0.01"
        )
    return share


_CHECKS: dict[str, Callable[[str, object], object]] = {
    "share": partial(check_number, remedy="leave it out for all", at_least=0.0, at_most=1.0),
    "rate": _rate,
    "cost": _cost,
    "total": _amount,
    "allowance": _allowance,
    "decided_share": _decided_share,
    "alarm_every": partial(check_number, remedy="it is a number of looks", above=1.0),
}


# A budget as it is spent: no limit is ever exceeded by prices that keep to those declared


class Aside(NamedTuple):
    """Money set aside for exploring an arm: the amount, and the time at which it counts.

    >>> import decoupled as dc
    >>> dc.Meter(dc.Budget(cost=0.05, total=1)).count("a", now=0.0)
    Aside(amount=Decimal('0.05'), at=0.0)
    """

    amount: Decimal
    at: float | None


class Spell(NamedTuple):
    """What was spent, or is set aside, from the first to the last look of a stretch of time."""

    first: float
    last: float
    amount: Decimal

    def plus(self, amount: Decimal, last: float | None = None) -> "Spell":
        """The spell with an amount more, and with a later end if one is given."""
        return Spell(self.first, self.last if last is None else last, self.amount + amount)


class Meter:
    """Enforces a budget. Let it decide for your learner.

    Args:
        budget: the limits.
        clock: gives the time in seconds; `time.time` by default.
        seed: the seed of the coin for shares, a whole number or a text, independent of the
            learner's; None for fresh randomness.

    >>> import decoupled as dc
    >>> learner = dc.FTPL().start(arms=["a", "b", "c"], seed=7)
    >>> meter = dc.Meter(dc.Budget(share=0.25, cost=0.05, total=1), seed=7)
    >>> for _ in range(11):
    ...     decision = meter.decide(learner)               # use decision.exploit
    ...     if isinstance(decision, dc.Decision):          # it may explore
    ...         learner.observe(decision, loss=0.3)
    ...         meter.charge(decision, 0.03)               # what it really cost
    >>> meter.explored, meter.decisions, learner.round, float(meter.spent)
    (2, 11, 3, 0.06)
    >>> meter.decide(learner).limited_by
    'share'
    """

    def __init__(
        self,
        budget: Budget,
        *,
        clock: Callable[[], float] = time.time,
        seed: int | str | None = None,
    ) -> None:
        self.budget = budget
        self._clock = clock
        self._coin = secrets.token_hex(16) if seed is None else str(seed)
        self.decisions = 0
        self.explored = 0
        self._tosses = 0
        self.spent = Decimal(0)
        self.spent_in_period = Decimal(0)
        self.above = 0  # looks that were dearer than declared
        self._asides: dict[str | int, Aside] = {}
        self._times: deque[float] = deque()  # of the explorations that count for the rate
        self._period: int | None = None
        # When money was spent, oldest first, so that a period of another length knows what was
        # spent in it.
        self._spells: list[Spell] = []
        self._first_spell = 0  # of the current period
        self._turns = Turns(type(self).__name__)

    def decide(
        self, learner: "Learner", *, available: Iterable[Arm] | None = None
    ) -> Decision | Served:
        """A decision with both arms if the budget allows it, and otherwise an arm to use, which
        takes no feedback.

        Args:
            learner: the learner that decides. Its policy must be a decoupled one. For a
                `decided_share` it must be watched.
            available: the arms to choose from, as in `Learner.decide`; None for all.

        Returns:
            A `Decision` that explores, or a `Served` whose `limited_by` names the limit.

        Raises:
            ArmError: if `available` is empty or names something that is not an arm. Nothing is
                counted then.
        """
        if learner.policy.coupled:
            rule = "plays the standard game, where every decision explores; use a decoupled policy"
            raise UnsupportedError(f"budget: {type(learner.policy).__name__} {rule}")
        return self._turns.run(self._decide, learner, _checked_available(learner, available))

    def _decide(self, learner: "Learner", available: list[Arm] | None) -> Decision | Served:
        """Decide, or serve an arm without exploring if a limit is reached."""
        now = self._clock()
        share = self.share(learner)
        limit = self.limit(learner.arms if available is None else available, now, share)
        if limit is not None:
            served = learner.exploit(available=available)
            self.count(None, now)
            return served._replace(limited_by=limit)
        decision = learner.decide(available=available)
        self.count(decision.explore, now, decision.id)
        if len(self._asides) > learner.max_pending:
            # What nobody charges stays at its declared price.
            del self._asides[next(iter(self._asides))]
        return decision

    def share(self, learner: "Learner | None" = None) -> float | None:
        """The probability with which the next decision may explore, by the budget's shares; None if
        none is set.

        Args:
            learner: the learner that decides, whose verdict `decided_share` depends on; None gives
                the share until then.

        >>> import decoupled as dc
        >>> learner = dc.Ladder().start(arms=["a", "b"], seed=7)
        >>> learner.watch()
        >>> dc.Meter(dc.Budget(share=0.1, decided_share=0.01)).share(learner)  # nothing is decided
        0.1
        """
        budget = self.budget
        if budget.decided_share is None:
            return budget.share
        if learner is not None and learner.is_decided(budget.alarm_every or ALARM_EVERY):
            return budget.decided_share
        return 1.0 if budget.share is None else budget.share

    def limit(self, arms: Iterable[Arm], now: float, share: float | None = None) -> str | None:
        """The part of the budget that keeps the next decision from exploring one of these arms;
        None if it may.

        A decision's coin falls the same way however often you ask.

        Args:
            arms: the arms that the decision may explore.
            now: the time in seconds.
            share: what `share` returned; None tosses no coin.

        Returns:
            "share", "rate", "total" or "allowance"; None if it may explore.
        """
        budget = self.budget
        if share is not None:
            # This loads compiled code, which a budget without a share does not need.
            from .seeds import hashed

            # A hash, uniform on [0, 1), so that the stream of the learner does not move.
            if hashed(f"coin-{self._coin}-{self._tosses}") >= share:
                return "share"
        if budget.rate is not None:
            most, seconds = budget.rate
            while self._times and self._times[0] <= now - seconds:
                self._times.popleft()
            if len(self._times) >= most:
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

    def count(self, explored: Arm | None, now: float, key: str | int | None = None) -> Aside:
        """Count a decision, and set aside the declared price of the arm that it explores, if any.

        Args:
            explored: the arm that the decision explores; None if it explores none.
            now: the time in seconds.
            key: the key to pass to `charge`; None if you will not charge by a key.

        Returns:
            What is set aside.
        """
        aside = Aside(Decimal(0), None)
        if explored is not None:
            self._begin_period(now)
            amount = _exact(self.budget.cost_of(explored))
            aside = Aside(amount, None if self.budget.cost is None else self._spend(amount, now))
            if self.budget.rate is not None:
                self._times.append(now)
            self.explored += 1
            if key is not None and self.budget.cost is not None:
                self._asides[key] = aside
        self._tosses += 1
        self.decisions += 1
        return aside

    def charge(
        self, look: Decision | Aside | str | int, cost: float | None, declared: float | None = None
    ) -> None:
        """Replace the amount set aside for a look by its real cost, in the period in which it was
        decided.

        Charging twice, or where nothing was set aside, changes nothing. A look that cost more than
        declared is counted in full, and in `above`.

        Args:
            look: the decision, its id or its key, or what `count` returned, which you must charge
                once.
            cost: the real price of the look and its judgement; None to keep the declared price.
            declared: the declared price, if more was set aside; None if not.

        >>> import decoupled as dc
        >>> meter = dc.Meter(dc.Budget(cost=0.5, total=3))
        >>> aside = meter.count("a", now=0.0)
        >>> meter.charge(aside, 0.75)
        >>> meter.used(now=0.0)
        {'total': 0.75, 'above': 1}
        """
        price = None if cost is None else _exact(_amount("cost", cost))
        self._turns.run(self._charge, look, price, declared)

    def _charge(
        self,
        look: Decision | Aside | str | int,
        price: Decimal | None,
        declared: float | None,
    ) -> None:
        """Replace the declared price of a look by what it cost."""
        key = look.id if isinstance(look, Decision) else look
        aside = key if isinstance(key, Aside) else self._asides.pop(key, None)
        if aside is None or price is None:
            return
        change = price - aside.amount
        self.spent += change
        if aside.at is not None:
            self._correct(aside.at, change)
        self.above += price > (aside.amount if declared is None else _exact(declared))

    def _begin_period(self, now: float) -> None:
        if self.budget.allowance is None:
            return
        period = int(now // self.budget.allowance[1])
        if self._period is None or period > self._period:  # a clock that goes back begins no period
            self._period = period
            self.spent_in_period = Decimal(0)
            self._first_spell = len(self._spells)

    def _spend(self, amount: Decimal, now: float) -> float:
        """Count an amount, and return the time at which it counts: a clock that goes back does not
        go back here.
        """
        allowance = self.budget.allowance
        seconds = SPELL_SECONDS if allowance is None else allowance[1] / SPELLS_IN_A_PERIOD
        at = max(now, self._spells[-1].last) if self._spells else now
        goes_on = self._first_spell < len(self._spells) and at - self._spells[-1].first <= seconds
        if goes_on:
            self._spells[-1] = self._spells[-1].plus(amount, at)
        else:
            self._spells.append(Spell(at, at, amount))
        if len(self._spells) > MOST_SPELLS:
            self._join_old_spells()
        self.spent += amount
        self.spent_in_period += amount
        return at

    def _correct(self, at: float, change: Decimal) -> None:
        """Change what was spent at a time."""
        place = bisect_right(self._spells, at, key=lambda spell: spell.first) - 1
        if place < 0:  # of another meter
            return
        self._spells[place] = self._spells[place].plus(change)
        if place >= self._first_spell:
            self.spent_in_period += change

    def _join_old_spells(self) -> None:
        """Join the older half of the spells in pairs, and none of the current period with one
        before.
        """
        half = len(self._spells) // 2
        border = min(self._first_spell, half)
        before = _joined(self._spells[:border])
        inside = _joined(self._spells[border:half])
        shorter = half - len(before) - len(inside)
        self._first_spell = len(before) if border < half else self._first_spell - shorter
        self._spells = [*before, *inside, *self._spells[half:]]

    def _find_period(self) -> None:
        """Begin the period of the last spell, with what was spent in it.

        A spell that reaches into it counts in full.
        """
        self._period = None
        self._first_spell = len(self._spells)
        allowance = self.budget.allowance
        if allowance is not None and self._spells:
            self._period = int(self._spells[-1].last // allowance[1])
            while self._first_spell > 0:
                spell = self._spells[self._first_spell - 1]
                if int(spell.last // allowance[1]) < self._period:
                    break
                self._first_spell -= 1
        amounts = [spell.amount for spell in self._spells[self._first_spell :]]
        self.spent_in_period = sum(amounts, Decimal(0))

    def used(self, now: float, learner: "Learner | None" = None) -> dict[str, float]:
        """What counts against each limit now, by its name, and how many looks were above their
        declared price.

        This changes nothing.

        Args:
            now: the time in seconds.
            learner: the learner that decides, to say whether a `decided_share` holds, and how many
                alarms ended it.

        >>> import decoupled as dc
        >>> meter = dc.Meter(dc.Budget(rate=(5, 60), cost=0.5, total=3))
        >>> aside = meter.count("a", now=0.0)
        >>> meter.used(now=30.0), meter.used(now=60.0)
        ({'rate': 1, 'total': 0.5, 'above': 0}, {'rate': 0, 'total': 0.5, 'above': 0})
        """
        return self._turns.run(self._used, now, learner)

    def _used(self, now: float, learner: "Learner | None") -> dict[str, float]:
        """What counts against each limit at a time, by its name."""
        budget = self.budget
        used = dict[str, float]()
        if self.share() is not None:
            used["share"] = self.explored / max(self.decisions, 1)
        if budget.rate is not None:
            used["rate"] = sum(now - budget.rate[1] < explored_at for explored_at in self._times)
        if budget.total is not None:
            used["total"] = float(self.spent)
        if budget.allowance is not None:
            over = self._period is not None and int(now // budget.allowance[1]) > self._period
            used["allowance"] = 0.0 if over else float(self.spent_in_period)
        if budget.cost is not None:
            used["above"] = self.above
        if budget.decided_share is not None and learner is not None:
            alarm = learner.inference.alarm
            used["decided"] = int(alarm is not None and alarm.decided is not None)
            used["alarms"] = 0 if alarm is None else alarm.raised
        return used

    def with_budget(self, budget: Budget) -> "Meter":
        """The meter for another budget. What was spent stays spent; a new share counts from now on.

        An allowance for periods of another length counts what was spent in the current one. Where
        the meter no longer knows the exact times, it counts more rather than less.

        Args:
            budget: the new limits.

        >>> import decoupled as dc
        >>> meter = dc.Meter(dc.Budget(cost=1.0, allowance=(5, 86_400)))
        >>> aside = meter.count("a", now=3_600.0)
        >>> meter.with_budget(dc.Budget(cost=1.0, allowance=(5, 7 * 86_400))).used(now=3_600.0)
        {'allowance': 1.0, 'above': 0}
        """
        later = Meter(budget, clock=self._clock, seed=self._coin)
        later._tosses = self._tosses
        later.spent = self.spent
        later.above = self.above
        if (budget.share, budget.decided_share) == (self.budget.share, self.budget.decided_share):
            later.decisions = self.decisions
            later.explored = self.explored
        if budget.rate is not None and self.budget.rate is not None:
            later._times.extend(self._times)
        later._asides.update(self._asides)
        later._spells.extend(self._spells)
        old = self.budget.allowance
        new = budget.allowance
        if old is not None and new is not None and old[1] == new[1]:
            later._period = self._period
            later.spent_in_period = self.spent_in_period
            later._first_spell = self._first_spell
        else:
            later._find_period()
        return later

    def to_dict(self) -> dict[str, Any]:
        """The budget and what was spent, as plain values."""
        return self._turns.run(self._to_dict)

    def _to_dict(self) -> dict[str, Any]:
        return {
            "budget": self.budget.to_dict(),
            "decisions": self.decisions,
            "explored": self.explored,
            "spent": str(self.spent),
            "spent_in_period": str(self.spent_in_period),
            "period": self._period,
            "times": list(self._times),
            "coin": self._coin,
            "tosses": self._tosses,
            "above": self.above,
            "asides": [[key, str(aside.amount), aside.at] for key, aside in self._asides.items()],
            "spells": [[spell.first, spell.last, str(spell.amount)] for spell in self._spells],
            "first_spell": self._first_spell,
        }

    @classmethod
    def from_dict(
        cls, values: Mapping[str, Any], *, clock: Callable[[], float] = time.time
    ) -> "Meter":
        """Restore what `to_dict` wrote.

        Args:
            values: what `to_dict` returned.
            clock: gives the time in seconds.

        >>> import decoupled as dc
        >>> meter = dc.Meter(dc.Budget(cost=0.1, total=3))
        >>> aside = meter.count("a", now=0.0)
        >>> dc.Meter.from_dict(meter.to_dict()).used(now=1.0)
        {'total': 0.1, 'above': 0}
        """
        if "spells" not in values:
            rule = "does not say when money was spent, so another version wrote it"
            raise StateError(f"meter: {rule}; start another one with what is left of the budget")
        meter = cls(Budget.from_dict(values["budget"]), clock=clock, seed=values["coin"])
        meter.decisions = values["decisions"]
        meter.explored = values["explored"]
        meter._tosses = values["tosses"]
        meter.above = values["above"]
        meter._period = values["period"]
        meter.spent = Decimal(values["spent"])
        meter.spent_in_period = Decimal(values["spent_in_period"])
        for first, last, amount in values["spells"]:
            meter._spells.append(Spell(first, last, Decimal(amount)))
        meter._first_spell = values["first_spell"]
        for key, amount, at in values["asides"]:
            meter._asides[key] = Aside(Decimal(amount), at)
        meter._times.extend(values["times"])
        return meter


def _joined(spells: Sequence[Spell]) -> list[Spell]:
    """Every two neighbours as one."""
    pairs = zip(spells[::2], spells[1::2], strict=False)
    joined = [earlier.plus(later.amount, later.last) for earlier, later in pairs]
    if len(spells) % 2:
        joined.append(spells[-1])
    return joined


def _checked_available(learner: "Learner", available: Iterable[Arm] | None) -> list[Arm] | None:
    """The available arms as a list, each of them an arm of the learner; the limits ask for the
    prices of these.
    """
    names = listed_available(available)
    if names is None:
        return None
    arms = ArmNames(list(learner.arms))
    return [arms.names[place] for place in arms.places(names).tolist()]


@lru_cache(1024)  # limits and prices are few, and every decision asks
def _exact(value: float) -> Decimal:
    """A number as it is written: ten times 0.1 is 1, as in a price list."""
    return Decimal(repr(value))
