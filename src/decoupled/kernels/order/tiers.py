"""A tiered vector: the arms in rank order, in blocks that grow and shrink.

A block is a run of neighbouring ranks, kept together at the start of a *slot* of memory that has room for
more. The directory lists the blocks in order: their slots, the rank with which each begins, and the arm
and estimate with which it begins. It is small enough to stay near the processor, so that a rank or an
arm is looked up there first and then in one place of the large arrays. An arm that moves shifts
the arms behind it in two blocks, and the ranks with which the blocks between them begin: O(sqrt K)
steps, most of them additions in order. See `tier_moves`.
"""

from typing import Any, NamedTuple

from ...base.arrays import Floats, Ints
from ..jit import compiled
from ..numba_later import numba, overload
from .ranked import sort_arms

ROOM = 3  # slots for so many times the arms; `tier_blocks` says why they suffice
ALONE = 64  # so many arms are one block
FEWEST_SLOTS = 6  # more arms are at least so many slots
USUAL_BITS = 8  # slots smaller than this are for few arms only: moving their memory takes hardly any time


class Tiers(NamedTuple):
    """Estimates and arms by place, the directory, the guide, counters, log2 of a slot, and the arms' number.

    Of the directory the first `counts[0]` entries count, one for each block; in `slots` the free ones
    follow, and in `starts` the number of arms. The guide tells, for every half of a slot of ranks, which
    block its first rank is in, or was a little while ago; `counts[1]` is where its next renewal begins.
    """

    values: Floats
    arms: Ints
    slots: Ints
    starts: Ints
    first_values: Floats
    first_arms: Ints
    guide: Ints
    counts: Floats
    bits: int
    length: int


@compiled
def slot_bits(arms: int) -> int:
    """Log2 of a slot's size for so many arms: a small part of them, and near the root of very many."""
    bits = 1
    if arms <= ALONE:
        while (1 << bits) < arms:
            bits += 1
    else:
        while FEWEST_SLOTS << (bits + 1) <= arms and (bits < USUAL_BITS or 1 << (2 * bits) < arms // 4):
            bits += 1
    return bits


@compiled
def fill_tiers(estimates: Floats, tiers: Tiers) -> None:
    """Rank all arms by (estimate, arm number), in blocks that are three quarters full."""
    arms, slot = len(estimates), 1 << tiers.bits
    sort_arms(estimates, tiers.values[:arms], tiers.arms[:arms])
    blocks = 1 if arms <= slot else -(-4 * arms // (3 * slot))
    for block in range(max(blocks, ROOM * arms // slot)):
        tiers.slots[block] = block
    tiers.counts[0] = blocks
    tiers.counts[1] = 0.0
    tiers.starts[blocks] = arms
    # From behind, because no arm's place comes before its rank.
    for block in range(blocks - 1, -1, -1):
        start, stop = block * arms // blocks, (block + 1) * arms // blocks
        tiers.starts[block] = start
        for rank in range(stop - 1, start - 1, -1):
            place = (block << tiers.bits) + rank - start
            tiers.arms[place] = tiers.arms[rank]
            tiers.values[place] = tiers.values[rank]
        note_first(tiers, block)
    if blocks > 1:
        tiers.guide[: guide_length(tiers)] = 0
        renew_guide(tiers, guide_length(tiers))


@compiled
def comes_before(value: float, arm: int, other: float, other_arm: int) -> bool:
    """Whether (value, arm) has the smaller rank: equal estimates are in the order of their arms."""
    return bool(value < other or (value == other and arm < other_arm))


@compiled
def note_first(tiers: Tiers, block: int) -> None:
    """Tell the directory with which arm a block begins."""
    place = tiers.slots[block] << tiers.bits
    tiers.first_values[block] = tiers.values[place]
    tiers.first_arms[block] = tiers.arms[place]


@compiled
def block_of(tiers: Tiers, rank: int) -> int:
    """The block that holds a rank."""
    starts = tiers.starts
    if rank < starts[1]:
        return 0
    block: int = tiers.guide[rank >> (tiers.bits - 1)]
    # Numbers in place of branches, which would be foretold wrongly half of the time.
    block += starts[block + 1] <= rank
    if starts[block] <= rank < starts[block + 1]:
        return block
    block, rest = 0, int(tiers.counts[0])
    while rest > 1:
        half = rest >> 1
        block += half * (starts[block + half] <= rank)
        rest -= half
    return block


@compiled
def guide_length(tiers: Tiers) -> int:
    """How many entries the guide has."""
    return ((tiers.length - 1) >> (tiers.bits - 1)) + 1


@compiled
def renew_guide(tiers: Tiers, entries: int) -> None:
    """Renew some entries: moves put them wrong, slowly."""
    last = guide_length(tiers) - 1
    entry = int(tiers.counts[1])
    for _ in range(entries if int(tiers.counts[0]) > 1 else 0):
        tiers.guide[entry] = block_of(tiers, entry << (tiers.bits - 1))
        entry = entry + 1 if entry < last else 0
    tiers.counts[1] = entry


@compiled
def place_of(tiers: Tiers, rank: int) -> int:
    """Where the arm of a rank lies."""
    block = block_of(tiers, rank)
    place: int = (tiers.slots[block] << tiers.bits) + rank - tiers.starts[block]
    return place


def value_at(ranked: Any, rank: int) -> float:
    """The estimate at a rank, of an array in rank order or a tiered vector."""
    return float(ranked.values[place_of(ranked, rank)] if isinstance(ranked, Tiers) else ranked[rank])


def arm_at(order: Any, rank: int) -> int:
    """The arm at a rank, of an array in rank order or a tiered vector."""
    return int(order.arms[place_of(order, rank)] if isinstance(order, Tiers) else order[rank])


def count_of(ranked: Any) -> int:
    """How many arms there are, in an array in rank order or a tiered vector."""
    return ranked.length if isinstance(ranked, Tiers) else len(ranked)


# In compiled code the type settles which of two bodies is meant, at no cost when it runs. Their arguments
# must be declared as those of the overload are.


@overload(value_at)
def _value_at(ranked: Any, rank: Any) -> Any:
    def of_tiers(ranked: Any, rank: Any) -> Any:
        return ranked.values[place_of(ranked, rank)]

    def of_array(ranked: Any, rank: Any) -> Any:
        return ranked[rank]

    return of_tiers if isinstance(ranked, numba().types.BaseNamedTuple) else of_array


@overload(arm_at)
def _arm_at(order: Any, rank: Any) -> Any:
    def of_tiers(order: Any, rank: Any) -> Any:
        return order.arms[place_of(order, rank)]

    def of_array(order: Any, rank: Any) -> Any:
        return order[rank]

    return of_tiers if isinstance(order, numba().types.BaseNamedTuple) else of_array


@overload(count_of)
def _count_of(ranked: Any) -> Any:
    def of_tiers(ranked: Any) -> Any:
        return ranked.length

    def of_array(ranked: Any) -> Any:
        return len(ranked)

    return of_tiers if isinstance(ranked, numba().types.BaseNamedTuple) else of_array
