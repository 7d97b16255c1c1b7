"""Draws through strata compared with the exact laws, and the estimate of sum q."""

import math
import zlib

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from decoupled.base.arrays import Floats, Ints, Words
from decoupled.kernels.jit import compiled
from decoupled.kernels.order.tiers import Tiers, move_in_tiers, slot_bits
from decoupled.kernels.random.sampling import pareto_leader
from decoupled.kernels.random.stream import new_stream
from decoupled.kernels.winner_law import pareto_winner_law
from decoupled.policies.strata import surrogate as surrogates_by_rank
from support.statistics import chi_square_p, means_agree
from support.tiered import SHAPES, assert_sorted_as, gaps_of, tiers_from
from support.twins.ftpl import cut_into_strata

DRAWS = 300_000
ETA = 0.7
ARMS = (64, 1000, 5_000)

# The chance that some statistical test below fails on a sound kernel, over random seeds.
FALSE_ALARM = 1e-3
CASES = [(arms, shape, 3.0) for arms in ARMS for shape in SHAPES] + [
    (1000, "borders", 1.4),
    (1000, "geometric", 2.0),
]
COMPARISONS = 4 * len(CASES)
LEVEL = FALSE_ALARM / COMPARISONS

every_case = pytest.mark.parametrize(("arms", "shape", "alpha"), CASES)


def stream_for(*case: object) -> Words:
    return new_stream(np.random.SeedSequence(zlib.crc32(repr(case).encode())))


def scattered(gaps: Floats) -> Tiers:
    """A tiered vector with blocks of many sizes in random places; the arm of a rank is the rank."""
    # Smaller slots than the policy's own, so that even few arms have several.
    tiers = tiers_from(np.full(len(gaps), 5.0), max(slot_bits(len(gaps)) - 3, 1))
    for arm in np.random.default_rng(len(gaps)).permutation(len(gaps)):
        move_in_tiers(tiers, arm, 5.0, 5.0 + gaps[arm])
    assert_sorted_as(tiers, 5.0 + gaps)
    return tiers


def limits(arms: int, alpha: float) -> Floats:
    limit: Floats = np.arange(1.0, arms + 1) ** (-(alpha + 1) / (2 * alpha))
    return limit


def definition(gaps: Floats, alpha: float) -> Floats:
    """Q of the paper's equation (6), by rank."""
    ranks = np.arange(1, len(gaps) + 1)
    q: Floats = np.minimum(1 / (1 + ETA * gaps), ranks ** (-1 / alpha)) ** ((alpha + 1) / 2)
    return q


def surrogate_of(gaps: Floats, alpha: float) -> tuple[surrogates_by_rank.Surrogate, Floats, float]:
    power = (alpha + 1) / (2 * alpha)
    q = surrogates_by_rank.Surrogate(
        scattered(gaps), limits(len(gaps), alpha), 5.0, ETA, 0.5 * (alpha + 1), power, True
    )
    envelope = np.empty(len(gaps))
    strata, whole = surrogates_by_rank.fill_envelope(q, envelope)
    return q, envelope[:strata].copy(), whole


@compiled
def count_ranks(
    counts: Ints,
    draws: int,
    q: surrogates_by_rank.Surrogate,
    envelope: Floats,
    whole: float,
    s: Words,
) -> None:
    for _ in range(draws):
        counts[surrogates_by_rank.draw_rank(q, envelope, whole, s)] += 1


@compiled
def count_leaders(
    counts: Ints, draws: int, tiers: Tiers, eta: float, alpha: float, s: Words
) -> None:
    for _ in range(draws):
        counts[pareto_leader(tiers, eta, alpha, s)] += 1


@compiled
def fill_sums(out: Floats, q: surrogates_by_rank.Surrogate, envelope: Floats, s: Words) -> None:
    for k in range(len(out)):
        out[k] = surrogates_by_rank.draw_sum(q, envelope, s)


@every_case
def test_explored_ranks_and_leaders_have_their_exact_laws(
    arms: int, shape: str, alpha: float
) -> None:
    gaps = gaps_of(shape, arms)
    counts = np.zeros(arms, np.int64)
    count_ranks(counts, DRAWS, *surrogate_of(gaps, alpha), stream_for(arms, shape, alpha))
    law = definition(gaps, alpha)
    assert chi_square_p(counts, law / law.sum()) > LEVEL
    # By stratum, since single ranks at the far end are too rare.
    seen = [each.sum() for each in cut_into_strata(counts.astype(np.float64))]
    assert chi_square_p(seen, [each.sum() / law.sum() for each in cut_into_strata(law)]) > LEVEL
    counts = np.zeros(arms, np.int64)
    count_leaders(
        counts, DRAWS, scattered(gaps), ETA, alpha, stream_for("leader", arms, shape, alpha)
    )
    assert chi_square_p(counts, pareto_winner_law(ETA * gaps, alpha)) > LEVEL


