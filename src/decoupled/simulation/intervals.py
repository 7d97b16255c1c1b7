"""Intervals of means over runs, and of the difference of two policies run by run."""

import numpy as np

from ..base.arrays import Floats


def interval(values: Floats, level: float) -> tuple[float, float, float, float]:
    """The mean, its standard error, and the ends of its interval."""
    mean = float(values.mean())
    if len(values) < 2:
        return mean, float("nan"), float("nan"), float("nan")
    error = float(values.std(ddof=1) / np.sqrt(len(values)))
    half = t_quantile(0.5 + level / 2.0, len(values) - 1) * error
    return mean, error, mean - half, mean + half


def paired(differences: Floats, level: float) -> dict[str, float]:
    """The mean difference, its interval, and the p-value of a paired t test."""
    from scipy.special import stdtr  # scipy.stats takes half a second to load

    mean, error, low, high = interval(differences, level)
    if error == 0.0:  # as for a policy compared with itself: nothing is left to chance
        chance = 1.0 if mean == 0.0 else 0.0
    else:
        chance = 2.0 * float(stdtr(len(differences) - 1, -abs(mean) / error))
    return {"difference": mean, "difference_low": low, "difference_high": high, "p_value": chance}


def t_quantile(probability: float, degrees: int) -> float:
    """The quantile of Student's t.

    >>> round(t_quantile(0.975, 9), 6)
    2.262157
    """
    from scipy.special import stdtrit

    return float(stdtrit(degrees, probability))
