"""Weights on the simplex: Tsallis entropy, compared with a bracketing root finder, and its hybrid
with a barrier.
"""

from typing import cast

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import decoupled as dc
from decoupled.base.arrays import Floats
from decoupled.extend import diagnostics
from decoupled.policies.jin import Hybrid, hybrid_weights, is_solved
from decoupled.policies.tsallis import tsallis_excess, two_powers
from support.twins.jin import JinTwin, hybrid_law_by_brentq
from support.twins.tsallis import TsallisTwin, tsallis_law_by_brentq

# The last one has a = 10^9: weights must not lose their digits where the exponent is huge.
EXTREME = (1e-9, 1.0 - 1e-9)
BETAS = (0.01, 0.3, 0.5, 2 / 3, 0.9, 0.99)

# Observed: 9 steps at most from random starts in 150,000 random states of up to 1,000 arms; along
# trajectories 5 at most and 2 to 3 on average. A little room is left above both.
MOST_STEPS = 12
MOST_WARM_STEPS = 6


def weights_from(gaps: Floats, start: float, beta: float) -> tuple[Floats, float, int]:
    a = 1.0 / (1.0 - beta)
    weights, slopes = np.empty(len(gaps)), np.empty(len(gaps))
    excess, steps = tsallis_excess(gaps, start, a, weights, slopes)
    two_powers(gaps, excess, a, a + 1.0, weights, slopes)
    return weights, excess, steps


def spread_estimates(arms: int, seed: int) -> Floats:
    """Estimates over twelve orders of magnitude, some of them equal."""
    generator = np.random.default_rng(seed)
    estimates = 10.0 ** generator.uniform(-6, 6, arms)
    estimates[generator.random(arms) < 0.2] = 0.0
    return estimates


def assert_close(weights: Floats, expected: Floats) -> None:
    # At beta = 0.99 and a gap of a million the weight is below every floating-point number.
    np.testing.assert_allclose(weights, expected, rtol=1e-12, atol=1e-300)


@pytest.mark.parametrize("arms", [1, 2, 3, 10, 100, 10_000])
@pytest.mark.parametrize("beta", BETAS)
def test_weights_match_a_bracketing_root_finder(beta: float, arms: int) -> None:
    for seed in range(3 if arms > 1000 else 20):
        estimates = spread_estimates(arms, seed)
        eta = 10.0 ** np.random.default_rng(seed).uniform(-3, 1)
        gaps = (1.0 - beta) * eta * (estimates - estimates.min())
        weights, _, steps = weights_from(gaps, 0.0, beta)
        assert_close(weights, tsallis_law_by_brentq(estimates, eta, beta))
        assert abs(weights.sum() - 1.0) < 1e-12
        assert steps <= MOST_STEPS


GAPS = st.lists(
    st.one_of(st.just(0.0), st.floats(0.0, 3.0), st.floats(-9.0, 9.0).map(lambda x: 10.0**x)),
    min_size=0,
    max_size=30,
).map(lambda values: np.array([0.0, *values]))


@settings(deadline=None, max_examples=300)
@given(GAPS, st.sampled_from(BETAS), st.floats(-10.0, 1e9))
def test_any_start_leads_to_the_same_root(gaps: Floats, beta: float, start: float) -> None:
    weights, excess, steps = weights_from(gaps, start, beta)
    assert_close(weights, tsallis_law_by_brentq(gaps, 1.0 / (1.0 - beta), beta))
    assert 0.0 <= excess <= np.expm1(np.log(len(gaps)) * (1.0 - beta)) * (1.0 + 1e-15)
    assert steps <= MOST_STEPS


@pytest.mark.parametrize("arms", [1, 2, 64, 10_000])
@pytest.mark.parametrize("beta", BETAS)
def test_equal_arms_and_a_lone_leader_are_solved_at_once(beta: float, arms: int) -> None:
    weights, excess, steps = weights_from(np.zeros(arms), 0.0, beta)
    assert_close(weights, np.full(arms, 1 / arms))
    assert 1.0 + excess == pytest.approx(arms ** (1.0 - beta), rel=1e-14)
    assert steps <= 2
    behind = np.concatenate(([0.0], np.full(arms - 1, 1e300)))
    weights, excess, steps = weights_from(behind, 0.0, beta)
    assert weights[0] == 1.0
    assert excess == 0.0
    assert steps == 1


