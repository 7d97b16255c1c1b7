"""Arms in rank order, one by one, lifted together, and in tiers: every change compared with a full
sort by (estimate, arm).
"""

from collections.abc import Mapping

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
    restore_order,
    shift_and_look,
    sort_arms,
)
from decoupled.kernels.order.tiers import (
    ALONE,
    FEWEST_SLOTS,
    ROOM,
    Tiers,
    arm_at,
    block_of,
    count_of,
    lift_in_tiers,
    move_in_tiers,
    slot_bits,
    value_at,
)
from support.plain_python import as_python
from support.tiered import assert_sorted_as, tiers_from

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
def test_moves_leave_the_order_of_a_full_sort(
    start: list[float], moves: list[tuple[int, float]]
) -> None:
    estimates = np.array(start)
    ranked, order = ranking_of(estimates)
    assert pairs(ranked, order) == sorted_pairs(estimates)
    for number, after in moves:
        arm = number % len(estimates)
        move_arm(ranked, order, arm, estimates[arm], after)
        estimates[arm] = after
        assert pairs(ranked, order) == sorted_pairs(estimates)


@settings(deadline=None, max_examples=300)
@given(START, st.lists(st.lists(st.tuples(st.integers(0, 11), VALUES), max_size=12), max_size=5))
def test_an_order_is_restored_whatever_has_changed(
    start: list[float], changes: list[list[tuple[int, float]]]
) -> None:
    estimates = np.array(start)
    ranked = np.zeros(len(estimates))
    order = np.zeros(len(estimates), np.int64)
    for change in [[], *changes]:
        for number, after in change:
            estimates[number % len(estimates)] = after
        restore_order(estimates, ranked, order)
        assert pairs(ranked, order) == sorted_pairs(estimates)


def test_an_order_is_restored_when_half_of_many_arms_pass_the_others() -> None:
    """So many arms pass so many others that inserting them one by one stops halfway."""
    estimates = np.random.default_rng(1).random(500)
    ranked, order = ranking_of(estimates)
    estimates[::2] += 10.0
    restore_order(estimates, ranked, order)
    assert pairs(ranked, order) == sorted_pairs(estimates)


@settings(deadline=None)
@given(START, VALUES, st.integers(0, 11))
def test_rank_counts_the_pairs_before(start: list[float], estimate: float, arm: int) -> None:
    estimates = np.array(start)
    before = sum(pair < (estimate, arm) for pair in sorted_pairs(estimates))
    ranked, order = ranking_of(estimates)
    # From any start, as long as all ranks before it do come before.
    assert [rank_of(ranked, order, estimate, arm, start) for start in range(before + 1)] == [
        before
    ] * (before + 1)


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
def test_lifted_arms_are_ranked_as_by_a_full_sort(
    arms: list[tuple[float, bool]], lift: float
) -> None:
    estimates = np.array([estimate for estimate, _ in arms])
    lifts = np.array([lift if lifted else 0.0 for _, lifted in arms])
    count = len(arms)
    ranked, order = np.empty(count), np.empty(count, np.int64)
    sort_arms(estimates, ranked, order)
    expected = sorted((float(each), arm) for arm, each in enumerate(estimates + lifts))
    lift_arms(estimates, lifts, ranked, order, np.empty(count), np.empty(count, np.int64))
    assert list(zip(ranked.tolist(), order.tolist(), strict=True)) == expected
    assert estimates[order].tolist() == ranked.tolist()


# As plain Python, which checks every index: they take a quarter of a minute to compile. The
# policies' tests run them as machine code.
move, lift = map(as_python, (move_in_tiers, lift_in_tiers))

# Few distinct values, so that most arms are tied.
TIERED_VALUES = st.sampled_from((0.0, 0.5, 1.0, 1.0 + 2.0**-52, 2.0, 1e12))
TIERED_START = st.lists(TIERED_VALUES, min_size=1, max_size=24)
TIERED_MOVES = st.lists(st.tuples(st.integers(0, 23), TIERED_VALUES), max_size=40)
BITS = st.integers(1, 5)  # from slots of two arms to slots of more than all arms


MOVE = -1  # what to do: move an arm, or lift the first ranks, as many as the number says


def do(
    tiers: Tiers,
    estimates: Floats,
    steps: list[tuple[int, int, float]],
    given: Mapping[int, float] | None = None,
) -> int:
    """Make some steps; then lift the given arms, each by its own amount.

    The largest number of blocks on the way.
    """
    most = 0
    for kind, arm, value in steps:
        if kind == MOVE:
            move(tiers, arm, estimates[arm], value)
            estimates[arm] = value
        else:
            lift_all(tiers, estimates, {int(arm_at(tiers, rank)): value for rank in range(kind)})
        most = max(most, int(tiers.counts[0]))
    lift_all(tiers, estimates, given or {})
    return max(most, int(tiers.counts[0]))


def lift_all(tiers: Tiers, estimates: Floats, lifts: Mapping[int, float]) -> None:
    arms, amounts = np.array(list(lifts), np.int64), np.array(list(lifts.values()))
    lift(
        tiers,
        estimates,
        arms,
        amounts,
        len(lifts),
        np.empty(len(lifts)),
        np.empty(len(lifts), np.int64),
    )


