"""Learners that run the ladder: late feedback, absent arms, arms that come and go, predictions, and saving."""

import dataclasses
from pathlib import Path
from typing import cast

import numpy as np
import pytest

import decoupled as dc
from decoupled.base.arrays import Floats
from decoupled.extend import diagnostics
from decoupled.policies.ftpl import MANY_CENTRED
from decoupled.simulation.toml import read_specification
from support.centred_ftpl import CENTRED_FTPL

ARMS = 5
SOME = [0, 2, 3]
LOSSES = np.array([0.2, 0.9, 0.35, 0.6, 0.5])
LADDER = dc.Ladder()
LADDERS = [
    LADDER,
    dc.Ladder(rungs=(0.25,), prior=(), top_two_share=0.0),
    dc.Forgetting(LADDER, period=1_000),
    dc.Forgetting(LADDER, discount=0.9),
]
LOG = [(arm, 0.2 + 0.1 * arm, float(LOSSES[arm])) for arm in (0, 1, 2, 3, 4, 1, 0)]
every_ladder = pytest.mark.parametrize("policy", LADDERS, ids=lambda policy: policy.label)


def explored(decision: dc.Decision) -> int:
    return cast(int, decision.explore)


def one_for_each_arm(learner: dc.Learner, available: list[int]) -> dict[int, dc.Decision]:
    """A pending decision that explored each of the arms."""
    found: dict[int, dc.Decision] = {}
    while len(found) < len(available):
        decision = learner.decide(available=available)
        found.setdefault(explored(decision), decision)
    return found


def baselines_of(learner: dc.Learner) -> Floats:
    running, row = learner._running, np.zeros(len(learner.arms))
    places, values = running.form.baselines(running.state)
    row[places] = values
    return row


def added(learner: dc.Learner, decision: dc.Decision, loss: float) -> Floats:
    """What the feedback adds to every estimate; the learner itself does not change."""
    once = dc.Learner.from_json(learner.to_json())
    once.observe(decision.id, loss=loss)
    return once.estimates() - learner.estimates()


def diagnostics_of(learner: dc.Learner) -> dict[str, float]:
    """Without what the hedge is told, which is room to work in."""
    room = ("rung_step", "rung_chance", "rung_offset", "judged")
    return {name: value for name, value in diagnostics(learner).items() if not name.startswith(room)}


def test_a_decision_among_some_arms_before_the_first_loss_gives_absent_arms_their_charge_only() -> None:
    learner = LADDER.start(ARMS, seed=1)
    decisions = one_for_each_arm(learner, SOME)
    learner.replay(LOG)
    b = baselines_of(learner)
    assert (b > 0).all()
    total = np.zeros(ARMS)
    for arm, decision in decisions.items():
        gained = added(learner, decision, LOSSES[arm])
        expected = np.full(ARMS, LOSSES[arm])  # the charge of an absent arm
        expected[SOME] = b[SOME]
        expected[arm] += decision.weight * (LOSSES[arm] - b[arm])
        np.testing.assert_allclose(gained, expected, rtol=1e-9)
        total += gained / decision.weight
    np.testing.assert_allclose(total[SOME], LOSSES[SOME], rtol=1e-9)  # unbiased
    np.testing.assert_allclose(total[[1, 4]], LOSSES[SOME].mean(), rtol=1e-9)


def test_so_does_a_decision_that_newer_arms_were_no_part_of() -> None:
    learner = LADDER.start(ARMS, seed=1)
    decisions = {explored(each): each for each in learner.decide(count=60)}  # among all arms
    learner.replay(LOG)
    learner.add_arms(["new", "newer"])
    b = baselines_of(learner)
    for arm, decision in decisions.items():
        gained = added(learner, decision, LOSSES[arm])
        expected = np.append(b[:ARMS], [LOSSES[arm]] * 2)
        expected[arm] += decision.weight * (LOSSES[arm] - b[arm])
        np.testing.assert_allclose(gained, expected, rtol=1e-9)


def test_arms_are_charged_once_if_all_arms_of_the_decision_are_gone() -> None:
    learner = LADDER.start(ARMS, seed=1)
    learner.replay(LOG)
    decision = learner.decide(available=[0, 2])
    learner.replay(LOG)
    learner.retire_arms([0, 2])
    np.testing.assert_allclose(added(learner, decision, 0.75), 0.75, rtol=1e-12)


def late_changes(learner: dc.Learner) -> tuple[Floats, Floats]:
    decisions: dict[int, dc.Decision] = {}
    law = learner.exploration_probabilities()
    while len(decisions) < ARMS:
        decision = learner.decide()
        decisions.setdefault(explored(decision), decision)
    learner.replay(LOG)
    changes = np.zeros((ARMS, ARMS))
    for arm, decision in decisions.items():
        changes[arm] = added(learner, decision, LOSSES[arm])
    return law, changes


@pytest.mark.parametrize("policy", LADDERS[:-1], ids=lambda policy: policy.label)
@pytest.mark.parametrize("rounds", [0, 1, 40])
def test_late_feedback_is_unbiased(policy: dc.Policy, rounds: int) -> None:
    learner = policy.start(ARMS, seed=3)
    for _ in range(rounds):
        decision = learner.decide()
        learner.observe(decision, loss=float(LOSSES[explored(decision)]))
    law, changes = late_changes(learner)
    np.testing.assert_allclose(law @ changes, LOSSES, rtol=1e-9)


