"""Estimates how many runs an undecided claim needs, from the intervals that it has."""

import math
from collections.abc import Sequence
from typing import NamedTuple

POWER = 0.9  # the chance that so many runs decide it, if the value measured so far is the true one
MOST = 100_000_000  # runs; beyond this, the value is on the threshold for all that was measured

_LEVEL_QUANTILE, _POWER_QUANTILE = 1.959964, 1.281552  # of the normal distribution, at 0.975 and POWER


class Measure(NamedTuple):
    """A number with its interval, and what it was measured on."""

    of: str
    value: float
    low: float
    high: float
    runs: int = 0  # 0 if it does not come from a number of runs

    def turned(self) -> "Measure":
        """The same for the number with the other sign."""
        return self._replace(value=-self.value, low=-self.high, high=-self.low)


def runs_to_decide(parts: Sequence[Measure], edges: Sequence[float]) -> int | None:
    """The runs after which no interval crosses an edge, with a probability of 90 % for each part.

    An interval of half-width h after n runs has half-width h sqrt(n / m) after m. With the distance d from the value
    to the nearest edge, and room for the value to move, m = n (h / d)^2 (1 + 1.28 / 1.96)^2. The intervals of joint
    claims are wider than 1.96 standard errors, so for them this is a little more than needed.

    It is None if every part is decided, if the runs of one are not known, or if they would be absurdly many.

    >>> runs_to_decide([Measure("all", 1.1, 0.9, 1.3, runs=100)], [1.0])
    1100
    """
    needed = [_runs(part, edges) for part in parts if any(part.low <= edge <= part.high for edge in edges)]
    if not needed or max(needed) > MOST:
        return None
    return _rounded_up(max(needed))


def _runs(part: Measure, edges: Sequence[float]) -> float:
    distance = min(abs(part.value - edge) for edge in edges)
    half = (part.high - part.low) / 2.0
    if part.runs < 2 or distance == 0.0 or not math.isfinite(half):
        return math.inf
    return part.runs * (half / distance * (1.0 + _POWER_QUANTILE / _LEVEL_QUANTILE)) ** 2


def _rounded_up(runs: float) -> int:
    """To two digits: the estimate has no more."""
    step = int(10 ** max(0, math.floor(math.log10(runs)) - 1))
    return math.ceil(runs / step) * step
