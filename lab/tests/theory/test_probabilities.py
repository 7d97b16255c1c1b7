"""Exact probabilities and derivatives compared with 25-digit integrals, draws, and identities."""

import math

import numpy as np
import pytest

import decoupled as dc
from decoupled.kernels.winner_law import grid, winner_law
from decoupled_lab import theory
from decoupled_lab.theory.probabilities import moved_law, winner_moments
from support.integrals import integral, slope

FAMILIES = ("pareto", "frechet")
ALPHAS = (1.05, 2.0, 2.7, 3.0, 30.0)


# More shifts and exponents are in the tests of the kernels.
@pytest.mark.parametrize("places", [[0.0], [0.0, 1e-3, 1.0, 1e12], [3.0, 3.0, 3.0, 0.0]], ids=str)
@pytest.mark.parametrize("family", FAMILIES)
def test_weights_are_the_integral(family: str, places: list[float]) -> None:
    alpha = 2.7
    expected = [float(integral(places, alpha, arm, family)) for arm in range(len(places))]
    # Not only at eta = 1: the estimates are scaled, so that a missing factor shows.
    found = theory.weights(np.array(places) / 0.25, 0.25, alpha, family)
    np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("frechet", [False, True])
def test_weights_take_few_evaluations(frechet: bool) -> None:
    for alpha in (1.05, 2.7, 30.0):
        assert len(grid(1_000, alpha, frechet).above) <= (480 if frechet else 416)
    assert len(grid(10**6, 2.7, frechet).above) < 600


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize(
    ("places", "alpha"), [([0.0, 0.0, 0.7], 3.0), ([1.5, 0.0, 40.0], 1.3)], ids=str
)
def test_derivatives_are_those_of_the_integral(
    places: list[float], alpha: float, family: str
) -> None:
    found = theory.jacobian(places, 1.0, alpha, family)
    for arm, other in ((0, 0), (1, 1), (2, 2), (0, 1), (2, 0)):
        # At a tie the second derivative jumps, and the finite difference is off by half a step.
        expected = slope(places, alpha, arm, other, family)
        assert found[arm, other] == pytest.approx(expected, rel=1e-6, abs=1e-10)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("alpha", ALPHAS)
def test_slopes_are_the_diagonal(alpha: float, family: str) -> None:
    estimates = np.array([0.0, 1e-3, 0.2, 0.2, 5.0, 1e6])
    whole = theory.jacobian(estimates, 0.7, alpha, family)
    slopes = theory.slopes(estimates, 0.7, alpha, family)
    np.testing.assert_allclose(slopes, np.diag(whole), rtol=1e-7, atol=1e-12)
    np.testing.assert_allclose(whole, whole.T)
    assert np.abs(whole.sum(axis=1)).max() < 1e-12
    assert (np.diag(whole) <= 0.0).all()


def test_sole_leader_far_ahead_keeps_the_digits_of_its_slope() -> None:
    # Its slope is the sum of the shares of the others, far below the terms that cancel in the plain formula.
    slopes = theory.slopes([0.0, 1e5], 1.0)
    assert slopes[0] / slopes[1] == pytest.approx(1.0, rel=1e-12)
    assert 0.0 < -slopes[0] < 1e-18


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("alpha", [2.2, 3.0])
def test_moments_of_the_winning_draw(alpha: float, family: str) -> None:
    places = [0.0, 0.5, 0.5, 7.0]
    moments = winner_moments(np.array(places), alpha, family == "frechet")
    for arm in (0, 1, 3):
        for power, found in ((1, moments.prizes), (-1, moments.inverses), (0, moments.law)):
            expected = float(integral(places, alpha, arm, family, power))
            assert found[arm] == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("arms", [2, 5, 300])
@pytest.mark.parametrize("alpha", [1.1, 2.0, 3.0, 9.0])
def test_mean_winning_draw_of_equal_arms(alpha: float, arms: int) -> None:
    # E[max of K Pareto draws] = Gamma(1 - 1/a) Gamma(K + 1) / Gamma(K + 1 - 1/a).
    log = math.lgamma(1 - 1 / alpha) + math.lgamma(arms + 1) - math.lgamma(arms + 1 - 1 / alpha)
    prizes = winner_moments(np.zeros(arms), alpha, False).prizes
    assert prizes.sum() == pytest.approx(math.exp(log), rel=1e-9)


@pytest.mark.parametrize("frechet", [False, True])
@pytest.mark.parametrize("shifts", [[0.0, 0.4, 3.0], [0.0, 0.0, 1.0]], ids=str)
def test_moving_one_arm_at_a_time(shifts: list[float], frechet: bool) -> None:
    places, moves = np.array(shifts), np.array([0.9, 0.2, 5.0])
    moved = moved_law(places, moves, 2.2, frechet)
    for arm in range(3):
        after = places.copy()
        after[arm] += moves[arm]
        assert moved[arm] == pytest.approx(
            winner_law(after - after.min(), 2.2, frechet)[arm], rel=1e-11
        )


def test_infinitely_far_behind_is_never() -> None:
    np.testing.assert_allclose(theory.weights([0.0, 1e308], 1e300), [1.0, 0.0], rtol=1e-15, atol=0)
    assert np.isfinite(theory.slopes([0.0, 1e308], 1e300)).all()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([], 1.0), "estimates"),
        (([[0.0]], 1.0), "estimates"),
        (([0.0, math.nan], 1.0), "estimates"),
        ((["a"], 1.0), "estimates"),
        (([0.0], 0.0), "eta"),
        (([0.0], 1.0, 1.0), "alpha"),
        (([0.0], 1.0, 3.0, "frechett"), "perturbation.*'frechet'"),
    ],
)
def test_errors_name_the_argument(arguments: tuple[object, ...], message: str) -> None:
    for function in (theory.weights, theory.slopes, theory.jacobian):
        with pytest.raises(dc.ParameterError, match=message):
            function(*arguments)  # type: ignore[arg-type]