@every_case
def test_the_sum_is_unbiased_and_never_far_above(arms: int, shape: str, alpha: float) -> None:
    gaps = gaps_of(shape, arms)
    q, envelope, whole = surrogate_of(gaps, alpha)
    sums = np.empty(20_000)
    fill_sums(sums, q, envelope, stream_for("sum", arms, shape, alpha))
    expected = definition(gaps, alpha)
    spread = sum(len(each) ** 2 * each.var() for each in cut_into_strata(expected))
    error = np.sqrt(spread / len(sums))
    assert means_agree(
        np.array([sums.mean()]), np.array([expected.sum()]), np.array([error]), LEVEL
    )
    # The spread has an error of its own: 12 % is far outside it for bounded sums, and a rank drawn
    # twice or a stratum that borrows another's draw would double it.
    assert sums.var() == pytest.approx(spread, rel=0.12, abs=1e-12)
    assert (sums >= 1.0).all()
    assert (sums <= whole * (1 + 1e-12)).all()
    assert whole <= surrogates_by_rank.GROWTH * expected.sum() * (1 + 1e-12)


@settings(deadline=None, max_examples=200)
@given(st.lists(st.floats(0.0, 1e9), min_size=1, max_size=60), st.floats(1.01, 20.0))
def test_the_envelope_is_above_q_and_its_sum_is_bounded(
    increments: list[float], alpha: float
) -> None:
    gaps = np.cumsum([0.0, *increments])
    expected = definition(gaps, alpha)
    _, envelope, whole = surrogate_of(gaps, alpha)
    cut = cut_into_strata(expected)
    assert len(envelope) == len(cut)
    np.testing.assert_allclose(envelope, [len(each) * each[0] for each in cut], rtol=1e-10)
    assert whole == pytest.approx(envelope.sum(), rel=1e-12)
    assert whole <= surrogates_by_rank.GROWTH * expected.sum() * (1 + 1e-9)


def test_the_bound_is_nearly_reached() -> None:
    # A q that falls to nothing right after the first rank of a long stratum.
    last = int(np.cumsum([len(each) for each in cut_into_strata(np.zeros(5000))])[-3])
    _, _, whole = surrogate_of(np.where(np.arange(5000) > last, 1e12, 0.0), 1e6)
    q = definition(np.where(np.arange(5000) > last, 1e12, 0.0), 1e6)
    assert 1.25 < whole / q.sum() <= surrogates_by_rank.GROWTH


@pytest.mark.parametrize("arms", [2, 3, 4, 5, 6, 9, 100])
def test_the_largest_uniform_is_no_trap(arms: int) -> None:
    # The words 0, 2^64 - 1 give the uniform 1.
    q, envelope, whole = surrogate_of(np.linspace(0, 3, arms), 3.0)
    stream = np.array([0, 2**64 - 1], np.uint64)
    assert 0 <= surrogates_by_rank.draw_rank(q, envelope, whole, stream) < arms
    stream = np.array([0, 2**64 - 1], np.uint64)
    assert 1.0 <= surrogates_by_rank.draw_sum(q, envelope, stream) <= whole


@pytest.mark.parametrize("power", [0.51, 2 / 3, 0.9, 1 - 1e-7])
def test_sums_of_powers_are_exact(power: float) -> None:
    limit = np.arange(1.0, 200_001) ** -power
    for first, end in (
        (0, 1),
        (0, 3),
        (5, 40),
        (23, 30),
        (24, 29),
        (0, 1000),
        (100, 101),
        (777, 200_000),
    ):
        assert surrogates_by_rank.sum_of_powers(limit, power, first, end) == pytest.approx(
            math.fsum(limit[first:end]), rel=3e-15
        )


@given(
    levels=st.lists(st.integers(0, 6), min_size=2, max_size=300),
    alpha=st.sampled_from([1.4, 2.0, 3.0]),
    spacing=st.sampled_from([0.01, 0.5, 4.0]),
)
@settings(deadline=None, max_examples=60)
def test_ties_share_evenly(levels: list[int], alpha: float, spacing: float) -> None:
    gaps = np.sort(np.array(levels) - min(levels)) * spacing
    tiers, q = scattered(gaps), definition(gaps, alpha)
    power = (alpha + 1) / (2 * alpha)
    at = surrogates_by_rank.Surrogate(
        tiers, limits(len(gaps), alpha), 5.0, ETA, 0.5 * (alpha + 1.0), power, True
    )
    for rank in range(0, len(gaps), 7):
        tied = np.flatnonzero(5.0 + gaps == 5.0 + gaps[rank])
        first, end = surrogates_by_rank.tie_at(at, rank)
        assert (first, end) == (tied[0], tied[-1] + 1)
        assert surrogates_by_rank.shared_surrogate(at, first, end) == pytest.approx(
            q[tied].mean(), rel=1e-12
        )
