"""Every error names the argument, its value, the rule and the remedy, and has changed nothing."""

import math
import pickle
import re
import warnings
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pandas as pd
import pytest

import decoupled as dc
from decoupled import errors


@pytest.mark.parametrize(
    ("error", "builtin"),
    [
        (dc.ParameterError, ValueError),
        (dc.ArmError, ValueError),
        (dc.LossError, ValueError),
        (dc.FeedbackError, LookupError),
        (dc.StateError, ValueError),
        (dc.StorageError, OSError),
        (dc.UnsupportedError, NotImplementedError),
    ],
)
def test_each_is_an_error_of_python_too(
    error: type[dc.DecoupledError], builtin: type[Exception]
) -> None:
    assert error.__bases__ == (dc.DecoupledError, builtin)


def test_the_tree_has_no_other_branches(learner: dc.Learner) -> None:
    assert dc.DecoupledError.__bases__ == (Exception,)
    page = Path(__file__).parents[3] / "docs" / "api" / "errors.md"
    documented = set(re.findall(r"::: decoupled\.(\w+Error)\n", page.read_text())) - {
        "DecoupledError"
    }
    # The service, which is optional, has its own errors below one more branch.
    known = {
        each for each in dc.DecoupledError.__subclasses__() if each.__module__ == errors.__name__
    }
    assert {branch.__name__ for branch in known} == documented <= set(dir(dc))
    # Code that passes it on can give a remedy that its readers can follow.
    with pytest.raises(dc.LossError) as caught:
        learner.observe(learner.pending[0], loss=7)
    for error in (caught.value, pickle.loads(pickle.dumps(caught.value))):
        assert str(error) == f"loss = 7: {OUTSIDE}"
        problem = "loss = 7: must lie in [0.0, 1.0]"
        text = errors.reworded(error, remedy="create the experiment with another loss_range")
        assert text == f"{problem}; create the experiment with another loss_range"
        placed = error.within("records[3]")
        assert type(placed) is dc.LossError
        assert str(placed) == f"records[3]: loss = 7: {OUTSIDE}"
    plain = dc.StateError("state: is damaged")
    assert errors.reworded(plain, remedy="load another") == "state: is damaged"


# What is refused: the error, the call, and the message, in which "..." stands for anything

Row: TypeAlias = tuple[type[Exception], Callable[[Any], object], str]
ARMS = ["left", "right", "middle"]


@pytest.fixture
def learner() -> dc.Learner:
    """Two decisions are pending; the second has no arm to exploit."""
    learner = dc.Ladder().start(ARMS, seed=4, max_pending=10)
    learner.observe(learner.decide(), loss=0.5)
    learner.decide()
    learner.explore(available=["left", "right"])
    return learner


def refused(learner: dc.Learner, error: type[Exception], call: Callable[[], object]) -> str:
    """The message of an error that has changed nothing."""
    before = learner.to_json()
    with pytest.raises(error) as caught:
        call()
    assert type(caught.value) is error
    assert learner.to_json() == before
    return str(caught.value)


def check(learner: dc.Learner, row: Row) -> None:
    error, call, message = row
    found = refused(learner, error, lambda: call(learner))
    assert re.match(".*".join(map(re.escape, message.split("..."))), found, re.DOTALL), found
    assert "\n" not in found or "..." in message


def starting(**given: Any) -> Callable[[Any], object]:
    return lambda _: dc.FTPL().start(**{"arms": 2, "seed": 0, **given})


def one(name: str, *given: Any, **named: Any) -> Callable[[Any], object]:
    return lambda x: getattr(x, name)(*given, **named)


def metered(learner: dc.Learner, available: Any) -> None:
    """Decide within a budget, which counts nothing if the arms are refused."""
    meter = dc.Meter(
        dc.Budget(rate=(5, 60.0), cost=dict.fromkeys(ARMS, 0.1), allowance=(9.0, 60.0)), seed=1
    )
    before = meter.to_dict()
    try:
        meter.decide(learner, available=available)
    finally:
        assert meter.to_dict() == before


