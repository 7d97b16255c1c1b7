"""The range that losses live in: from what a user reports to a loss in [0, 1]."""

import math
from typing import NamedTuple

from .checks import as_float
from .errors import LossError, ParameterError, complaint, shown


class LossRange(NamedTuple):
    """The lowest and highest loss there can be; rewards live in the same range, mirrored."""

    low: float
    high: float

    @classmethod
    def checked(cls, ends: object) -> "LossRange":
        """A range from what a user gave."""
        try:
            low, high = (as_float(end) for end in ends)  # type: ignore[attr-defined]
        except (TypeError, ValueError):
            low = high = None
        if low is None or high is None or not low < high or not math.isfinite(high - low):
            rule = "must be two finite numbers, the lower first"
            raise ParameterError(complaint("loss_range", ends, rule, "the default is (0, 1)"))
        return cls(low, high)

    def scaled(self, loss: object, reward: object = None) -> float:
        """The loss on a scale from 0 to 1, from a loss or a reward: one of them, and not both."""
        if (loss is None) == (reward is None):
            raise LossError(
                f"loss = {shown(loss)}, reward = {shown(reward)}: one of them is needed, and not both; "
                "give the loss of the explored arm, or its reward"
            )
        if reward is None:
            return self.scaled_as("loss", loss)
        return (self.high - self._within("reward", reward)) / (self.high - self.low)

    def scaled_as(self, name: str, loss: object) -> float:
        """A loss on a scale from 0 to 1; `name` is what an error calls it."""
        return (self._within(name, loss) - self.low) / (self.high - self.low)

    def _within(self, name: str, value: object) -> float:
        number = as_float(value)
        if number is None or not self.low <= number <= self.high:
            rule = f"must lie in [{self.low}, {self.high}]"
            remedy = "declare another range with start(..., loss_range=(low, high))"
            raise LossError(complaint(name, value, rule, remedy))
        return number
