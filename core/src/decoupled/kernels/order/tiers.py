"""A tiered vector: the arms in rank order, in blocks that grow and shrink.

A block is a run of neighbouring ranks at the start of a *slot* of memory, which has room for more.
The directory lists the blocks in order: the slot of each, and the rank, arm and estimate at which
it begins. The directory is small enough to stay in the processor's cache, so looking up a rank or
an arm touches the large arrays in one place only. Moving an arm shifts the arms behind it in two
blocks, and the first ranks of the blocks between them: O(sqrt K) steps, most of them consecutive
additions.

A block whose slot is full is split before it takes another arm, and two neighbours that together
fill no more than three quarters of a slot are joined. So any two neighbours hold more than that,
and K arms make at most 2 * K / (3/4 * slot) + 1 blocks, plus one during a split. Since K is one
block, or six slots or more, these fit into the memory of 3 * K arms.

Goodrich, M. T. and Kloss, J. G. (1999). Tiered vectors: efficient dynamic arrays for rank-based
sequences. WADS. Their blocks are rings of equal length, and a move turns every ring on the way.
With a million arms that is hundreds of turns, each far from the last in memory.

Arms of the first ranks are lifted together. Most often they keep their ranks or pass a few others
of their own block. If many arms are tied and the first of them are lifted, all of these move to the
far end: they are taken out together, and neighbours are put back together.
"""

import math
from typing import Any, NamedTuple

from ...base.arrays import Floats, Ints
from ..jit import compiled, compiled_apart
from ..lazy_numba import numba, overload
from .ranked import sort_arms

# Memory for this many times the number of arms; the head of this file says why it suffices.
ROOM = 3
ALONE = 64  # up to this many arms form a single block
FEWEST_SLOTS = 6  # more arms than that take at least this many slots
# Only few arms have smaller slots: moving the memory of such a slot takes hardly any time.
USUAL_BITS = 8


class Tiers(NamedTuple):
    """Estimates in rank order, in blocks, for very many arms.

    Attributes:
        values: the estimates by place.
        arms: the arms by place.
        slots: the directory: the slot of each block in use, of which there are `counts[0]`; then
            the free slots.
        starts: the rank of the first arm of each block; then the number of arms.
        first_values: the first estimate of each block.
        first_arms: the first arm of each block.
        guide: for every half slot of ranks, the block of its first rank, which may be slightly out
            of date.
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
    """Log2 of the slot size for a number of arms.

    A slot is a small part of the arms, near their square root if there are very many.
    """
    bits = 1
    if arms <= ALONE:
        while (1 << bits) < arms:
            bits += 1
    else:
        while FEWEST_SLOTS << (bits + 1) <= arms and (
            bits < USUAL_BITS or 1 << (2 * bits) < arms // 4
        ):
            bits += 1
    return bits


@compiled
def ceil_div(number: int, divisor: int) -> int:
    """The quotient, rounded up."""
    return -(-number // divisor)


@compiled
def fill_tiers(estimates: Floats, tiers: Tiers) -> None:
    """Rank all arms by (estimate, arm number), in blocks that are three quarters full."""
    arms = len(estimates)
    slot = 1 << tiers.bits
    sort_arms(estimates, tiers.values[:arms], tiers.arms[:arms])
    blocks = 1 if arms <= slot else ceil_div(4 * arms, 3 * slot)
    for block in range(max(blocks, ROOM * arms // slot)):
        tiers.slots[block] = block
    tiers.counts[0] = blocks
    tiers.counts[1] = 0.0
    tiers.starts[blocks] = arms
    # Backwards, because an arm's place is never before its rank.
    for block in range(blocks - 1, -1, -1):
        start = block * arms // blocks
        stop = (block + 1) * arms // blocks
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
    # No branch, which would be mispredicted half of the time: LLVM makes a conditional move of it.
    if starts[block + 1] <= rank:
        block += 1
    if starts[block] <= rank < starts[block + 1]:
        return block
    block = 0
    remaining = int(tiers.counts[0])
    while remaining > 1:
        half = remaining >> 1
        block += half * (starts[block + half] <= rank)
        remaining -= half
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
    return float(
        ranked.values[place_of(ranked, rank)] if isinstance(ranked, Tiers) else ranked[rank]
    )


@compiled
def arm_at(tiers: Tiers, rank: int) -> int:
    """The arm at a rank."""
    arm: int = tiers.arms[place_of(tiers, rank)]
    return arm


def count_of(ranked: Any) -> int:
    """The number of arms in an array in rank order or a tiered vector."""
    return ranked.length if isinstance(ranked, Tiers) else len(ranked)


# Compiled code picks one of two bodies by the type of `ranked`, at no cost at run time. Not
# `strict`, because a lambda cannot have the annotations of its overload.


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


@compiled
def size_of(tiers: Tiers, block: int) -> int:
    """The number of arms in a block."""
    size: int = tiers.starts[block + 1] - tiers.starts[block]
    return size


@compiled
def is_full(tiers: Tiers, block: int) -> bool:
    """Whether a block's slot has no room left."""
    return size_of(tiers, block) == 1 << tiers.bits


