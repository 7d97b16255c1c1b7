"""Decisions and their feedback."""

import json
import math
import random
from collections import Counter
from collections.abc import Sequence
from typing import Any, cast

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import decoupled as dc

# Questions about the learner: one policy that sums estimates, and one that takes means.
POLICIES = [dc.FTPL(), dc.FollowTheLeader()]

every_policy = pytest.mark.parametrize("policy", POLICIES, ids=repr)
summing_policy = pytest.mark.parametrize("policy", POLICIES[:-1], ids=repr)


def trained(
    policy: dc.Policy, arms: int | Sequence[str] = 6, rounds: int = 40, **options: Any
) -> dc.Learner:
    """A learner with unequal estimates, whose laws are therefore not uniform."""
    learner = policy.start(arms, seed=11, **options)
    low, high = learner.loss_range
    for round_ in range(rounds):
        decision = learner.decide()
        share = (learner.arms.index(decision.explore) + round_ % 3) / (len(learner.arms) + 2)
        learner.observe(decision, loss=low + share * (high - low))
    return learner


def content(learner: dc.Learner, *without: str) -> dict[str, Any]:
    """The saved state without some parts."""
    saved: dict[str, Any] = json.loads(learner.to_json())["content"]
    return {key: value for key, value in saved.items() if key not in without}


# Decisions


@every_policy
def test_arms_keep_the_names_they_were_given(policy: dc.Policy) -> None:
    learner = policy.start(arms=["red", 7, "blue"], seed=1)
    assert learner.arms == ("red", 7, "blue")
    arms = {decision.explore for decision in learner.decide(count=60)} | {learner.exploit().exploit}
    assert arms == {"red", 7, "blue"}


@every_policy
def test_a_number_of_arms_names_them_from_zero(policy: dc.Policy) -> None:
    learner = policy.start(arms=cast(int, np.int64(3)), seed=1)
    assert learner.arms == (0, 1, 2)
    decisions = learner.decide(count=60)
    assert {decision.explore for decision in decisions} == {0, 1, 2}
    # Plain integers, not NumPy's, so that a decision can be written as JSON.
    assert {type(decision.explore) for decision in decisions} == {int}


@pytest.mark.parametrize(
    "arms", [["a", "b"], ("a", "b"), {"a": 1, "b": 2}, np.array(["a", "b"]), iter("ab")]
)
def test_names_may_come_in_any_iterable(arms: Any) -> None:
    assert dc.FTPL().start(arms, seed=0).arms == ("a", "b")


@every_policy
def test_names_and_numbers_decide_alike(policy: dc.Policy) -> None:
    named = trained(policy, arms=["a", "b", "c", "d", "e", "f"])
    numbered = trained(policy, arms=6)
    for _ in range(50):
        one, other = named.decide(), numbered.decide()
        assert named.arms.index(one.explore) == other.explore
        assert one.exploit is not None
        assert named.arms.index(one.exploit) == other.exploit
        assert one[4:] == other[4:]


@every_policy
def test_the_fields_of_a_decision(policy: dc.Policy) -> None:
    learner = trained(policy, rounds=9)
    law = learner.exploration_probabilities()
    decision = learner.decide()
    assert decision.round == 10
    assert decision.exploit in learner.arms
    assert decision.propensity == pytest.approx(law[cast(int, decision.explore)], rel=1e-12)
    assert learner.pending == (decision,)
    assert dc.Decision(*json.loads(json.dumps(decision))) == decision


@every_policy
@settings(deadline=None, max_examples=25)
@given(
    losses=st.lists(st.floats(0, 1), max_size=30),
    available=st.none() | st.sets(st.integers(0, 5), min_size=1),
)
def test_weight_is_the_inverse_of_propensity(
    policy: dc.Policy, losses: list[float], available: set[int] | None
) -> None:
    learner = policy.start(arms=6, seed=3)
    for loss in losses:
        learner.observe(learner.decide(), loss=loss)
    for decision in [*learner.decide(count=5, available=available), learner.explore(available=available)]:
        assert decision.propensity is not None
        assert abs(decision.weight * decision.propensity - 1.0) <= 1e-12


