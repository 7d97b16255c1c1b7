"""A tiered vector: the arms in rank order, in blocks that grow and shrink.

A block is a run of neighbouring ranks at the start of a *slot* of memory, which has room for more. The directory lists
the blocks in order: the slot of each, and the rank, arm and estimate at which it begins. The directory is small enough
to stay in the processor's cache, so looking up a rank or an arm touches the large arrays in one place only. Moving an
arm shifts the arms behind it in two blocks, and the first ranks of the blocks between them: O(sqrt K) steps, most of
them consecutive additions. See `tier_moves`.
"""

from typing import Any, NamedTuple

from ...base.arrays import Floats, Ints
from ..jit import compiled
from ..lazy_numba import numba, overload
from .ranked import sort_arms

ROOM = 3  # memory for this many times the number of arms; `tier_blocks` says why it suffices
ALONE = 64  # up to this many arms form a single block
FEWEST_SLOTS = 6  # more arms than that take at least this many slots
USUAL_BITS = 8  # only few arms have smaller slots: moving the memory of such a slot takes hardly any time


class Tiers(NamedTuple):
    """Estimates in rank order, in blocks, for very many arms.

    Attributes:
        values: the estimates by place.
        arms: the arms by place.
        slots: the directory: the slot of each block in use, of which there are `counts[0]`; then the free slots.
        starts: the rank of the first arm of each block; then the number of arms.
        first_values: the first estimate of each block.
        first_arms: the first arm of each block.
        guide: for every half slot of ranks, the block of its first rank, which may be slightly out of date.
        counts: the number of blocks, and the entry of the guide that is renewed next.
        bits: log2 of the slot size.
        length: the number of arms.
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
    """Log2 of the slot size for a number of arms: a small part of them, near the square root for very many."""
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
    # Backwards, because an arm's place is never before its rank.
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
    """Whether (value, arm) has the smaller rank; equal estimates are ordered by arm number."""
    return bool(value < other or (value == other and arm < other_arm))


@compiled
def note_first(tiers: Tiers, block: int) -> None:
    """Update the first arm and estimate of a block in the directory."""
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
    # Arithmetic instead of a branch, which would be mispredicted half of the time.
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
    """The number of entries in the guide."""
    return ((tiers.length - 1) >> (tiers.bits - 1)) + 1


@compiled
def renew_guide(tiers: Tiers, entries: int) -> None:
    """Renew some entries of the guide, since moves slowly put them out of date."""
    last = guide_length(tiers) - 1
    entry = int(tiers.counts[1])
    for _ in range(entries if int(tiers.counts[0]) > 1 else 0):
        tiers.guide[entry] = block_of(tiers, entry << (tiers.bits - 1))
        entry = entry + 1 if entry < last else 0
    tiers.counts[1] = entry


@compiled
def place_of(tiers: Tiers, rank: int) -> int:
    """The place of a rank in the large arrays."""
    block = block_of(tiers, rank)
    place: int = (tiers.slots[block] << tiers.bits) + rank - tiers.starts[block]
    return place


def value_at(ranked: Any, rank: int) -> float:
    """The estimate at a rank of an array in rank order or a tiered vector."""
    return float(ranked.values[place_of(ranked, rank)] if isinstance(ranked, Tiers) else ranked[rank])


@compiled
def arm_at(tiers: Tiers, rank: int) -> int:
    """The arm at a rank."""
    arm: int = tiers.arms[place_of(tiers, rank)]
    return arm


def count_of(ranked: Any) -> int:
    """The number of arms in an array in rank order or a tiered vector."""
    return ranked.length if isinstance(ranked, Tiers) else len(ranked)


# Compiled code picks one of two bodies by the type of `ranked`, at no cost at run time. Not `strict`, because a lambda
# cannot have the annotations of its overload.


@overload(value_at, strict=False)
def _value_at(ranked: Any, rank: Any) -> Any:
    if isinstance(ranked, numba().types.BaseNamedTuple):
        return lambda ranked, rank: ranked.values[place_of(ranked, rank)]
    return lambda ranked, rank: ranked[rank]


@overload(count_of, strict=False)
def _count_of(ranked: Any) -> Any:
    if isinstance(ranked, numba().types.BaseNamedTuple):
        return lambda ranked: ranked.length
    return lambda ranked: len(ranked)