@settings(deadline=None, max_examples=60)
@given(TIERED_START, TIERED_MOVES, BITS)
def test_moves_keep_a_full_sort(
    start: list[float], moves: list[tuple[int, float]], bits: int
) -> None:
    estimates = np.array(start)
    tiers = tiers_from(estimates, bits)
    assert_sorted_as(tiers, estimates)
    for number, after in moves:
        do(tiers, estimates, [(MOVE, number % len(estimates), after)])
        assert_sorted_as(tiers, estimates)


LIFTS = st.lists(
    st.tuples(st.integers(0, 24), st.sampled_from((0.25, 0.5, 0.3, 1.0, 1e9))), max_size=12
)


@settings(deadline=None, max_examples=60)
@given(TIERED_START, LIFTS, BITS)
@example([1.0 + 2.0**-52, 1.0, 2.0, 2.0], [(2, 1e9)], 1)  # two that rounding makes equal
def test_first_ranks_rise_together(
    start: list[float], lifts: list[tuple[int, float]], bits: int
) -> None:
    estimates = np.array(start)
    tiers = tiers_from(estimates, bits)
    for number, lift in lifts:
        count = min(number, len(estimates))
        expected = estimates.copy()
        expected[np.lexsort((np.arange(len(estimates)), estimates))[:count]] += lift
        do(tiers, estimates, [(count, 0, lift)])
        assert estimates.tolist() == expected.tolist()
        assert_sorted_as(tiers, estimates)


@settings(deadline=None, max_examples=200)
@given(TIERED_START, st.lists(st.tuples(st.integers(0, 23), TIERED_VALUES), max_size=12), BITS)
def test_any_arms_may_be_lifted(
    start: list[float], lifts: list[tuple[int, float]], bits: int
) -> None:
    # As with late feedback, when the arms that its decision covered have other ranks.
    estimates = np.array(start)
    by_arm = {number % len(estimates): lift for number, lift in lifts}
    tiers = tiers_from(estimates, bits)
    expected = estimates.copy()
    expected[list(by_arm)] += list(by_arm.values())
    do(tiers, estimates, [], by_arm)
    assert estimates.tolist() == expected.tolist()
    assert_sorted_as(tiers, estimates)


def wandering(arms: int, distinct: int, rng: np.random.Generator) -> list[tuple[int, int, float]]:
    """Random arms get random estimates, of `distinct` values, one in eight far below all others.

    And the first ranks are lifted now and then.
    """
    steps = []
    for arm, value, low, lift, count in rng.integers(
        0, [arms, distinct, 8, 8, min(64, arms) + 1], (400, 5)
    ):
        steps.append((MOVE, arm, 0.5 * value - (distinct if low == 0 else 0)))
        if lift == 0:
            steps.append((count, 0, 0.5))
    return steps


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arms", "bits"), [(1000, None), (5000, None), (1024, 5), (257, 8), (65, 1)]
)
def test_many_moves_leave_the_order_of_a_full_sort(arms: int, bits: int | None) -> None:
    rng = np.random.default_rng(arms)
    estimates = np.zeros(arms)
    tiers = tiers_from(estimates, bits)
    for distinct in (3, 100, 10**9) * 2:
        most = do(tiers, estimates, wandering(arms, distinct, rng))
        assert_sorted_as(tiers, estimates)
        assert most <= len(tiers.slots)


@pytest.mark.parametrize("arms", [1, 2, 64, 65, 100, 384, 1000, 5000, 10**6])
def test_slots_are_small_parts_and_near_the_root_of_very_many(arms: int) -> None:
    slot = 2 ** slot_bits(arms)
    assert slot <= ROOM * arms
    if arms <= ALONE:
        assert slot >= arms
    else:
        # The largest number of blocks, with one more for a split, and their slots: see the head of
        # order/tiers.py.
        assert FEWEST_SLOTS * slot <= arms
        assert (2 * arms // (3 * slot // 4 + 1) + 2) * slot <= ROOM * arms
        assert slot <= max(256, arms**0.5)


def test_ranks_are_found_however_old_the_guide_is() -> None:
    tiers = tiers_from(np.arange(5000.0))
    blocks = int(tiers.counts[0])
    right = [block_of(tiers, rank) for rank in range(0, 5000, 7)]
    assert right[-1] == blocks - 1 > 10
    for wrong in (0, blocks // 2, blocks - 1):
        tiers.guide[:] = wrong
        assert [block_of(tiers, rank) for rank in range(0, 5000, 7)] == right
    tiers = tiers_from(np.array([5.0, 3.0, 4.0]), 1)
    assert [value_at(tiers, rank) for rank in range(3)] == [3.0, 4.0, 5.0]
    assert [arm_at(tiers, rank) for rank in range(3)] == [1, 2, 0]
    assert count_of(tiers) == 3
    plain = np.array([4.0, 5.0])
    assert (value_at(plain, 1), count_of(plain)) == (5.0, 2)
