"""Whatever a learner accepts, it can be saved, restored and continued bit for bit.

What it refuses changes nothing.
"""

import json
import math
import warnings
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import decoupled as dc
from support.policies import forms

CONTEXTUAL = dc.ContextualLadder(
    segments=("s", "t"), numbers=("x", "y"), advisers=("r",), max_segments=3
)
ARMS = ("a", "b", 7)

numbers = st.one_of(
    st.none(),
    st.booleans(),
    st.floats(),
    st.sampled_from([1e76, -1e100, 1e100, 1e101, 5e-324, -0.0, 10**99, 10**400, np.float32(3e38)]),
    st.floats(1e60, 1e100).map(np.longdouble),
)
texts = st.one_of(
    st.none(),
    st.booleans(),
    st.text(max_size=3),
    st.integers(),
    st.sampled_from(["\ud800", "\0", 2**999]),
)
contexts = st.fixed_dictionaries({}, optional={"s": texts, "t": texts, "x": numbers, "y": numbers})
shares = st.floats(0.0, 1.0)
advice = st.one_of(
    st.sampled_from([{"r": "a"}, {"r": "z"}, "r", {}]),
    shares.map(lambda p: {"r": {"a": np.float64(p), 7: 1.0 - p}}),
)
propensities = st.one_of(
    st.floats(1e-50, 1.0), st.sampled_from([1e-50, 1e-49, 1e-20, 1.0, 0.5, 0.0, 1e-51])
)
fractions = st.one_of(st.sampled_from([0.0, 1.0]), shares)
keys = st.one_of(st.text(max_size=3), st.integers())
told = st.fixed_dictionaries({}, optional={"context": contexts, "advice": advice})
asked = st.fixed_dictionaries(
    {},
    optional={
        "context": contexts,
        "advice": advice,
        "key": keys,
        "available": st.sampled_from([["a"], ["b", 7], [], ["z"]]),
        "count": st.sampled_from([0, 1, 3]),
    },
)
records = st.lists(
    st.fixed_dictionaries(
        {"explore": st.sampled_from(ARMS), "propensity": propensities, "loss": fractions},
        optional={"context": contexts},
    ),
    max_size=5,
)
steps = st.lists(
    st.one_of(
        st.tuples(st.just("round"), told, fractions),
        st.tuples(st.just("decide"), asked),
        st.tuples(st.just("observe"), st.integers(0, 9), fractions),
        st.tuples(st.just("replay"), records),
        st.tuples(st.just("watch"), st.floats(0.0, 1.0)),
    ),
    max_size=12,
)
ends = st.sampled_from([(0.0, 1.0), (-3, 5), (-1e308, 7e307), (0.0, 5e-324), (1e300, 1.7e308)])


def within(learner: dc.Learner, share: float) -> float:
    low, high = learner.loss_range
    return min(max(low + share * (high - low), low), high)


def do(learner: dc.Learner, step: tuple[Any, ...]) -> None:
    kind, *given = step
    if kind == "round":
        context = given[0] if learner.policy.contextual else {}
        learner.observe(learner.decide(**context), loss=within(learner, given[1]))
    elif kind == "decide":
        learner.decide(**given[0])
    elif kind == "observe" and given[0] < len(learner.pending):
        learner.observe(learner.pending[given[0]], loss=within(learner, given[1]))
    elif kind == "replay":
        learner.replay([{**row, "loss": within(learner, row["loss"])} for row in given[0]])
    elif kind == "watch":
        learner.watch(risk=given[0])


def attempted(learner: dc.Learner, step: tuple[Any, ...]) -> None:
    """Do a step.

    If it is refused, nothing has changed, except in a round, whose decision is made before its
    feedback.
    """
    before = learner.to_json()
    try:
        do(learner, step)
    except dc.DecoupledError:
        assert learner.to_json() == before


def restored(
    policy: dc.Policy, ends: tuple[float, float], first: list[Any], then: list[Any]
) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        learner = policy.start(ARMS, seed=5, loss_range=ends)
        for step in first:
            attempted(learner, step)
        twin = dc.Learner.from_json(learner.to_json())
        for step in then:
            for each in (learner, twin):
                attempted(each, step)
        assert twin.to_json() == learner.to_json()
        assert math.isclose(learner.exploration_probabilities().sum(), 1.0, abs_tol=1e-9)
        if "watch" in json.loads(learner.to_json())["content"]:
            found = [
                *learner.inference.intervals().values(),
                learner.inference.difference("a", "b"),
            ]
            assert np.isfinite(found).all()
            str(learner.inference.verdict())


FAR = [("round", {"context": {"x": x}}, 0.5) for x in (1e76, -1e76, 1e100, -1e100) * 5]
RARE = [("replay", [{"explore": arm, "propensity": 1e-50, "loss": 1.0} for arm in ARMS])]


@settings(max_examples=50, deadline=None)
@given(ends, steps, steps)
@example((0.0, 1.0), FAR, FAR[:3])
@example((0.0, 1.0), [("watch", 0.05), *RARE * 9], RARE)
@example((0.0, 1.0), [("decide", {"context": {"s": "new"}, "available": ["z"]})], FAR[:1])
def test_contexts_can_be_restored(
    ends: tuple[float, float], first: list[Any], then: list[Any]
) -> None:
    restored(CONTEXTUAL, ends, first, then)


@pytest.mark.parametrize("policy", forms(), ids=repr)
def test_what_any_policy_accepts_can_be_restored(policy: dc.Policy) -> None:
    @settings(max_examples=5, deadline=None)
    @given(ends, steps, steps)
    @example((0.0, 1.0), [("watch", 0.05), *RARE * 9], RARE)
    def holds(ends: tuple[float, float], first: list[Any], then: list[Any]) -> None:
        restored(policy, ends, first, then)

    holds()


def test_settings_that_could_not_be_restored_are_refused() -> None:
    cases: list[tuple[dict[str, Any], str]] = [
        ({"max_pending": 10**16}, "max_pending = 10000000000000000: must not exceed"),
        ({"arms": [10**400, 1]}, "is too large for a name"),
    ]
    for wrong, message in cases:
        with pytest.raises(dc.DecoupledError, match=message):
            dc.Ladder().start(**({"arms": 2, "seed": 1} | wrong))
    wide = dc.Ladder().start(arms=[2**999, "\ud800"], seed=1, max_pending=10**15)
    assert dc.Learner.from_json(wide.to_json()).to_json() == wide.to_json()