@every_policy
def test_count_gives_what_as_many_single_decisions_give(policy: dc.Policy) -> None:
    at_once, singly = trained(policy), trained(policy)
    assert at_once.decide(count=20) == [singly.decide() for _ in range(20)]
    assert at_once.to_json() == singly.to_json()
    one = at_once.decide(count=1)
    assert isinstance(one, list)
    assert len(one) == 1


@every_policy
def test_decisions_do_not_change_what_is_learned(policy: dc.Policy) -> None:
    learner = trained(policy)
    before = content(learner, "stream", "made", "pending")
    laws = learner.exploration_probabilities(), learner.exploitation_probabilities()
    learner.decide(count=30)
    learner.decide(available=[1, 3])
    learner.explore()
    learner.exploit(available=[2])
    assert content(learner, "stream", "made", "pending") == before
    assert np.array_equal(learner.exploration_probabilities(), laws[0])
    assert np.array_equal(learner.exploitation_probabilities(), laws[1])


# Unavailable arms


@every_policy
def test_a_single_available_arm_is_certain(policy: dc.Policy) -> None:
    learner = trained(policy)
    decision = learner.decide(available=[4])
    assert (decision.exploit, decision.explore) == (4, 4)
    assert (decision.propensity, decision.weight) == (1.0, 1.0)
    assert learner.exploit(available=[2]).exploit == 2
    assert learner.exploration_probabilities(available=[4]).tolist() == [0, 0, 0, 0, 1, 0]


@every_policy
def test_all_arms_available_is_no_restriction(policy: dc.Policy) -> None:
    plain, restricted = trained(policy), trained(policy)
    for _ in range(20):
        one, other = plain.decide(), restricted.decide(available=range(6))
        assert (other.exploit, other.explore) == (one.exploit, one.explore)
        assert other.weight == pytest.approx(one.weight, rel=1e-9)
        plain.observe(one, loss=0.4)
        restricted.observe(other, loss=0.4)
    assert restricted.estimates() == pytest.approx(plain.estimates(), rel=1e-9)


@every_policy
def test_many_decisions_among_some_arms_are_those_made_one_by_one(policy: dc.Policy) -> None:
    once, often = (policy.start(arms=4, seed=3) for _ in range(2))
    for learner in (once, often):
        learner.replay([(arm, 0.25, 0.2 * arm) for arm in range(4)])
    together = once.decide(count=20, available=[3, 1, 2])
    apart = [often.decide(available=[3, 1, 2]) for _ in range(20)]
    for one, other in zip(together, apart, strict=True):
        assert (one.exploit, one.explore, one.weight) == (other.exploit, other.explore, other.weight)
    assert once.decide().explore == often.decide().explore


@every_policy
def test_available_arms_are_a_set(policy: dc.Policy) -> None:
    one, other = trained(policy), trained(policy)
    assert one.decide(available=[5, 1, 3, 1]) == other.decide(available=iter((1, 3, 5)))


@every_policy
@pytest.mark.parametrize(
    "available",
    [[], (), "a", b"a", ["a", "d"], [0], ["A"], [None], [["a"]], 3, [True], {"x": 1}],
    ids=repr,
)
def test_what_names_no_available_arms_is_refused(policy: dc.Policy, available: Any) -> None:
    learner = policy.start(arms=["a", "b", "c"], seed=0)
    before = learner.to_json()
    for call in (
        learner.decide,
        learner.explore,
        learner.exploit,
        learner.exploration_probabilities,
        learner.exploitation_probabilities,
    ):
        with pytest.raises(dc.ArmError):
            cast(Any, call)(available=available)
    assert learner.to_json() == before


