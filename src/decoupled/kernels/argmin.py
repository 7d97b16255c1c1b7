"""The smallest of some numbers, ties at random: what policies do that follow a mean or an index."""

import math

from ..base.arrays import Floats, Words
from .jit import compiled
from .random.stream import below


@compiled
def lowest_entries(values: Floats) -> tuple[float, int, int]:
    """The lowest value, the first place that has it, and how many do."""
    lowest, first, tied = math.inf, 0, 0
    for i in range(len(values)):
        if values[i] < lowest:
            lowest, first, tied = values[i], i, 1
        elif values[i] == lowest:
            tied += 1
    return lowest, first, tied


@compiled
def pick_lowest(values: Floats, lowest: float, first: int, tied: int, stream: Words) -> int:
    """One of the places that `lowest_entries` found; a place without rivals costs no random number."""
    place = first
    if tied > 1:
        skip = below(tied, stream)
        while skip > 0:
            place += 1
            if values[place] == lowest:
                skip -= 1
    return place
