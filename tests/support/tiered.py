"""Tiered vectors for tests, with slots of any size; a check of their invariants; and shapes of gaps."""

import numpy as np

from decoupled.base.arrays import Floats, Ints
from decoupled.kernels.jit import compiled
from decoupled.kernels.order.tiers import ROOM, Tiers, arm_at, fill_tiers, slot_bits, value_at
from support.twins.ftpl import cut_into_strata

SHAPES = ("equal", "one far ahead", "geometric", "borders", "one past borders")


def gaps_of(shape: str, arms: int) -> Floats:
    """Gaps in increasing order, the first of them 0."""
    steps = np.arange(arms, dtype=np.float64)
    firsts = np.cumsum([0] + [len(each) for each in cut_into_strata(steps)])[:-1]
    # The stratum of each rank. Some gaps jump at its border, or one rank past it, where the envelope is as
    # far above q as possible.
    stratum = np.searchsorted(firsts, steps, side="right") - 1.0
    past = np.searchsorted(firsts, steps, side="left") + 0.0
    return {
        "equal": 0.0 * steps,
        "one far ahead": np.where(steps > 0, 50.0, 0.0),
        "geometric": np.where(steps > 0, 0.01 * 1.3 ** np.minimum(steps, 60), 0.0),
        "borders": 1.5**stratum - 1.0,
        "one past borders": 1.5**past - 1.0,
    }[shape]


def tiers_from(estimates: Floats, bits: int | None = None) -> Tiers:
    """A tiered vector of these estimates with slots of 2 ** bits; without `bits`, the policy's slots and no spare memory."""
    arms = len(estimates)
    own = slot_bits(arms)
    slots = ROOM * arms // 2**own if bits is None else 2 * arms + 2
    bits = own if bits is None else bits
    tiers = Tiers(
        values=np.full(slots << bits, np.nan),
        arms=np.full(slots << bits, -1),
        slots=np.arange(slots),
        starts=np.full(slots + 1, -1),
        first_values=np.full(slots, np.nan),
        first_arms=np.full(slots, -1),
        guide=np.zeros(arms + 1, np.int64),
        counts=np.zeros(2),
        bits=bits,
        length=arms,
    )
    fill_tiers(estimates, tiers)
    return tiers


@compiled
def unroll(tiers: Tiers, values: Floats, arms: Ints) -> None:
    """All estimates and arms in rank order."""
    for rank in range(len(values)):
        values[rank] = value_at(tiers, rank)
        arms[rank] = arm_at(tiers, rank)


def assert_sorted_as(tiers: Tiers, estimates: Floats) -> None:
    """Check the order against a full sort, and the directory, sizes and number of blocks."""
    values, arms = np.empty(len(estimates)), np.empty(len(estimates), np.int64)
    unroll(tiers, values, arms)
    expected = np.lexsort((np.arange(len(estimates)), estimates))
    assert arms.tolist() == expected.tolist()
    assert values.tolist() == estimates[expected].tolist()
    blocks, slot = int(tiers.counts[0]), 2**tiers.bits
    starts = tiers.starts[: blocks + 1]
    sizes = np.diff(starts)
    assert (starts[0], starts[-1]) == (0, len(estimates))
    assert sizes.min() >= 1
    assert sizes.max() <= slot
    assert (4 * (sizes[1:] + sizes[:-1]) > 3 * slot).all()
    assert sorted(tiers.slots) == list(range(len(tiers.slots)))
    assert tiers.first_values[:blocks].tolist() == values[starts[:-1]].tolist()
    assert tiers.first_arms[:blocks].tolist() == arms[starts[:-1]].tolist()
    assert ((tiers.guide >= 0) & (tiers.guide < blocks)).all()