@pytest.mark.parametrize("beta", [0.1, 0.5, 2 / 3, 0.95])
def test_warm_starts_do_not_drift(beta: float) -> None:
    learner = dc.TsallisINF(beta=beta).start(arms=8, seed=5)
    twin = TsallisTwin(8, beta)
    losses = np.random.default_rng(6).random((3000, 8)) < np.linspace(0.3, 0.7, 8)
    steps = []
    for t, row in enumerate(losses):
        decision = learner.decide()
        loss = float(row[cast(int, decision.explore)])
        learner.observe(decision, loss=loss)
        twin.update(cast(int, decision.explore), decision.weight, loss)
        steps.append(diagnostics(learner)["steps"])
        if t % 50 == 0:
            assert_close(learner.exploitation_probabilities(), twin.exploitation_law())
    assert max(steps) <= MOST_WARM_STEPS
    assert np.mean(steps) < 3.0


@pytest.mark.parametrize("beta", [0.1, 0.5, 2 / 3, 0.95])
def test_a_leader_that_falls_behind_is_followed(beta: float) -> None:
    # The hardest warm start: one heavy loss moves all the weight to another arm.
    learner = dc.TsallisINF(beta=beta).start(arms=4, seed=5)
    twin = TsallisTwin(4, beta)
    for arm, propensity in [(1, 1e-3), (2, 1e-3), (3, 1e-3), (0, 1e-6), (1, 1e-9), (2, 1e-12)]:
        learner.replay([(arm, propensity, 1.0)])
        twin.update(arm, 1.0 / propensity, 1.0)
        assert_close(learner.exploitation_probabilities(), twin.exploitation_law())
        assert diagnostics(learner)["steps"] <= MOST_STEPS


@pytest.mark.parametrize("beta", EXTREME)
@pytest.mark.parametrize("arms", [2, 64])
def test_extreme_orders_are_solved_in_few_steps(beta: float, arms: int) -> None:
    gaps = np.random.default_rng(arms).exponential(1.0, arms) * (1.0 - beta)
    gaps -= gaps.min()
    weights, _, steps = weights_from(gaps, 0.0, beta)
    assert abs(weights.sum() - 1.0) < 1e-12
    assert steps <= MOST_STEPS
    if beta > 0.5:  # the limit is Exp3
        softmax = np.exp(-gaps / (1.0 - beta))
        np.testing.assert_allclose(weights, softmax / softmax.sum(), rtol=1e-6)


# Observed over 20,000 random states: 2 steps at most after a cold start, and along trajectories 4
# at most and 2.4 on average. A little room is left.
MOST_COLD_STEPS = 4
MOST_HYBRID_STEPS = 6


def posed(estimates: Floats, gammas: Floats) -> Hybrid:
    return Hybrid(estimates - estimates.min(), 2 / 3 * gammas, *np.zeros((7, len(estimates))))


def solved(estimates: Floats, barrier: float, gammas: Floats) -> tuple[Hybrid, float, int]:
    at = posed(estimates, gammas)
    return at, *hybrid_weights(barrier, 0.0, at)


def random_state(arms: int, seed: int) -> tuple[Floats, float, Floats]:
    """Estimates over nine orders of magnitude, some of them equal, and rates over six."""
    generator = np.random.default_rng((arms, seed))
    estimates = 10.0 ** generator.uniform(-3, 6, arms) * (generator.random(arms) > 0.2)
    return estimates, 10.0 ** generator.uniform(-2, 1), 10.0 ** generator.uniform(-2, 4, arms)


def assert_optimal(at: Hybrid, level: float, barrier: float) -> None:
    """Both conditions in the weights themselves: their sum, and stationarity for every arm."""
    w = at.weights
    assert abs(w.sum() - 1.0) < 1e-12
    np.testing.assert_allclose(barrier / w + at.rates * w ** (-1 / 3), at.gaps + level, rtol=1e-12)
    np.testing.assert_allclose(at.squares, w ** (2 / 3), rtol=1e-12)


