"""Arms kept in rank order: by (estimate, arm number), so that ties are settled.

`ranked` holds the estimates in increasing order and `order` the arm at each rank.
"""

import numpy as np

from ..arrays import Floats, Ints
from .compiled import compiled, compiled_allocating


@compiled_allocating
def sort_arms(estimates: Floats, ranked: Floats, order: Ints) -> None:
    """Fill `ranked` and `order` from scratch."""
    # A stable sort keeps equal estimates in the order of their arms.
    by_estimate = np.argsort(estimates, kind="mergesort")
    for rank in range(len(order)):
        order[rank] = by_estimate[rank]
        ranked[rank] = estimates[by_estimate[rank]]


@compiled
def rank_of(ranked: Floats, order: Ints, estimate: float, arm: int) -> int:
    """How many of the ranked pairs come before (estimate, arm); the arm's own rank if it is among them."""
    low = 0
    high = len(ranked)
    while low < high:
        middle = (low + high) // 2
        value = ranked[middle]
        if value < estimate or (value == estimate and order[middle] < arm):
            low = middle + 1
        else:
            high = middle
    return low


@compiled
def move_arm(ranked: Floats, order: Ints, arm: int, before: float, after: float) -> None:
    """Give `arm` the estimate `after` in place of `before`: one search, one shift of the block between."""
    rank = rank_of(ranked, order, before, arm)
    goal = rank_of(ranked, order, after, arm)
    if goal > rank:  # the arm itself is counted among those before its new place
        goal -= 1
    for k in range(rank, goal):
        ranked[k] = ranked[k + 1]
        order[k] = order[k + 1]
    for k in range(rank, goal, -1):
        ranked[k] = ranked[k - 1]
        order[k] = order[k - 1]
    ranked[goal] = after
    order[goal] = arm
