"""Every error names the argument, its value, the rule and the remedy, and has changed nothing."""

import math
import pickle
import re
import warnings
from collections.abc import Callable
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pytest

import decoupled as dc
from decoupled import errors

# The tree


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
def test_the_tree_is_the_documented_one(error: type[dc.DecoupledError], builtin: type[Exception]) -> None:
    assert error.__bases__ == (dc.DecoupledError, builtin)
    assert re.search(rf"-- {error.__name__} .*\(also an? {builtin.__name__}\)", errors.__doc__ or "")


def test_the_tree_has_no_other_branches() -> None:
    assert dc.DecoupledError.__bases__ == (Exception,)
    drawn = set(re.findall(r"-- (\w+)", errors.__doc__ or ""))
    # The service, which is optional, has its own errors below one more branch.
    known = {
        branch for branch in dc.DecoupledError.__subclasses__() if branch.__module__ == errors.__name__
    }
    assert {branch.__name__ for branch in known} == drawn
    assert drawn <= set(dir(dc))


# Starting


class Case(NamedTuple):
    """A bad value, and what the message must say beside it."""

    value: Any
    rule: str
    remedy: str
    shown: str | None = None  # how the value appears, if not as its repr


def raised(error: type[dc.DecoupledError], call: Callable[[], object]) -> str:
    with pytest.raises(error) as caught:
        call()
    assert type(caught.value) is error
    return str(caught.value)


def check(message: str, argument: str, case: Case) -> None:
    """`argument = value: rule; remedy`, on one line."""
    shown = repr(case.value) if case.shown is None else case.shown
    assert re.match(rf"{re.escape(argument)}(?!\w)", message)
    assert shown in message
    rule, _, remedy = message.partition("; ")
    assert case.rule in rule
    assert case.remedy in remedy
    assert "\n" not in message


ARMS_KIND = ("must be a number or a list of names", "")
TOO_FEW = ("must be at least two", "with one arm there is nothing to decide")
TWICE = ("appears twice", "give every arm a name of its own")
NO_NAME = ("is not a valid name", "use strings or whole numbers")


@pytest.mark.parametrize(
    "case",
    [
        *(Case(value, *ARMS_KIND) for value in ("abc", b"abc", True, 2.0, None, len)),
        *(Case(value, *TOO_FEW) for value in (1, -3, [], ["only"])),
        Case(["a", "b", "a"], *TWICE, shown="'a'"),
        Case([1, 2, np.int64(1)], *TWICE, shown="1"),
        *(Case(["a", name], *NO_NAME, shown=repr(name)) for name in (None, 1.5, b"b", True, ["b"])),
        Case(np.array([0.5, 1.5]), *NO_NAME, shown="0.5"),
    ],
    ids=lambda case: repr(case.value),
)
def test_bad_arms(case: Case) -> None:
    check(raised(dc.ArmError, lambda: dc.FTPL().start(arms=case.value, seed=0)), "arms", case)


@pytest.mark.parametrize("arms", [10**30, np.array("a")], ids=["huge", "array"])
def test_arms_that_cannot_be_counted(arms: Any) -> None:
    raised(dc.ArmError, lambda: dc.FTPL().start(arms=arms, seed=0))


WHOLE = "must be a whole number from"


@pytest.mark.parametrize("value", [-1, "7"], ids=repr)
def test_bad_seeds(value: Any) -> None:
    case = Case(value, f"{WHOLE} 0 on", "leave it out for fresh randomness")
    check(raised(dc.ParameterError, lambda: dc.FTPL().start(arms=2, seed=value)), "seed", case)
    learner = dc.FTPL().start(arms=2, seed=0)
    check(raised(dc.ParameterError, lambda: learner.fork(seed=value)), "seed", case)


@pytest.mark.parametrize(
    "value",
    [(0, 0), (1, 0), (0, math.inf), (math.nan, 1), (0, 1, 2), 5, None, "01", (False, True), (0, 10**400)],
    ids=lambda value: repr(value)[:30],
)
def test_bad_loss_ranges(value: Any) -> None:
    case = Case(value, "must be two finite numbers, the lower first", "the default is (0, 1)")
    message = raised(dc.ParameterError, lambda: dc.FTPL().start(arms=2, loss_range=value))
    check(message, "loss_range", case)


