"""Lift some of the ranked arms by the same amount."""

from ...base.arrays import Floats, Ints
from ..jit import compiled


@compiled
def lift_arms(
    estimates: Floats, lifts: Floats, ranked: Floats, order: Ints, spare: Floats, spare_order: Ints
) -> None:
    """Add `lifts` to the estimates and restore the rank order, in O(K).

    Every lift is 0 or the same amount, so the lifted arms stay in order among themselves, and so do the others: at
    worst two increasing sequences are merged. Most often no arm passes another. The spare arrays are work space.
    """
    in_order = True
    before, arm_before = ranked[0], -1
    for k in range(len(ranked)):
        arm = order[k]
        value = ranked[k] + lifts[arm]
        estimates[arm] = value
        ranked[k] = value
        if value < before or (value == before and arm < arm_before):
            in_order = False
        before, arm_before = value, arm
    if not in_order:
        _merge(lifts, ranked, order, spare, spare_order)
        _settle(ranked, order)


@compiled
def _merge(lifts: Floats, ranked: Floats, order: Ints, spare: Floats, spare_order: Ints) -> None:
    """Set the lifted arms aside, close the gaps, and merge them back in from the end."""
    lifted = kept = 0
    for k in range(len(ranked)):
        arm = order[k]
        if lifts[arm] > 0.0:
            spare[lifted] = ranked[k]
            spare_order[lifted] = arm
            lifted += 1
        else:
            ranked[kept] = ranked[k]
            order[kept] = arm
            kept += 1
    for place in range(len(ranked) - 1, -1, -1):
        last = kept == 0
        if kept > 0 and lifted > 0:
            value, rival = spare[lifted - 1], ranked[kept - 1]
            last = value > rival or (value == rival and spare_order[lifted - 1] > order[kept - 1])
        if last:
            lifted -= 1
            ranked[place] = spare[lifted]
            order[place] = spare_order[lifted]
        else:
            kept -= 1
            ranked[place] = ranked[kept]
            order[place] = order[kept]


@compiled
def _settle(ranked: Floats, order: Ints) -> None:
    """Order arms by number if rounding has made their estimates equal."""
    for k in range(1, len(ranked)):
        arm = order[k]
        place = k
        while place > 0 and ranked[place - 1] == ranked[k] and order[place - 1] > arm:
            order[place] = order[place - 1]
            place -= 1
        order[place] = arm
