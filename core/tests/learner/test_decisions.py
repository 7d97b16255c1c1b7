"""Decisions, names and seeds.

What any sequence of calls teaches is in test_model.py, the laws in the policies' contract.
"""

import ctypes
import gc
import json
import weakref
from typing import Any, cast

import numpy as np
import pytest

import decoupled as dc
from decoupled.kernels.dispatch import bound
from decoupled.kernels.random.stream import new_stream
from decoupled.kernels.winner_law import MOST_ARMS
from decoupled.learner.inferring import MOST_WATCHED
from decoupled.native import load
from decoupled.native.calls import NativeFunction, Signature

# Questions about the learner: one policy that sums estimates, and one that takes means.
every_policy = pytest.mark.parametrize("policy", [dc.FTPL(), dc.FollowTheLeader()], ids=repr)


needs_machine_code = pytest.mark.skipif(
    load.unavailable_reason() is not None,
    reason=f"of the shipped machine code: {load.unavailable_reason()}; make native",
)


def trained(policy: dc.Policy) -> dc.Learner:
    """A learner with unequal estimates, whose laws are therefore not uniform."""
    learner = policy.start(6, seed=11)
    for round_ in range(40):
        decision = learner.decide()
        learner.observe(decision, loss=(learner.arms.index(decision.explore) + round_ % 3) / 8)
    return learner


def test_a_number_of_arms_names_them_from_zero_and_available_arms_are_a_set() -> None:
    decisions = dc.FTPL().start(arms=cast(int, np.int64(3)), seed=1).decide(count=60)
    assert {decision.explore for decision in decisions} == {0, 1, 2}
    # Plain integers, not NumPy's, so that a decision can be written as JSON.
    assert {type(decision.explore) for decision in decisions} == {int}
    assert dc.Decision(*json.loads(json.dumps(decisions[0]))) == decisions[0]
    one, other = trained(dc.FTPL()), trained(dc.FTPL())
    assert one.decide(available=[5, 1, 3, 1]) == other.decide(available=iter((1, 3, 5)))


@pytest.mark.parametrize("arms", [("a", "b"), {"a": 1, "b": 2}, np.array(["a", "b"]), iter("ab")])
def test_names_may_come_in_any_iterable(arms: Any) -> None:
    assert dc.FTPL().start(arms, seed=0).arms == ("a", "b")


@every_policy
@pytest.mark.parametrize("available", [None, [3, 1, 2]])
def test_count_gives_what_single_decisions_give(
    policy: dc.Policy, available: list[int] | None
) -> None:
    at_once, singly = trained(policy), trained(policy)
    together = at_once.decide(count=20, available=available)
    assert together == [singly.decide(available=available) for _ in range(20)]
    assert at_once.to_json() == singly.to_json()
    assert len(at_once.decide(count=1)) == 1


@pytest.mark.parametrize("loss", [0, 1, np.float32(0.5), np.int8(1), np.array(0.25)], ids=repr)
def test_any_plain_number_is_a_loss(loss: Any) -> None:
    learner = dc.FTPL().start(arms=2, seed=0)
    decision = learner.decide()
    learner.observe(decision, loss=loss)
    assert learner.estimates()[cast(int, decision.explore)] == float(loss) * decision.weight


def test_a_decision_is_an_ordinary_one() -> None:
    learner = dc.FTPL().start([10**20, "b"], seed=7)
    decision = learner.decide()
    again = dc.Decision(*decision)
    assert (decision, hash(decision), repr(decision)) == (again, hash(again), repr(again))
    assert [type(each) for each in decision[:2] + decision[4:]] == [str, int, float, float]
    assert {decision.exploit, decision.explore} <= {10**20, "b"}
    learner.observe(again, loss=0.5)  # an equal one will do
    assert learner.round == 2


@needs_machine_code
@pytest.mark.parametrize("part", ["decide", "update"])
def test_machine_code_that_fails_changes_nothing_or_ends_the_learner(
    part: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    learner = dc.FTPL().start(3, seed=7)
    decision = learner.decide()
    failing = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p)(lambda block: 1)
    broken = NativeFunction(part, failing, failing, Signature((), ()))
    entries = dc.FTPL().entries()._replace(**{part: broken})
    monkeypatch.setattr(dc.FTPL, "entries", lambda _: entries)
    learner = dc.Learner.from_json(learner.to_json())
    with pytest.raises(RuntimeError, match=f"{part}: the shipped machine code failed"):
        learner.decide() if part == "decide" else learner.observe(decision, 0.5)
    assert learner.round == 1
    if part == "decide":
        assert learner.pending == (decision,)
    else:
        with pytest.raises(dc.StateError, match="in the middle of an update"):
            learner.decide()