@every_ladder
def test_it_continues_bit_for_bit(policy: dc.Policy) -> None:
    learner = policy.start(ARMS, seed=3)
    generator = np.random.default_rng(4)
    for step in range(60):
        some = None if step % 3 else SOME
        learner.decide(count=2, available=some, baseline={0: 0.3} if step % 4 == 0 else None)
        pending = learner.pending[generator.integers(len(learner.pending))]
        learner.observe(pending, loss=float(generator.random() < LOSSES[explored(pending)]))
        again = dc.Learner.from_json(learner.to_json())
        assert again.to_json() == learner.to_json()
        assert diagnostics_of(again) == diagnostics_of(learner)
        learner = again


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
    np.testing.assert_allclose(added(learner, decision, 0.25), expected, rtol=1e-9)


def test_predictions_of_zero_do_not_stop_the_hedge() -> None:
    learner = LADDER.start(ARMS, seed=5)
    learner.replay(LOG)
    decision = learner.decide(baseline=[0.0] * ARMS)
    before = diagnostics(learner)["rung_loss_0"]
    learner.observe(decision, loss=0.5)
    assert diagnostics(learner)["rung_loss_0"] != before


def test_an_arm_without_a_loss_is_named_even_after_others_moved_its_estimate() -> None:
    learner = LADDER.start(["a", "b", "c"], seed=1)
    log = [("a", 0.5, 0.3), ("b", 0.5, 0.8)] * 3
    for _ in range(2):
        with pytest.warns(dc.UnseenArmWarning, match=r"^records: arm 'c' never occurs"):
            learner.replay(log)
    assert learner.estimates()[2] != 0.0


# Thousands of arms, which run another form


def many(seed: int = 0, rounds: int = 400) -> dc.Learner:
    learner = LADDER.start(MANY_CENTRED + 4, seed)
    for _ in range(rounds):
        decision = learner.decide(available=range(20))
        learner.observe(decision, loss=0.1 if decision.explore == 7 else 0.9)
    return learner


def test_a_few_of_very_many_arms_are_chosen_by_what_was_learned() -> None:
    learner = many()
    law = learner.exploitation_probabilities(available=range(20))
    assert law[7] > 0.9
    decision = learner.decide(available=range(20))
    assert decision.propensity == learner.exploration_probabilities(available=range(20))[explored(decision)]


@pytest.mark.parametrize("wrap", [False, True], ids=["plain", "forgetting"])
def test_a_learner_that_falls_below_4096_arms_still_knows_the_best(wrap: bool) -> None:
    policy = dc.Forgetting(LADDER, period=10**6) if wrap else LADDER
    learner = policy.start(MANY_CENTRED + 4, seed=1)
    for _ in range(400):
        decision = learner.decide(available=range(20))
        learner.observe(decision, loss=0.1 if decision.explore == 7 else 0.9)
    before = learner.estimates()[:20]
    learner.retire_arms(range(20, MANY_CENTRED + 4))
    assert learner.estimates().tolist() == before.tolist()
    assert learner.exploitation_probabilities()[7] > 0.9
    assert learner.exploration_probabilities().min() > 0.0
    again = dc.Learner.from_json(learner.to_json())
    assert again.decide() == learner.decide()
    chosen = []
    for _ in range(200):
        decision = learner.decide()
        chosen.append(decision.exploit)
        learner.observe(decision, loss=0.1 if decision.explore == 7 else 0.9)
    assert chosen.count(7) > 180


def test_a_learner_that_grows_beyond_4096_arms_keeps_its_estimates() -> None:
    learner = LADDER.start(30, seed=1)
    learner.replay([(arm, 0.1, float(arm % 2)) for arm in range(30)])
    late = learner.decide(count=3)
    before, b = learner.estimates(), baselines_of(learner)
    assert len(set(b.tolist())) > 2  # the hard gate of the other form gives one baseline to all arms
    learner.add_arms([f"new {number}" for number in range(MANY_CENTRED)])
    assert learner.estimates()[:30].tolist() == before.tolist()
    for decision in late:
        gained = added(learner, decision, 0.5)
        expected = b.copy()
        expected[explored(decision)] += decision.weight * (0.5 - b[explored(decision)])
        np.testing.assert_allclose(gained[:30], expected, rtol=1e-9)
        np.testing.assert_allclose(gained[30:], 0.5, rtol=1e-9)
        learner.observe(decision, loss=0.5)
    assert learner.round == 34
    assert dc.Learner.from_json(learner.to_json()).decide() == learner.decide()


def test_before_the_first_loss_it_crosses_as_a_new_learner() -> None:
    learner = LADDER.start(MANY_CENTRED + 1, seed=1)
    learner.retire_arms(range(3, MANY_CENTRED + 1))
    new = LADDER.start(3, seed=1)
    assert diagnostics(learner) == diagnostics(new)


# Parameters as text


def test_a_specification_lists_rungs_and_sweeps_over_lists_of_them(tmp_path: Path) -> None:
    text = """
        horizon = 100
        runs = 2
        seed = 0

        [[policy]]
        name = "Ladder"
        rungs = [[0.5, 8.0], [1.0, 9.0]]
        prior = [1.0, 2.0, 3.0]

        [[environment]]
        name = "Bernoulli"
        rewards = [0.5, 0.6]
        """
    path = tmp_path / "spec.toml"
    path.write_text(text)
    (plan,) = read_specification(path)
    expected = [dc.Ladder(rungs, prior=(1.0, 2.0, 3.0)) for rungs in ((0.5, 8.0), (1.0, 9.0))]
    assert list(plan.policies) == expected


def test_many_arms_run_the_form_of_ftpl_with_one_rate() -> None:
    many = LADDER.at(10_000)
    assert isinstance(many, dc.FTPL)
    assert dataclasses.replace(many, lam=CENTRED_FTPL.lam) == CENTRED_FTPL.at(10_000)
