"""Baselines: what an estimator subtracts from losses never biases what is learned, however late
feedback comes.
"""

import numpy as np
import pytest

import decoupled as dc
from decoupled.base.arrays import Floats
from support.centred_ftpl import CENTRED_FTPL
from support.exactly import added, explored, one_of_each

ARMS = 6
SORTING = dc.CentredFTPL(c=0.5, exploit_c=3.0, ranking="sorting", gate=0.6)
COUPLED = dc.CoupledTsallisINF(estimator="reduced-variance", c=0.9)
CENTRED: list[dc.Policy] = [dc.Ladder(), CENTRED_FTPL, SORTING, COUPLED]
every_centred = pytest.mark.parametrize("policy", CENTRED, ids=lambda policy: policy.label)
LOSSES = np.array([0.2, 0.9, 0.35, 0.6, 0.5, 0.75])


def trained(policy: dc.Policy, rounds: int = 150, seed: int = 2) -> dc.Learner:
    learner = policy.start(ARMS, seed, max_pending=100_000)
    for _ in range(rounds):
        decision = learner.decide()
        learner.observe(decision, loss=float(LOSSES[explored(decision)]))
    return learner


def changes(
    learner: dc.Learner, available: list[int] | None = None, meanwhile: bool = False
) -> tuple[Floats, Floats]:
    """For each explored arm: its probability, and what its feedback adds to every estimate."""
    law = learner.exploration_probabilities(available=available)
    found = one_of_each(learner, available=available)
    if meanwhile:  # the gate and the running mean change before the feedback comes
        learner.replay([(0, 0.05, 1.0), (1, 0.5, 0.0), (2, 0.1, 1.0)])
    saved = learner.to_json()
    steps = {arm: added(saved, decision, loss=LOSSES[arm]) for arm, decision in found.items()}
    return law, np.array([steps.get(arm, np.zeros(ARMS)) for arm in range(ARMS)])


@every_centred
@pytest.mark.parametrize("meanwhile", [False, True], ids=["prompt", "late"])
def test_estimates_stay_unbiased_whatever_the_baselines(policy: dc.Policy, meanwhile: bool) -> None:
    law, change = changes(trained(policy), meanwhile=meanwhile)
    np.testing.assert_allclose(law @ change, LOSSES, rtol=1e-9)


@every_centred
def test_arms_that_are_away_gain_nothing(policy: dc.Policy) -> None:
    available = [0, 2, 3, 5]
    law, change = changes(trained(policy), available)
    expected = np.full(ARMS, law @ LOSSES)  # the charge of an unavailable arm
    expected[available] = LOSSES[available]
    np.testing.assert_allclose(law @ change, expected, rtol=1e-9)


@pytest.mark.parametrize(
    "policy", [dc.Ladder(), CENTRED_FTPL, dc.CentredFTPL(ranking="sorting")], ids=repr
)
def test_baselines_that_are_computed_late_are_those_of_their_round(policy: dc.Policy) -> None:
    """A decision's baselines are computed when its round ends, if at all.

    The learner below has them at once.
    """
    lazy, eager = (policy.start(arms=["a", "b", "c", "d"], seed=5) for _ in range(2))
    choose = np.random.default_rng(5)
    for step in range(400):
        for learner in (lazy, eager):
            learner.decide()
        eager.to_json()
        action = int(choose.integers(8))
        if action == 3:
            assert lazy.to_json() == eager.to_json()
        elif action == 4:
            lazy, eager = (dc.Learner.from_json(learner.to_json()) for learner in (lazy, eager))
        else:
            _act_on_both(lazy, eager, action, f"new-{step}")
        for _ in range(choose.integers(3)):
            if lazy.pending:
                which = lazy.pending[choose.integers(len(lazy.pending))].id
                loss = float(choose.random())
                for learner in (lazy, eager):
                    learner.observe(which, loss=loss)
    assert lazy.to_json() == eager.to_json()


def _act_on_both(lazy: dc.Learner, eager: dc.Learner, action: int, newcomer: str) -> None:
    """Decide among some arms, add an arm, or retire one, for both learners alike."""
    if action == 0:
        others = [arm for arm in lazy.arms if arm != "a"]
        available = [*others[: 1 + len(lazy.arms) % 2], "a"]
        assert lazy.decide(available=available) == eager.decide(available=available)
    elif action == 1 and len(lazy.arms) < 7:
        for learner in (lazy, eager):
            learner.add_arms([newcomer])
    elif action == 2 and len(lazy.arms) > 3:
        retired = lazy.arms[-1]
        for learner in (lazy, eager):
            learner.retire_arms([retired])
