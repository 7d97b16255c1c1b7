"""Exact probabilities of the perturbed leader, compared with integrals in twenty-digit arithmetic.

The smallest Beta variable, compared with closed forms, exact fractions and plain integrals.
"""

import math
from collections.abc import Callable
from itertools import pairwise
from typing import TypeAlias

import mpmath  # type: ignore[import-untyped]
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.special import betainc

from decoupled.base.arrays import Floats
from decoupled.kernels.laws.winner_law import (
    frechet_winner_law,
    pareto_winner_law,
    smallest_beta_law,
    winner_law,
)
from support.integrals import integral
from support.twins.coupled import leader_law_by_quad

ALPHAS = (1.05, 1.3, 2.0, 3.0, 5.5, 20.0)
TOLERANCE = 1e-12
WinnerLaw: TypeAlias = Callable[[Floats, float], Floats]

# Shifts and how many arms have each; few distinct ones keep the slow integral affordable at 64 arms.
GROUPS: dict[str, list[tuple[float, int]]] = {
    "2 equal": [(0.0, 2)],
    "2 apart": [(0.0, 1), (0.7, 1)],
    "2 far apart": [(0.0, 1), (1e12, 1)],
    "5 near ties": [(0.0, 1), (1e-9, 2), (2e-9, 1), (1e-3, 1)],
    "5 spread": [(0.0, 1), (0.2, 1), (1.0, 1), (5.0, 1), (40.0, 1)],
    "5 over twelve orders": [(0.0, 1), (1e3, 1), (1e6, 1), (1e9, 1), (1e12, 1)],
    "64 in blocks": [(0.0, 20), (0.5, 20), (3.0, 23), (1e12, 1)],
    "64 one ahead": [(0.0, 1), (2.0, 63)],
}


def expanded(groups: list[tuple[float, int]]) -> Floats:
    return np.repeat([shift for shift, _ in groups], [count for _, count in groups])


@pytest.mark.parametrize("name", GROUPS)
@pytest.mark.parametrize(
    ("family", "alpha"),
    [("pareto", 1.05), ("pareto", 3.0), ("pareto", 20.0), ("frechet", 1.05), ("frechet", 3.0)],
)
def test_law_is_the_integral(family: str, alpha: float, name: str) -> None:
    shifts, counts = zip(*GROUPS[name], strict=True)
    exact = [float(integral(shifts, alpha, arm, family, counts=counts)) for arm in range(len(shifts))]
    law = winner_law(expanded(GROUPS[name]), alpha, family == "frechet")
    np.testing.assert_allclose(law, np.repeat(exact, counts), rtol=0, atol=TOLERANCE)


@pytest.mark.parametrize("alpha", ALPHAS)
def test_two_arms_have_a_closed_form_and_ten_thousand_sum_to_one(alpha: float) -> None:
    for shift in (0.0, 1e-9, 0.3, 1.0, 20.0, 1e6, 1e12):
        # The integral of alpha s^(2 alpha - 1) (1 + shift s)^-(alpha + 1) over [0, 1] is half of a 2F1.
        with mpmath.workdps(30):
            tail = (1 + mpmath.mpf(shift)) ** -mpmath.mpf(alpha)
            behind = float(tail - mpmath.hyp2f1(alpha + 1, 2 * alpha, 2 * alpha + 1, -shift) / 2)
        law = pareto_winner_law(np.array([0.0, shift]), alpha)
        np.testing.assert_allclose(law, [1 - behind, behind], rtol=0, atol=TOLERANCE)
    shifts = np.concatenate(([0.0], np.random.default_rng(1).exponential(5.0, 9_999)))
    assert abs(pareto_winner_law(shifts, alpha).sum() - 1.0) < TOLERANCE


BOTH_LAWS = pytest.mark.parametrize("winner_law", [pareto_winner_law, frechet_winner_law])


@BOTH_LAWS
@pytest.mark.parametrize("arms", [1, 2, 5, 64, 10_000])
@pytest.mark.parametrize("alpha", [*ALPHAS, 1e6])
def test_equal_arms_share_equally(winner_law: WinnerLaw, alpha: float, arms: int) -> None:
    law = winner_law(np.zeros(arms), alpha)
    np.testing.assert_allclose(law, np.full(arms, 1 / arms), rtol=1e-11, atol=0)


