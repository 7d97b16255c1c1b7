"""Intervals that claim no more than was seen.

Each holds at this moment: at 95 % for one look, at a moment chosen before. Someone who looks again and again and
stops at a moment that pleases sees an interval that misses more often than 5 % of the time.
"""

from .records import Interval

LEVEL = 0.95
ENOUGH = 30  # observations; the spread of fewer may look like none at all, as where every loss was 0
_NORMAL = 1.959963984540054


def interval(estimate: float, error: float, telling: int, low: float, high: float) -> Interval:
    """A normal interval at 95 % within what is certain, `low` to `high`; all of that where too little was seen.

    Args:
        estimate: what is estimated.
        error: its standard error, itself estimated.
        telling: how many observations bear on the estimate.
        low: it cannot be less.
        high: it cannot be more.

    >>> interval(0.5, 0.25, telling=100, low=0.25, high=0.75)
    Interval(estimate=0.5, low=0.25, high=0.75)
    >>> interval(0.5, 0.0, telling=2, low=0.0, high=1.0)
    Interval(estimate=0.5, low=0.0, high=1.0)
    """
    if telling < ENOUGH:
        return Interval(_within(estimate, low, high), low, high)
    spread = _NORMAL * error
    ends = (_within(end, low, high) for end in (estimate, estimate - spread, estimate + spread))
    return Interval(*ends)


def _within(value: float, low: float, high: float) -> float:
    return min(max(value, low), high)