def each_of(
    error: type[Exception],
    call: Callable[..., Callable[[Any], object]],
    name: str,
    message: str,
    *values: Any,
) -> list[Row]:
    """A row for each value of an argument, with which the message begins."""
    return [(error, call(**{name: value}), f"{name} = {value!r}: {message}") for value in values]


def rules(**given: Any) -> Callable[[Any], object]:
    return lambda x: setattr(x, "guardrails", dc.Guardrails(**given))


def cheapest(margin: float, **prices: float) -> Callable[[Any], object]:
    return rules(cheapest_within=margin, prices={**dict.fromkeys(ARMS, 1.0), **prices})


ARM, PARAMETER, LOSS, FEEDBACK = dc.ArmError, dc.ParameterError, dc.LossError, dc.FeedbackError
UNSUPPORTED = dc.UnsupportedError
NO_NAME = "is not a valid name; use strings or whole numbers"
TWICE = "appears twice; give every arm a name of its own"
NO_LIST = "must be a list of arms; put the names in a list"
WHOLE = "must be a whole number from"
ENDS = "must be two finite numbers, the lower first; ...the default is (0, 1)"
LEFT = "and at least two must stay; add others first"
STARTING: list[Row] = [
    *each_of(
        ARM,
        starting,
        "arms",
        "must be a number or a list of names; ",
        "abc",
        b"a",
        True,
        2.0,
        None,
        len,
    ),
    *each_of(
        ARM, starting, "arms", "must be at least two; with one arm there is", 1, -3, [], ["only"]
    ),
    (ARM, starting(arms=["a", "b", "a"]), f"arms: 'a' {TWICE}"),
    (ARM, starting(arms=[1, 2, np.int64(1)]), f"arms: 1 {TWICE}"),
    *(
        (ARM, starting(arms=["a", each]), f"arms: {each!r} {NO_NAME}")
        for each in (None, 1.5, b"b", True, ["b"])
    ),
    (ARM, starting(arms=np.array([0.5, 1.5])), f"arms: ...0.5... {NO_NAME}"),
    (ARM, starting(arms=10**30), "arms"),
    (ARM, starting(arms=np.array("a")), "arms"),
    (ARM, starting(arms=[10**400, 1]), "...is too large for a name"),
    *(
        (PARAMETER, call, f"seed = {each!r}: {WHOLE} 0 on; leave it out for fresh randomness")
        for each in (-1, "7")
        for call in (starting(seed=each), one("fork", seed=each))
    ),
    *each_of(
        PARAMETER,
        starting,
        "loss_range",
        ENDS,
        (0, 0),
        (1, 0),
        (0, math.inf),
        (math.nan, 1),
        (0, 1, 2),
    ),
    *each_of(PARAMETER, starting, "loss_range", ENDS, 5, None, "01", (False, True)),
    (PARAMETER, starting(loss_range=(0, 10**400)), f"loss_range = ...: {ENDS}"),
    (
        PARAMETER,
        starting(loss_range=(-1e308, 1e308)),
        "loss_range = (-1e+308, 1e+308): is too wide: ...; ",
    ),
    *each_of(PARAMETER, starting, "max_pending", f"{WHOLE} 1 on; the default is 100000", 0, None),
    *each_of(PARAMETER, starting, "max_pending", "must not exceed", 10**16),
]
ARMS_AND_COUNTS: list[Row] = [
    (PARAMETER, one("decide", 0), f"count = 0: {WHOLE} 1 on; leave it out for a single decision"),
    (
        PARAMETER,
        one("decide", 2.0),
        f"count = 2.0: {WHOLE} 1 on; leave it out for a single decision",
    ),
    (
        PARAMETER,
        one("decide", 11),
        "count = 11: must not exceed max_pending = 10; make fewer at once, or raise max_pending in",
    ),
    (PARAMETER, one("decide", 10**30), f"count = {10**30}: must not exceed max_pending = 10; "),
    *(
        (ARM, one(call, available=given), message)
        for call in (
            "decide",
            "explore",
            "exploit",
            "exploration_probabilities",
            "exploitation_probabilities",
        )
        for given, message in (
            ("left", f"available = 'left': {NO_LIST}"),
            (0, f"available = 0: {NO_LIST}"),
            ([], "available = []: names no arm; leave it out if every arm is available"),
            (
                ["left", "rigth"],
                "arm = 'rigth': is not an arm of this learner; did you mean 'right'?",
            ),
            (
                ["LEFT"],
                "arm = 'LEFT': is not an arm of this learner; known are 'left', 'right', 'middle'",
            ),
            ([["left"]], "arm = ['left']: is not an arm of this learner; "),
            ([True], "arm = True: is not an arm of this learner; known are"),
        )
    ),
    *(
        (ARM, lambda learner, given=given: metered(learner, given), message)
        for given, message in (
            ("left", f"available = 'left': {NO_LIST}"),
            ("ab", f"available = 'ab': {NO_LIST}"),
            (0, f"available = 0: {NO_LIST}"),
            ([], "available = []: names no arm; leave it out if every arm is available"),
            (
                ["left", "rigth"],
                "arm = 'rigth': is not an arm of this learner; did you mean 'right'?",
            ),
        )
    ),
    (ARM, one("add_arms", ["x", "left"]), "names: 'left' is already an arm of this learner; "),
    (ARM, one("add_arms", ["x", "y", "x"]), f"names: 'x' {TWICE}"),
    *(
        (ARM, one("add_arms", ["x", each]), f"names: {each!r} {NO_NAME}")
        for each in (None, True, 1.0)
    ),
    *((ARM, one("add_arms", each), f"names = {each!r}: {NO_LIST}") for each in ("xyz", 3)),
    (ARM, one("add_arms", np.zeros((2, 2))), f"names = ...: {NO_LIST}"),
    (ARM, one("retire_arms", ["left", "B"]), "arm = 'B': is not an arm of this learner; "),
    (ARM, one("retire_arms", "left"), f"names = 'left': {NO_LIST}"),
    (
        ARM,
        one("retire_arms", ARMS[:2]),
        f"names = ['left', 'right']: would leave 1 of 3 arms, {LEFT}",
    ),
    (ARM, one("retire_arms", ARMS), f"names = ...: would leave 0 of 3 arms, {LEFT}"),
    *(
        (PARAMETER, one(call, key=key), f"key: {message}")
        for call in ("decide", "exploit")
        for key, message in (
            ("", "has 0 bytes in UTF-8; must have 1 to 1024"),
            ("x" * 1025, "has 1025 bytes"),
            ("ü" * 513, "has 1026 bytes"),
            ("\ud800", "has a lone surrogate"),
            (1.5, "is of type float; must be a string or a whole number"),
            (True, "is of type bool"),
            (b"session", "is of type bytes"),
        )
    ),
]
OUTSIDE = "must lie in [0.0, 1.0]; declare another range with start(..., loss_range=(low, high))"
NEITHER = "give either the loss of the explored arm or its reward"
MADE = "was never made by this learner; give a decision that decide() or explore() returned"
STRANGER = dc.Decision("0badbeef-1", 1, "left", "left", 0.5, 2.0)
NO_DECISIONS: list[Any] = ["0badbeef-1", "", "-", "1", None, 7, tuple(STRANGER), [], {}]
NUMBERS: list[Any] = [math.inf, -1e-9, 1.0000001, 10**400, Fraction(3, 2)]
NO_NUMBERS: list[Any] = ["0.5", b"0.5", [0.5], (0.5,), 1j, {}, np.array([0.5])]


