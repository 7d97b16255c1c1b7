"""Names for the array types of the package."""

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