@pytest.mark.parametrize("part", ["init", "decide", "update"])
def test_a_call_keeps_its_arrays(part: str) -> None:
    """A decision among some arms is drawn by a call of an object that nobody else holds."""
    policy = dc.FTPL()
    state = policy.layout.new_state(2)
    calls = bound(
        policy.entries(), policy.param_values(), state, new_stream(np.random.SeedSequence(7))
    )
    rows, call = weakref.ref(state.floats), getattr(calls, part)
    del state, calls
    gc.collect()
    assert rows() is not None
    del call
    gc.collect()
    assert rows() is None


@pytest.mark.parametrize("seed", [0, 7, 2**200, np.uint8(7), np.random.SeedSequence(7)])
def test_a_seed_of_any_kind_settles_every_draw(seed: Any) -> None:
    one, other = (dc.FTPL().start(arms=9, seed=seed).decide(count=50) for _ in range(2))
    assert one == other
    if seed in (0, 2**200):
        return
    assert one == dc.FTPL().start(arms=9, seed=7).decide(count=50)


def test_different_seeds_and_none_differ() -> None:
    learners = [dc.FTPL().start(arms=10, seed=seed) for seed in (0, 1, 2, None, None)]
    learners += [
        dc.FTPL().start(arms=10, seed=child) for child in np.random.SeedSequence(0).spawn(2)
    ]
    plays = {tuple(decision.explore for decision in each.decide(count=40)) for each in learners}
    assert len(plays) == len(learners)


def test_ids_are_unique_across_learners_and_forks() -> None:
    learner = dc.FTPL().start(arms=3, seed=0)
    family = [learner, *(dc.FTPL().start(arms=3, seed=seed) for seed in range(1, 10))]
    family += [learner.fork(seed) for seed in range(10, 20)] + [learner.fork(None)]
    family += [family[-1].fork(child) for child in np.random.SeedSequence(0).spawn(5)]
    ids = [decision.id for each in family for decision in each.decide(count=20)]
    assert len(set(ids)) == len(ids)
    # The same seed twice must not give two decisions the same id: the older one would be lost
    # silently.
    learner = dc.FTPL().start(arms=3, seed=0)
    inherited = learner.decide()
    fork = learner.fork(seed=0)
    fresh = fork.decide()
    assert fresh.id != inherited.id
    assert fork.pending == (inherited, fresh)


# Very many arms: a call is quick, or it says at once that it is not offered


@pytest.mark.parametrize("policy", [dc.FTPL(), dc.Ladder()], ids=repr)
def test_exact_probabilities_of_too_many_arms_are_refused(policy: dc.Policy) -> None:
    learner = policy.start(MOST_ARMS + 1, seed=7)
    with pytest.raises(
        dc.UnsupportedError, match=r"at most 100,000.*name the arms .* with available="
    ):
        learner.exploitation_probabilities()
    assert learner.exploitation_probabilities(available=range(10)).sum() == pytest.approx(1.0)
    assert learner.exploration_probabilities().sum() == pytest.approx(1.0)
    learner.observe(learner.decide(), 0.5)


def test_too_many_arms_are_not_watched_nor_added_to_a_watched_learner() -> None:
    refused = "this learner has 10,001 arms, and confidence sequences are kept of at most 10,000"
    learner = dc.Ladder().start(MOST_WATCHED + 1, seed=7)
    with pytest.raises(dc.UnsupportedError, match=refused):
        learner.watch()
    with pytest.raises(dc.UnsupportedError, match=refused):
        learner.guardrails = dc.Guardrails(incumbent=3)
    with pytest.raises(dc.UnsupportedError, match="not watched"):
        learner.inference  # noqa: B018
    assert not learner.guardrails
    learner = dc.Ladder().start(MOST_WATCHED, seed=7)
    learner.watch()
    before = learner.inference.sequences.count
    with pytest.raises(dc.UnsupportedError, match="10,001 arms"):
        learner.add_arms([MOST_WATCHED])
    assert (len(learner.arms), learner.inference.sequences.count) == (MOST_WATCHED, before)
    learner.inference.stop()
    learner.add_arms([MOST_WATCHED])
    assert len(learner.arms) == MOST_WATCHED + 1