@every_policy
def test_draws_follow_the_stated_laws_also_among_some_arms(policy: dc.Policy) -> None:
    """Seeded. Each count is binomial; with 5 deviations a correct learner of another seed would fail
    this with a chance below 1e-5 (10 counts a policy)."""
    learner, draws = trained(policy, arms=list("abcdef"), rounds=12), 4000
    available = ["b", "c", "f"]
    explored: Counter[object] = Counter()
    exploited: Counter[object] = Counter()
    for decision in learner.decide(count=draws, available=available):
        explored[decision.explore] += 1
        exploited[decision.exploit] += 1
    for counts, law in (
        (explored, learner.exploration_probabilities(available=available)),
        (exploited, learner.exploitation_probabilities(available=available)),
    ):
        assert set(counts) <= set(available)
        for arm, chance in zip(learner.arms, law, strict=True):
            spread = math.sqrt(draws * chance * (1 - chance))
            assert abs(counts[arm] - draws * chance) <= 5 * spread + 1e-6


@summing_policy
def test_arms_out_of_reach_are_charged_the_loss_as_it_is(policy: dc.Policy) -> None:
    learner = trained(policy)
    before = learner.estimates()
    decision = learner.decide(available=[1, 4])
    learner.observe(decision, loss=0.3)
    gain = learner.estimates() - before
    expected = [0.3, 0.0, 0.3, 0.3, 0.0, 0.3]
    expected[cast(int, decision.explore)] = 0.3 * decision.weight
    assert gain == pytest.approx(expected, rel=1e-12)


def test_sample_means_need_no_charge() -> None:
    learner = trained(dc.FollowTheLeader())
    before = learner.estimates()
    decision = learner.decide(available=[1, 4])
    learner.observe(decision, loss=0.3)
    changed = np.flatnonzero(learner.estimates() != before).tolist()
    assert changed == [decision.explore]


@every_policy
def test_an_arm_gains_nothing_by_being_away(policy: dc.Policy) -> None:
    """A costs 0.2 and B 0.5, but B is available only 30 % of the time.

    Without the charge B's sum of losses would grow by 0.15 a round and A's by 0.2, so that the learner
    would come to prefer B, the worse arm.
    """
    learner = policy.start(arms=["A", "B"], seed=5)
    chance = random.Random(5)
    for _ in range(3000):
        available = ["A", "B"] if chance.random() < 0.3 else ["A"]
        decision = learner.decide(available=available)
        mean = 0.2 if decision.explore == "A" else 0.5
        learner.observe(decision, loss=float(chance.random() < mean))
    assert learner.exploitation_probabilities()[0] > 0.9
    assert learner.exploration_probabilities()[0] >= 0.5


# Unequal traffic


@every_policy
def test_exploit_moves_nothing_but_the_random_stream(policy: dc.Policy) -> None:
    learner = trained(policy)
    learner.decide()
    before = content(learner, "stream")
    for _ in range(100):
        assert learner.exploit().exploit in learner.arms
        assert learner.exploit(available=[0, 5]).exploit in (0, 5)
    assert content(learner, "stream") == before


@every_policy
def test_explore_exploits_nothing_and_teaches_the_same(policy: dc.Policy) -> None:
    learner = trained(policy)
    before = learner.estimates()
    decision = learner.explore()
    assert decision.exploit is None
    assert learner.pending == (decision,)
    learner.observe(decision, loss=1.0)
    assert learner.round == decision.round + 1
    assert np.flatnonzero(learner.estimates() != before).tolist() == [decision.explore]


@every_policy
def test_one_exploration_in_a_hundred_still_finds_the_best_arm(policy: dc.Policy) -> None:
    learner = policy.start(arms=4, seed=2)
    for _ in range(400):
        for _ in range(99):
            learner.exploit()
        decision = learner.explore()
        learner.observe(decision, loss=0.1 if decision.explore == 2 else 0.9)
    assert learner.round == 401
    assert learner.exploitation_probabilities()[2] > 0.9


# Feedback


