"""Intervals of means over runs and of differences run by run, and bands around curves."""

import math
from collections.abc import Sequence
from typing import Any, Literal, NamedTuple, TypeAlias, cast

import numpy as np

from ..base.arrays import Floats
from ..base.extras import needed_for
from ..base.validation import as_float
from ..errors import ParameterError


class MeanInterval(NamedTuple):
    """A mean, its standard error, and the ends of its interval."""

    mean: float
    error: float
    low: float
    high: float


def interval(values: Floats, level: float) -> MeanInterval:
    """The mean with its interval (Student's t); with one value, all but the mean are NaN.

    >>> [round(each, 2) for each in interval(np.array([1.0, 2.0, 3.0]), level=0.95)]
    [2.0, 0.58, -0.48, 4.48]
    """
    mean = float(values.mean())
    if len(values) < 2:
        return MeanInterval(mean, math.nan, math.nan, math.nan)
    error = float(values.std(ddof=1) / np.sqrt(len(values)))
    if error == 0.0:  # SciPy has no interval of a law without spread
        return MeanInterval(mean, error, mean, mean)
    low, high = _student_t().interval(level, len(values) - 1, loc=mean, scale=error)
    return MeanInterval(mean, error, float(low), float(high))


def paired(differences: Floats, level: float) -> dict[str, float]:
    """The mean difference, its interval, and the p-value of a paired t test."""
    mean, error, low, high = interval(differences, level)
    # The same difference in every run, such as none for a policy compared with itself.
    if error == 0.0:
        chance = 1.0 if mean == 0.0 else 0.0
    else:
        chance = 2.0 * float(_student_t().sf(abs(mean) / error, len(differences) - 1))
    return {"difference": mean, "difference_low": low, "difference_high": high, "p_value": chance}


def _student_t() -> Any:
    """Student's t of SciPy, which only statistics load."""
    with needed_for("statistics of results"):
        from scipy.stats import t
    return t


Band: TypeAlias = Literal["mean", "std"] | tuple[float, float] | None
"""What the band around a curve shows; see `Results.plot`."""
LEVEL = 0.95

_REMEDY = 'give "mean", "std", two quantiles such as (0.05, 0.95), or None'


def checked_band(band: Any) -> Band:
    """Check that a band can be drawn.

    >>> checked_band([0.05, 0.95])
    (0.05, 0.95)
    """
    if band is None or (isinstance(band, str) and band in ("mean", "std")):
        return cast("Band", band)
    listed = (
        isinstance(band, Sequence | np.ndarray) and not isinstance(band, str) and len(band) == 2
    )
    ends = [as_float(end) for end in band] if listed else []
    if ends and ends[0] is not None and ends[1] is not None and 0.0 <= ends[0] < ends[1] <= 1.0:
        return ends[0], ends[1]
    raise ParameterError.of("band", band, "is not a band that can be drawn", _REMEDY)


def half_width(band: Literal["mean", "std"], deviations: Floats, runs: int) -> Floats:
    """The half-width of a band, from the standard deviation over runs; zero for a single run."""
    if runs < 2:
        return np.zeros_like(deviations)
    if band == "std":
        return deviations
    quantile = float(_student_t().ppf(0.5 + LEVEL / 2.0, runs - 1))
    return np.asarray(deviations * (quantile / np.sqrt(runs)))


def between_quantiles(ends: tuple[float, float], means: Floats, curves: Floats) -> Floats:
    """How far the quantiles over runs lie below and above the mean, as two rows."""
    low, high = np.quantile(curves, ends, axis=0)
    return np.stack([means - low, high - means])


def described(band: Band, runs: int, of: str = "regret") -> str:
    """A description of a curve and its band, for the label of an axis or a caption.

    >>> described((0.05, 0.95), runs=100)
    'mean regret, 5 % to 95 % of runs'
    """
    if runs < 2:
        return f"{of} of one run"
    if band is None:
        return f"mean {of}"
    if band == "mean":
        return f"mean {of}, {100 * LEVEL:g} % interval"
    if band == "std":
        return f"mean {of} ± standard deviation"
    return f"mean {of}, {100 * band[0]:g} % to {100 * band[1]:g} % of runs"