def test_a_loss_range_too_wide_for_floats() -> None:
    """Both ends are finite numbers, and their difference is not."""
    case = Case(
        (-1e308, 1e308), "is too wide: the difference of its ends is no finite number", "a larger unit"
    )
    message = raised(dc.ParameterError, lambda: dc.FTPL().start(arms=2, loss_range=(-1e308, 1e308)))
    check(message, "loss_range", case)


@pytest.mark.parametrize("value", [0, None], ids=repr)
def test_bad_max_pending(value: Any) -> None:
    case = Case(value, f"{WHOLE} 1 on", "the default is 100000")
    message = raised(dc.ParameterError, lambda: dc.FTPL().start(arms=2, max_pending=value))
    check(message, "max_pending", case)


# Running


@pytest.fixture
def learner() -> dc.Learner:
    learner = dc.FTPL().start(arms=["left", "right", "middle"], seed=4, max_pending=10)
    learner.observe(learner.decide(), loss=0.5)
    learner.decide(available=["left", "right"])
    return learner


def refused(learner: dc.Learner, error: type[dc.DecoupledError], call: Callable[[], object]) -> str:
    """The message of an error that has changed nothing."""
    before = learner.to_json()
    message = raised(error, call)
    assert learner.to_json() == before
    return message


@pytest.mark.parametrize("value", [0, 2.0], ids=repr)
def test_bad_counts(learner: dc.Learner, value: Any) -> None:
    message = refused(learner, dc.ParameterError, lambda: learner.decide(value))
    check(message, "count", Case(value, f"{WHOLE} 1 on", "leave it out for a single decision"))


@pytest.mark.parametrize("value", [11, 10**30])
def test_more_decisions_than_may_be_pending(learner: dc.Learner, value: int) -> None:
    message = refused(learner, dc.ParameterError, lambda: learner.decide(count=value))
    check(message, "count", Case(value, "must not exceed max_pending = 10", "raise max_pending in start()"))


UNKNOWN = "is not an arm of this learner"


@pytest.mark.parametrize(
    ("argument", "case"),
    [
        ("available", Case("left", "must be a list of arms", "put the names in a list")),
        ("available", Case(0, "must be a list of arms", "put the names in a list")),
        ("available", Case([], "names no arm", "leave it out if every arm is available")),
        ("arm", Case(["left", "rigth"], UNKNOWN, "did you mean 'right'?", "'rigth'")),
        ("arm", Case(["LEFT"], UNKNOWN, "known are 'left', 'right', 'middle'", "'LEFT'")),
        ("arm", Case([["left"]], UNKNOWN, "", "['left']")),
        ("arm", Case([True], UNKNOWN, "known are", "True")),
    ],
    ids=lambda part: repr(part.value) if isinstance(part, Case) else part,
)
def test_bad_available_arms(learner: dc.Learner, argument: str, case: Case) -> None:
    calls: list[Callable[..., object]] = [
        learner.decide,
        learner.explore,
        learner.exploit,
        learner.exploration_probabilities,
        learner.exploitation_probabilities,
    ]
    for call in calls:
        message = refused(learner, dc.ArmError, lambda call=call: call(available=case.value))  # type: ignore[misc]
        check(message, argument, case)


@pytest.mark.parametrize("arm", [1.0, np.float64(1), np.True_, 1 + 0j], ids=repr)
def test_names_that_are_whole_numbers_are_not_met_by_other_numbers(arm: Any) -> None:
    numbered = dc.FTPL().start(arms=3, seed=0)
    message = refused(numbered, dc.ArmError, lambda: numbered.decide(available=[arm]))
    check(message, "arm", Case(arm, UNKNOWN, "the arms are 0 to 2"))
    learner = dc.FTPL().start(arms=[1, 2, 3], seed=0)
    refused(learner, dc.ArmError, lambda: learner.decide(available=[arm]))
    refused(learner, dc.ArmError, lambda: learner.replay([(arm, 0.5, 0.5)]))


