"""An estimate with the ends of its confidence sequence at one moment."""

from typing import NamedTuple


class Interval(NamedTuple):
    """An estimate and its interval, which holds at every moment at once.

    Attributes:
        estimate: the estimate.
        low: the lower end.
        high: the upper end.

    >>> from decoupled.inference import Interval
    >>> Interval(0.5, 0.4, 0.7).scaled(0.0, 250.0)
    Interval(estimate=125.0, low=100.0, high=175.0)
    >>> Interval(0.1, -0.2, 0.3).scaled(0.0, 250.0, difference=True)
    Interval(estimate=25.0, low=-50.0, high=75.0)
    """

    estimate: float
    low: float
    high: float

    def scaled(self, low: float, high: float, *, difference: bool = False) -> "Interval":
        """The interval of losses in [low, high], from that of losses in [0, 1]; or of a difference of losses.

        Args:
            low: the lowest possible loss.
            high: the highest possible loss.
            difference: whether it is the interval of a difference of two losses, which scaling does not shift.
        """
        start, width = 0.0 if difference else low, high - low
        return Interval(*(start + width * each for each in self))

    @classmethod
    def around(cls, estimate: float, low: float, high: float) -> "Interval":
        """An interval, with the estimate moved inside it.

        Args:
            estimate: the estimate; if it lies outside, the nearer end takes its place.
            low: the lower end.
            high: the upper end.
        """
        low, high = float(low), float(max(low, high))
        return cls(min(max(float(estimate), low), high), low, high)
