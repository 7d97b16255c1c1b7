"""The leader by mean loss and its challenger, the arm that is hardest to tell from it.

This is the rule of `TopTwo`, for arms that another law explores as well. The loops have no branches, since which arm is
best so far cannot be predicted: with eight arms that takes a third of the time.
"""

import math

from ...base.arrays import Floats
from ..jit import compiled


@compiled
def fill_seen_means(means: Floats, inverses: Floats, out: Floats) -> None:
    """Fill the means of the arms, infinite for one not yet seen; `inverses` has 1 / N, and 0 for an unseen arm."""
    for arm in range(len(out)):
        out[arm] = means[arm] if inverses[arm] > 0.0 else math.inf


@compiled
def fill_costs(means: Floats, inverses: Floats, leader: int, slack: float, out: Floats) -> None:
    """Fill (mean - leader's + slack)^2 / (1 / N + 1 / N_leader) for each arm, infinite for the leader.

    The arm with the least is the challenger. All arms must have been seen.
    """
    edge, share = slack - means[leader], inverses[leader]
    for arm in range(len(out)):
        lag = means[arm] + edge
        out[arm] = lag * lag / (inverses[arm] + share)
    out[leader] = math.inf


@compiled
def least_of(values: Floats) -> float:
    """The smallest value, in four lanes, so that comparisons need not wait for each other."""
    a = b = c = d = math.inf
    whole = len(values) - len(values) % 4
    for k in range(0, whole, 4):
        a = min(values[k], a)
        b = min(values[k + 1], b)
        c = min(values[k + 2], c)
        d = min(values[k + 3], d)
    for k in range(whole, len(values)):
        a = min(values[k], a)
    return min(min(a, b), min(c, d))


@compiled
def count_of_value(values: Floats, value: float) -> int:
    """How many places have a value."""
    count = 0
    for k in range(len(values)):
        count += values[k] == value
    return count


@compiled
def place_of_value(values: Floats, value: float) -> int:
    """The first place of a value that is there."""
    place = 0
    while values[place] != value:
        place += 1
    return place
