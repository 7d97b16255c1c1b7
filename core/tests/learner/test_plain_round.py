"""A plain round: a decision and its feedback."""

import ctypes
import gc
import weakref
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest

import decoupled as dc
from decoupled.kernels.dispatch import bound
from decoupled.native import load
from decoupled.native.calls import NativeFunction, Signature

needs_machine_code = pytest.mark.skipif(
    load.why_not() is not None, reason=f"of the shipped machine code: {load.why_not()}; make native"
)


def test_a_decision_is_an_ordinary_one() -> None:
    learner = dc.FTPL().start([10**20, "b"], seed=7)
    decision = learner.decide()
    again = dc.Decision(*decision)
    assert (decision, hash(decision), repr(decision)) == (again, hash(again), repr(again))
    assert [type(each) for each in decision[:2] + decision[4:]] == [str, int, float, float]
    assert {decision.exploit, decision.explore} <= {10**20, "b"}
    learner.observe(again, loss=0.5)  # an equal one will do
    assert learner.round == 2


def test_an_unknown_propensity_is_none() -> None:
    assert dc.CoupledFTPL().start(3, seed=7).decide().propensity is None


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


@needs_machine_code
@pytest.mark.parametrize("part", ["decide", "update"])
def test_machine_code_that_fails_changes_nothing(part: str) -> None:
    learner = dc.FTPL().start(3, seed=7)
    decision = learner.decide()
    running = learner._running
    failing = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p)(lambda block: 1)
    broken = NativeFunction(part, failing, failing, Signature((), ()))
    entries = running.entries._replace(**{part: broken})
    running.calls = bound(entries, running.values, running.state, running.stream)
    with pytest.raises(RuntimeError, match=f"{part}: the shipped machine code failed"):
        learner.decide() if part == "decide" else learner.observe(decision, 0.5)
    assert learner.pending == (decision,)
    assert learner.round == 1


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
