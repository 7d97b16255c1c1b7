"""Arms in rank order: every move compared with a full sort by (estimate, arm).

Arms lifted together: the order compared with a full sort by (estimate, arm).
"""

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from decoupled.base.arrays import Floats, Ints
from decoupled.kernels.order.ranked import (
    heap_sort,
    lift_arms,
    move_arm,
    rank_of,
    shift_and_look,
    sort_arms,
)

# Few distinct values, so that most arms are tied.
VALUES = st.sampled_from((0.0, 0.5, 1.0, 1.0 + 2.0**-52, 2.0, 1e12))
START = st.lists(VALUES, min_size=1, max_size=12)
MOVES = st.lists(st.tuples(st.integers(0, 11), VALUES), max_size=40)


def sorted_pairs(estimates: Floats) -> list[tuple[float, int]]:
    return sorted((float(estimate), arm) for arm, estimate in enumerate(estimates))


def ranking_of(estimates: Floats) -> tuple[Floats, Ints]:
    ranked = np.empty(len(estimates))
    order = np.empty(len(estimates), np.int64)
    sort_arms(estimates, ranked, order)
    return ranked, order


def pairs(ranked: Floats, order: Ints) -> list[tuple[float, int]]:
    return [(float(estimate), int(arm)) for estimate, arm in zip(ranked, order, strict=True)]


@settings(deadline=None, max_examples=300)
@given(START, MOVES)
def test_moves_leave_the_order_of_a_full_sort(start: list[float], moves: list[tuple[int, float]]) -> None:
    estimates = np.array(start)
    ranked, order = ranking_of(estimates)
    assert pairs(ranked, order) == sorted_pairs(estimates)
    for number, after in moves:
        arm = number % len(estimates)
        move_arm(ranked, order, arm, estimates[arm], after)
        estimates[arm] = after
        assert pairs(ranked, order) == sorted_pairs(estimates)


@settings(deadline=None)
@given(START, VALUES, st.integers(0, 11))
def test_rank_counts_the_pairs_before(start: list[float], estimate: float, arm: int) -> None:
    estimates = np.array(start)
    before = sum(pair < (estimate, arm) for pair in sorted_pairs(estimates))
    ranked, order = ranking_of(estimates)
    # From any start, as long as all ranks before it do come before.
    assert [rank_of(ranked, order, estimate, arm, start) for start in range(before + 1)] == [before] * (
        before + 1
    )


@pytest.mark.parametrize("arms", [1, 2, 3, 5, 8, 9, 33, 64])
def test_a_gpu_s_sort_and_move_are_the_cpu_s(arms: int) -> None:
    rng = np.random.default_rng(arms)
    for trial in range(60):
        # Every other time with many ties.
        estimates = rng.integers(0, 5, arms).astype(float) if trial % 2 else rng.random(arms)
        ranked, order = np.empty(arms), np.empty(arms, np.int64)
        mine, my_order = np.empty(arms), np.empty(arms, np.int64)
        sort_arms(estimates, ranked, order)
        heap_sort(estimates, mine, my_order)
        assert np.array_equal(mine, ranked)
        assert np.array_equal(my_order, order)
        arm = int(rng.integers(arms))
        after = estimates[arm] + float(rng.integers(-3, 6) if trial % 2 else rng.normal())
        move_arm(ranked, order, arm, estimates[arm], after)
        shift_and_look(mine, my_order, arm, estimates[arm], after)
        assert np.array_equal(mine, ranked)
        assert np.array_equal(my_order, order)


# Few distinct values, so that most arms are tied, some only by rounding.
LIFTED = st.sampled_from((-3.0, 0.0, 0.25, 0.5, 0.5 + 2.0**-53, 0.75, 1.0, 1e12))
LIFTED_ARMS = st.lists(st.tuples(LIFTED, st.booleans()), min_size=1, max_size=12)


@settings(deadline=None, max_examples=500)
@given(LIFTED_ARMS, st.sampled_from((0.25, 0.5, 0.3, 1.0)))
@example([(0.5 + 2.0**-53, True), (0.5, True), (0.75, False)], 0.5)  # two that rounding makes equal
@example([(0.0, True), (0.5, False), (0.0, True), (0.5, False)], 0.5)  # ties across the two kinds
def test_lifted_arms_are_ranked_as_by_a_full_sort(arms: list[tuple[float, bool]], lift: float) -> None:
    estimates = np.array([estimate for estimate, _ in arms])
    lifts = np.array([lift if lifted else 0.0 for _, lifted in arms])
    count = len(arms)
    ranked, order = np.empty(count), np.empty(count, np.int64)
    sort_arms(estimates, ranked, order)
    expected = sorted((float(each), arm) for arm, each in enumerate(estimates + lifts))
    lift_arms(estimates, lifts, ranked, order, np.empty(count), np.empty(count, np.int64))
    assert list(zip(ranked.tolist(), order.tolist(), strict=True)) == expected
    assert estimates[order].tolist() == ranked.tolist()
