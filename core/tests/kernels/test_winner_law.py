"""The perturbed leader's probabilities, compared with integrals, and the number of draws until it
wins again.
"""

import math
import zlib
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

from decoupled.base.arrays import Floats, Ints, Words
from decoupled.kernels.jit import compiled
from decoupled.kernels.random.sampling import frechet_leader, pareto_leader
from decoupled.kernels.random.stream import new_stream
from decoupled.kernels.winner_law import (
    frechet_winner_law,
    pareto_winner_law,
    smallest_beta_law,
    winner_law,
)
from decoupled.policies.coupled_ftpl import draws_until_win
from support.integrals import integral
from support.statistics import chi_square_p, means_agree
from support.twins.coupled import CoupledFTPLTwin, leader_law_by_quad

ALPHAS = (1.05, 1.3, 2.0, 3.0, 5.5, 20.0)
TOLERANCE = 1e-12
WinnerLaw: TypeAlias = Callable[[Floats, float], Floats]

# Shifts and how many arms have each; few distinct ones keep the slow integral affordable at 64
# arms.
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
    exact = [
        float(integral(shifts, alpha, arm, family, counts=counts)) for arm in range(len(shifts))
    ]
    law = winner_law(expanded(GROUPS[name]), alpha, family == "frechet")
    np.testing.assert_allclose(law, np.repeat(exact, counts), rtol=0, atol=TOLERANCE)


