"""Losses as a user gives them: losses or rewards in a range, preferences, and predictions."""

from typing import Literal, NamedTuple, TypeAlias, get_args

from ..base.validation import as_loss, is_missing, is_number, kind_of, loss_ends, one_of
from ..errors import LossError, Message, shown

UNKNOWN = "report the loss when it is known; feedback may come late, or never"


class LossRange(NamedTuple):
    """The lowest and highest possible loss. Rewards use the same range, mirrored.

    >>> LossRange.checked((0, 10)).scaled(3.0), LossRange.checked((0, 10)).scaled(None, reward=3.0)
    (0.3, 0.7)
    """

    low: float
    high: float

    @classmethod
    def checked(cls, ends: object) -> "LossRange":
        """Check the range that a user gave."""
        return cls(*loss_ends(ends))

    def scaled(self, loss: object, reward: object = None) -> float:
        """The loss on a scale from 0 to 1, given either a loss or a reward."""
        low, high = self
        if reward is None and type(loss) is float and low <= loss <= high:  # nearly always
            return (loss - low) / (high - low)
        remedy = "give either the loss of the explored arm or its reward"
        if loss is None and reward is None:
            raise LossError(Message("loss, reward: neither was given", remedy))
        if reward is None:
            return self.scaled_as("loss", loss)
        if loss is not None:
            problem = f"loss = {shown(loss)}, reward = {shown(reward)}: both were given"
            raise LossError(Message(problem, remedy))
        return (high - self._within("reward", reward)) / (high - low)

    def scaled_as(self, name: str, loss: object, if_missing: str = UNKNOWN) -> float:
        """A loss on a scale from 0 to 1.

        `name` names it in an error; `if_missing` is the remedy if it is missing.
        """
        if type(loss) is float and self.low <= loss <= self.high:
            return (loss - self.low) / (self.high - self.low)
        return (self._within(name, loss, if_missing) - self.low) / (self.high - self.low)

    def _within(self, name: str, value: object, if_missing: str = UNKNOWN) -> float:
        """A loss of the user as a number of the range; an error if it is none."""
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
            rule = f"is {kind_of(value)}"
            remedy = f"give a number in [{self.low}, {self.high}]"
        raise LossError.of(name, value, rule, remedy)


Preference: TypeAlias = Literal["explore", "tie", "exploit"]
"""Which of the two arms of a decision did better; "tie" if neither did."""
PREFERENCES: tuple[Preference, ...] = get_args(Preference)
_SCALED = {"explore": 0.0, "tie": 0.5, "exploit": 1.0}


def preference_loss(preference: Preference, loss_range: tuple[float, float] = (0.0, 1.0)) -> float:
    """The loss of the explored arm if you only know which of the two arms won.

    If the explored arm wins, its loss is the lowest of the range; if the exploited arm wins, the
    highest; for a tie, the middle. If arm i beats arm j with probability 1/2 + (l_j - l_i) / 2,
    this loss has the mean 1/2 + (l_explore - l_exploit) / 2: the exploited arm shifts all arms
    alike, so differences between arms are halved.

    Args:
        preference: the winner, "explore" or "exploit", or "tie".
        loss_range: the range of losses of the learner that will observe it.

    >>> import decoupled as dc
    >>> dc.preference_loss("explore"), dc.preference_loss("tie")
    (0.0, 0.5)
    >>> dc.preference_loss("exploit", loss_range=(0, 250))
    250.0
    """
    low, high = LossRange.checked(loss_range)
    return low + _SCALED[one_of("preference", preference, PREFERENCES)] * (high - low)
