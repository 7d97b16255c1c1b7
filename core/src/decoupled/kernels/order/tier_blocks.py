"""The blocks of a tiered vector: finding them by their first arms, splitting, joining and removing them.

A block whose slot is full is split before it takes another arm, and two neighbours that together fill no more than
three quarters of a slot are joined. So any two neighbours hold more than that, and K arms make at most
2 * K / (3/4 * slot) + 1 blocks, plus one during a split. Since K is one block, or six slots or more, these fit into the
memory of 3 * K arms.
"""

from ...base.arrays import Floats, Ints
from ..jit import compiled, compiled_apart
from .tiers import Tiers, guide_length, note_first


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
    low, rest = 0, int(tiers.counts[0])
    while rest > 1:
        half = rest >> 1
        first = tiers.first_values[low + half]
        low += half * ((first < value) | ((first == value) & (tiers.first_arms[low + half] <= arm)))
        rest -= half
    return low


@compiled
def count_before(tiers: Tiers, block: int, value: float, arm: int) -> int:
    """The number of arms in a block that come before (value, arm).

    It compares all of them, several at once: as fast as a binary search, and faster if the memory is not cached.
    """
    start = tiers.slots[block] << tiers.bits
    size = size_of(tiers, block)
    values, arms = tiers.values[start : start + size], tiers.arms[start : start + size]
    found = 0
    for k in range(size):
        found += (values[k] < value) | ((values[k] == value) & (arms[k] < arm))
    return found


# These take slices, whose indices the compiler knows to be in range, so each loop is a single memory move.


@compiled
def move_up(part: Floats | Ints, number: int) -> None:
    """Drop the first `number` entries of a slice; the others move up and leave free space at the end."""
    for k in range(len(part) - number):
        part[k] = part[k + number]


@compiled
def move_back(part: Floats | Ints, number: int) -> None:
    """Make room for `number` entries at the start of a slice, overwriting its end."""
    for k in range(len(part) - 1, number - 1, -1):
        part[k] = part[k - number]


@compiled
def close_gap(tiers: Tiers, block: int, gap: int, stop: int, number: int) -> None:
    """Remove `number` entries at `gap` in a block; the entries after them, up to `stop`, move up."""
    start = tiers.slots[block] << tiers.bits
    move_up(tiers.values[start + gap : start + stop], number)
    move_up(tiers.arms[start + gap : start + stop], number)


@compiled
def open_gap(tiers: Tiers, block: int, gap: int, stop: int, number: int) -> None:
    """Make room for `number` entries at `gap` in a block; the entries from there on, up to `stop`, move back."""
    start = tiers.slots[block] << tiers.bits
    move_back(tiers.values[start + gap : start + stop], number)
    move_back(tiers.arms[start + gap : start + stop], number)


@compiled
def add_to(part: Ints, number: int) -> None:
    """Add a number to every entry."""
    for k in range(len(part)):
        part[k] += number


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
    size, more = size_of(tiers, block), size_of(tiers, block + 1)
    if 4 * (size + more) <= 3 << tiers.bits:
        source = tiers.slots[block + 1] << tiers.bits
        _copy(tiers, source, (tiers.slots[block] << tiers.bits) + size, more)
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
    """After arms have left a block, remove it if it is empty, or join it with a neighbour if it is small."""
    size = size_of(tiers, block)
    if size == 0:
        remove(tiers, block)
    else:
        note_first(tiers, block)
        if 4 * size <= 3 << tiers.bits:
            join(tiers, block)
            join(tiers, block - 1)
