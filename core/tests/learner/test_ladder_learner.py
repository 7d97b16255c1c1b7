"""Learners that run the ladder: late feedback, absent arms, arms that come and go, predictions, and saving."""

import numpy as np
import pytest

import decoupled as dc
from decoupled.base.arrays import Floats
from decoupled.extend import diagnostics
from decoupled.learner import runner
from support.exactly import added, explored
from support.twins.ladder import LadderTwin

ARMS = 5
LOSSES = np.array([0.2, 0.9, 0.35, 0.6, 0.5])
LADDER = dc.Ladder()
LADDERS = [
    LADDER,
    dc.Ladder(rungs=(0.25,), prior=(), top_two_share=0.0),
    dc.Forgetting(LADDER, period=1_000),
    dc.Forgetting(LADDER, discount=0.9),
]
LOG = [(arm, 0.2 + 0.1 * arm, float(LOSSES[arm])) for arm in (0, 1, 2, 3, 4, 1, 0)]


def baselines_of(learner: dc.Learner) -> Floats:
    running, row = learner._running, np.zeros(len(learner.arms))
    places, values = running.form.baselines(running.state)
    row[places] = values
    return row


@pytest.mark.parametrize("policy", [LADDER, LADDERS[2]], ids=lambda policy: policy.label)
def test_a_prediction_counts_up_to_the_bound_of_the_gate(policy: dc.Policy) -> None:
    """Otherwise one wrong prediction of a seldom explored arm would make it the leader for ever."""
    learner = policy.start(30, seed=5)
    learner.replay([(arm, 0.1, float(arm % 2)) for arm in range(30)])
    own, estimates, law = baselines_of(learner), learner.estimates(), learner.exploration_probabilities()
    found = diagnostics(learner)
    gaps = estimates - estimates.min()
    bound = law * (1.0 / (found["eta"] * found["rung_rate_0"]) + gaps) / 2.0  # the smallest loss is 0
    np.testing.assert_allclose(own, np.minimum(0.5 + found["rise"], bound), rtol=1e-9)
    assert bound.min() < 0.5 < 1.0 < bound.max()
    decision = learner.decide(baseline=[1.0] * 30)
    learner.decide()
    arm = explored(decision)
    b = np.minimum(bound, 1.0)
    expected = b.copy()
    expected[arm] += decision.weight * (0.25 - b[arm])
    np.testing.assert_allclose(added(learner.to_json(), decision, loss=0.25), expected, rtol=1e-9)


def test_predictions_of_zero_do_not_stop_the_hedge() -> None:
    learner = LADDER.start(ARMS, seed=5)
    learner.replay(LOG)
    decision = learner.decide(baseline=[0.0] * ARMS)
    before = diagnostics(learner)["rung_loss_0"]
    learner.observe(decision, loss=0.5)
    assert diagnostics(learner)["rung_loss_0"] != before
    learner = LADDER.start(["a", "b", "c"], seed=1)
    log = [("a", 0.5, 0.3), ("b", 0.5, 0.8)] * 3
    for _ in range(2):
        with pytest.warns(dc.UnseenArmWarning, match=r"^records: arm 'c' never occurs"):
            learner.replay(log)
    assert learner.estimates()[2] != 0.0


# Feedback after other feedback


@pytest.mark.parametrize(("memory", "rounds"), [(None, 220), (2.0, 360), (100.0, 220)])
def test_feedback_in_any_order_teaches_what_the_twin_learns(memory: float | None, rounds: int) -> None:
    """A memory of two losses fades so fast that the common factor is renewed within the test."""
    policy = dc.Ladder(memory=memory)
    learner, twin = policy.start(ARMS, seed=1), LadderTwin(ARMS, policy)
    generator = np.random.default_rng(0)
    waiting: list[tuple[dc.Decision, int, Floats]] = []
    apart, renewed = 0, 1.0
    for _ in range(rounds):
        twin.follow(learner)
        waiting.append((learner.decide(), learner.round, twin.exploration_law()))
        if len(waiting) > 8 or generator.random() < 0.3:
            decision, made, law = waiting.pop(int(generator.integers(len(waiting))))
            loss = float(generator.random() < LOSSES[explored(decision)])
            late = made < learner.round
            learner.observe(decision, loss=loss)
            apart += late
            if late:
                twin.learn_late(explored(decision), decision.weight, loss, law)
            else:
                twin.update(explored(decision), decision.weight, loss)
            np.testing.assert_allclose(learner.estimates(), twin.estimates, rtol=1e-9, atol=1e-9)
            np.testing.assert_allclose(
                learner.exploration_probabilities(), twin.exploration_law(), rtol=1e-8
            )
            renewed = min(renewed, diagnostics(learner)["recent_fade"])
    assert apart > 100
    assert memory != 2.0 or (renewed < 1e-80 < diagnostics(learner)["recent_fade"])


def test_what_pending_decisions_keep_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runner, "MOST_KEPT", 7 * ARMS)
    learner = LADDER.start(ARMS, seed=1)
    learner.replay(LOG)
    for _ in range(10):
        learner.decide()
    assert (len(learner.pending), learner.pending.forgotten) == (7, 3)
    again = dc.Learner.from_json(learner.to_json())
    again.add_arms(["new", "newer"])
    again.decide()
    assert (len(again.pending), again.pending.forgotten) == (5, 6)


# Thousands of arms


def test_thousands_of_arms_are_the_same_policy() -> None:
    learner = LADDER.start(5_000, seed=0)
    for _ in range(400):
        decision = learner.decide(available=range(20))
        learner.observe(decision, loss=0.1 if decision.explore == 7 else 0.9)
    assert learner.exploitation_probabilities(available=range(20))[7] > 0.9
    decision = learner.decide(available=range(20))
    assert decision.propensity == learner.exploration_probabilities(available=range(20))[explored(decision)]
    before = learner.estimates()[:20]
    learner.retire_arms(range(20, 5_000))
    assert learner.estimates().tolist() == before.tolist()
    assert learner.exploitation_probabilities()[7] > 0.9
