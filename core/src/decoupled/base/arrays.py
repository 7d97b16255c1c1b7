"""Names for the array types of the package, and the smallest laws."""

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Floats: TypeAlias = NDArray[np.float64]
"""A NumPy array of numbers."""
Ints: TypeAlias = NDArray[np.int64]
"""A NumPy array of whole numbers."""
Words: TypeAlias = NDArray[np.uint64]
"""A NumPy array of 64-bit words, such as a random stream."""
Bools: TypeAlias = NDArray[np.bool_]


def ceil_div(number: int, divisor: int) -> int:
    """The quotient of two whole numbers, rounded up.

    >>> ceil_div(7, 2), ceil_div(8, 2)
    (4, 4)
    """
    return -(-number // divisor)


def certain(place: int, count: int) -> Floats:
    """The law of so many arms that always draws the one at this place.

    >>> certain(1, 3).tolist()
    [0.0, 1.0, 0.0]
    """
    law = np.zeros(count)
    law[place] = 1.0
    return law
