"""Preferences: differences between arms are learned without bias, and the best arm is found."""

import random
from typing import Any, cast

import numpy as np
import pytest

import decoupled as dc
from decoupled.learner.losses import PREFERENCES, Preference
from support.exactly import added, explored, one_of_each

ARMS = 4
LOSSES = np.array([0.3, 0.55, 0.6, 0.95])
# The chance that the statistical test below fails on sound code, were its seed drawn afresh.
FALSE_ALARM = 1e-3

ESTIMATORS = [
    dc.FTPL(),
    dc.Ladder(),
    dc.TsallisINF(),
    dc.TsallisINF(estimator="centred"),
    dc.Exp3(),
    dc.Exp3(estimator="centred"),
]


def trained(policy: dc.Policy, rounds: int = 40, **options: Any) -> dc.Learner:
    """A learner with unequal estimates, whose laws are therefore not uniform."""
    learner = policy.start(ARMS, seed=11, **options)
    for _ in range(rounds):
        decision = learner.decide()
        learner.observe(decision, loss=LOSSES[explored(decision)])
    return learner


def chances(explore: int, exploit: int, ties: float) -> dict[Preference, float]:
    """The assumed law: the better arm wins more often, by half the difference of the losses."""
    edge = (LOSSES[exploit] - LOSSES[explore]) / 2.0
    return {"explore": (1.0 - ties) / 2.0 + edge, "tie": ties, "exploit": (1.0 - ties) / 2.0 - edge}


@pytest.mark.parametrize("policy", ESTIMATORS, ids=repr)
@pytest.mark.parametrize("ties", [0.0, 0.2])
def test_estimates_from_preferences_are_unbiased_exactly(policy: dc.Policy, ties: float) -> None:
    """The mean over all outcomes of one round: every arm gains 1/2 + (its loss - that of the served arm) / 2."""
    learner = trained(policy)
    learner.guardrails = dc.Guardrails(floors={1: 0.3}, holdout=0.2)
    served, law = learner.exploitation_probabilities(), learner.exploration_probabilities()
    assert learner.decide().propensity is not None, "its weights would be random"
    decisions = one_of_each(learner)
    saved, mean = learner.to_json(), np.zeros(ARMS)
    for explore, decision in decisions.items():
        changes = {each: added(saved, decision, preference=each) for each in PREFERENCES}
        for exploit in range(ARMS):
            for outcome, chance in chances(explore, exploit, ties).items():
                mean += law[explore] * served[exploit] * chance * changes[outcome]
    expected = 0.5 + (LOSSES - served @ LOSSES) / 2.0
    np.testing.assert_allclose(mean, expected, rtol=1e-6, atol=1e-9)


def test_a_preference_is_the_loss_that_it_stands_for_and_the_best_arm_is_found() -> None:
    learner, luck = dc.Ladder().start(ARMS, seed=5), random.Random(5)
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