@every_policy
def test_late_feedback_out_of_order_counts_by_the_decisions_own_weight(policy: dc.Policy) -> None:
    learner = policy.start(arms=5, seed=8)
    chance = random.Random(8)
    waiting: list[dc.Decision] = []
    seen: list[tuple[dc.Decision, float]] = []
    for _ in range(300):
        waiting += [learner.decide(), learner.explore()]
        # On average one in two decisions is observed, most of them long after they were made.
        decision = waiting.pop(chance.randrange(len(waiting)))
        loss = chance.random()
        learner.observe(decision if chance.random() < 0.5 else decision.id, loss=loss)
        seen.append((decision, loss))
    assert learner.round == 301
    assert learner.pending == tuple(sorted(waiting, key=lambda each: int(each.id.rpartition("-")[2])))
    assert learner.estimates() == pytest.approx(expected_estimates(policy, 5, seen), rel=1e-11)


def expected_estimates(policy: dc.Policy, arms: int, seen: list[tuple[dc.Decision, float]]) -> list[float]:
    """Sums of weight * loss; for follow the leader, means of the losses."""
    if not isinstance(policy, dc.FollowTheLeader):
        return [math.fsum(d.weight * loss for d, loss in seen if d.explore == arm) for arm in range(arms)]
    losses = [[loss for decision, loss in seen if decision.explore == arm] for arm in range(arms)]
    return [math.fsum(each) / len(each) for each in losses]


@every_policy
def test_the_order_of_feedback_matters_only_to_rounding(policy: dc.Policy) -> None:
    forward, backward = trained(policy), trained(policy)
    losses = [i / 20 for i in range(20)]
    for decision, loss in zip(forward.decide(count=20), losses, strict=True):
        forward.observe(decision, loss=loss)
    for decision, loss in reversed(list(zip(backward.decide(count=20), losses, strict=True))):
        backward.observe(decision, loss=loss)
    assert forward.estimates() == pytest.approx(backward.estimates(), rel=1e-12)
    assert forward.exploration_probabilities() == pytest.approx(
        backward.exploration_probabilities(), rel=1e-6
    )


@every_policy
@pytest.mark.parametrize(
    ("loss_range", "loss", "reward"),
    [((0, 250), 120, 130), ((0, 1), 0.25, 0.75), ((-8, 8), -2, 2), ((2, 10), 2, 10), ((2, 10), 10, 2)],
)
def test_a_reward_is_the_mirror_image_of_a_loss(
    policy: dc.Policy, loss_range: tuple[float, float], loss: float, reward: float
) -> None:
    by_loss = trained(policy, loss_range=loss_range)
    by_reward = trained(policy, loss_range=loss_range)
    by_loss.observe(by_loss.decide(), loss=loss)
    by_reward.observe(by_reward.decide(), reward=reward)
    assert by_loss.to_json() == by_reward.to_json()


@every_policy
def test_losses_are_scaled_to_the_unit_interval(policy: dc.Policy) -> None:
    unit, scaled = trained(policy), trained(policy, loss_range=(-64.0, 192.0))
    unit.observe(unit.decide(), loss=0.75)
    scaled.observe(scaled.decide(), loss=128.0)
    assert scaled.estimates() == pytest.approx(unit.estimates(), rel=1e-12)
    assert scaled.loss_range == (-64.0, 192.0)


@pytest.mark.parametrize("loss", [0, 1, np.float32(0.5), np.int8(1), np.array(0.25)], ids=repr)
def test_any_plain_number_is_a_loss(loss: Any) -> None:
    learner = dc.FTPL().start(arms=2, seed=0)
    decision = learner.decide()
    learner.observe(decision, loss=loss)
    assert learner.estimates()[cast(int, decision.explore)] == float(loss) * decision.weight


@every_policy
def test_replay_learns_what_observe_learns(policy: dc.Policy) -> None:
    observed, replayed = trained(policy), trained(policy)
    decisions = observed.decide(count=25)
    log = []
    for decision in decisions:
        observed.observe(decision, loss=0.6)
        log.append((decision.explore, decision.propensity, 0.6))
    assert replayed.replay(iter(log)) == 25
    assert replayed.round == observed.round
    assert replayed.estimates() == pytest.approx(observed.estimates(), rel=1e-12)


