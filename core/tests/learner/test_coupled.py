"""Estimates that stay unbiased: in the standard game, where one arm is played twice, and from
preferences.
"""

import random
from typing import Any, cast

import numpy as np
import pytest

import decoupled as dc
from decoupled.base.arrays import Floats
from decoupled.learner.losses import PREFERENCES, Preference
from support.exactly import added, explored, one_of_each
from support.memory import bytes_kept
from support.saved import content_of, kept_by, with_learned
from support.twins.coupled import CoupledTsallisTwin

ARMS = 4
LOSSES = np.array([0.2, 0.4, 0.9, 1.0])
REDUCED = dc.CoupledTsallisINF(estimator="reduced-variance")


def trained(policy: dc.Policy, rounds: int) -> dc.Learner:
    learner = policy.start(ARMS, seed=4)
    for _ in range(rounds):
        decision = learner.decide()
        learner.observe(decision, loss=LOSSES[explored(decision)])
    return learner


def baseline_of(learner: dc.Learner) -> Floats:
    """From the definition: 1/2 if w >= eta^2."""
    eta_squared = 16 / learner.round
    law = learner.exploitation_probabilities()
    b: Floats = np.where(law >= eta_squared, 0.5, 0.0)
    return b


def test_one_of_each() -> None:
    # A state in which some arms have a baseline and others do not; otherwise the tests below would
    # prove nothing.
    assert 0 < np.count_nonzero(baseline_of(trained(REDUCED, 150))) < ARMS


def test_late_feedback_counts_with_the_baseline_of_its_decision() -> None:
    learner = trained(REDUCED, 150)
    then, law = baseline_of(learner), learner.exploitation_probabilities()
    decisions = one_of_each(learner)
    for _ in range(4000):  # until other arms have a baseline
        later = learner.decide()
        learner.observe(later, loss=LOSSES[explored(later)])
    assert baseline_of(learner).tolist() != then.tolist()
    saved = learner.to_json()
    changes = {arm: added(saved, each, loss=LOSSES[arm]) for arm, each in decisions.items()}
    for arm, change in changes.items():
        expected = then.copy()
        expected[arm] += (LOSSES[arm] - then[arm]) / law[arm]
        np.testing.assert_allclose(change, expected, rtol=1e-9)
    mean = sum(law[arm] * change for arm, change in changes.items())
    np.testing.assert_allclose(mean, LOSSES, rtol=1e-9)


def test_a_log_brings_no_baseline_and_leaves_none_behind() -> None:
    learner, twin = trained(REDUCED, 0), CoupledTsallisTwin(ARMS, True, 4.0)
    generator = np.random.default_rng(0)
    for round_ in range(300):
        decision = learner.decide()
        arm = explored(decision)
        learner.observe(decision, loss=LOSSES[arm])
        twin.update(arm, decision.weight, LOSSES[arm])
        if round_ % 10 == 0:
            logged = int(generator.integers(ARMS))
            learner.replay([(logged, 0.5, 0.25)])
            learner.replay([(logged, 0.5, 0.25)])
            twin.replay(logged, 2.0, 0.25)
            twin.replay(logged, 2.0, 0.25)
        np.testing.assert_allclose(learner.exploitation_probabilities(), twin.law(), rtol=1e-9)
    assert twin.baseline().any()
    learner = dc.ThompsonSampling().start(["a", "b"], seed=0, loss_range=(0, 10))
    for loss in (2.5, 5.0):
        learner.replay([("a", 0.5, loss)])
    assert learner.estimates().tolist() == [1.75 / 4, 0.5]


def test_decisions_of_one_round_share_their_baseline() -> None:
    # Otherwise a hundred thousand pending decisions would hold as many arrays.
    learner = with_learned(
        REDUCED.start(2_000, seed=1), {}, round=50_000
    )  # so late that every arm has one

    def play_a_round() -> None:
        for _ in range(200):
            learner.decide()
        learner.observe(learner.decide(), loss=0.5)

    assert bytes_kept(play_a_round) < 500_000  # each with its own, these would keep 6 MB
    assert {len(kept.by_arm) for kept in kept_by(learner).values()} == {2_000}
    learner.decide()
    assert len(content_of(learner)["baselines"]) == 2


