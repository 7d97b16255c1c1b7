"""Draws compared with their exact laws, 300,000 at a time."""

import math
import zlib
from typing import cast

import numpy as np
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st

import decoupled as dc
from decoupled.base.arrays import Floats, Ints, Words
from decoupled.kernels.jit import compiled
from decoupled.kernels.random import sampling
from decoupled.kernels.random.stream import new_stream, uniform
from decoupled.kernels.winner_law import pareto_winner_law, winner_law
from support.statistics import chi_square_p, means_agree

DRAWS = 300_000
ETA = 0.7
ALPHAS = (1.2, 2.0, 3.0, 5.5)
ARMS = (2, 5, 64)
SPREADS = ("equal", "one ahead", "geometric", "near ties", "two blocks")
WEIGHTS = ("random", "zeros inside", "zeros at the ends", "nine orders", "one alone")

# The chance that some chi-square test below fails on a sound kernel, over random seeds.
FALSE_ALARM = 1e-3
# With many arms a draw takes longest, and two exponents do.
LEADERS = [
    ("pareto", alpha, arms) for alpha in ALPHAS for arms in ARMS if arms < 64 or alpha in (1.2, 3.0)
]
LEADERS += [("frechet", alpha, arms) for alpha, arms in ((1.2, 64), (2.0, 2), (2.0, 64), (5.5, 5))]
COMPARISONS = len(LEADERS) * len(SPREADS) + len(ARMS) * len(WEIGHTS) + 1
LEVEL = FALSE_ALARM / COMPARISONS


def stream_for(*case: object) -> Words:
    """Every case has its own random numbers, the same in every process."""
    return new_stream(np.random.SeedSequence(zlib.crc32(repr(case).encode())))


