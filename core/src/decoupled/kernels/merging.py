"""Merge the mean and squared deviations of curves in an order that does not depend on blocks or workers."""

from ..base.arrays import Floats
from .jit import compiled

GROUP = 50


@compiled
def merge_groups(curves: Floats, count: int, mean: Floats, squares: Floats) -> int:
    """Merge runs, fifty at a time, into the mean and squared deviations of `count` runs; return the new count.

    Every number is summed in the order of the runs, so that the bits depend on the groups alone.
    """
    for start in range(0, len(curves), GROUP):
        size = min(GROUP, len(curves) - start)
        whole = count + size
        for column in range(len(mean)):
            middle = 0.0
            for run in range(start, start + size):
                middle += curves[run, column]
            middle /= size
            spread = 0.0
            for run in range(start, start + size):
                spread += (curves[run, column] - middle) ** 2
            shift = middle - mean[column]
            squares[column] += spread + shift**2 * (count * size / whole)
            mean[column] += shift * (size / whole)
        count = whole
    return count
