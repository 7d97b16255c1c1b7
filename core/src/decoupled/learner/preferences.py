"""Preferences as losses: which of a decision's two arms did better."""

from typing import Literal, TypeAlias, get_args

from ..base.validation import one_of
from .loss_range import LossRange

Preference: TypeAlias = Literal["explore", "tie", "exploit"]
"""Which of the two arms of a decision did better; "tie" if neither."""
PREFERENCES: tuple[Preference, ...] = get_args(Preference)
_SCALED = {"explore": 0.0, "tie": 0.5, "exploit": 1.0}


def preference_loss(preference: Preference, loss_range: tuple[float, float] = (0.0, 1.0)) -> float:
    """The loss of the explored arm if all that is known is which of the two arms won.

    If the explored arm wins, its loss is the lowest of the range; if the exploited arm wins, the highest; for a tie,
    the middle. If arm i beats arm j with probability 1/2 + (l_j - l_i) / 2, this loss has the mean
    1/2 + (l_explore - l_exploit) / 2: the exploited arm shifts all arms alike, so the differences between arms are
    those of the losses l, halved.

    Args:
        preference: the winner, "explore" or "exploit", or "tie".
        loss_range: the range of losses of the learner that will observe it.

    >>> import decoupled as dc
    >>> dc.preference_loss("explore"), dc.preference_loss("tie"), dc.preference_loss("exploit", (0, 250))
    (0.0, 0.5, 250.0)
    """
    low, high = LossRange.checked(loss_range)
    return low + _SCALED[one_of("preference", preference, PREFERENCES)] * (high - low)
