"""The leader by mean loss and its challenger, the arm that is hardest to tell from it.

This is the rule of `TopTwo`, for arms that another law explores as well. Two means of each arm are kept: of its losses,
and of its losses less the running mean of all losses at that time. If the level of all losses moves, arms seen at
different times compare only by the second; if it does not, the first has less noise. Whichever has predicted losses
better so far is used.
"""

from typing import NamedTuple

from ...base.arrays import Floats
from ..jit import compiled


class Records(NamedTuple):
    """What is known of each arm: the number of its losses, their sum, and their sum less the level."""

    counts: Floats
    sums: Floats
    centred: Floats


@compiled
def mean_of(sums: Floats, counts: Floats, arm: int) -> float:
    """The mean of an arm that was seen."""
    return sums[arm] / counts[arm]


@compiled
def leader_of(counts: Floats, sums: Floats, start: int) -> int:
    """The seen arm with the smallest mean, -1 if none was seen; of tied arms the first one from `start` on."""
    arms = len(counts)
    found, smallest = -1, 0.0
    for k in range(arms):
        arm = start + k if start + k < arms else start + k - arms
        if counts[arm] > 0.0:
            mean = sums[arm] / counts[arm]
            if found < 0 or mean < smallest:
                found, smallest = arm, mean
    return found


@compiled
def challenger_of(counts: Floats, sums: Floats, leader: int, slack: float, start: int) -> int:
    """The seen arm other than the leader with the least (mean - leader's + slack)^2 / (1 / N + 1 / N_leader).

    -1 if there is none; of tied arms the first one from `start` on.
    """
    arms = len(counts)
    smallest, share = sums[leader] / counts[leader], 1.0 / counts[leader]
    found, top, bottom = -1, 0.0, 1.0
    for k in range(arms):
        arm = start + k if start + k < arms else start + k - arms
        if arm != leader and counts[arm] > 0.0:
            inverse = 1.0 / counts[arm]
            lag = sums[arm] * inverse - smallest + slack
            # Fractions are compared without dividing.
            if found < 0 or lag * lag * bottom < top * (inverse + share):
                found, top, bottom = arm, lag * lag, inverse + share
    return found
