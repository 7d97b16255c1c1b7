"""A plain round by built-in functions: as in Python, bit for bit, and with the same errors."""

import ctypes
import gc
import json
import random
import sys
import sysconfig
import tracemalloc
import weakref
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from types import BuiltinFunctionType
from typing import Any

import numpy as np
import pytest

import decoupled as dc
from decoupled.learner.columns import place_in_stream
from decoupled.learner.learner import Learner
from decoupled.native import load, quick
from decoupled.native.calls import FEW_ARMS, NativeFunction, Signature

POLICIES = [
    dc.FTPL(),
    dc.Ladder(),
    dc.TsallisINF(),
    dc.FollowTheLeader(),
    dc.CoupledFTPL(resampling="conditional"),
    dc.Forgetting(dc.Ladder(), discount=0.9),
]
every_policy = pytest.mark.parametrize("policy", POLICIES, ids=repr)
needs_quick = pytest.mark.skipif(
    quick.module() is None, reason=f"of the shipped machine code: {load.why_not()}; make native"
)


def not_quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(quick, "module", lambda: None)


@pytest.fixture(params=[pytest.param("quick", marks=needs_quick), "in Python"])
def _way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run a test with the built-in functions, and without them."""
    if request.param == "in Python":
        not_quick(monkeypatch)


both_ways = pytest.mark.usefixtures("_way")


def is_quick(learner: Learner) -> bool:
    return isinstance(learner._quick_decide, BuiltinFunctionType)


# Where it is used


@needs_quick
@every_policy
def test_a_plain_round_is_quick(policy: dc.Policy, monkeypatch: pytest.MonkeyPatch) -> None:
    learner = policy.start(["a", "b", "c"], seed=7)
    learner.observe(learner.decide(), loss=0.5)  # the first makes what later rounds reuse

    def slow(*_: Any, **__: Any) -> Any:
        raise AssertionError("not quick")

    monkeypatch.setattr(Learner, "_draw", slow)
    monkeypatch.setattr(type(learner._running), "settle", slow)
    for number in range(2, 30):
        decision = learner.decide()
        assert type(decision) is dc.Decision
        assert decision.round == number
        assert learner.pending == (decision,)
        learner.observe(decision, loss=0.25)
        assert len(learner.pending) == 0


@needs_quick
@pytest.mark.parametrize("missing", ["file", "lock of the interpreter", "module"])
def test_where_there_is_no_extension_module_it_is_python(
    missing: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    if missing == "file":
        monkeypatch.setattr(load, "extension", lambda: None)
    elif missing == "lock of the interpreter":
        monkeypatch.setattr(sysconfig, "get_config_var", lambda name: int(name == "Py_GIL_DISABLED"))
    else:
        (tmp_path / "other.so").write_bytes(b"for another interpreter")
        monkeypatch.setattr(load, "extension", lambda: tmp_path / "other.so")
    assert quick.module.__wrapped__() is None


@needs_quick
def test_other_learners_are_not_quick(monkeypatch: pytest.MonkeyPatch) -> None:
    assert is_quick(dc.FTPL().start(FEW_ARMS))
    assert not is_quick(dc.FTPL().start(FEW_ARMS + 1))
    learner = dc.FTPL().start(["a", "b", "c"], seed=7)
    assert is_quick(learner)
    assert is_quick(learner.fork(seed=1))
    learner.retire_arms(["a"])
    assert not is_quick(learner)
    long = dc.FTPL().start(3, seed=7)
    long._waiting.tag = "x" * quick.TAG
    long._bind()
    assert not is_quick(long)
    assert long.decide().id == "x" * quick.TAG + "-1"


@needs_quick
def test_the_ids_are_those_of_python(monkeypatch: pytest.MonkeyPatch) -> None:
    learner = dc.FTPL().start(2, seed=7)
    for number in (0, 8, 9, 98, 99, 12_345, 2**62):
        learner._waiting.counter.value = number
        assert learner.decide().id == f"{learner._waiting.tag}-{number + 1}"


@needs_quick
def test_what_does_not_belong_to_a_round_is_refused() -> None:
    kind = quick.module().Round
    for arguments in ((), (1, 2), (0,) * 27):
        with pytest.raises(TypeError):
            kind(*arguments)


# What it does


def course(policy: dc.Policy, seed: int, steps: int) -> Iterator[object]:
    """Everything that a learner returns and is, in a random course of calls."""
    chance = random.Random(seed)
    learner = policy.start(["a", "b", "c"], seed=seed, loss_range=(-1.0, 3.0), max_pending=6)
    waiting: list[dc.Decision] = []

    def feedback(act: Callable[..., Any], *, by_id: bool = False, **given: float) -> object:
        decision = waiting.pop(chance.randrange(len(waiting)))
        try:
            return act(decision.id if by_id else decision, **given)
        except dc.FeedbackError as error:  # it was forgotten
            return str(error)

    for step in range(steps):
        kind = chance.choices(range(10), (40, 40, 5, 5, 3, 3, 2, 1, 1, 10))[0]
        loss = chance.choice([-1.0, 3.0, 1, chance.uniform(-1.0, 3.0)])
        if kind == 0 or not waiting:
            waiting.append(learner.decide())
        elif kind == 1:
            yield feedback(learner.observe, loss=loss)
        elif kind == 2:
            yield feedback(learner.observe, by_id=True, reward=loss)
        elif kind == 3:
            waiting += learner.decide(count=2)
        elif kind == 4:
            yield feedback(learner.forget)
        elif kind == 5:
            waiting.append(learner.decide(available=chance.sample(learner.arms, 2)))
        elif kind == 6 and learner.policy.baseline is not None:
            waiting.append(learner.decide(baseline={learner.arms[0]: 0.25}))
        elif kind == 7:
            learner = dc.Learner.from_json(learner.to_json())
        elif kind == 9 and not policy.coupled:
            keys: list[Any] = ["session-17", "zwölf", "\N{SNOWMAN}" * 341, 17]
            waiting.append(learner.decide(key=chance.choice(keys)))
        elif kind == 8 and step > steps / 2:
            learner.add_arms([f"new {step}"])
            if step > 3 * steps / 4:
                learner.retire_arms([learner.arms[0]])
        waiting = waiting[-8:]
        yield waiting[-1:], learner.round, place_in_stream(learner), learner.estimates().tobytes()
        if step % 10 == 0:  # seldom, because saving computes baselines that rounds may leave out
            yield learner.to_json()


@needs_quick
@every_policy
def test_it_is_what_python_does(policy: dc.Policy, monkeypatch: pytest.MonkeyPatch) -> None:
    for seed in range(4):
        steps = list(course(policy, seed, 400))
        with monkeypatch.context() as patched:
            not_quick(patched)
            expected = list(course(policy, seed, 400))
        assert steps == expected


@both_ways
def test_a_decision_is_an_ordinary_one() -> None:
    learner = dc.FTPL().start([10**20, "b"], seed=7)
    decision = learner.decide()
    again = dc.Decision(*decision)
    assert (decision, hash(decision), repr(decision)) == (again, hash(again), repr(again))
    assert [type(each) for each in decision[:2] + decision[4:]] == [str, int, float, float]
    assert {decision.exploit, decision.explore} <= {10**20, "b"}
    learner.observe(again, loss=0.5)  # an equal one will do
    assert learner.round == 2


@both_ways
def test_an_unknown_propensity_is_none() -> None:
    assert dc.CoupledFTPL().start(3, seed=7).decide().propensity is None


# Errors


ERRORS: dict[str, tuple[Callable[[dc.Learner, dc.Decision], Any], type[Exception], str]] = {
    "nan": (lambda learner, one: learner.observe(one, float("nan")), dc.LossError, "is not a number"),
    "infinite": (lambda learner, one: learner.observe(one, float("inf")), dc.LossError, "must lie in"),
    "above": (lambda learner, one: learner.observe(one, 2.5), dc.LossError, r"must lie in \[0.0, 2.0\]"),
    "below": (lambda learner, one: learner.observe(one, loss=-0.1), dc.LossError, "must lie in"),
    "text": (lambda learner, one: learner.observe(one, "1"), dc.LossError, "give a number"),  # type: ignore[arg-type]
    "nothing": (lambda learner, one: learner.observe(one), dc.LossError, "neither was given"),
    "both": (lambda learner, one: learner.observe(one, 0.5, reward=0.5), dc.LossError, "both were given"),
    "twice": (
        lambda learner, one: [partial(learner.observe, loss=0.5)(each) for each in (one, one)],
        dc.FeedbackError,
        "already applied",
    ),
    "of another learner": (
        lambda learner, one: learner.observe(dc.FTPL().start(3, seed=8).decide(), 0.5),
        dc.FeedbackError,
        "never made by this learner",
    ),
    "changed": (
        lambda learner, one: learner.observe(one._replace(weight=9.0), 0.5),
        dc.FeedbackError,
        "other contents",
    ),
    "an id of no kind": (
        lambda learner, one: learner.observe(one._replace(id=[1]), 0.5),  # type: ignore[arg-type]
        dc.FeedbackError,
        "never made by this learner",
    ),
    "a plain tuple": (
        lambda learner, one: learner.observe(tuple(one), 0.5),  # type: ignore[arg-type]
        dc.FeedbackError,
        "never made",
    ),
    "a decision without fields": (
        lambda learner, one: learner.observe(tuple.__new__(dc.Decision, ()), 0.5),
        IndexError,
        "index out of range",
    ),
    "forgotten": (
        lambda learner, one: [act(one) for act in (learner.forget, partial(learner.observe, loss=0.5))],
        dc.FeedbackError,
        "it was forgotten",
    ),
}


@both_ways
@pytest.mark.parametrize("name", ERRORS)
def test_errors(name: str) -> None:
    act, kind, message = ERRORS[name]
    learner = dc.FTPL().start(3, seed=7, loss_range=(0, 2))
    one, other = learner.decide(), learner.decide()
    with pytest.raises(kind, match=message):
        act(learner, one)
    learner.observe(other, 0.5)
    left = () if name in ("twice", "forgotten") else (one,)
    assert learner.pending == left
    assert learner.round == 2 + (name == "twice")


@needs_quick
@pytest.mark.parametrize("part", ["decide", "update"])
def test_machine_code_that_fails_changes_nothing(part: str) -> None:
    learner = dc.FTPL().start(3, seed=7)
    decision = learner.decide()
    failing = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p)(lambda block: 1)
    broken = NativeFunction(part, failing, failing, Signature((), ()))
    learner._running.entries = learner._running.entries._replace(**{part: broken})
    learner._bind()
    learner._end()
    with pytest.raises(RuntimeError, match=f"{part}: the shipped machine code failed"):
        learner.decide() if part == "decide" else learner.observe(decision, 0.5)
    assert learner.pending == (decision,)
    assert learner.round == 1


# Memory and threads


@pytest.mark.parametrize("part", ["init", "decide", "update"])
def test_a_call_keeps_its_arrays(part: str) -> None:
    """A decision among some arms is drawn by a call of an object that nobody else holds."""
    among = dc.FTPL().start(4, seed=7)._running.only(np.arange(2))
    rows, call = weakref.ref(among.state.floats), getattr(among.calls, part)
    del among
    gc.collect()
    assert rows() is not None
    del call
    gc.collect()
    assert rows() is None


@needs_quick
@pytest.mark.parametrize("policy", [dc.FTPL(), dc.Ladder()], ids=repr)
def test_nothing_leaks(policy: dc.Policy) -> None:
    names = ["an arm", "another", "a third"]
    learner = policy.start(names, seed=7)
    lost = policy.start(3, seed=8).decide()
    nan, shared = float("nan"), [None, True, False, dc.Decision, float, learner._waiting.decisions, lost]

    def rounds(number: int) -> None:
        for _ in range(number):
            learner.observe(learner.decide(), 0.5)
            learner._quick_observe(lost, 0.5)
            learner._quick_observe(lost, nan)
            learner._begin()
            learner._quick_decide()
            learner._end()
            learner.observe(learner.decide(key="session-17"), 0.5)
            learner._quick_decide("\ud800")

    rounds(100)
    gc.collect()
    gc.disable()
    try:
        tracemalloc.start()
        before = [sys.getrefcount(each) for each in (*shared, *learner.arms)]
        size = tracemalloc.get_traced_memory()[0]
        rounds(50_000)
        grown = tracemalloc.get_traced_memory()[0] - size
        after = [sys.getrefcount(each) for each in (*shared, *learner.arms)]
    finally:
        tracemalloc.stop()
        gc.enable()
    assert grown < 10_000
    assert np.abs(np.subtract(after, before)).max() < 100


@needs_quick
def test_the_functions_own_what_they_use() -> None:
    learner = dc.Ladder().start(["a", "b"], seed=7)
    learner.observe(learner.decide(), 0.5)
    twin = dc.Learner.from_json(learner.to_json())
    twin.observe(twin.decide(), 0.5)
    learner.observe(learner.decide(), 0.5)
    decide, observe = learner._quick_decide, learner._quick_observe
    del learner
    gc.collect()
    for _ in range(100):
        decision = decide()
        assert decision == twin.decide()
        assert observe(decision, 0.5)
        twin.observe(decision, 0.5)


@needs_quick
def test_nothing_happens_while_another_thread_is_inside() -> None:
    learner = dc.FTPL().start(3, seed=7)
    decision = learner.decide()
    before = learner.to_json()
    learner._begin()
    assert learner._quick_decide() is None
    assert learner._quick_observe(decision, 0.5) is False
    learner._end()
    assert learner.to_json() == before
    assert learner._quick_observe(decision, 0.5) is True


@needs_quick
@pytest.mark.parametrize("change", ["add_arms", "retire_arms"])
def test_calls_of_replaced_parts_do_nothing(change: str) -> None:
    """A thread may have fetched them before another changed the arms."""
    learner = dc.FTPL().start(3, seed=7)
    decision, decide, observe = learner.decide(), learner._quick_decide, learner._quick_observe
    getattr(learner, change)([3] if change == "add_arms" else [0])
    before = learner.to_json()
    assert decide() is None
    assert observe(decision, 0.5) is False
    assert learner.to_json() == before


@needs_quick
def test_finalizers_may_use_the_learner() -> None:
    """Garbage may be collected, and its finalizers run, whenever a tuple is made."""
    learner = dc.FTPL().start(3, seed=7)
    made: list[dc.Decision] = []

    class Cycle:
        def __init__(self) -> None:
            self.me = self

        def __del__(self) -> None:
            decision = learner.decide()
            made.append(decision)
            learner.observe(decision, 0.5)

    before = gc.get_threshold()
    gc.set_threshold(1)
    try:
        for _ in range(500):
            Cycle()
            decision = learner.decide()
            made.append(decision)
            learner.observe(decision, 0.5)
    finally:
        gc.set_threshold(*before)
    gc.collect()
    assert len({each.id for each in made}) == len(made) == 1000
    assert learner.round == 1001
    assert json.loads(learner.to_json())["content"]["made"] == 1000