@compiled
def home_of(tiers: Tiers, value: float, arm: int) -> int:
    """The last block that does not begin after (value, arm), or the first block."""
    low = 0
    remaining = int(tiers.counts[0])
    while remaining > 1:
        half = remaining >> 1
        first = tiers.first_values[low + half]
        low += half * ((first < value) | ((first == value) & (tiers.first_arms[low + half] <= arm)))
        remaining -= half
    return low


@compiled
def count_before(tiers: Tiers, block: int, value: float, arm: int) -> int:
    """The number of arms in a block that come before (value, arm).

    It compares all of them, several at once: as fast as a binary search, and faster if the memory
    is not cached.
    """
    start = tiers.slots[block] << tiers.bits
    size = size_of(tiers, block)
    values = tiers.values[start : start + size]
    arms = tiers.arms[start : start + size]
    count = 0
    for k in range(size):
        count += (values[k] < value) | ((values[k] == value) & (arms[k] < arm))
    return count


# These take slices, whose indices the compiler knows to be in range, so each loop is a single
# memory move.


@compiled
def move_up(entries: Floats | Ints, count: int) -> None:
    """Drop the first `count` entries of a slice; the free space moves to its end."""
    for k in range(len(entries) - count):
        entries[k] = entries[k + count]


@compiled
def move_back(entries: Floats | Ints, count: int) -> None:
    """Make room for `count` entries at the start of a slice, overwriting its end."""
    for k in range(len(entries) - 1, count - 1, -1):
        entries[k] = entries[k - count]


@compiled
def close_gap(tiers: Tiers, block: int, gap: int, stop: int, number: int) -> None:
    """Remove `number` entries at `gap` in a block, and move those after them, up to `stop`, up."""
    start = tiers.slots[block] << tiers.bits
    move_up(tiers.values[start + gap : start + stop], number)
    move_up(tiers.arms[start + gap : start + stop], number)


@compiled
def open_gap(tiers: Tiers, block: int, gap: int, stop: int, number: int) -> None:
    """Make room for `number` entries at `gap` in a block, and move those up to `stop` back."""
    start = tiers.slots[block] << tiers.bits
    move_back(tiers.values[start + gap : start + stop], number)
    move_back(tiers.arms[start + gap : start + stop], number)


@compiled
def add_to(entries: Ints, number: int) -> None:
    """Add a number to every entry."""
    for k in range(len(entries)):
        entries[k] += number


# Changes of the directory are rare.


@compiled_apart
def split(tiers: Tiers, block: int) -> None:
    """Move the second half of a full block to a slot of its own."""
    blocks = int(tiers.counts[0])
    slot = tiers.slots[blocks]
    move_back(tiers.slots[block + 1 : blocks + 1], 1)
    move_back(tiers.first_values[block + 1 : blocks + 1], 1)
    move_back(tiers.first_arms[block + 1 : blocks + 1], 1)
    move_back(tiers.starts[block + 1 : blocks + 2], 1)
    half = 1 << (tiers.bits - 1)
    tiers.slots[block + 1] = slot
    tiers.starts[block + 1] = tiers.starts[block] + half
    tiers.counts[0] += 1.0
    _renumber(tiers.guide[: guide_length(tiers)], block + 1, 1)
    _copy(tiers, (tiers.slots[block] << tiers.bits) + half, slot << tiers.bits, half)
    note_first(tiers, block + 1)
    join(tiers, block + 1)
    join(tiers, block - 1)


@compiled_apart
def join(tiers: Tiers, block: int) -> None:
    """Join a block with the next if both are small."""
    if block < 0 or block + 1 >= int(tiers.counts[0]):
        return
    size = size_of(tiers, block)
    next_size = size_of(tiers, block + 1)
    if 4 * (size + next_size) <= 3 << tiers.bits:
        source = tiers.slots[block + 1] << tiers.bits
        _copy(tiers, source, (tiers.slots[block] << tiers.bits) + size, next_size)
        remove(tiers, block + 1)