@pytest.mark.parametrize("alpha", ALPHAS)
def test_two_arms_have_a_closed_form_and_ten_thousand_sum_to_one(alpha: float) -> None:
    for shift in (0.0, 1e-9, 0.3, 1.0, 20.0, 1e6, 1e12):
        # The integral of alpha s^(2 alpha - 1) (1 + shift s)^-(alpha + 1) over [0, 1] is half of a
        # 2F1.
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
def test_the_law_falls_with_the_shift(
    winner_law: WinnerLaw, values: list[float], alpha: float
) -> None:
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
    np.testing.assert_allclose(
        leader_law_by_quad(shifts, alpha, family), law, rtol=0, atol=TOLERANCE
    )


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
        return value * math.prod(
            float(betainc(d, c, 1 - x)) for j, (c, d) in enumerate(pairs) if j != i
        )

    marks = {0.0, 1.0}
    for a, b in pairs:
        width = math.sqrt(a * b / (a + b + 1)) / (a + b)
        marks |= {mark for k in (-6, -2, 0, 2, 6) if 0 < (mark := a / (a + b) + k * width) < 1}
    pieces = list(pairwise(sorted(marks)))
    return [
        math.fsum(
            quad(integrand, *piece, args=(i,), epsabs=1e-13, epsrel=1e-11)[0] for piece in pieces
        )
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
    np.testing.assert_allclose(
        law, [n / (n + m), m / (n + m)], rtol=0, atol=1e-12 if n < 1e5 else 1e-9
    )


@pytest.mark.parametrize("arms", [1, 2, 5_000])
def test_equal_betas_share_equally(arms: int) -> None:
    law = smallest_beta_law(np.full(arms, 7.5), np.full(arms, 3.25))
    np.testing.assert_allclose(law, np.full(arms, 1 / arms), rtol=1e-12)


RANKED = np.array([2.0, 2.0, 2.3, 3.1, 5.0])
ETA = 0.9
DRAWS = 200_000
KINDS = [
    ("frechet", 2.0),
    ("frechet", 1.6),
    ("pareto", 1.6),
]  # powers written out, and by logarithms
CASES = [(*kind, conditional) for kind in KINDS for conditional in (False, True)]
every_case = pytest.mark.parametrize(("perturbation", "alpha", "conditional"), CASES)

# With random seeds, some test below would fail on a sound kernel with probability 1e-3. In each
# case five arms are counted, five capped and three unbiased means taken, and two arms are drawn
# naively.
LEVEL = 1e-3 / (len(CASES) * (len(RANKED) * 2 + 1 + 2) + 2 * len(KINDS))


def law_of(perturbation: str, alpha: float, ranked: Floats = RANKED) -> Floats:
    law = pareto_winner_law if perturbation == "pareto" else frechet_winner_law
    return law(ETA * (ranked - ranked[0]), alpha)


def stream_for(*case: object) -> Words:
    """Every case has its own random numbers, the same in every process."""
    return new_stream(np.random.SeedSequence(zlib.crc32(repr(case).encode())))


@compiled
def fill_draws(
    out: Floats,
    ranked: Floats,
    rank: int,
    among: int,
    alpha: float,
    pareto: bool,
    cap: float,
    words: Words,
) -> None:
    for k in range(len(out)):
        out[k] = draws_until_win(ranked, rank, among, 0.9, alpha, pareto, cap, words)


@compiled
def play(
    out: Floats,
    arms: Ints,
    ranked: Floats,
    alpha: float,
    pareto: bool,
    conditional: bool,
    words: Words,
) -> None:
    for k in range(len(out)):
        if pareto:
            rank = pareto_leader(ranked, 0.9, alpha, words)
        else:
            rank = frechet_leader(ranked, 0.9, alpha, words)
        arms[k] = rank
        out[k] = draws_until_win(
            ranked, rank, rank + 1 if conditional else 1, 0.9, alpha, pareto, np.inf, words
        )


def counted(perturbation: str, alpha: float, rank: int, among: int, cap: float) -> Floats:
    out = np.empty(DRAWS)
    words = stream_for(perturbation, alpha, rank, among, cap)
    fill_draws(out, RANKED, rank, among, alpha, perturbation == "pareto", cap, words)
    return out


@pytest.mark.slow
@every_case
def test_the_count_is_geometric(perturbation: str, alpha: float, conditional: bool) -> None:
    for rank, w in enumerate(law_of(perturbation, alpha)):
        among = rank + 1 if conditional else 1
        chance = among * w
        counts = np.bincount(counted(perturbation, alpha, rank, among, np.inf).astype(np.int64))
        numbers = np.arange(1, len(counts))
        geometric = chance * (1 - chance) ** (numbers - 1)
        rest = (1 - chance) ** (len(counts) - 1)  # beyond the largest that was seen
        assert counts[0] == 0
        assert chi_square_p([*counts[1:], 0], [*geometric, rest]) > LEVEL


@pytest.mark.slow
@every_case
def test_a_cap_brings_the_bias_of_the_formula(
    perturbation: str, alpha: float, conditional: bool
) -> None:
    cap = 3
    for rank, w in enumerate(law_of(perturbation, alpha)):
        among = rank + 1 if conditional else 1
        chance = among * w
        draws = counted(perturbation, alpha, rank, among, cap)
        assert draws.max() == cap
        expected = (1 - (1 - chance) ** cap) / chance
        assert means_agree(
            np.array(draws.mean()), np.array(expected), draws.std() / np.sqrt(DRAWS), LEVEL
        )
        # The bias is large, so this tests the formula.
        assert rank < 4 or expected < 0.75 / chance


@pytest.mark.parametrize("conditional", [False, True])
def test_a_cap_of_one_draws_nothing(conditional: bool) -> None:
    words = stream_for("one")
    before = words.tolist()
    assert draws_until_win(RANKED, 4, 5 if conditional else 1, ETA, 2.0, False, 1.0, words) == 1.0
    assert words.tolist() == before


@pytest.mark.slow
@every_case
def test_weights_estimate_losses_without_bias(
    perturbation: str, alpha: float, conditional: bool
) -> None:
    # Sums of 1[I = i] * W over real plays, whose mean is 1 for every arm and variance (2 - s w) / w
    # - 1.
    law, plays = law_of(perturbation, alpha), 400_000
    draws, arms = np.empty(plays), np.empty(plays, np.int64)
    words = stream_for("plays", perturbation, alpha, conditional)
    play(draws, arms, RANKED, alpha, perturbation == "pareto", conditional, words)
    among = np.arange(1, len(RANKED) + 1) if conditional else np.ones(len(RANKED))
    mean = np.bincount(arms, weights=among[arms] * draws, minlength=len(RANKED)) / plays
    error = np.sqrt(((2 - among * law) / law - 1) / plays)
    assert means_agree(mean, np.ones(len(RANKED)), error, LEVEL)
    # In any state the expected number of draws is K, or the harmonic number of K.
    expected = (1 / among).sum() if conditional else len(RANKED)
    assert means_agree(
        np.array(draws.mean()), np.array(expected), draws.std() / np.sqrt(plays), LEVEL
    )


@every_case
def test_the_definition_says_the_same(perturbation: str, alpha: float, conditional: bool) -> None:
    # Draws every arm and makes the swap, in plain NumPy: the chance of winning is s * w.
    twin = CoupledFTPLTwin(
        5, perturbation, "conditional" if conditional else "geometric", alpha, ETA
    )
    twin.estimates = RANKED[[3, 0, 4, 1, 2]]
    twin.c = ETA / 5 ** (1 / alpha - 1 / 2)
    generator = np.random.default_rng(zlib.crc32(repr((perturbation, alpha, conditional)).encode()))
    law, trials = law_of(perturbation, alpha), 6_000
    for arm, rank in ((0, 3), (4, 2)):
        wins = sum(twin.wins_again(arm, generator) for _ in range(trials))
        chance = law[rank] * (rank + 1 if conditional else 1)
        assert chi_square_p([wins, trials - wins], [chance, 1 - chance]) > LEVEL


@pytest.mark.parametrize("perturbation", ["frechet", "pareto"])
@pytest.mark.parametrize("among", [1, 3])
def test_an_arm_out_of_reach_ends_at_the_cap(perturbation: str, among: int) -> None:
    ranked = np.array([0.0, 1e14, 1e14])
    draws = draws_until_win(
        ranked, 2, among, ETA, 2.0, perturbation == "pareto", 500.0, stream_for(2)
    )
    assert draws == 500.0