def observing(place: int = 0, **given: Any) -> Callable[[Any], object]:
    return lambda x: x.observe(x.pending[place], **given)


def by_id(**given: Any) -> Callable[[Any], object]:
    return lambda x: x.observe(x.pending[0].id, **given)


LOSSES: list[Row] = [
    *(
        (LOSS, call(**{name: each}), f"{name} = {each!r}: {message}")
        for name in ("loss", "reward")
        for call in (observing, by_id)
        for each, message in (
            *((each, OUTSIDE.split("...")[0]) for each in NUMBERS),
            *(
                (each, "is not a number; report the loss when")
                for each in (math.nan, np.float64("nan"))
            ),
            *(
                (each, f"is a...{type(each).__name__}; give a number in [0.0, 1.0]")
                for each in NO_NUMBERS
            ),
        )
    ),
    (LOSS, observing(), f"loss, reward: neither was given; {NEITHER}"),
    (
        LOSS,
        observing(loss=0.25, reward=0.75),
        f"loss = 0.25, reward = 0.75: both were given; {NEITHER}",
    ),
    (
        PARAMETER,
        observing(preference="red"),
        "preference = 'red': must be 'explore' or 'tie' or 'exploit'",
    ),
    (LOSS, observing(loss=0.5, preference="tie"), "preference, loss: both were given"),
    (LOSS, observing(reward=0.5, preference="tie"), "preference, reward: both were given"),
    (
        FEEDBACK,
        observing(1, preference="tie"),
        "decision ...: has no exploited arm to compare with",
    ),
    *(
        (FEEDBACK, call, f"decision {each!r}: {MADE}")
        for each in NO_DECISIONS
        for call in (one("forget", each), one("observe", each, loss=0.5))
    ),
    (FEEDBACK, one("forget", STRANGER), f"decision '0badbeef-1': {MADE}"),
    (FEEDBACK, one("observe", STRANGER, loss=0.5), f"decision '0badbeef-1': {MADE}"),
    (
        FEEDBACK,
        lambda x: x.observe(x.pending[0]._replace(id=[1]), 0.5),
        "decision [1]: was never made",
    ),
    (FEEDBACK, lambda x: x.observe(x.fork(seed=1).decide(), 0.5), "decision ...: was never made"),
    *(
        (
            FEEDBACK,
            call,
            "decision ...: is pending with other contents; give the decision as this learner",
        )
        for call in (
            lambda x: x.forget(x.pending[0]._replace(weight=9.0)),
            lambda x: x.observe(x.pending[0]._replace(explore="other"), loss=0.5),
        )
    ),
    # An id of the future; the last has more digits than Python parses.
    *(
        (FEEDBACK, lambda x, end=end: x.forget(f"{x.tag}{end}"), "decision ...: was never made")
        for end in ("-4", "-0", "-", "--1", "", f"-{'9' * 5000}")
    ),
    (
        IndexError,
        lambda x: x.observe(tuple.__new__(dc.Decision, ()), 0.5),
        "tuple index out of range",
    ),
]
GOOD: list[Any] = [("left", 0.5, 0.25), {"explore": "right", "propensity": 1, "loss": 0}]
NO_PROPENSITY = "a log without propensities cannot be replayed (docs: In operation, A log without"
SHAPE = (
    "must be (arm, propensity, loss), or a mapping with the keys 'explore', 'propensity' and 'loss'"
)
RECORDS: list[Row] = [
    *(
        (
            PARAMETER,
            one("replay", [*GOOD, ("left", each, 0.5)]),
            f"records[2].propensity = {each!r}: must be a probability of at least 1e-50; "
            "log the probability",
        )
        for each in (0, -0.5, 1.0000001, math.inf, "0.5", True, [0.5], 1e-51)
    ),
    *(
        (
            LOSS,
            one("replay", [*GOOD, ("left", 0.5, each)]),
            f"records[2]: loss = {each}: is ...; leave out",
        )
        for each in (None, math.nan)
    ),
    *(
        (
            PARAMETER,
            one("replay", [*GOOD, each]),
            f"records[2] = {each!r}: {SHAPE}; correct that record",
        )
        for each in (
            ("left", 0.5),
            ("left", 0.5, 0.5, 0.5),
            (),
            5,
            None,
            {},
            {"explore": "left"},
            "ab",
        )
    ),
    *(
        (
            PARAMETER,
            one("replay", [*GOOD, ("left", each, 0.5)]),
            f"records[2].propensity = {each}: is missing; ...{NO_PROPENSITY}",
        )
        for each in (None, math.nan)
    ),
    (
        PARAMETER,
        one("replay", [*GOOD, {"explore": "left", "loss": 0.5}]),
        f"records[2] = ...: has no 'propensity'; ...{NO_PROPENSITY}",
    ),
]
GUARDS_AND_BUDGETS: list[Row] = [
    (PARAMETER, rules(floors={"left": 1.2}), "floors['left'] = 1.2: must be a number from 0 to 1"),
    (PARAMETER, rules(floors={"left": 0.6, "right": 0.6}), "floors = ... sum to 1.2; lower some"),
    (PARAMETER, rules(floors={"left": 0.6}, holdout=0.5), "floors = ...together with holdout"),
    (PARAMETER, rules(floors=["left"]), "floors = ...: must be a mapping"),
    (PARAMETER, rules(holdout=math.nan), "holdout = nan"),
    (PARAMETER, rules(control="left"), "control = 'left': is the arm of the hold-out"),
    (PARAMETER, rules(risk=0), "risk = 0"),
    (PARAMETER, rules(drift=1), "drift = 1: must be True or False"),
    (PARAMETER, rules(cheapest_within=0.1), "cheapest_within = 0.1: needs the price of every arm"),
    (PARAMETER, rules(prices={"left": 1}), "prices = ...: are for cheapest_within, which is None"),
    (PARAMETER, cheapest(-1), "cheapest_within = -1: must be a finite number of at least 0"),
    (PARAMETER, cheapest(1), "cheapest_within = 1.0: must be below 1, the width of the loss range"),
    (
        PARAMETER,
        cheapest(0.1, left=math.inf),
        "prices['left'] = inf: must be a finite number of at least 0",
    ),
    (PARAMETER, cheapest(0.1, left=-1), "prices['left'] = -1: must be"),
    (ARM, cheapest(0.1, z=1), "prices = 'z': is not an arm"),
    (
        PARAMETER,
        rules(cheapest_within=0.1, prices={"left": 1}),
        "prices = ...: has no price of the arm",
    ),
    (PARAMETER, rules(cheapest_within=0.1, prices=[1, 2]), "prices = ...: must be a mapping"),
    (
        PARAMETER,
        rules(switch_margin="a"),
        "switch_margin = 'a': must be a finite number of at least 0",
    ),
    (PARAMETER, rules(switch_margin=2), "switch_margin = 2.0: must be below 1"),
    (ARM, rules(down="left"), "down = 'left': must be a list of arms"),
    (ARM, rules(pinned="z"), "pinned = 'z': is not an arm"),
    (ARM, rules(floors={0: 0.5}), "floors = 0: is not an arm"),
    (ARM, rules(down=ARMS), "down = ...: must not name every arm"),
    (
        PARAMETER,
        lambda x: setattr(x, "guardrails", {"pinned": "left"}),
        "guardrails = ...: must be",
    ),
    *(
        (PARAMETER, lambda _, given=given: dc.Budget(**given), message)
        for given, message in (
            ({"share": 1.5}, "share = 1.5: must be a number from 0 to 1"),
            ({"rate": 5}, "rate = 5: must be two numbers; for example"),
            ({"rate": (20_000, 60)}, "rate[0] = 20000: must not exceed 10,000"),
            ({"rate": (5, 0)}, "rate[1] = 0"),
            ({"total": 5}, "total = 5.0: needs a cost"),
            ({"cost": 1.0}, "cost = 1.0: limits nothing alone"),
            ({"cost": {}, "total": 1}, "cost = {}: names no arm"),
            ({"cost": {"a": -1}, "total": 1}, "cost['a'] = -1"),
            ({"cost": 1, "allowance": (5, -1)}, "allowance[1] = -1"),
        )
    ),
]
COUPLED, PLAIN = dc.CoupledFTPL().start(3, seed=7), dc.FTPL().start(3, seed=7)
STANDARD = "CoupledFTPL plays the standard game"
NOT_OFFERED: list[Row] = [
    (UNSUPPORTED, lambda _: COUPLED.decide(key="session-17"), f"decide(key=...): {STANDARD}"),
    (
        UNSUPPORTED,
        lambda _: COUPLED.observe(COUPLED.decide(), preference="tie"),
        f"preference: {STANDARD}",
    ),
]
EVERYTHING = {
    "starting": STARTING,
    "arms and counts": ARMS_AND_COUNTS,
    "losses": LOSSES,
    "records": RECORDS,
    "guards and budgets": GUARDS_AND_BUDGETS,
    "not offered": NOT_OFFERED,
}