@compiled_apart
def remove(tiers: Tiers, block: int) -> None:
    """Remove a block from the directory and free its slot."""
    blocks = int(tiers.counts[0])
    slot = tiers.slots[block]
    move_up(tiers.slots[block:blocks], 1)
    move_up(tiers.first_values[block:blocks], 1)
    move_up(tiers.first_arms[block:blocks], 1)
    move_up(tiers.starts[block : blocks + 1], 1)
    tiers.slots[blocks - 1] = slot
    tiers.counts[0] -= 1.0
    _renumber(tiers.guide[: guide_length(tiers)], max(block, 1), -1)


@compiled
def _renumber(guide: Ints, first: int, number: int) -> None:
    """Add `number` to the entries that point to blocks from `first` on."""
    for entry in range(len(guide)):
        guide[entry] += number * (guide[entry] >= first)


@compiled
def _copy(tiers: Tiers, source: int, target: int, count: int) -> None:
    for k in range(count):
        tiers.values[target + k] = tiers.values[source + k]
        tiers.arms[target + k] = tiers.arms[source + k]


@compiled
def tidy(tiers: Tiers, block: int) -> None:
    """Remove a block that arms have left empty, or join it with a neighbour if it is small."""
    size = size_of(tiers, block)
    if size == 0:
        remove(tiers, block)
    else:
        note_first(tiers, block)
        if 4 * size <= 3 << tiers.bits:
            join(tiers, block)
            join(tiers, block - 1)


# The whole guide is renewed within 2 ** 9 moves, about as often as blocks shift by one.
RENEWAL_BITS = 9


@compiled
def move_in_tiers(tiers: Tiers, arm: int, before: float, after: float) -> None:
    """Change the estimate of `arm` from `before` to `after`."""
    if is_full(tiers, home_of(tiers, after, arm)):
        _make_room(tiers, before, after, arm)
    here = home_of(tiers, before, arm)
    there = home_of(tiers, after, arm)
    offset = count_before(tiers, here, before, arm)
    goal = count_before(tiers, there, after, arm)
    if here == there:
        if before < after:
            goal -= 1  # the count included the arm itself
        close_gap(tiers, here, offset, max(offset, goal) + 1, 1)
        open_gap(tiers, here, goal, max(offset, goal) + 1, 1)
    else:
        close_gap(tiers, here, offset, size_of(tiers, here), 1)
        open_gap(tiers, there, goal, size_of(tiers, there) + 1, 1)
        add_to(tiers.starts[here + 1 : there + 1], -1)
        add_to(tiers.starts[there + 1 : here + 1], 1)
    place = (tiers.slots[there] << tiers.bits) + goal
    tiers.values[place] = after
    tiers.arms[place] = arm
    note_first(tiers, there)
    if here != there:
        tidy(tiers, here)
    renew_guide(tiers, 1 + (guide_length(tiers) >> RENEWAL_BITS))


@compiled_apart
def _make_room(tiers: Tiers, before: float, after: float, arm: int) -> None:
    """Split the block that the arm moves to, unless the arm is already in it."""
    there = home_of(tiers, after, arm)
    if there != home_of(tiers, before, arm):
        split(tiers, there)


@compiled
def lift_in_tiers(
    tiers: Tiers,
    estimates: Floats,
    arms: Ints,
    lifts: Floats,
    count: int,
    spare: Floats,
    spare_arms: Ints,
) -> None:
    """Add the first `count` lifts to as many estimates; the spare arrays are work space."""
    if _stay_in_order(tiers, arms, lifts, count):
        _lift_front(tiers, estimates, lifts, count, spare, spare_arms)
    else:
        _lift_each(tiers, estimates, arms, lifts, count)


@compiled_apart
def _lift_each(tiers: Tiers, estimates: Floats, arms: Ints, lifts: Floats, count: int) -> None:
    """Lift the arms one by one."""
    for k in range(count):
        before = estimates[arms[k]]
        estimates[arms[k]] = before + lifts[k]
        if estimates[arms[k]] != before:
            move_in_tiers(tiers, arms[k], before, estimates[arms[k]])


@compiled
def _stay_in_order(tiers: Tiers, arms: Ints, lifts: Floats, count: int) -> bool:
    """Whether the listed arms have the first ranks and keep this order when they are lifted.

    Late feedback may find them elsewhere, and rounding may make two of them equal.
    """
    value = -math.inf
    arm = -1
    block = 0
    for rank in range(count):
        if rank == tiers.starts[block + 1]:
            block += 1
        place = (tiers.slots[block] << tiers.bits) + rank - tiers.starts[block]
        lifted = tiers.values[place] + lifts[rank]
        if tiers.arms[place] != arms[rank] or comes_before(lifted, arms[rank], value, arm):
            return False
        value = lifted
        arm = arms[rank]
    return True


