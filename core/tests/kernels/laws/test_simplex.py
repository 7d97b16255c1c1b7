"""Tsallis weights compared with a bracketing root finder, and the path of Newton's method."""

from typing import cast

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import decoupled as dc
from decoupled.base.arrays import Floats
from decoupled.extend import diagnostics
from decoupled.kernels.laws.tsallis import tsallis_excess, two_powers
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
    generator = np.random.default_rng(arms)
    gaps = generator.exponential(1.0, arms) * (1.0 - beta)
    gaps -= gaps.min()
    weights, _, steps = weights_from(gaps, 0.0, beta)
    assert abs(weights.sum() - 1.0) < 1e-12
    assert steps <= MOST_STEPS
    if beta > 0.5:  # the limit is Exp3
        softmax = np.exp(-gaps / (1.0 - beta))
        np.testing.assert_allclose(weights, softmax / softmax.sum(), rtol=1e-6)
