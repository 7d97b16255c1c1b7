"""MatchedFTPL: how its rate falls, what a discount does to it, and its regret beside FTPL's."""

import math

import numpy as np
import pytest

import decoupled as dc
from support.twins.matched import MatchedTwin

ARMS = 4
LOSSES = np.random.default_rng(5).random((60, ARMS)) * np.linspace(0.3, 1.0, ARMS)


def beta_of(learner: dc.Learner) -> float:
    return 1 / learner.diagnostics()["eta"]


@pytest.mark.parametrize("alpha", [1.5, 3.0, 6.0])
def test_the_first_rate_is_that_of_ftpl(alpha: float) -> None:
    learners = [kind(alpha=alpha, c=0.7).start(ARMS, seed=1) for kind in (dc.MatchedFTPL, dc.FTPL)]
    matched, published = (learner.diagnostics()["eta"] for learner in learners)
    assert matched == published


def test_level_arms_and_a_loss_of_zero_by_hand() -> None:
    learner = dc.MatchedFTPL(kappa=0.3, c=2.0).start(ARMS, seed=1)
    first = ARMS ** (1 / 2 - 1 / 3) / 2
    explored = sum(rank ** (-2 / 3) for rank in range(1, ARMS + 1))
    learner.replay([(0, 0.25, 0.0)])
    grown = first + 2 / 3 * 0.3 * explored / first
    assert grown > 2 ** (1 / 3) * first
    assert beta_of(learner) == pytest.approx(2 ** (1 / 3) * first, rel=1e-14), "the first steps are capped"
    for _ in range(20):
        before = beta_of(learner)
        learner.replay([(0, 0.25, 0.0)])
        grown = before + 2 / 3 * 0.3 * explored / before
        assert beta_of(learner) == pytest.approx(min(grown, 2 ** (1 / 3) * before), rel=1e-14)
    assert grown < 2 ** (1 / 3) * before, "the last step is not"


def test_a_single_arm_keeps_its_rate() -> None:
    policy = dc.MatchedFTPL()
    state = policy.layout.new_state(1)
    values = np.array(policy.params(), np.float64)
    policy.entries().init(values, *state)
    eta = float(policy.layout.row(state, "eta")[0])
    policy.entries().update(values, *state, 0, 1.0, 0.5)
    assert policy.layout.row(state, "eta")[0] == eta == 2.0
    assert policy.layout.row(state, "estimates").tolist() == [0.5]


def test_a_huge_gap_at_a_large_alpha_leaves_the_rate_finite() -> None:
    # q underflows for all arms but the leader, and so does h.
    learner = dc.MatchedFTPL(alpha=400.0).start(ARMS, seed=1)
    learner.replay([(arm, 1e-6, float(arm > 0)) for arm in range(ARMS)])
    before = beta_of(learner)
    learner.replay([(1, 0.25, 1.0)])
    assert beta_of(learner) == before
    assert learner.exploration_probabilities()[0] == 1.0


def test_new_arms_scale_the_rate_as_with_ftpl() -> None:
    learner = dc.MatchedFTPL().start(["a", "b"], seed=1)
    learner.replay([("a", 0.5, 0.3), ("b", 0.5, 0.8)] * 5)
    before = beta_of(learner)
    learner.add_arms(["c", "d", "e"])
    assert beta_of(learner) == pytest.approx(before * (5 / 2) ** (1 / 2 - 1 / 3), rel=1e-14)


def test_a_discount_shrinks_what_takes_the_place_of_the_round() -> None:
    discount = 0.9
    learner = dc.Forgetting(dc.MatchedFTPL(), discount=discount).start(ARMS, seed=3)
    twin = MatchedTwin(ARMS, 3.0, 0.3, 2.0)
    first = twin.beta
    for row in LOSSES:
        decision = learner.decide()
        arm = int(decision.explore)
        learner.observe(decision, loss=float(row[arm]))
        twin.update(arm, decision.weight, float(row[arm]))
        twin.estimates = discount * twin.estimates
        twin.beta = first * math.sqrt(1 + discount * ((twin.beta / first) ** 2 - 1))
        np.testing.assert_allclose(learner.exploration_probabilities(), twin.exploration_law(), rtol=1e-11)
        np.testing.assert_allclose(learner.exploitation_probabilities(), twin.exploitation_law(), atol=1e-9)


def test_it_suffers_less_than_ftpl_from_an_adversary_that_punishes() -> None:
    # Over 1,000 runs it is 719, and that of FTPL 888. With 100 runs the standard error of each is 16.
    world = dc.environments.PunishLast(8)
    results = dc.simulate([dc.MatchedFTPL(), dc.FTPL()], world, horizon=10_000, runs=100, seed=0, workers=1)
    matched, published = results.summary()["mean"]
    assert 650 < matched < 800 < published