BAD_LOSSES: list[Any] = [
    *(math.nan, math.inf, -1e-9, 1.0000001, 10**400, np.float64("nan"), Fraction(3, 2)),
    *("0.5", b"0.5", [0.5], (0.5,), 1j, {}, np.array([0.5])),
]


OUTSIDE = ("must lie in [0.0, 1.0]", "declare another range with start(..., loss_range=(low, high))")


def rule_and_remedy(value: Any) -> tuple[str, str]:
    """The message for a bad loss: it is missing, not a number, or out of range."""
    if not isinstance(value, (int, float, Fraction)):
        return (
            f"is a{'n' * isinstance(value, np.ndarray)} {type(value).__name__}",
            "give a number in [0.0, 1.0]",
        )
    return ("is not a number", "report the loss when it is known") if value != value else OUTSIDE


@pytest.mark.parametrize("value", BAD_LOSSES, ids=lambda value: repr(value)[:30])
@pytest.mark.parametrize("argument", ["loss", "reward"])
def test_bad_losses(learner: dc.Learner, argument: str, value: Any) -> None:
    case = Case(value, *rule_and_remedy(value))
    decision = learner.pending[0]
    for given in (decision, decision.id):
        message = refused(
            learner,
            dc.LossError,
            lambda given=given: learner.observe(given, **{argument: value}),  # type: ignore[misc]
        )
        check(message, argument, case)


def test_one_of_loss_and_reward_is_needed(learner: dc.Learner) -> None:
    decision = learner.pending[0]
    neither = refused(learner, dc.LossError, lambda: learner.observe(decision))
    both = refused(learner, dc.LossError, lambda: learner.observe(decision, loss=0.25, reward=0.75))
    remedy = "give either the loss of the explored arm or its reward"
    assert neither == f"loss, reward: neither was given; {remedy}"
    assert both == f"loss = 0.25, reward = 0.75: both were given; {remedy}"


TRUTHS: list[Any] = [True, False, np.True_, np.False_, np.array(True)]


@pytest.mark.parametrize("value", TRUTHS, ids=repr)
def test_a_truth_value_is_a_loss_of_one_or_zero(value: Any) -> None:
    """`prediction != label` is the loss of a shadow model."""

    def learned(given: Any) -> str:
        learner = dc.Ladder().start(["a", "b"], seed=0)
        learner.observe(learner.decide(), loss=given)
        learner.observe(learner.decide(baseline={"a": given}), reward=given)
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


def test_an_error_has_its_remedy_apart(learner: dc.Learner) -> None:
    """So that code that passes it on can give a remedy that its readers can follow."""
    with pytest.raises(dc.LossError) as caught:
        learner.observe(learner.pending[0], loss=7)
    for error in (caught.value, pickle.loads(pickle.dumps(caught.value))):
        assert error.problem == "loss = 7: must lie in [0.0, 1.0]"
        assert error.remedy == OUTSIDE[1]
        assert str(error) == f"{error.problem}; {error.remedy}"
        other = error.with_remedy("create the experiment with another loss_range")
        assert type(other) is dc.LossError
        assert str(other) == f"{error.problem}; create the experiment with another loss_range"
    plain = dc.StateError("state: is damaged")
    assert (plain.problem, plain.remedy) == ("state: is damaged", None)
    assert str(plain.with_remedy("load another")) == "state: is damaged; load another"


NEVER = "was never made by this learner"
STRANGER = dc.Decision("0badbeef-1", 1, "left", "left", 0.5, 2.0)


@pytest.mark.parametrize(
    "given", [STRANGER, STRANGER.id, "", "-", "1", None, 7, tuple(STRANGER), [], {}], ids=repr
)
def test_feedback_for_what_was_never_decided(learner: dc.Learner, given: Any) -> None:
    shown = repr(given.id if isinstance(given, dc.Decision) else given)
    case = Case(given, NEVER, "give a decision that decide() or explore() returned", shown)
    check(refused(learner, dc.FeedbackError, lambda: learner.forget(given)), "decision", case)
    check(refused(learner, dc.FeedbackError, lambda: learner.observe(given, loss=0.5)), "decision", case)


