"""The tiered vector against a full sort, move by move and after a million of them."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from decoupled.arrays import Floats, Ints, Words
from decoupled.kernels.compiled import compiled
from decoupled.kernels.ranking import move_in_tiers, rank_of, sort_arms
from decoupled.kernels.stream import below, new_stream
from decoupled.kernels.tiers import Tiers, arm_at, count_of, place_of, tiers_of, value_at

# Few distinct values, so that ties are the rule.
VALUES = st.sampled_from((0.0, 0.5, 1.0, 1.0 + 2.0**-52, 2.0, 1e12))
START = st.lists(VALUES, min_size=1, max_size=14)
MOVES = st.lists(st.tuples(st.integers(0, 13), VALUES), max_size=40)
BITS = st.integers(0, 4)  # blocks of one arm to blocks of more than all


def tiers_from(estimates: Floats, bits: int | None = None) -> Tiers:
    """The arms of these estimates, in blocks of 2 ** bits."""
    values, arms = np.empty(len(estimates)), np.empty(len(estimates), np.int64)
    sort_arms(estimates, values, arms)
    tiers = tiers_of(values, arms, np.zeros(len(estimates), np.int64))
    return tiers if bits is None else tiers._replace(bits=bits)


@compiled
def unroll(tiers: Tiers, values: Floats, arms: Ints) -> None:
    for rank in range(len(values)):
        values[rank] = value_at(tiers, rank)
        arms[rank] = arm_at(tiers, rank)


def assert_sorted_as(tiers: Tiers, estimates: Floats) -> None:
    values, arms = np.empty(len(estimates)), np.empty(len(estimates), np.int64)
    unroll(tiers, values, arms)
    expected = np.lexsort((np.arange(len(estimates)), estimates))
    assert arms.tolist() == expected.tolist()
    assert values.tolist() == estimates[expected].tolist()


@settings(deadline=None, max_examples=400)
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
    assert [rank_of(tiers, tiers, estimates[arm], arm, 0) for arm in tiers_from(estimates).arms] == list(
        range(len(estimates))
    )


@compiled
def wander(tiers: Tiers, estimates: Floats, distinct: int, moves: int, stream: Words) -> None:
    """Give random arms random estimates: of `distinct` values, one in eight moves far below all others."""
    for _ in range(moves):
        arm = below(len(estimates), stream)
        after = 0.5 * below(distinct, stream)
        if below(8, stream) == 0:
            after -= distinct
        move_in_tiers(tiers, arm, estimates[arm], after)
        estimates[arm] = after


@pytest.mark.parametrize(
    ("arms", "bits"),
    [(1000, None), (5000, None), (1024, 5), (1000, 3), (257, 8), (65, 0)],
)
def test_a_million_moves_leave_the_order_of_a_full_sort(arms: int, bits: int | None) -> None:
    stream = new_stream(np.random.SeedSequence(arms))
    estimates = np.zeros(arms)
    tiers = tiers_from(estimates, bits)
    for step in range(40):
        wander(tiers, estimates, (3, 100, 10**9)[step % 3], 25_000, stream)
        assert_sorted_as(tiers, estimates)
    if bits and arms >> bits > 2:
        assert tiers.heads.any()  # rings did turn


@pytest.mark.parametrize("arms", [2, 64, 1000, 5000, 10**6])
def test_blocks_cover_all_arms_and_are_of_the_order_of_the_root(arms: int) -> None:
    tiers = tiers_of(np.zeros(arms), np.zeros(arms, np.int64), np.zeros(arms, np.int64))
    block = 2**tiers.bits
    assert arms**0.5 <= block <= 8 * arms**0.5
    assert place_of(tiers, arms - 1) == arms - 1


def test_lookups_mean_the_same_outside_compiled_code() -> None:
    tiers = Tiers(np.array([2.0, 1.0, 3.0]), np.array([7, 8, 9]), np.array([1, 0, 0]), 1)
    assert [value_at(tiers, rank) for rank in range(3)] == [1.0, 2.0, 3.0]
    assert [arm_at(tiers, rank) for rank in range(3)] == [8, 7, 9]
    assert count_of(tiers) == 3
    plain = np.array([4.0, 5.0])
    assert (value_at(plain, 1), arm_at(np.array([3, 6]), 1), count_of(plain)) == (5.0, 6, 2)