@pytest.mark.parametrize("resampling", ["geometric", "conditional"])
def test_the_cap_holds_in_a_learner(resampling: str) -> None:
    learner = dc.CoupledFTPL(resampling=resampling, cap=2).start(ARMS, seed=0)
    weights = {decision.weight for decision in learner.decide(count=2000)}
    # s * M with M = 1, 2; the last of equal arms, with the largest draw of all, wins at once and
    # weighs 4.
    expected = {1.0, 2.0} if resampling == "geometric" else {1.0, 2.0, 3.0, 4.0, 6.0}
    assert weights == expected


COMPARED_ARMS = 4
COMPARED = np.array([0.3, 0.55, 0.6, 0.95])
# The chance that the statistical test below fails on sound code, were its seed drawn afresh.
FALSE_ALARM = 1e-3

CENTRED = [dc.CentredFTPL(), dc.CentredFTPL(exploit_c=6.0, ranking="sorting")]
ESTIMATORS = [dc.FTPL(), dc.Ladder(), dc.TsallisINF(), dc.Exp3(), *CENTRED]


def taught(policy: dc.Policy, rounds: int = 40, **options: Any) -> dc.Learner:
    """A learner with unequal estimates, whose laws are therefore not uniform."""
    learner = policy.start(COMPARED_ARMS, seed=11, **options)
    for _ in range(rounds):
        decision = learner.decide()
        learner.observe(decision, loss=COMPARED[explored(decision)])
    return learner


def chances(explore: int, exploit: int, ties: float) -> dict[Preference, float]:
    """The assumed law: the better arm wins more often, by half the difference of the losses."""
    edge = (COMPARED[exploit] - COMPARED[explore]) / 2.0
    return {"explore": (1.0 - ties) / 2.0 + edge, "tie": ties, "exploit": (1.0 - ties) / 2.0 - edge}


@pytest.mark.parametrize("policy", ESTIMATORS, ids=repr)
@pytest.mark.parametrize("ties", [0.0, 0.2])
def test_estimates_from_preferences_are_unbiased_exactly(policy: dc.Policy, ties: float) -> None:
    """The mean over all outcomes of one round: every arm gains 1/2 + (its loss - that of the served
    arm) / 2.
    """
    learner = taught(policy)
    learner.guardrails = dc.Guardrails(floors={1: 0.3}, holdout=0.2)
    served, law = learner.exploitation_probabilities(), learner.exploration_probabilities()
    assert learner.decide().propensity is not None, "its weights would be random"
    decisions = one_of_each(learner)
    saved, mean = learner.to_json(), np.zeros(COMPARED_ARMS)
    for explore, decision in decisions.items():
        changes = {each: added(saved, decision, preference=each) for each in PREFERENCES}
        for exploit in range(COMPARED_ARMS):
            for outcome, chance in chances(explore, exploit, ties).items():
                mean += law[explore] * served[exploit] * chance * changes[outcome]
    expected = 0.5 + (COMPARED - served @ COMPARED) / 2.0
    np.testing.assert_allclose(mean, expected, rtol=1e-6, atol=1e-9)


def test_a_preference_is_the_loss_that_it_stands_for_and_the_best_arm_is_found() -> None:
    learner, luck = dc.Ladder().start(COMPARED_ARMS, seed=5), random.Random(5)
    for _ in range(3_000):
        decision = learner.decide()
        law = chances(explored(decision), cast(int, decision.exploit), ties=0.1)
        [winner] = luck.choices(list(law), weights=list(law.values()))
        learner.observe(decision, preference=winner)
    assert learner.exploitation_probabilities()[0] > 0.95
    one, two = (dc.FTPL().start(3, seed=1, loss_range=(-1, 3)) for _ in range(2))
    for preference, loss in (("explore", -1.0), ("tie", 1.0), ("exploit", 3.0)):
        one.observe(one.decide().id, preference=cast(Preference, preference))
        two.observe(two.decide(), loss=loss)
    assert one.to_json() == two.to_json()