def test_feedback_for_an_altered_decision(learner: dc.Learner) -> None:
    altered = learner.pending[0]._replace(explore="middle")
    case = Case(altered.id, "is pending with other contents", "give the decision as this learner made it")
    check(refused(learner, dc.FeedbackError, lambda: learner.forget(altered)), "decision", case)
    check(refused(learner, dc.FeedbackError, lambda: learner.observe(altered, loss=0.5)), "decision", case)


def test_an_id_of_the_future_was_never_made(learner: dc.Learner) -> None:
    tag, _, number = learner.pending[0].id.rpartition("-")
    endless = f"{tag}-{'9' * 5000}"  # more digits than Python parses
    for future in (f"{tag}-{int(number) + 1}", f"{tag}-0", f"{tag}-", f"{tag}--1", tag, endless):
        message = refused(learner, dc.FeedbackError, lambda key=future: learner.forget(key))  # type: ignore[misc]
        check(message, "decision", Case(future, NEVER, "", shown=tag))


@pytest.mark.parametrize("verb", ["observed", "forgotten"])
def test_settled_decisions_are_told_from_unknown_ones(learner: dc.Learner, verb: str) -> None:
    decision = learner.pending[0]
    if verb == "observed":
        learner.observe(decision, loss=0.5)
    else:
        learner.forget(decision)
    message = refused(learner, dc.FeedbackError, lambda: learner.observe(decision, loss=0.5))
    rule, remedy = (
        "its feedback was already applied, or it was forgotten",
        "send feedback once for each decision",
    )
    check(message, "decision", Case(decision.id, rule, remedy))


# Replaying

GOOD: list[Any] = [("left", 0.5, 0.25), {"explore": "right", "propensity": 1, "loss": 0}]


@pytest.mark.parametrize("value", [0, -0.5, 1.0000001, math.inf, "0.5", True, [0.5], 1e-51], ids=repr)
def test_bad_propensities(learner: dc.Learner, value: Any) -> None:
    message = refused(learner, dc.ParameterError, lambda: learner.replay([*GOOD, ("left", value, 0.5)]))
    remedy = "log the probability with which the arm was explored"
    check(message, "records[2].propensity", Case(value, "must be a probability of at least 1e-50", remedy))


@pytest.mark.parametrize("loss", [None, math.nan])
def test_a_missing_loss_in_a_log(learner: dc.Learner, loss: Any) -> None:
    message = refused(learner, dc.LossError, lambda: learner.replay([*GOOD, ("left", 0.5, loss)]))
    assert message.startswith(f"records[2]: loss = {loss}: is ")
    assert message.endswith("; leave out records without a loss")


@pytest.mark.parametrize(
    "record",
    [("left", 0.5), ("left", 0.5, 0.5, 0.5), (), 5, None, {}, {"explore": "left"}, "ab"],
    ids=repr,
)
def test_misshapen_records(learner: dc.Learner, record: Any) -> None:
    message = refused(learner, dc.ParameterError, lambda: learner.replay([*GOOD, record]))
    rule = "must be (arm, propensity, loss), or a mapping with the keys 'explore', 'propensity' and 'loss'"
    check(message, "records[2]", Case(record, rule, "correct that record"))


NO_PROPENSITY = (
    "a log without propensities cannot be replayed (docs: In operation, A log without propensities)"
)


@pytest.mark.parametrize("record", [("left", None, 0.5), ("left", math.nan, 0.5)], ids=repr)
def test_a_propensity_that_is_missing(learner: dc.Learner, record: Any) -> None:
    message = refused(learner, dc.ParameterError, lambda: learner.replay([*GOOD, record]))
    check(message, "records[2].propensity", Case(record[1], "is missing", NO_PROPENSITY))


def test_a_record_without_a_propensity(learner: dc.Learner) -> None:
    record = {"explore": "left", "loss": 0.5}
    message = refused(learner, dc.ParameterError, lambda: learner.replay([*GOOD, record]))
    check(message, "records[2]", Case(record, "has no 'propensity'", NO_PROPENSITY))