@compiled
def _lift_front(
    tiers: Tiers, estimates: Floats, lifts: Floats, count: int, spare: Floats, spare_arms: Ints
) -> None:
    """Lift the arms of the first ranks where they are, then move those that pass the next rank."""
    block = 0
    for rank in range(count):
        if rank == tiers.starts[block + 1]:
            block += 1
        place = (tiers.slots[block] << tiers.bits) + rank - tiers.starts[block]
        tiers.values[place] += lifts[rank]
        estimates[tiers.arms[place]] = tiers.values[place]
    for changed in range(block + 1):
        note_first(tiers, changed)
    if 0 < count < tiers.length:
        staying = _staying(tiers, count)
        passing = count
        while passing > staying and _climbs(tiers, passing - 1):
            passing -= 1
        if passing > staying:
            _relocate(tiers, staying, passing, spare, spare_arms)


@compiled
def _staying(tiers: Tiers, count: int) -> int:
    """The number of the first `count` ranks that still come before the next rank."""
    place = place_of(tiers, count)
    value = tiers.values[place]
    arm = tiers.arms[place]
    staying = count
    while staying > 0:
        place = place_of(tiers, staying - 1)
        if comes_before(tiers.values[place], tiers.arms[place], value, arm):
            break
        staying -= 1
    return staying


@compiled
def _climbs(tiers: Tiers, rank: int) -> bool:
    """Move the arm at a rank past others of its block.

    If it belongs in a later block, do nothing and return False.
    """
    block = block_of(tiers, rank)
    start = tiers.slots[block] << tiers.bits
    place = start + rank - tiers.starts[block]
    last = start + size_of(tiers, block) - 1
    value = tiers.values[place]
    arm = tiers.arms[place]
    following = block + 1
    if following < int(tiers.counts[0]) and comes_before(
        tiers.first_values[following], tiers.first_arms[following], value, arm
    ):
        return False
    while place < last and comes_before(tiers.values[place + 1], tiers.arms[place + 1], value, arm):
        tiers.values[place] = tiers.values[place + 1]
        tiers.arms[place] = tiers.arms[place + 1]
        place += 1
    tiers.values[place] = value
    tiers.arms[place] = arm
    note_first(tiers, block)
    return True


@compiled_apart
def _relocate(tiers: Tiers, first: int, stop: int, spare: Floats, spare_arms: Ints) -> None:
    """Move the arms at ranks `first` to `stop` - 1 to where their estimates belong."""
    count = stop - first
    for k in range(count):
        place = place_of(tiers, first + k)
        spare[k] = tiers.values[place]
        spare_arms[k] = tiers.arms[place]
    _take_out(tiers, first, stop)
    while count > 0:
        count -= _put_in(tiers, spare, spare_arms, count)
    renew_guide(tiers, 4 + (guide_length(tiers) >> 7))


@compiled
def _take_out(tiers: Tiers, first: int, stop: int) -> None:
    """Remove the arms at ranks `first` to `stop` - 1, which are not the last ranks."""
    while stop > first:
        block = block_of(tiers, stop - 1)
        low = max(first, tiers.starts[block])
        close_gap(tiers, block, low - tiers.starts[block], size_of(tiers, block), stop - low)
        add_to(tiers.starts[block + 1 : int(tiers.counts[0]) + 1], low - stop)
        if size_of(tiers, block) == 0:
            remove(tiers, block)
        else:
            note_first(tiers, block)
        stop = low
    block = block_of(tiers, first)
    for small in range(block, block - 3, -1):
        join(tiers, small)


@compiled
def _put_in(tiers: Tiers, spare: Floats, spare_arms: Ints, count: int) -> int:
    """Put in the last of the spare arms and those that belong right before it; return how many."""
    value = spare[count - 1]
    arm = spare_arms[count - 1]
    block = home_of(tiers, value, arm)
    if is_full(tiers, block):
        split(tiers, block)
        block = home_of(tiers, value, arm)
    goal = count_before(tiers, block, value, arm)
    size = size_of(tiers, block)
    start = tiers.slots[block] << tiers.bits
    number = 1
    room = (1 << tiers.bits) - size
    before = start + goal - 1  # it exists, since the arms to put in passed at least one
    while number < min(count, room) and not comes_before(
        spare[count - number - 1],
        spare_arms[count - number - 1],
        tiers.values[before],
        tiers.arms[before],
    ):
        number += 1
    open_gap(tiers, block, goal, size + number, number)
    for k in range(number):
        tiers.values[start + goal + k] = spare[count - number + k]
        tiers.arms[start + goal + k] = spare_arms[count - number + k]
    add_to(tiers.starts[block + 1 : int(tiers.counts[0]) + 1], number)
    note_first(tiers, block)
    return number