@every_policy
def test_a_decision_is_observed_once(policy: dc.Policy) -> None:
    learner = trained(policy)
    decision = learner.decide()
    learner.observe(decision, loss=0.5)
    before = learner.to_json()
    for again in (decision, decision.id):
        with pytest.raises(dc.FeedbackError, match="already applied, or it was forgotten"):
            learner.observe(again, loss=0.5)
    assert learner.to_json() == before


@every_policy
def test_a_forgotten_decision_takes_no_feedback(policy: dc.Policy) -> None:
    learner = trained(policy)
    decision, kept = learner.decide(count=2)
    learner.forget(decision.id)
    assert list(learner.pending) == [kept]
    assert learner.pending.forgotten == 1
    with pytest.raises(dc.FeedbackError, match="forgotten"):
        learner.observe(decision, loss=0.5)
    with pytest.raises(dc.FeedbackError, match="forgotten"):
        learner.forget(decision)
    assert (learner.round, learner.pending.forgotten) == (decision.round, 1)


@every_policy
def test_beyond_max_pending_the_oldest_are_forgotten(policy: dc.Policy) -> None:
    learner = policy.start(arms=3, seed=0, max_pending=4)
    decisions = [*learner.decide(count=4), learner.decide(), learner.explore()]
    assert learner.pending == tuple(decisions[2:])
    assert learner.pending.forgotten == 2
    with pytest.raises(dc.FeedbackError, match="forgotten"):
        learner.observe(decisions[0], loss=0.5)
    learner.observe(decisions[2], loss=0.5)
    assert learner.pending.forgotten == 2


@every_policy
def test_decisions_of_another_learner_are_refused(policy: dc.Policy) -> None:
    learner, other = policy.start(arms=3, seed=1), policy.start(arms=3, seed=2)
    learner.decide()
    foreign = other.decide()
    for given_back in (foreign, foreign.id):
        with pytest.raises(dc.FeedbackError, match="never made by this learner"):
            learner.observe(given_back, loss=0.5)


def test_a_decision_with_other_contents_is_refused() -> None:
    learner = dc.FTPL().start(arms=3, seed=1)
    decision = learner.decide()
    with pytest.raises(dc.FeedbackError, match="other contents"):
        learner.observe(decision._replace(weight=1e6), loss=0.5)
    learner.observe(decision, loss=0.5)


# Randomness


@every_policy
def test_a_seed_settles_every_draw(policy: dc.Policy) -> None:
    assert trained(policy).decide(count=50) == trained(policy).decide(count=50)


@every_policy
@pytest.mark.parametrize("seed", [0, 7, 2**200, np.uint8(7), np.random.SeedSequence(7)])
def test_equal_seeds_of_any_kind_agree(policy: dc.Policy, seed: Any) -> None:
    one, other = policy.start(arms=3, seed=seed), policy.start(arms=3, seed=seed)
    assert one.decide(count=5) == other.decide(count=5)


def test_a_seed_sequence_is_the_seed_it_was_made_from() -> None:
    one = dc.FTPL().start(arms=9, seed=np.random.SeedSequence(7))
    assert one.decide(count=5) == dc.FTPL().start(arms=9, seed=7).decide(count=5)


@every_policy
def test_different_seeds_and_none_differ(policy: dc.Policy) -> None:
    learners = [policy.start(arms=10, seed=seed) for seed in (0, 1, 2, None, None)]
    learners += [policy.start(arms=10, seed=child) for child in np.random.SeedSequence(0).spawn(2)]
    plays = {tuple(decision.explore for decision in each.decide(count=40)) for each in learners}
    assert len(plays) == len(learners)


@every_policy
def test_ids_are_unique_across_learners_and_forks(policy: dc.Policy) -> None:
    learner = policy.start(arms=3, seed=0)
    family = [learner, *(policy.start(arms=3, seed=seed) for seed in range(1, 10))]
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