WEIGHING = [dc.FTPL(), dc.Ladder(), dc.CoupledExp3(), dc.Forgetting(dc.FTPL(), discount=0.9)]
AVERAGING = [dc.FollowTheLeader(), dc.TopTwo(), dc.UCB1(), dc.ThompsonSampling()]


@pytest.mark.parametrize("policy", WEIGHING, ids=lambda policy: policy.label)
@pytest.mark.parametrize(
    "log", [[("a", 1, 0.4), ("b", 1, 0.1), ("a", 1, 0.4)], [("b", 1.0, 0.4)]], ids=["many", "one record"]
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


def test_arms_that_never_occur_are_named(learner: dc.Learner) -> None:
    fresh = dc.FTPL().start(["a", "b", "c"], seed=0)
    with pytest.warns(
        dc.UnseenArmWarning, match=r"^records: arm 'c' never occurs and has no loss on record"
    ) as one:
        fresh.replay([("a", 0.5, 0.4), ("b", 0.5, 0.4)])
    assert one[0].filename == __file__
    many = dc.FTPL().start(100, seed=0)
    with pytest.warns(
        dc.UnseenArmWarning, match=r"arms 1, 2, .*, 10 and 89 more never occur and have no"
    ) as two:
        many.replay([(0, 0.5, 0.4), (0, 0.5, 0.4)])
    for each in (*one, *two):
        assert "then bring " in str(each.message)
        assert "in with add_arms()" in str(each.message)


def test_arms_that_are_known_already_may_be_left_out() -> None:
    learner = dc.FTPL().start(["a", "b", "c"], seed=0)
    learner.replay([("a", 0.5, 0.4), ("b", 0.25, 0.4), ("c", 0.25, 0.1)])
    learner.replay([("a", 0.5, 0.4), ("b", 0.5, 0.4)])
    learner.add_arms(["d"])  # level with the best, so it has losses
    learner.replay([("a", 0.5, 0.4), ("b", 0.5, 0.4)])


def test_the_way_out_that_the_warning_names() -> None:
    """An arm added after the log is tried, and is not the favourite."""
    learner = dc.FTPL().start(["a", "b"], seed=0)
    learner.replay([("a", 0.5, 0.3), ("b", 0.5, 0.6)] * 200)
    learner.add_arms(["c"])
    assert learner.exploitation_probabilities()[2] == pytest.approx(0.5, abs=0.01)
    naive = dc.FTPL().start(["a", "b", "c"], seed=0)
    with pytest.warns(dc.UnseenArmWarning):
        naive.replay([("a", 0.5, 0.3), ("b", 0.5, 0.6)] * 200)
    assert naive.exploitation_probabilities()[2] > 0.99


def test_a_warning_made_an_error_changes_nothing() -> None:
    learner = dc.FTPL().start(["a", "b", "c"], seed=0)
    before = learner.to_json()
    with warnings.catch_warnings():
        warnings.simplefilter("error", dc.UnseenArmWarning)
        with pytest.raises(dc.UnseenArmWarning):
            learner.replay([("a", 0.5, 0.4), ("b", 0.5, 0.4)])
    assert learner.to_json() == before


def test_a_table_is_no_list_of_records(learner: dc.Learner) -> None:
    frame = pd.DataFrame({"explore": ["left"], "propensity": [0.5], "loss": [0.5]})
    for table in (frame, {"explore": "left", "propensity": 0.5, "loss": 0.5}):
        message = refused(learner, dc.ParameterError, lambda table=table: learner.replay(table))  # type: ignore[misc]
        assert message.startswith(f"records: is a {type(table).__name__}, not a list of records; ")
        assert "to_dict('records')" in message
    assert learner.replay(frame.to_dict("records")) == 1


def test_a_log_that_breaks_off_applies_nothing(learner: dc.Learner) -> None:
    def broken() -> Any:
        yield GOOD[0]
        raise ConnectionError("the log is gone")

    before = learner.to_json()
    with pytest.raises(ConnectionError):
        learner.replay(broken())
    assert learner.to_json() == before
