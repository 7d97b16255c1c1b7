"""The standard game in a learner: one arm twice, and estimates that stay unbiased when feedback is late."""

import numpy as np
import pytest

import decoupled as dc
from decoupled.base.arrays import Floats
from support.exactly import added, explored, one_of_each
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
    # A state in which some arms have a baseline and others do not; otherwise the tests below would prove nothing.
    covered = baseline_of(trained(REDUCED, 150))
    assert 0 < np.count_nonzero(covered) < ARMS


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
    learner = trained(REDUCED, 150)
    learner.decide(count=10)
    assert len({id(pending[3]) for pending in learner._waiting.decisions.values()}) == 1
    learner.observe(learner.decide(), loss=0.5)
    learner.decide()
    assert len({id(pending[3]) for pending in learner._waiting.decisions.values()}) == 2


@pytest.mark.parametrize("resampling", ["geometric", "conditional"])
def test_the_cap_holds_in_a_learner(resampling: str) -> None:
    learner = dc.CoupledFTPL(resampling=resampling, cap=2).start(ARMS, seed=0)
    weights = {decision.weight for decision in learner.decide(count=2000)}
    # s * M with M = 1, 2; the last of equal arms, with the largest draw of all, wins at once and weighs 4.
    expected = {1.0, 2.0} if resampling == "geometric" else {1.0, 2.0, 3.0, 4.0, 6.0}
    assert weights == expected
