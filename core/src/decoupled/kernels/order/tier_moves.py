"""Move an arm in a tiered vector: out of one block and into another.

Goodrich, M. T. and Kloss, J. G. (1999). Tiered vectors: efficient dynamic arrays for rank-based sequences. WADS. Their
blocks are rings of equal length, and a move turns every ring on the way. With a million arms that is hundreds of turns,
each far from the last in memory.
"""

from ..jit import compiled, compiled_apart
from .tier_blocks import add_to, close_gap, count_before, home_of, is_full, open_gap, size_of, split, tidy
from .tiers import Tiers, guide_length, note_first, renew_guide

RENEWAL_BITS = 9  # the whole guide is renewed within 2 ** 9 moves, about as often as blocks shift by one


@compiled
def move_in_tiers(tiers: Tiers, arm: int, before: float, after: float) -> None:
    """Change the estimate of `arm` from `before` to `after`."""
    if is_full(tiers, home_of(tiers, after, arm)):
        _make_room(tiers, before, after, arm)
    here, there = home_of(tiers, before, arm), home_of(tiers, after, arm)
    offset, goal = count_before(tiers, here, before, arm), count_before(tiers, there, after, arm)
    if here == there:
        goal -= before < after  # the count included the arm itself
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
