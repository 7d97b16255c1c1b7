"""Lift arms of the first ranks together, in a tiered vector.

Most often they keep their ranks or pass a few others of their own block. If many arms are tied and the first of them
are lifted, all of these move to the far end: they are taken out together, and neighbours are put back together.
"""

import math

from ...base.arrays import Floats, Ints
from ..jit import compiled, compiled_apart
from .tier_blocks import (
    add_to,
    close_gap,
    count_before,
    home_of,
    is_full,
    join,
    open_gap,
    remove,
    size_of,
    split,
)
from .tier_moves import move_in_tiers
from .tiers import Tiers, block_of, comes_before, guide_length, note_first, place_of, renew_guide


@compiled
def lift_in_tiers(
    tiers: Tiers, estimates: Floats, arms: Ints, lifts: Floats, count: int, spare: Floats, spare_arms: Ints
) -> None:
    """Add the first `count` lifts to the estimates of the first `count` arms; the spare arrays are work space."""
    if _stay_in_order(tiers, arms, lifts, count):
        _lift_front(tiers, estimates, lifts, count, spare, spare_arms)
    else:
        _lift_each(tiers, estimates, arms, lifts, count)


@compiled_apart
def _lift_each(tiers: Tiers, estimates: Floats, arms: Ints, lifts: Floats, count: int) -> None:
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
    value, arm, block = -math.inf, -1, 0
    for rank in range(count):
        block += rank == tiers.starts[block + 1]
        place = (tiers.slots[block] << tiers.bits) + rank - tiers.starts[block]
        lifted = tiers.values[place] + lifts[rank]
        if tiers.arms[place] != arms[rank] or comes_before(lifted, arms[rank], value, arm):
            return False
        value, arm = lifted, arms[rank]
    return True


@compiled
def _lift_front(
    tiers: Tiers, estimates: Floats, lifts: Floats, count: int, spare: Floats, spare_arms: Ints
) -> None:
    block = 0
    for rank in range(count):
        block += rank == tiers.starts[block + 1]
        place = (tiers.slots[block] << tiers.bits) + rank - tiers.starts[block]
        tiers.values[place] += lifts[rank]
        estimates[tiers.arms[place]] = tiers.values[place]
    for each in range(block + 1):
        note_first(tiers, each)
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
    value, arm = tiers.values[place], tiers.arms[place]
    staying = count
    while staying > 0:
        place = place_of(tiers, staying - 1)
        if comes_before(tiers.values[place], tiers.arms[place], value, arm):
            break
        staying -= 1
    return staying


@compiled
def _climbs(tiers: Tiers, rank: int) -> bool:
    """Move the arm at a rank past others of its block. If it belongs in a later block, do nothing and return False."""
    block = block_of(tiers, rank)
    start = tiers.slots[block] << tiers.bits
    place, last = start + rank - tiers.starts[block], start + size_of(tiers, block) - 1
    value, arm = tiers.values[place], tiers.arms[place]
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
    """Take out the arms at ranks `first` to `stop` - 1 and put them where their estimates belong."""
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
    for each in range(block, block - 3, -1):
        join(tiers, each)


@compiled
def _put_in(tiers: Tiers, spare: Floats, spare_arms: Ints, count: int) -> int:
    """Put in the last of the spare arms and those that belong right before it; return how many."""
    value, arm = spare[count - 1], spare_arms[count - 1]
    block = home_of(tiers, value, arm)
    if is_full(tiers, block):
        split(tiers, block)
        block = home_of(tiers, value, arm)
    goal, size = count_before(tiers, block, value, arm), size_of(tiers, block)
    start = tiers.slots[block] << tiers.bits
    number, room = 1, (1 << tiers.bits) - size
    before = start + goal - 1  # the arm just before them; it exists, since they passed at least one arm
    while number < min(count, room) and not comes_before(
        spare[count - number - 1], spare_arms[count - number - 1], tiers.values[before], tiers.arms[before]
    ):
        number += 1
    open_gap(tiers, block, goal, size + number, number)
    for k in range(number):
        tiers.values[start + goal + k] = spare[count - number + k]
        tiers.arms[start + goal + k] = spare_arms[count - number + k]
    add_to(tiers.starts[block + 1 : int(tiers.counts[0]) + 1], number)
    note_first(tiers, block)
    return number