@pytest.mark.parametrize(
    "row",
    [
        pytest.param(row, id=f"{name} {row[2][:40]}")
        for name, rows in EVERYTHING.items()
        for row in rows
    ],
)
def test_what_is_refused_says_why_and_changes_nothing(learner: dc.Learner, row: Row) -> None:
    check(learner, row)


@pytest.mark.parametrize("arm", [1.0, np.float64(1), np.True_, 1 + 0j], ids=repr)
def test_names_that_are_whole_numbers_are_not_met_by_other_numbers(arm: Any) -> None:
    message = f"arm = {arm!r}: is not an arm of this learner; "
    check(
        dc.FTPL().start(arms=3, seed=0), (ARM, one("decide", available=[arm]), f"{message}the arms")
    )
    check(dc.FTPL().start(arms=[1, 2, 3], seed=0), (ARM, one("decide", available=[arm]), message))
    check(
        dc.FTPL().start(arms=[1, 2, 3], seed=0),
        (ARM, one("replay", [(arm, 0.5, 0.5)]), "records[0]: "),
    )


@pytest.mark.parametrize("observed", [True, False])
def test_settled_decisions_are_told_from_unknown_ones(learner: dc.Learner, observed: bool) -> None:
    decision = learner.pending[0]
    if observed:
        learner.observe(decision, loss=0.5)
    else:
        learner.forget(decision)
    message = (
        "decision ...: ...its feedback was already applied, or it was forgotten; send feedback once"
    )
    check(learner, (FEEDBACK, one("observe", decision, loss=0.5), message))


