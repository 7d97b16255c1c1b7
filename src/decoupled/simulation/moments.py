"""Mean and variance of curves over any number of runs, in bounded memory.

Runs are reduced over fixed groups in run order, whatever the blocks they came in, so that no block
size, executor or number of workers changes a bit of the result.
"""

import numpy as np

from ..arrays import Floats

GROUP = 50


class Moments:
    """Running mean and sum of squared deviations, merged group by group (Chan et al., 1983)."""

    def __init__(self, width: int) -> None:
        self.count = 0
        self.mean = np.zeros(width)
        self._squares = np.zeros(width)
        self._waiting = np.empty((GROUP, width))
        self._filled = 0

    def add(self, curves: Floats) -> None:
        """Take in the next runs, in run order."""
        for curve in curves:
            self._waiting[self._filled] = curve
            self._filled += 1
            if self._filled == GROUP:
                self._merge()

    def _merge(self) -> None:
        group = self._waiting[: self._filled]
        count = self.count + len(group)
        mean = group.mean(axis=0)
        squares = ((group - mean) ** 2).sum(axis=0)
        shift = mean - self.mean
        self._squares += squares + shift**2 * (self.count * len(group) / count)
        self.mean = self.mean + shift * (len(group) / count)
        self.count = count
        self._filled = 0

    def finish(self) -> None:
        """Merge the last, smaller group."""
        if self._filled:
            self._merge()

    @property
    def standard_deviation(self) -> Floats:
        """The sample standard deviation (NaN for a single run)."""
        if self.count < 2:
            return np.full_like(self.mean, np.nan)
        return np.asarray(np.sqrt(self._squares / (self.count - 1)))
