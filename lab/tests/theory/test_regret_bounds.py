"""Bounds compared with the numbers of the paper and with calculations by hand."""

import math

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

import decoupled as dc
from decoupled_lab.theory import bounds

E = math.e


def test_the_papers_tuning() -> None:
    c, constant = bounds.optimal_c(zeta=0.1)
    assert round(c, 6) == 0.128017
    assert round(constant, 3) == 25799.360
    assert bounds.leading_constant(c, 0.1) == constant


@pytest.mark.parametrize("corrected", [False, True])
@pytest.mark.parametrize("zeta", [0.01, 0.1, 0.5])
def test_optimal_c_is_optimal(zeta: float, corrected: bool) -> None:
    best = minimize_scalar(
        lambda log: bounds.leading_constant(math.exp(log), zeta, corrected=corrected),
        bounds=(-6, 2),
        method="bounded",
    )
    found = bounds.optimal_c(zeta, corrected=corrected)
    assert found.c == pytest.approx(math.exp(best.x), rel=1e-4)
    assert found.leading_constant == pytest.approx(best.fun, rel=1e-9)


def test_theorem1_by_hand() -> None:
    # alpha = 2, c = 1, K = 4, T = 100: 8 * 4 * 3 e / 1 = 96 e, C = (16 + 4 (e - 2)) / 3, 2 Gamma(1/2) sqrt(4).
    expected = (96 * E + (8 + 4 * E) / 3) * 20 + 2 * math.sqrt(math.pi) * 2
    assert bounds.theorem1(100, 4, alpha=2.0, c=1.0) == pytest.approx(expected, rel=1e-14)


def test_constants_at_alpha_3() -> None:
    assert bounds.stability_constant(3.0, 2.0) == pytest.approx(144 * E)
    assert bounds.penalty_constant(3.0) == pytest.approx((36 + 9 * E) / 10)
    assert bounds.first_round_constant(3.0) == pytest.approx(1.5 * math.gamma(2 / 3))
    assert bounds.surrogate_sum_bound(27, 3.0) == pytest.approx(9.0)
    # 4 * 9 / 4 = 9 times c^2 K^(1/3) / zeta^2.
    assert bounds.early_rounds(27, 3.0, 0.5, 0.1) == pytest.approx(9 * 0.25 * 3 / 0.01)


@pytest.mark.parametrize("corrected", [False, True])
def test_theorem2_by_hand(corrected: bool) -> None:
    gaps, rounds, c, zeta = [0.5, 0.25], 3, 0.5, 0.2
    root = math.sqrt(2) if corrected else 1.0
    # alpha = 2: Z_1 = (2 e^2)^(1/2) (24 c e + 16 c (e - 1) / (1 - zeta)^3 + 2 / c) K^(1/4), Z_2 = Z_1^2 / 4.
    z1 = math.sqrt(2 * E**2) * (12 * E + 8 * (E - 1) / 0.8**3 + root * 4) * 3**0.25
    first = z1**2 / 4 * (2 + 4) * (1 + 1 / 2 + 1 / 3)
    per_round = 48 * E + (8 + 4 * E) / 3 * math.sqrt(2) / c
    second = 4 / (1 - math.exp(-0.5)) * per_round**2 * 3 / 0.25
    third = 2 * 2 * math.sqrt(math.pi) * math.sqrt(3) / c
    fourth = 2 * (4 * 3**0.25 * c / zeta) ** 2
    found = bounds.theorem2(gaps, rounds, alpha=2.0, c=c, zeta=zeta, corrected=corrected)
    assert found == pytest.approx(first + second + third + fourth, rel=1e-12)


def test_corollary_by_hand() -> None:
    gaps, c, zeta = [0.5, 0.25, 0.25], 0.3, 0.1
    f = (144 * c * E + (36 + 9 * E) / 5 / c) * (24 * c * E + 18 * c * (E - 1) / 0.9**4 + 1.5 / c) ** 3
    lead = 2 * math.sqrt(32 * E**4 / 27 * f) * math.sqrt(4 / 0.25 * 10)
    second = 4 / (1 - math.exp(-0.5)) * (72 * c * E + (36 + 9 * E) / 10 * math.sqrt(2) / c) ** 2 * 16
    third = 3 * math.gamma(2 / 3) * 2 / c
    fourth = 2 * 9 * c**2 * 4 ** (1 / 3) / zeta**2
    assert bounds.corollary(gaps, c, zeta) == pytest.approx(lead + second + third + fourth, rel=1e-12)


def test_corollary_follows_from_theorem2_over_time() -> None:
    # The corollary holds for any horizon. Theorem 3.2 grows with it, and they share all terms but the first.
    early, late = (bounds.theorem2([0.25] * 3, rounds) for rounds in (10, 100_000))
    assert early < late < bounds.theorem2([0.25] * 3, 10**7) < 1.01 * late


def test_a_zero_for_the_best_arm_may_be_among_the_gaps() -> None:
    assert bounds.corollary([0.0, 0.25]) == bounds.corollary([0.25])
    assert bounds.rouyer_seldin_order([0.25, 0.5, 0.0]) == 12.0


def test_the_others_by_hand() -> None:
    assert bounds.rouyer_seldin(100, 4, beta=0.5, c=2.0) == pytest.approx((2 + 2) * 20)
    assert bounds.zimmert_seldin(100, 4) == pytest.approx(81)
    assert bounds.lower_bound_order(100, 4) == 20.0


def test_simulated_regret_is_far_below_theorem1() -> None:
    world = dc.environments.Alternating(arms=8, gap=0.125)
    regret = dc.simulate(dc.FTPL(), world, horizon=2_000, runs=100, seed=0).final_regret(dc.FTPL())
    # By a factor of about 450 at this horizon; the bound exceeds even the horizon.
    factor = bounds.theorem1(2_000, 8) / np.mean(regret)
    assert 200 < factor < 1_000
    assert bounds.theorem1(2_000, 8) > 2_000


@pytest.mark.parametrize("gaps", [[], [0.0], [0.0, 0.0, 0.1], [1.5], [-0.1], ["a"], [math.nan]], ids=str)
def test_gaps_are_checked(gaps: list[float]) -> None:
    for function in (bounds.corollary, bounds.rouyer_seldin_order):
        with pytest.raises(dc.ParameterError, match="gaps"):
            function(gaps)


def test_arguments_are_checked() -> None:
    with pytest.raises(dc.ParameterError, match="horizon"):
        bounds.theorem1(0, 8)
    with pytest.raises(dc.ParameterError, match="arms"):
        bounds.theorem1(10, 1)
    with pytest.raises(dc.ParameterError, match="alpha"):
        bounds.theorem2([0.1], 10, alpha=3.5)  # the theorem ends at 3
    with pytest.raises(dc.ParameterError, match="zeta"):
        bounds.optimal_c(1.0)
    with pytest.raises(dc.ParameterError, match="beta"):
        bounds.rouyer_seldin(10, 8, beta=1.0)
    with pytest.raises(dc.ParameterError, match="c = -1"):
        bounds.leading_constant(-1)
