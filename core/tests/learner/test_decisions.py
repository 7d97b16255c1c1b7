"""Decisions, names and seeds; what any sequence of calls teaches is in test_model.py, the laws in the policies' contract."""

import json
from typing import Any, cast

import numpy as np
import pytest

import decoupled as dc

# Questions about the learner: one policy that sums estimates, and one that takes means.
every_policy = pytest.mark.parametrize("policy", [dc.FTPL(), dc.FollowTheLeader()], ids=repr)


def trained(policy: dc.Policy) -> dc.Learner:
    """A learner with unequal estimates, whose laws are therefore not uniform."""
    learner = policy.start(6, seed=11)
    for round_ in range(40):
        decision = learner.decide()
        learner.observe(decision, loss=(learner.arms.index(decision.explore) + round_ % 3) / 8)
    return learner


def test_a_number_of_arms_names_them_from_zero() -> None:
    learner = dc.FTPL().start(arms=cast(int, np.int64(3)), seed=1)
    decisions = learner.decide(count=60)
    assert {decision.explore for decision in decisions} == {0, 1, 2}
    # Plain integers, not NumPy's, so that a decision can be written as JSON.
    assert {type(decision.explore) for decision in decisions} == {int}
    assert dc.Decision(*json.loads(json.dumps(decisions[0]))) == decisions[0]


@pytest.mark.parametrize(
    "arms", [["a", "b"], ("a", "b"), {"a": 1, "b": 2}, np.array(["a", "b"]), iter("ab")]
)
def test_names_may_come_in_any_iterable(arms: Any) -> None:
    assert dc.FTPL().start(arms, seed=0).arms == ("a", "b")


@every_policy
@pytest.mark.parametrize("available", [None, [3, 1, 2]])
def test_count_gives_what_as_many_single_decisions_give(
    policy: dc.Policy, available: list[int] | None
) -> None:
    at_once, singly = trained(policy), trained(policy)
    together = at_once.decide(count=20, available=available)
    assert together == [singly.decide(available=available) for _ in range(20)]
    assert at_once.to_json() == singly.to_json()
    assert len(at_once.decide(count=1)) == 1


def test_available_arms_are_a_set() -> None:
    one, other = trained(dc.FTPL()), trained(dc.FTPL())
    assert one.decide(available=[5, 1, 3, 1]) == other.decide(available=iter((1, 3, 5)))


@pytest.mark.parametrize("loss", [0, 1, np.float32(0.5), np.int8(1), np.array(0.25)], ids=repr)
def test_any_plain_number_is_a_loss(loss: Any) -> None:
    learner = dc.FTPL().start(arms=2, seed=0)
    decision = learner.decide()
    learner.observe(decision, loss=loss)
    assert learner.estimates()[cast(int, decision.explore)] == float(loss) * decision.weight


def test_decisions_of_another_learner_are_refused() -> None:
    learner, other = dc.FTPL().start(arms=3, seed=1), dc.FTPL().start(arms=3, seed=2)
    learner.decide()
    foreign = other.decide()
    for given_back in (foreign, foreign.id):
        with pytest.raises(dc.FeedbackError, match="never made by this learner"):
            learner.observe(given_back, loss=0.5)


# Randomness


@pytest.mark.parametrize("seed", [0, 7, 2**200, np.uint8(7), np.random.SeedSequence(7)])
def test_a_seed_of_any_kind_settles_every_draw(seed: Any) -> None:
    one, other = (dc.FTPL().start(arms=9, seed=seed).decide(count=50) for _ in range(2))
    assert one == other
    if seed in (0, 2**200):
        return
    assert one == dc.FTPL().start(arms=9, seed=7).decide(count=50)


def test_different_seeds_and_none_differ() -> None:
    learners = [dc.FTPL().start(arms=10, seed=seed) for seed in (0, 1, 2, None, None)]
    learners += [dc.FTPL().start(arms=10, seed=child) for child in np.random.SeedSequence(0).spawn(2)]
    plays = {tuple(decision.explore for decision in each.decide(count=40)) for each in learners}
    assert len(plays) == len(learners)


def test_ids_are_unique_across_learners_and_forks() -> None:
    learner = dc.FTPL().start(arms=3, seed=0)
    family = [learner, *(dc.FTPL().start(arms=3, seed=seed) for seed in range(1, 10))]
    family += [learner.fork(seed) for seed in range(10, 20)] + [learner.fork(None)]
    family += [family[-1].fork(child) for child in np.random.SeedSequence(0).spawn(5)]
    ids = [decision.id for each in family for decision in each.decide(count=20)]
    assert len(set(ids)) == len(ids)


def test_a_fork_with_its_parents_seed_keeps_what_is_pending() -> None:
    """The same seed twice must not give two decisions the same id: the older one would be lost silently."""
    learner = dc.FTPL().start(arms=3, seed=0)
    inherited = learner.decide()
    fork = learner.fork(seed=0)
    fresh = fork.decide()
    assert fresh.id != inherited.id
    assert fork.pending == (inherited, fresh)
