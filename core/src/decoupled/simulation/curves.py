"""Mean and variance of curves over any number of runs, in bounded memory.

Runs are reduced in fixed groups, in run order. So the result is the same to the last bit for every block
size, executor and number of workers.
"""

import numpy as np

from ..base.arrays import Floats
from ..kernels.rounds import GROUP as GROUP
from ..kernels.rounds import merge_groups


class CurveMoments:
    """Running mean and sum of squared deviations, merged group by group (Chan et al., 1983)."""

    def __init__(self, width: int) -> None:
        self.mean = np.zeros(width)
        self._squares = np.zeros(width)
        self._waiting = np.empty((GROUP, width))
        self._filled = 0
        self._merged = 0

    @property
    def count(self) -> int:
        """The number of runs merged."""
        return self._merged

    def add(self, curves: Floats) -> None:
        """Add the next runs, in run order."""
        taken = min(GROUP - self._filled, len(curves)) if self._filled else 0
        self._waiting[self._filled : self._filled + taken] = curves[:taken]
        self._filled += taken
        if self._filled == GROUP:
            self._merge(self._waiting)
            self._filled = 0
        whole = taken + (len(curves) - taken) // GROUP * GROUP
        self._merge(curves[taken:whole])
        if whole < len(curves):
            self._filled = len(curves) - whole
            self._waiting[: self._filled] = curves[whole:]

    def _merge(self, curves: Floats) -> None:
        self._merged = merge_groups(curves, self._merged, self.mean, self._squares)

    def finish(self) -> None:
        """Merge the last, smaller group."""
        self._merge(self._waiting[: self._filled])
        self._filled = 0

    @property
    def standard_deviation(self) -> Floats:
        """The sample standard deviation (NaN for a single run)."""
        if self.count < 2:
            return np.full_like(self.mean, np.nan)
        return np.asarray(np.sqrt(self._squares / (self.count - 1)))