TRUTHS: list[Any] = [True, False, np.True_, np.False_, np.array(True)]


@pytest.mark.parametrize("value", TRUTHS, ids=repr)
def test_a_truth_value_is_a_loss_of_one_or_zero(value: Any) -> None:
    """`prediction != label` is the loss of a shadow model."""

    def learned(given: Any) -> str:
        learner = dc.Ladder().start(["a", "b"], seed=0)
        learner.observe(learner.decide(), loss=given)
        learner.observe(learner.decide(), reward=given)
        learner.replay([("a", 0.5, given), ("b", 0.25, 0.5)])
        return learner.to_json()

    assert learned(value) == learned(float(value))
    assert learned(value) != learned(0.5)


def test_a_truth_value_is_a_loss_only_within_the_range() -> None:
    wide, far = (dc.FTPL().start(2, seed=0, loss_range=ends) for ends in [(-1, 1), (2, 5)])
    decision = wide.decide()
    wide.observe(decision, loss=False)  # 0, in the middle of the range
    assert wide.estimates().max() == pytest.approx(0.5 * decision.weight)
    decision = far.decide()
    for truth in (True, np.False_):
        message = refused(far, dc.LossError, lambda truth=truth: far.observe(decision, loss=truth))  # type: ignore[misc]
        assert message.startswith(f"loss = {truth!r}: must lie in [2.0, 5.0]; ")