@pytest.mark.parametrize("arms", [1, 2, 3, 10, 100])
def test_weights_match_nested_root_finders(arms: int) -> None:
    for seed in range(20 if arms < 100 else 3):
        estimates, barrier, gammas = random_state(arms, seed)
        at, level, steps = solved(estimates, barrier, gammas)
        assert_optimal(at, level, barrier)
        np.testing.assert_allclose(
            at.weights, hybrid_law_by_brentq(estimates, barrier, gammas), rtol=1e-11
        )
        assert 0 < steps <= MOST_COLD_STEPS


@settings(deadline=None, max_examples=300)
@given(st.integers(1, 40), st.integers(0, 10**6), st.floats(-4, 4), st.floats(-4, 4))
def test_any_start_leads_to_the_same_weights(
    arms: int, seed: int, spread: float, shift: float
) -> None:
    # A distant start does not converge in a few steps; then the solver starts cold.
    estimates, barrier, gammas = random_state(arms, seed)
    at, level, _ = solved(estimates, barrier, gammas)
    again = posed(estimates, gammas)
    away = np.random.default_rng(seed).uniform(-1, 1, arms)
    again.roots[:] = at.roots * 10.0 ** (spread * away)
    found, steps = hybrid_weights(barrier, level * 10.0**shift, again)
    assert_optimal(again, found, barrier)
    np.testing.assert_allclose(again.weights, at.weights, rtol=1e-11)
    assert steps > 0


def test_equal_arms_and_a_lone_leader() -> None:
    at, _, _ = solved(np.full(64, 5.0), 0.7, np.full(64, 3.0))
    np.testing.assert_allclose(at.weights, 1 / 64, rtol=1e-13)
    # As far behind as the smallest propensity of a log can put an arm.
    at, level, _ = solved(np.array([0.0, 1e200, 1e203]), 0.5, np.array([2.0, 3.0, 1e100]))
    assert_optimal(at, level, 0.5)
    assert at.weights[0] == 1.0
    assert at.weights[1] == pytest.approx(0.5e-200)
    estimates, barrier, gammas = random_state(8, 3)
    at, level, _ = solved(estimates, barrier, gammas)
    assert is_solved(barrier, level, at)
    assert not is_solved(barrier, level * (1 + 1e-10), at)
    smallest = int(at.weights.argmin())
    assert at.weights[smallest] < 1e-4
    at.roots[smallest] *= 1 + 1e-10  # the sum does not show it: the arm weighs too little
    assert not is_solved(barrier, level, at)
    at.roots[smallest] /= 1 + 1e-10
    assert is_solved(barrier, level, at)
    assert not is_solved(barrier, 0.0, posed(estimates, gammas))


@pytest.mark.slow
@pytest.mark.parametrize(
    "policy", [dc.JinHybrid(), dc.JinHybrid(barrier=0.05, theta=3.0, horizon=600)]
)
def test_warm_starts_of_the_hybrid_do_not_drift(policy: dc.JinHybrid) -> None:
    learner = policy.start(arms=8, seed=5)
    twin = JinTwin(8, policy.barrier, policy.theta, policy.horizon)
    losses = np.random.default_rng(6).random((600, 8)) < np.linspace(0.3, 0.7, 8)
    steps = []
    for row in losses:
        decision = learner.decide()
        loss = float(row[cast(int, decision.explore)])
        learner.observe(decision, loss=loss)
        twin.update(cast(int, decision.explore), decision.weight, loss)
        steps.append(diagnostics(learner)["steps"])
    np.testing.assert_allclose(
        learner.exploitation_probabilities(), twin.exploitation_law(), rtol=1e-11
    )
    assert max(steps) <= MOST_HYBRID_STEPS
    assert np.mean(steps) < 3.5


def test_a_leader_of_the_hybrid_that_falls_behind_is_followed() -> None:
    # The hardest warm start: one heavy loss moves all the weight to another arm.
    policy = dc.JinHybrid()
    learner, twin = (
        policy.start(arms=4, seed=5),
        JinTwin(4, policy.barrier, policy.theta, policy.horizon),
    )
    for arm, propensity in [(1, 1e-3), (2, 1e-3), (3, 1e-3), (0, 1e-6), (1, 1e-9), (2, 1e-12)]:
        learner.replay([(arm, propensity, 1.0)])
        twin.update(arm, 1.0 / propensity, 1.0)
        np.testing.assert_allclose(
            learner.exploitation_probabilities(), twin.exploitation_law(), rtol=1e-11
        )
        assert diagnostics(learner)["steps"] > 0
