"""The tiered vector compared with a full sort, after each move and after a million."""

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from decoupled.base.arrays import Floats, Ints, Words
from decoupled.kernels.jit import compiled
from decoupled.kernels.order.tier_lifts import lift_in_tiers
from decoupled.kernels.order.tier_moves import move_in_tiers
from decoupled.kernels.order.tiers import (
    ALONE,
    FEWEST_SLOTS,
    ROOM,
    Tiers,
    arm_at,
    block_of,
    count_of,
    slot_bits,
    value_at,
)
from decoupled.kernels.random.stream import below, new_stream
from support.tiered import assert_sorted_as, tiers_from

# Few distinct values, so that most arms are tied.
VALUES = st.sampled_from((0.0, 0.5, 1.0, 1.0 + 2.0**-52, 2.0, 1e12))
START = st.lists(VALUES, min_size=1, max_size=24)
MOVES = st.lists(st.tuples(st.integers(0, 23), VALUES), max_size=40)
BITS = st.integers(1, 5)  # from slots of two arms to slots of more than all arms


@settings(deadline=None, max_examples=300)
@given(START, MOVES, BITS)
def test_every_move_leaves_the_order_of_a_full_sort(
    start: list[float], moves: list[tuple[int, float]], bits: int
) -> None:
    estimates = np.array(start)
    tiers = tiers_from(estimates, bits)
    assert_sorted_as(tiers, estimates)
    for number, after in moves:
        arm = number % len(estimates)
        move_in_tiers(tiers, arm, estimates[arm], after)
        estimates[arm] = after
        assert_sorted_as(tiers, estimates)


LIFTS = st.lists(st.tuples(st.integers(0, 24), st.sampled_from((0.25, 0.5, 0.3, 1.0, 1e9))), max_size=12)


@settings(deadline=None, max_examples=300)
@given(START, LIFTS, BITS)
@example([1.0 + 2.0**-52, 1.0, 2.0, 2.0], [(2, 1e9)], 1)  # two that rounding makes equal
def test_the_first_ranks_are_lifted_together(
    start: list[float], lifts: list[tuple[int, float]], bits: int
) -> None:
    estimates = np.array(start)
    tiers = tiers_from(estimates, bits)
    for count, lift in lifts:
        first = np.lexsort((np.arange(len(estimates)), estimates))[:count]
        expected = estimates.copy()
        expected[first] += lift
        lift_arms(tiers, estimates, first, np.full(len(first), lift))
        assert estimates.tolist() == expected.tolist()
        assert_sorted_as(tiers, estimates)


@settings(deadline=None, max_examples=200)
@given(START, st.lists(st.tuples(st.integers(0, 23), VALUES), max_size=12), BITS)
def test_any_arms_may_be_lifted_each_by_its_own_amount(
    start: list[float], lifts: list[tuple[int, float]], bits: int
) -> None:
    # As with late feedback, when the arms that its decision covered have other ranks.
    estimates = np.array(start)
    by_arm = {number % len(estimates): lift for number, lift in lifts}
    tiers = tiers_from(estimates, bits)
    expected = estimates.copy()
    expected[list(by_arm)] += list(by_arm.values())
    lift_arms(tiers, estimates, np.array(list(by_arm), np.int64), np.array(list(by_arm.values())))
    assert estimates.tolist() == expected.tolist()
    assert_sorted_as(tiers, estimates)


def lift_arms(tiers: Tiers, estimates: Floats, arms: Ints, lifts: Floats) -> None:
    spare, spare_arms = np.empty(len(estimates)), np.empty(len(estimates), np.int64)
    lift_in_tiers(tiers, estimates, arms, lifts, len(arms), spare, spare_arms)


@compiled
def wander(
    tiers: Tiers,
    estimates: Floats,
    distinct: int,
    moves: int,
    work: tuple[Ints, Floats, Floats, Ints],
    s: Words,
) -> int:
    """Give random arms random estimates, of `distinct` values, one in eight far below all others; and lift
    the first ranks now and then. The largest number of blocks on the way."""
    most = 0
    for _ in range(moves):
        arm = below(len(estimates), s)
        after = 0.5 * below(distinct, s)
        if below(8, s) == 0:
            after -= distinct
        move_in_tiers(tiers, arm, estimates[arm], after)
        estimates[arm] = after
        if below(8, s) == 0:
            first, lifts, spare, spare_arms = work
            count = below(min(64, len(estimates)) + 1, s)
            for rank in range(count):
                first[rank] = arm_at(tiers, rank)
                lifts[rank] = 0.5
            lift_in_tiers(tiers, estimates, first, lifts, count, spare, spare_arms)
        most = max(most, int(tiers.counts[0]))
    return most


@pytest.mark.slow
@pytest.mark.parametrize(("arms", "bits"), [(1000, None), (5000, None), (1024, 5), (257, 8), (65, 1)])
def test_many_moves_leave_the_order_of_a_full_sort(arms: int, bits: int | None) -> None:
    stream = new_stream(np.random.SeedSequence(arms))
    estimates = np.zeros(arms)
    tiers = tiers_from(estimates, bits)
    work = np.empty(arms, np.int64), np.empty(arms), np.empty(arms), np.empty(arms, np.int64)
    for step in range(20):
        most = wander(tiers, estimates, (3, 100, 10**9)[step % 3], 25_000, work, stream)
        assert_sorted_as(tiers, estimates)
        assert most <= len(tiers.slots)


@pytest.mark.parametrize("arms", [1, 2, 64, 65, 100, 384, 1000, 5000, 10**6])
def test_slots_are_small_parts_and_near_the_root_of_very_many(arms: int) -> None:
    slot = 2 ** slot_bits(arms)
    assert slot <= ROOM * arms
    if arms <= ALONE:
        assert slot >= arms
    else:
        # The largest number of blocks, with one more for a split, and their slots: see tier_blocks.
        assert FEWEST_SLOTS * slot <= arms
        assert (2 * arms // (3 * slot // 4 + 1) + 2) * slot <= ROOM * arms
        assert slot <= max(256, arms**0.5)


def test_ranks_are_found_however_old_the_guide_is() -> None:
    estimates = np.arange(5000.0)
    tiers = tiers_from(estimates)
    blocks = int(tiers.counts[0])
    right = [block_of(tiers, rank) for rank in range(0, 5000, 7)]
    assert right[-1] == blocks - 1 > 10
    for wrong in (0, blocks // 2, blocks - 1):
        tiers.guide[:] = wrong
        assert [block_of(tiers, rank) for rank in range(0, 5000, 7)] == right


def test_lookups_mean_the_same_outside_compiled_code() -> None:
    tiers = tiers_from(np.array([5.0, 3.0, 4.0]), 1)
    assert [value_at(tiers, rank) for rank in range(3)] == [3.0, 4.0, 5.0]
    assert [arm_at(tiers, rank) for rank in range(3)] == [1, 2, 0]
    assert count_of(tiers) == 3
    plain = np.array([4.0, 5.0])
    assert (value_at(plain, 1), count_of(plain)) == (5.0, 2)