WEIGHING = [dc.FTPL(), dc.Ladder(), dc.CoupledExp3(), dc.Forgetting(dc.FTPL(), discount=0.9)]
AVERAGING = [dc.FollowTheLeader(), dc.TopTwo(), dc.UCB1(), dc.ThompsonSampling()]


@pytest.mark.parametrize("policy", WEIGHING, ids=lambda policy: policy.label)
@pytest.mark.parametrize(
    "log",
    [[("a", 1, 0.4), ("b", 1, 0.1), ("a", 1, 0.4)], [("b", 1.0, 0.4)]],
    ids=["many", "one record"],
)
def test_a_log_that_was_not_randomised(policy: dc.Policy, log: list[Any]) -> None:
    """Its sums show how often an arm was tried, so the arm tried least would win."""
    learner = policy.start(["a", "b"], seed=0)
    message = refused(learner, dc.ParameterError, lambda: learner.replay(log))
    what = "all " if len(log) > 1 else "the only propensity is 1, with 2 arms"
    assert message.startswith(f"records: {what}")
    for remedy in ("give the probability", "A log without propensities", "unrandomised=True"):
        assert remedy in message
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", dc.UnseenArmWarning)
        assert learner.replay(log, unrandomised=True) == len(log)


@pytest.mark.parametrize("policy", AVERAGING, ids=lambda policy: policy.label)
def test_to_a_mean_propensities_do_not_matter(policy: dc.Policy) -> None:
    one, two = (policy.start(["a", "b"], seed=0) for _ in range(2))
    one.replay([("a", 1.0, 0.4), ("b", 1.0, 0.1)])
    two.replay([("a", 0.5, 0.4), ("b", 0.25, 0.1)])
    assert one.to_json() == two.to_json()


