"""Budgets: no limit is ever exceeded, and whether a decision explores does not depend on the arm it would explore."""

from fractions import Fraction
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

import decoupled as dc

ARMS = ["a", "b", "c"]
COSTS = {"a": 0.1, "b": 0.7, "c": 2.3}


class Clock:
    """A clock that is set by hand."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


Step = tuple[float, list[str] | None]
steps = st.lists(
    st.tuples(
        st.sampled_from([0.0, 0.1, 1.0, 7.0, 30.0]), st.sampled_from([None, ["a"], ["a", "b"], ["b", "c"]])
    ),
    min_size=1,
    max_size=60,
)


def played(budget: dc.Budget, course: list[Step]) -> list[tuple[float, Any, str | None]]:
    """The time of every decision, what it explored, and the limit that kept it from exploring."""
    clock = Clock()
    meter, learner = dc.Meter(budget, clock=clock), dc.FTPL().start(ARMS, seed=3)
    made = list[tuple[float, Any, str | None]]()
    for later, available in course:
        clock.now += later
        decision = meter.decide(learner, available=available)
        limit = None if isinstance(decision, dc.Decision) else decision.limited_by
        made.append((clock.now, decision.explore, limit))
        if len(made) % 5 == 0:
            meter = dc.Meter.from_dict(meter.to_dict(), clock=clock)
    return made


def exact(value: float) -> Fraction:
    return Fraction(str(value))


@settings(max_examples=30, deadline=None)
@given(steps, st.sampled_from([0.0, 0.1, 0.29, 0.5, 1.0]))
def test_a_share_is_never_exceeded_and_used_up(course: list[Step], share: float) -> None:
    explored = 0
    for place, (_, arm, limit) in enumerate(played(dc.Budget(share=share), course), start=1):
        allowed = explored + 1 <= exact(share) * place
        assert (arm is not None, limit) == (allowed, None if allowed else "share")
        explored += allowed


@settings(max_examples=30, deadline=None)
@given(steps, st.integers(0, 4), st.sampled_from([0.5, 1.0, 10.0]))
def test_no_window_has_more_than_the_rate(course: list[Step], most: int, seconds: float) -> None:
    times = list[float]()
    for now, arm, limit in played(dc.Budget(rate=(most, seconds)), course):
        allowed = sum(now - seconds < each for each in times) < most
        assert (arm is not None, limit) == (allowed, None if allowed else "rate")
        times += [now] * allowed


@settings(max_examples=30, deadline=None)
@given(steps, st.sampled_from([0.0, 0.3, 2.3, 7.7]), st.sampled_from([None, (2.4, 10.0), (5, 3.5)]))
def test_money_is_never_exceeded(course: list[Step], total: float, allowance: Any) -> None:
    spent, by_period = Fraction(0), dict[int, Fraction]()
    budget = dc.Budget(cost=COSTS, total=total, allowance=allowance)
    for (now, arm, limit), (_, available) in zip(played(budget, course), course, strict=True):
        dearest = max(exact(COSTS[each]) for each in available or ARMS)
        period = 0 if allowance is None else int(now // allowance[1])
        in_period = by_period.get(period, Fraction(0))
        expected = "total" if spent + dearest > exact(total) else None
        if expected is None and allowance is not None and in_period + dearest > exact(allowance[0]):
            expected = "allowance"
        assert limit == expected
        if arm is not None:
            spent += exact(COSTS[arm])
            by_period[period] = in_period + exact(COSTS[arm])
        assert spent <= exact(total)


def test_a_window_is_open_at_its_start() -> None:
    """What was explored exactly one window ago no longer counts."""
    made = played(
        dc.Budget(rate=(2, 8.0)), [(0.0, None), (4.0, None), (3.5, None), (0.5, None), (0.0, None)]
    )
    assert [limit for _, _, limit in made] == [None, None, "rate", None, "rate"]


def test_prices_add_up_as_they_are_written() -> None:
    budget = dc.Budget(cost=0.1, total=0.3)  # 0.1 + 0.1 + 0.1 > 0.3 as floats
    assert [limit for _, _, limit in played(budget, [(0.0, None)] * 4)] == [None, None, None, "total"]


def test_a_budget_does_not_change_what_is_learned_from_what_is_explored() -> None:
    """A decision that may not explore draws like one that may, so the estimates are those of late feedback."""
    metered, plain = dc.FTPL().start(ARMS, seed=3), dc.FTPL().start(ARMS, seed=3)
    meter = dc.Meter(dc.Budget(share=0.3))
    for _ in range(200):
        decision, twin = meter.decide(metered), plain.decide()
        assert decision.exploit == twin.exploit
        if isinstance(decision, dc.Decision):
            metered.observe(decision, loss=0.5)
            plain.observe(twin, loss=0.5)
        else:
            plain.forget(twin)
    assert meter.explored == 60
    assert metered.estimates().tolist() == plain.estimates().tolist()


def test_what_was_spent_stays_spent_under_another_budget() -> None:
    clock = Clock()
    meter = dc.Meter(dc.Budget(share=0.5, cost=1, total=3, allowance=(2, 10)), clock=clock)
    for arm in ("a", None, "b", None):
        meter.count(arm, clock.now)
    assert meter.used(clock.now) == {"share": 0.5, "total": 2.0, "allowance": 2.0}
    later = meter.following(dc.Budget(share=0.25, cost=1, total=4, allowance=(3, 10)))
    assert later.used(clock.now) == {"share": 0.0, "total": 2.0, "allowance": 2.0}
    assert later.limit(ARMS, clock.now) == "share"
    same = later.following(dc.Budget(share=0.25, rate=(1, 5)))
    same.count("a", clock.now)
    assert same.used(clock.now) == {"share": 1.0, "rate": 1}
    assert same.following(dc.Budget(rate=(1, 5))).limit(ARMS, clock.now) == "rate"


def test_a_clock_that_goes_back_begins_no_new_period() -> None:
    meter = dc.Meter(dc.Budget(cost=1, allowance=(1, 10)))
    meter.count("a", 25.0)
    assert [meter.limit(ARMS, now) for now in (19.0, 25.0, 29.0, 30.0)] == ["allowance"] * 3 + [None]
