"""A tiered vector: the arms in rank order, where any of them is found in O(1) and moved in O(sqrt K).

Ranks are cut into blocks of equal length, and each block is a ring that starts at its own `head`. An arm
that moves from one rank to another leaves a gap that travels the same way: within the two blocks at its
ends by shifting arms, on the shorter way round the ring; through every block in between by handing its
first arm to the block before it (or its last to the block after), which is one turn of its ring. The
last block may be short of arms; it never turns.

Goodrich, M. T. and Kloss, J. G. (1999). Tiered vectors: efficient dynamic arrays for rank-based
sequences. WADS.
"""

from typing import Any, NamedTuple

from numba import types
from numba.extending import overload

from ..arrays import Floats, Ints
from .compiled import compiled

# Shifting one more arm of a block costs about a sixteenth of turning one more ring.
_SHIFTS_PER_TURN = 16


class Tiers(NamedTuple):
    """Estimates and arms by place, the place within each block where its ring starts, and log2 of a block."""

    values: Floats
    arms: Ints
    heads: Ints
    bits: int


@compiled
def tiers_of(values: Floats, arms: Ints, heads: Ints) -> Tiers:
    """The rows of a state as a tiered vector; rows in plain rank order are one, if all heads are zero."""
    bits = 0
    while (1 << (2 * bits)) < _SHIFTS_PER_TURN * len(values):
        bits += 1
    return Tiers(values, arms, heads, bits)


@compiled
def place_of(tiers: Tiers, rank: int) -> int:
    """Where the arm of a rank lies."""
    block = rank >> tiers.bits
    mask = (1 << tiers.bits) - 1
    place: int = (block << tiers.bits) | ((rank + tiers.heads[block]) & mask)
    return place


def value_at(ranked: Any, rank: int) -> float:
    """The estimate at a rank, of an array in rank order or a tiered vector."""
    return float(ranked.values[place_of(ranked, rank)] if isinstance(ranked, Tiers) else ranked[rank])


def arm_at(order: Any, rank: int) -> int:
    """The arm at a rank, of an array in rank order or a tiered vector."""
    return int(order.arms[place_of(order, rank)] if isinstance(order, Tiers) else order[rank])


def count_of(ranked: Any) -> int:
    """How many arms there are, in an array in rank order or a tiered vector."""
    return len(ranked.values if isinstance(ranked, Tiers) else ranked)


# In compiled code the type settles which of two bodies is meant, at no cost when it runs. Their arguments
# must be declared as those of the overload are.


@overload(value_at)
def _value_at(ranked: Any, rank: Any) -> Any:
    def of_tiers(ranked: Any, rank: Any) -> Any:
        return ranked.values[place_of(ranked, rank)]

    def of_array(ranked: Any, rank: Any) -> Any:
        return ranked[rank]

    return of_tiers if isinstance(ranked, types.BaseNamedTuple) else of_array


@overload(arm_at)
def _arm_at(order: Any, rank: Any) -> Any:
    def of_tiers(order: Any, rank: Any) -> Any:
        return order.arms[place_of(order, rank)]

    def of_array(order: Any, rank: Any) -> Any:
        return order[rank]

    return of_tiers if isinstance(order, types.BaseNamedTuple) else of_array


@overload(count_of)
def _count_of(ranked: Any) -> Any:
    def of_tiers(ranked: Any) -> Any:
        return len(ranked.values)

    def of_array(ranked: Any) -> Any:
        return len(ranked)

    return of_tiers if isinstance(ranked, types.BaseNamedTuple) else of_array


@compiled
def carry(tiers: Tiers, rank: int, goal: int) -> int:
    """Carry the gap that the arm at `rank` leaves to the rank `goal`; return the place of that."""
    values, arms, heads, bits = tiers.values, tiers.arms, tiers.heads, tiers.bits
    mask = (1 << bits) - 1
    here, there = rank >> bits, goal >> bits
    if here < there:
        _move_gap(tiers, rank, (here << bits) | mask)
        gap = place_of(tiers, (here << bits) | mask)
        for block in range(here + 1, there):
            first = (block << bits) | heads[block]
            values[gap] = values[first]
            arms[gap] = arms[first]
            heads[block] = (heads[block] + 1) & mask
            gap = first
        rank = there << bits
        _copy(tiers, place_of(tiers, rank), gap)
    elif there < here:
        _move_gap(tiers, rank, here << bits)
        gap = place_of(tiers, here << bits)
        for block in range(here - 1, there, -1):
            heads[block] = (heads[block] - 1) & mask
            last = (block << bits) | heads[block]  # it is the first from now on
            values[gap] = values[last]
            arms[gap] = arms[last]
            gap = last
        rank = (there << bits) | mask
        _copy(tiers, place_of(tiers, rank), gap)
    _move_gap(tiers, rank, goal)
    return place_of(tiers, goal)


@compiled
def _copy(tiers: Tiers, source: int, target: int) -> None:
    tiers.values[target] = tiers.values[source]
    tiers.arms[target] = tiers.arms[source]


@compiled
def _move_gap(tiers: Tiers, rank: int, goal: int) -> None:
    """Within one block, on the shorter way: past its end the gap comes back at the other, one turn on."""
    block, mask = rank >> tiers.bits, (1 << tiers.bits) - 1
    first, last = block << tiers.bits, (block << tiers.bits) | mask
    turns = last < len(tiers.values) - 1 and 2 * abs(goal - rank) > mask
    if rank <= goal and not turns:
        _shift_towards_first(tiers, rank, goal)
    elif rank <= goal:
        _shift_towards_last(tiers, first, rank)
        tiers.heads[block] = (tiers.heads[block] + 1) & mask
        _shift_towards_last(tiers, goal, last)
    elif not turns:
        _shift_towards_last(tiers, goal, rank)
    else:
        _shift_towards_first(tiers, rank, last)
        tiers.heads[block] = (tiers.heads[block] - 1) & mask
        _shift_towards_first(tiers, first, goal)


@compiled
def _shift_towards_first(tiers: Tiers, low: int, high: int) -> None:
    """Within one block: what is at ranks low + 1 to high moves one rank down."""
    start, stop = place_of(tiers, low), place_of(tiers, high)
    if start > stop:  # round the end of the ring
        first = low >> tiers.bits << tiers.bits
        last = first | ((1 << tiers.bits) - 1)
        _slide_down(tiers, start, last)
        _copy(tiers, first, last)
        start = first
    _slide_down(tiers, start, stop)


@compiled
def _shift_towards_last(tiers: Tiers, low: int, high: int) -> None:
    """Within one block: what is at ranks low to high - 1 moves one rank up."""
    start, stop = place_of(tiers, low), place_of(tiers, high)
    if start > stop:
        first = low >> tiers.bits << tiers.bits
        last = first | ((1 << tiers.bits) - 1)
        _slide_up(tiers, first, stop)
        _copy(tiers, last, first)
        stop = last
    _slide_up(tiers, start, stop)


# One array at a time: each loop is then a single move of memory.


@compiled
def _slide_down(tiers: Tiers, start: int, stop: int) -> None:
    for place in range(start, stop):
        tiers.values[place] = tiers.values[place + 1]
    for place in range(start, stop):
        tiers.arms[place] = tiers.arms[place + 1]


@compiled
def _slide_up(tiers: Tiers, start: int, stop: int) -> None:
    for place in range(stop, start, -1):
        tiers.values[place] = tiers.values[place - 1]
    for place in range(stop, start, -1):
        tiers.arms[place] = tiers.arms[place - 1]
