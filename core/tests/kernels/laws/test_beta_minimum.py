"""The smallest Beta variable, compared with closed forms, exact fractions and plain integrals."""

import math
from itertools import pairwise

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import betainc

from decoupled.kernels.laws.winner_law import smallest_beta_law

CASES: dict[str, list[tuple[float, float]]] = {
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


@pytest.mark.parametrize("name", CASES)
def test_law_is_the_integral(name: str) -> None:
    pairs = np.array(CASES[name])
    law = smallest_beta_law(pairs[:, 0], pairs[:, 1])
    np.testing.assert_allclose(law, law_by_quad(CASES[name]), rtol=0, atol=1e-11)


@pytest.mark.parametrize(("n", "m"), [(1, 1), (5, 2), (40, 700), (10_000, 3), (1_000_000, 999_000)])
def test_two_arms_that_never_lose_have_a_closed_form(n: int, m: int) -> None:
    # Beta(1, n) is the smallest of n uniforms, so it is below Beta(1, m) with chance n / (n + m).
    law = smallest_beta_law(np.ones(2), np.array([float(n), float(m)]))
    np.testing.assert_allclose(law, [n / (n + m), m / (n + m)], rtol=0, atol=1e-12 if n < 1e5 else 1e-9)


@pytest.mark.parametrize("arms", [1, 2, 5_000])
def test_equal_arms_share_equally(arms: int) -> None:
    law = smallest_beta_law(np.full(arms, 7.5), np.full(arms, 3.25))
    np.testing.assert_allclose(law, np.full(arms, 1 / arms), rtol=1e-12)
