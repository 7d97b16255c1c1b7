"""The range of losses: from a user's loss or reward to a loss in [0, 1]."""

from typing import NamedTuple

from ..base.validation import as_loss, is_missing, is_number, kind_of, loss_ends
from ..errors import LossError, Message, shown

UNKNOWN = "report the loss when it is known; feedback may come late, or never"


class LossRange(NamedTuple):
    """The lowest and highest possible loss. Rewards use the same range, mirrored."""

    low: float
    high: float

    @classmethod
    def checked(cls, ends: object) -> "LossRange":
        """Check the range that a user gave."""
        return cls(*loss_ends(ends))

    def scaled(self, loss: object, reward: object = None) -> float:
        """The loss on a scale from 0 to 1, given either a loss or a reward."""
        if reward is None and type(loss) is float and self.low <= loss <= self.high:  # nearly always
            return (loss - self.low) / (self.high - self.low)
        if (message := not_one_of(loss, reward)) is not None:
            raise LossError(message)
        if reward is None:
            return self.scaled_as("loss", loss)
        return (self.high - self._within("reward", reward)) / (self.high - self.low)

    def scaled_as(self, name: str, loss: object, if_missing: str = UNKNOWN) -> float:
        """A loss on a scale from 0 to 1. `name` names it in an error; `if_missing` is the remedy if it is missing."""
        return (self._within(name, loss, if_missing) - self.low) / (self.high - self.low)

    def _within(self, name: str, value: object, if_missing: str = UNKNOWN) -> float:
        number = as_loss(value)
        if number is not None and self.low <= number <= self.high:
            return number
        if is_missing(value):
            rule = "is missing" if value is None else "is not a number"
            remedy = if_missing
        elif is_number(value):
            rule = f"must lie in [{self.low}, {self.high}]"
            remedy = "declare another range with start(..., loss_range=(low, high))"
        else:
            rule, remedy = f"is {kind_of(value)}", f"give a number in [{self.low}, {self.high}]"
        raise LossError.of(name, value, rule, remedy)


def not_one_of(loss: object, reward: object) -> Message | None:
    """The message for both a loss and a reward, or neither; None if exactly one is given."""
    remedy = "give either the loss of the explored arm or its reward"
    if loss is None and reward is None:
        return Message("loss, reward: neither was given", remedy)
    if loss is not None and reward is not None:
        return Message(f"loss = {shown(loss)}, reward = {shown(reward)}: both were given", remedy)
    return None
