"""Frechet perturbations: the exact law compared with integrals in twenty digits, and draws with the law."""

import zlib
from typing import Any

import mpmath  # type: ignore[import-untyped]
import numpy as np
import pytest

from decoupled.base.arrays import Floats, Ints, Words
from decoupled.kernels.jit import compiled
from decoupled.kernels.laws.winner_law import frechet_winner_law
from decoupled.kernels.random.sampling import frechet_leader
from decoupled.kernels.random.stream import new_stream
from support.statistics import chi_square_p
from support.twins.coupled import leader_law_by_quad

ALPHAS = (1.05, 2.0, 3.0, 20.0)
TOLERANCE = 1e-12

# Shifts and how many arms have each; few distinct ones keep the slow integral affordable at 64 arms.
GROUPS: dict[str, list[tuple[float, int]]] = {
    "2 far apart": [(0.0, 1), (1e12, 1)],
    "5 over twelve orders": [(0.0, 1), (1e3, 1), (1e6, 1), (1e9, 1), (1e12, 1)],
    "64 in blocks": [(0.0, 20), (0.5, 20), (3.0, 23), (1e12, 1)],
    "64 one ahead": [(0.0, 1), (2.0, 63)],
}


def chance_by_mpmath(groups: list[tuple[float, int]], alpha: float, mine: float) -> float:
    """Integral of f(z + mine) * prod F(z + other) over z > 0, in the variable s = log z."""

    def integrand(s: Any) -> Any:
        z = mpmath.exp(s)
        hazard = sum(count * (z + mpmath.mpf(shift)) ** -alpha for shift, count in groups)
        return z * alpha * (z + mpmath.mpf(mine)) ** (-alpha - 1) * mpmath.exp(-hazard)

    with mpmath.workdps(20):
        bends = {mpmath.log(shift) for shift, _ in groups if 1e-4 < shift < 1e5}
        ends = {mpmath.mpf(-4) / alpha, *(mpmath.mpf(k) / alpha for k in (-1, 0, 1, 3, 6, 12, 24, 48))}
        value, error = mpmath.quad(integrand, sorted(bends | ends), error=True)
    assert error < TOLERANCE / 100
    return float(value)


@pytest.mark.parametrize("name", GROUPS)
@pytest.mark.parametrize("alpha", [1.05, 3.0])
def test_law_is_the_integral(alpha: float, name: str) -> None:
    groups = GROUPS[name]
    sizes = [count for _, count in groups]
    exact = [chance_by_mpmath(groups, alpha, shift) for shift, _ in groups]
    law = frechet_winner_law(np.repeat([shift for shift, _ in groups], sizes), alpha)
    np.testing.assert_allclose(law, np.repeat(exact, sizes), rtol=0, atol=TOLERANCE)


@pytest.mark.parametrize("alpha", ALPHAS)
def test_twin_integral_agrees(alpha: float) -> None:
    # The twins of FTPL use this integral, so it is compared with the kernel at distinct shifts.
    shifts = np.concatenate(([0.0], 0.05 * 1.4 ** np.arange(11.0)))
    law = frechet_winner_law(shifts, alpha)
    np.testing.assert_allclose(leader_law_by_quad(shifts, alpha, "frechet"), law, rtol=0, atol=TOLERANCE)


# Draws

DRAWS = 300_000
ETA = 0.7
SPREADS: dict[str, Floats] = {
    "two": np.array([0.0, 0.5]),
    "equal": np.zeros(64),
    "one ahead": np.concatenate(([0.0], np.full(63, 3.0))),
    "geometric": np.concatenate(([0.0], 0.01 * 1.5 ** np.arange(1, 30.0))),
    "two blocks": np.repeat([0.0, 0.8], 20),
}
CASES = [(alpha, kind) for alpha in (1.2, 2.0, 5.5) for kind in SPREADS]
# With random seeds, some chi-square test below would fail on a sound kernel with probability 1e-3.
LEVEL = 1e-3 / len(CASES)


@compiled
def count_leaders(counts: Ints, draws: int, ranked: Floats, eta: float, alpha: float, words: Words) -> None:
    for _ in range(draws):
        counts[frechet_leader(ranked, eta, alpha, words)] += 1


def leaders(ranked: Floats, alpha: float, draws: int = DRAWS) -> Ints:
    seed = zlib.crc32(repr((ranked.tolist(), alpha)).encode())
    counts = np.zeros(len(ranked), np.int64)
    count_leaders(counts, draws, ranked, ETA, alpha, new_stream(np.random.SeedSequence(seed)))
    assert counts.sum() == draws
    return counts


@pytest.mark.parametrize(("alpha", "kind"), CASES)
def test_leader_has_its_exact_law(alpha: float, kind: str) -> None:
    gaps = SPREADS[kind]
    # Estimates that start at 5 instead of 0 show whether gaps are relative to the smallest.
    assert chi_square_p(leaders(5.0 + gaps, alpha), frechet_winner_law(ETA * gaps, alpha)) > LEVEL


@pytest.mark.parametrize("alpha", [1.2, 2.0])
def test_the_largest_uniform_is_no_trap(alpha: float) -> None:
    # The words 0, 2^64 - 1 give the uniform 1: an exponential of 0, and an infinite Frechet draw.
    assert frechet_leader(np.zeros(5), ETA, alpha, np.array([0, 2**64 - 1], np.uint64)) == 0
