"""Arrays with named dimensions: results, for as long as nobody asks for an xarray data set.

A simulation needs neither xarray nor pandas, and loading them takes longer than a small one.

`CurveMoments` has the mean and variance of curves over any number of runs, in bounded memory. Runs
are reduced in fixed groups, in run order. So the result is the same to the last bit for every block
size, executor and number of workers.
"""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ..base.arrays import Floats
from ..kernels.rounds import GROUP as GROUP
from ..kernels.rounds import merge_groups


class Labelled(NamedTuple):
    """Variables and attributes, before they become an xarray data set.

    Attributes:
        variables: each variable's dimensions and values, by name. One named after its only
            dimension labels it.
        attrs: the attributes of the whole data set.

    >>> data = {"x": (("arm",), np.ones(2)), "arm": (("arm",), np.array(["a", "b"]))}
    >>> arrays = Labelled(data, {})
    >>> arrays.sizes, arrays.values("arm").tolist()
    ({'arm': 2}, ['a', 'b'])
    """

    variables: dict[str, tuple[tuple[str, ...], npt.NDArray[Any]]]
    attrs: dict[str, Any]

    def values(self, name: str) -> npt.NDArray[Any]:
        """The values of a variable."""
        return self.variables[name][1]

    @property
    def sizes(self) -> dict[str, int]:
        """The length of every dimension, in the order in which the variables name them."""
        return {
            name: size
            for dimensions, values in self.variables.values()
            for name, size in zip(dimensions, values.shape, strict=True)
        }


class CurveMoments:
    """Running mean and sum of squared deviations, merged group by group (Chan et al., 1983)."""

    def __init__(self, width: int) -> None:
        self.mean = np.zeros(width)
        self._squares = np.zeros(width)
        self._waiting = np.empty((GROUP, width))
        self._filled = 0
        self.count = 0  # of the runs merged

    def add(self, curves: Floats) -> None:
        """Add the next runs, in run order."""
        filling = min(GROUP - self._filled, len(curves)) if self._filled else 0
        self._waiting[self._filled : self._filled + filling] = curves[:filling]
        self._filled += filling
        if self._filled == GROUP:
            self._merge(self._waiting)
            self._filled = 0
        end = filling + (len(curves) - filling) // GROUP * GROUP
        self._merge(curves[filling:end])
        if end < len(curves):
            self._filled = len(curves) - end
            self._waiting[: self._filled] = curves[end:]

    def _merge(self, curves: Floats) -> None:
        self.count = merge_groups(curves, self.count, self.mean, self._squares)

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
