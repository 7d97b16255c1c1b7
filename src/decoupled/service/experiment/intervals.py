"""Intervals that claim no more than the data supports.

Each holds at one moment, chosen beforehand, with a probability of 95 %. For someone who looks repeatedly and stops
when the numbers look good, it misses more often than 5 % of the time.
"""

from .records import Interval

LEVEL = 0.95
ENOUGH = 30  # observations; fewer may show no spread at all, for example if every loss was 0
_NORMAL = 1.959963984540054


def interval(estimate: float, error: float, telling: int, low: float, high: float) -> Interval:
    """A normal 95 % interval within [low, high]; the whole of [low, high] if there are too few observations.

    Args:
        estimate: the estimate.
        error: its estimated standard error.
        telling: how many observations inform the estimate.
        low: the lowest possible value.
        high: the highest possible value.

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