SHIFTS = st.lists(
    st.one_of(st.just(0.0), st.floats(0.0, 10.0), st.floats(-12.0, 12.0).map(lambda x: 10.0**x)),
    min_size=1,
    max_size=40,
)


@BOTH_LAWS
@settings(deadline=None)
@given(values=SHIFTS, alpha=st.floats(1.01, 30.0))
def test_the_law_falls_with_the_shift(winner_law: WinnerLaw, values: list[float], alpha: float) -> None:
    law = winner_law(np.array([0.0, *sorted(values)]), alpha)
    assert abs(law.sum() - 1.0) < TOLERANCE
    assert (law >= 0.0).all()
    assert (np.diff(law) <= TOLERANCE).all()


@pytest.mark.parametrize("family", ["pareto", "frechet"])
@pytest.mark.parametrize("alpha", ALPHAS)
def test_twin_integral_agrees(alpha: float, family: str) -> None:
    # The twins of FTPL use this integral, so it is compared with the kernel at distinct shifts.
    shifts = np.concatenate(([0.0], 0.05 * 1.4 ** np.arange(11.0)))
    law = winner_law(shifts, alpha, family == "frechet")
    np.testing.assert_allclose(leader_law_by_quad(shifts, alpha, family), law, rtol=0, atol=TOLERANCE)


BETAS: dict[str, list[tuple[float, float]]] = {
    "fractions": [(1.3, 1.7), (2.2, 1.1), (1.0, 4.5)],
    "alike": [(12.5, 30.25), (13.0, 30.0), (12.0, 31.0)],
    "narrow within wide": [(1.0, 1.0), (3000.0, 5000.0), (2.0, 5.0)],
    "at the ends": [(1.0, 900.0), (1.0, 1200.0), (800.0, 1.0)],
}


def law_by_quad(pairs: list[tuple[float, float]]) -> list[float]:
    def integrand(x: float, i: int) -> float:
        a, b = pairs[i]
        constant = math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b)
        value = math.exp(constant + (a - 1) * math.log(x) + (b - 1) * math.log1p(-x))
        return value * math.prod(float(betainc(d, c, 1 - x)) for j, (c, d) in enumerate(pairs) if j != i)

    marks = {0.0, 1.0}
    for a, b in pairs:
        width = math.sqrt(a * b / (a + b + 1)) / (a + b)
        marks |= {mark for k in (-6, -2, 0, 2, 6) if 0 < (mark := a / (a + b) + k * width) < 1}
    pieces = list(pairwise(sorted(marks)))
    return [
        math.fsum(quad(integrand, *piece, args=(i,), epsabs=1e-13, epsrel=1e-11)[0] for piece in pieces)
        for i in range(len(pairs))
    ]


@pytest.mark.parametrize("name", BETAS)
def test_the_law_of_betas_is_the_integral(name: str) -> None:
    pairs = np.array(BETAS[name])
    law = smallest_beta_law(pairs[:, 0], pairs[:, 1])
    np.testing.assert_allclose(law, law_by_quad(BETAS[name]), rtol=0, atol=1e-11)


@pytest.mark.parametrize(("n", "m"), [(1, 1), (5, 2), (40, 700), (10_000, 3), (1_000_000, 999_000)])
def test_two_arms_that_never_lose_have_a_closed_form(n: int, m: int) -> None:
    # Beta(1, n) is the smallest of n uniforms, so it is below Beta(1, m) with chance n / (n + m).
    law = smallest_beta_law(np.ones(2), np.array([float(n), float(m)]))
    np.testing.assert_allclose(law, [n / (n + m), m / (n + m)], rtol=0, atol=1e-12 if n < 1e5 else 1e-9)


@pytest.mark.parametrize("arms", [1, 2, 5_000])
def test_equal_betas_share_equally(arms: int) -> None:
    law = smallest_beta_law(np.full(arms, 7.5), np.full(arms, 3.25))
    np.testing.assert_allclose(law, np.full(arms, 1 / arms), rtol=1e-12)