def test_arms_that_never_occur_are_named_and_there_is_a_way_out(learner: dc.Learner) -> None:
    fresh = dc.FTPL().start(["a", "b", "c"], seed=0)
    with pytest.warns(
        dc.UnseenArmWarning, match=r"^records: arm 'c' never occurs and has no loss"
    ) as one:
        fresh.replay([("a", 0.5, 0.4), ("b", 0.5, 0.4)])
    assert one[0].filename == __file__
    assert "in with add_arms()" in str(one[0].message)
    learner = dc.FTPL().start(["a", "b", "c"], seed=0)
    learner.replay([("a", 0.5, 0.4), ("b", 0.25, 0.4), ("c", 0.25, 0.1)])
    learner.replay([("a", 0.5, 0.4), ("b", 0.5, 0.4)])
    learner.add_arms(["d"])  # level with the best, so it has losses
    learner.replay([("a", 0.5, 0.4), ("b", 0.5, 0.4)])
    learner = dc.FTPL().start(["a", "b", "c"], seed=0)
    before = learner.to_json()
    with warnings.catch_warnings():
        warnings.simplefilter("error", dc.UnseenArmWarning)
        with pytest.raises(dc.UnseenArmWarning):
            learner.replay([("a", 0.5, 0.4), ("b", 0.5, 0.4)])
    assert learner.to_json() == before
    # An arm added after the log is tried, and is not the favourite.
    learner = dc.FTPL().start(["a", "b"], seed=0)
    learner.replay([("a", 0.5, 0.3), ("b", 0.5, 0.6)] * 200)
    learner.add_arms(["c"])
    assert learner.exploitation_probabilities()[2] == pytest.approx(0.5, abs=0.01)
    naive = dc.FTPL().start(["a", "b", "c"], seed=0)
    with pytest.warns(dc.UnseenArmWarning):
        naive.replay([("a", 0.5, 0.3), ("b", 0.5, 0.6)] * 200)
    assert naive.exploitation_probabilities()[2] > 0.99


def test_a_table_is_no_list_of_records(learner: dc.Learner) -> None:
    frame = pd.DataFrame({"explore": ["left"], "propensity": [0.5], "loss": [0.5]})
    for table in (frame, {"explore": "left", "propensity": 0.5, "loss": 0.5}):
        message = refused(learner, dc.ParameterError, lambda table=table: learner.replay(table))  # type: ignore[misc]
        assert message.startswith(f"records: is a {type(table).__name__}, not a list of records; ")
        assert "to_dict('records')" in message
    assert learner.replay(frame.to_dict("records")) == 1

    def broken() -> Any:
        yield GOOD[0]
        raise ConnectionError("the log is gone")

    before = learner.to_json()
    with pytest.raises(ConnectionError):
        learner.replay(broken())
    assert learner.to_json() == before