def spread(kind: str, arms: int) -> Floats:
    """Gaps in increasing order, the first of them 0."""
    steps = np.arange(arms, dtype=np.float64)
    gaps = {
        "equal": 0 * steps,
        "one ahead": np.where(steps > 0, 3.0, 0.0),
        "geometric": np.where(steps > 0, 0.01 * 1.5 ** np.minimum(steps, 60), 0.0),
        "near ties": 1e-9 * steps,
        "two blocks": np.where(steps < arms // 2, 0.0, 0.8),
    }
    return gaps[kind]


@compiled
def count_paretos(
    counts: Ints, draws: int, ranked: Floats, eta: float, alpha: float, stream: Words
) -> None:
    for _ in range(draws):
        counts[sampling.pareto_leader(ranked, eta, alpha, stream)] += 1


@compiled
def count_frechets(
    counts: Ints, draws: int, ranked: Floats, eta: float, alpha: float, stream: Words
) -> None:
    for _ in range(draws):
        counts[sampling.frechet_leader(ranked, eta, alpha, stream)] += 1


COUNT = {"pareto": count_paretos, "frechet": count_frechets}


@pytest.mark.parametrize("kind", SPREADS)
@pytest.mark.parametrize(("family", "alpha", "arms"), LEADERS)
def test_perturbed_leader_has_its_exact_law(
    family: str, alpha: float, arms: int, kind: str
) -> None:
    gaps = spread(kind, arms)
    counts = np.zeros(arms, np.int64)
    # Estimates that start at 5 instead of 0 show whether gaps are relative to the smallest.
    COUNT[family](counts, DRAWS, 5.0 + gaps, ETA, alpha, stream_for(alpha, arms, kind))
    assert counts.sum() == DRAWS
    assert chi_square_p(counts, winner_law(ETA * gaps, alpha, family == "frechet")) > LEVEL


def test_a_thousand_arms_are_skipped_over_fairly() -> None:
    arms = 1000
    counts = np.zeros(arms, np.int64)
    count_paretos(counts, DRAWS, np.zeros(arms), ETA, 3.0, stream_for("thousand"))
    assert chi_square_p(counts, np.full(arms, 1 / arms)) > LEVEL


@pytest.mark.parametrize("alpha", ALPHAS)
def test_an_arm_far_ahead_always_leads_and_the_largest_uniform_is_no_trap(alpha: float) -> None:
    # The others win with a chance of at most 64 * 1e15 ** -1.2, once in 10^16 draws.
    counts = np.zeros(64, np.int64)
    ranked = np.concatenate(([0.0], np.full(63, 1e15)))
    count_paretos(counts, 100_000, ranked, 1.0, alpha, stream_for("far", alpha))
    assert counts[0] == 100_000
    # The words 0, 2^64 - 1 give the uniform 1: a Pareto draw of 1, which any arm with no gap beats,
    # and an exponential of 0, whose Frechet draw is infinite.
    assert (
        0
        <= sampling.pareto_leader(np.zeros(5), ETA, alpha, np.array([0, 2**64 - 1], np.uint64))
        < 5
    )
    assert (
        sampling.frechet_leader(np.zeros(5), ETA, alpha, np.array([0, 2**64 - 1], np.uint64)) == 0
    )


def weights_of(kind: str, arms: int) -> Floats:
    weights = np.random.default_rng(arms).uniform(0.2, 1.0, arms)
    if kind == "zeros inside":
        weights[1 : arms - 1 : 2] = 0.0
    elif kind == "zeros at the ends":
        weights[0] = 0.0
        weights[-1] = 0.0 if arms > 2 else 1.0
    elif kind == "nine orders":
        weights *= np.logspace(0, -9, arms)
    elif kind == "one alone":
        weights[:-1] = 0.0
    return weights


@compiled
def count_categories(
    counts: Ints, draws: int, weights: Floats, weight_sum: float, stream: Words
) -> None:
    for _ in range(draws):
        counts[sampling.categorical(weights, weight_sum, stream)] += 1


@pytest.mark.parametrize("kind", WEIGHTS)
@pytest.mark.parametrize("arms", ARMS)
def test_categorical_has_its_exact_law(arms: int, kind: str) -> None:
    weights = weights_of(kind, arms)
    counts = np.zeros(arms, np.int64)
    count_categories(counts, DRAWS, weights, sampling.total(weights), stream_for(arms, kind))
    assert counts.sum() == DRAWS
    assert not counts[weights == 0].any()
    assert chi_square_p(counts, weights / weights.sum()) > LEVEL


positive_somewhere = st.lists(
    st.one_of(st.just(0.0), st.floats(1e-300, 1e300)), min_size=1, max_size=30
).filter(any)


@settings(deadline=None)
@given(positive_somewhere, st.integers(0, 2**32), st.sampled_from((1.0, 1.0 + 1e-9, 1.1)))
def test_no_index_of_weight_zero_is_drawn(values: list[float], seed: int, excess: float) -> None:
    # A sum that is too large leaves a remainder after the last index, as rounding may.
    weights = np.array(values)
    for words in (new_stream(np.random.SeedSequence(seed)), np.array([0, 2**64 - 1], np.uint64)):
        assert weights[sampling.categorical(weights, sampling.total(weights) * excess, words)] > 0.0


def test_categorical_inverts_the_cumulative_sum_and_failures_the_logarithm() -> None:
    weights = np.array([0.25, 0.0, 0.5, 0.25])
    stream, same = stream_for("inverse"), stream_for("inverse")
    for _ in range(1000):
        expected = int(np.searchsorted([0.25, 0.25, 0.75, 1.0], uniform(same)))
        assert sampling.categorical(weights, 1.0, stream) == expected
    # Both invert the same law; rounding moves a mark across a power once in 1e13.
    rng = np.random.default_rng(0)
    for most in (2, 8, 9, 16, 17, 32, 33, 64, 65, 1_000):
        for mark, chance in rng.uniform(0.0, (1.0, 0.2), (200, 2)):
            expected = int(math.log(mark) / math.log1p(-chance))
            assert min(sampling.failures(mark, chance, most), most - 1) == min(expected, most - 1)


def test_failures_from_two_bounds_are_those_of_the_logarithms() -> None:
    # Beside random marks, those a rounding error away from where the number of failures changes.
    rng = np.random.default_rng(1)
    for rarity in (5.0001, 5.5, 7.0, 12.0, 100.0, 1e4, 1e9):
        step = math.log1p(-1.0 / rarity)
        edges = np.exp(step * rng.integers(1, 300, 100))
        marks = np.concatenate(
            (rng.uniform(0.0, 1.0, 300), edges * (1 + 1e-10), edges * (1 - 1e-10), [2.0**-53, 1.0])
        )
        for mark in np.clip(marks, 2.0**-53, 1.0):
            expected = int(math.log(mark) / step)
            for most in (2, 64, 10_000):
                found = sampling.failures_before(float(mark), rarity, most)
                assert min(found, most - 1) == min(expected, most - 1)
    # Here the bounds are far above the largest integer.
    assert sampling.failures_before(1.0, 1e300, 8) <= 8


def test_the_rough_logarithm_keeps_its_error() -> None:
    numbers = np.concatenate((np.linspace(2.0**-53, 2.0, 20_001), 2.0 ** -np.arange(54.0)))
    errors = [abs(sampling.rough_log(float(each)) - math.log(each)) for each in numbers]
    assert max(errors) < 3e-7  # the bounds allow for 5e-7


@settings(deadline=None)
@given(st.lists(st.floats(0.0, 1e6), max_size=70))
def test_total_is_the_sum(values: list[float]) -> None:
    assert sampling.total(np.array(values, np.float64)) == pytest.approx(
        math.fsum(values), rel=1e-14
    )


@compiled
def fill_pareto(out: Floats, alpha: float, stream: Words) -> None:
    for k in range(len(out)):
        out[k] = sampling.pareto_excess(alpha, stream)


@pytest.mark.parametrize("alpha", [1.1, 2.0, 3.0, 5.5, 1e8])
def test_pareto_draws_have_their_law(alpha: float) -> None:
    excess = np.empty(200_000)
    fill_pareto(excess, alpha, new_stream(np.random.SeedSequence(int(alpha))))
    # (1 + excess) ** -alpha is uniform. Five tests, each at 1e-5.
    uniforms = np.exp(-alpha * np.log1p(excess))
    assert scipy.stats.kstest(uniforms, "uniform").pvalue > 1e-5
    assert (
        scipy.stats.kstest(uniforms**1.02, "uniform").pvalue < 1e-5
    )  # it would notice 2 % in alpha


# Far below the level of any test, so that a rejection is not luck.
CERTAIN = 1e-9
GUARDED_DRAWS = 300_000
GUARDED_LAW = pareto_winner_law(0.7 * (0.05 * 1.5 ** np.arange(8.0) - 0.05), 3.0)
FIRST = np.eye(8)[0]


def trained() -> dc.Learner:
    learner = dc.FTPL().start(arms=5, seed=25)
    for arm, loss in enumerate([0.1, 0.3, 0.6, 0.2, 0.9]):
        learner.replay([(arm, 0.2, loss)])
    return learner


@pytest.mark.parametrize(("astray", "sound"), [(0.0, True), (0.01, False)])
def test_one_draw_in_a_hundred_gone_astray_is_caught(astray: float, sound: bool) -> None:
    counts = np.random.default_rng(22).multinomial(
        GUARDED_DRAWS, (1.0 - astray) * GUARDED_LAW + astray * FIRST
    )
    found = chi_square_p(counts, GUARDED_LAW)
    assert found > 1e-3 if sound else found < CERTAIN


def test_two_draws_from_one_uniform_and_one_of_weight_zero_are_caught() -> None:
    # Each draw has its law, but they are correlated; only the table of pairs shows it.
    learner = trained()
    w, p = learner.exploitation_probabilities(), learner.exploration_probabilities()
    shared = np.random.default_rng(26).random(50_000)
    exploit = np.minimum(np.searchsorted(np.cumsum(w), shared), 4)
    explore = np.minimum(np.searchsorted(np.cumsum(p), shared), 4)
    counts = np.zeros((5, 5))
    np.add.at(counts, (exploit, explore), 1)
    assert chi_square_p(counts.sum(axis=0), p) > 1e-3
    assert chi_square_p(counts, np.outer(w, p)) < CERTAIN
    assert chi_square_p([999_999, 1], [1.0, 0.0]) == 0.0


@pytest.mark.parametrize("late", [False, True])
def test_late_feedback_weighed_by_the_present_state_is_caught(late: bool) -> None:
    learner = trained()
    losses = np.array([0.2, 0.3, 1.0, 0.7, 0.5])
    then = learner.exploration_probabilities()
    counts = np.bincount(
        [cast(int, each.explore) for each in learner.decide(count=20_000)], minlength=5
    )
    learner.replay([(arm, 0.2, 0.2 * arm) for arm in range(5)])
    now = learner.exploration_probabilities()
    mean = losses * counts / (now if late else then) / counts.sum()
    error = losses * np.sqrt((1.0 / then - 1.0) / counts.sum())
    assert means_agree(mean, losses, error, CERTAIN) is not late
