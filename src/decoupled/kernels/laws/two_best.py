"""The leader by mean loss and its challenger, the arm that is hardest to tell from it.

This is the rule of `TopTwo`, for arms that another law explores as well. Ties go to the first arm from `start` on, going
round, so that a random start favours no arm.
"""

from ...base.arrays import Floats
from ..jit import compiled


@compiled
def leader_of(means: Floats, inverses: Floats, start: int) -> int:
    """The seen arm with the smallest mean, -1 if none was seen; `inverses` has 1 / N, and 0 for an unseen arm."""
    found = _least_mean(means, inverses, start, len(means), -1)
    return _least_mean(means, inverses, 0, start, found)


@compiled
def _least_mean(means: Floats, inverses: Floats, first: int, end: int, found: int) -> int:
    for arm in range(first, end):
        if inverses[arm] > 0.0 and (found < 0 or means[arm] < means[found]):
            found = arm
    return found


@compiled
def challenger_of(means: Floats, inverses: Floats, leader: int, slack: float, start: int) -> int:
    """The arm other than the leader with the least (mean - leader's + slack)^2 / (1 / N + 1 / N_leader).

    -1 if there is none. All arms must have been seen.
    """
    edge, share = slack - means[leader], inverses[leader]
    found = -1
    top, bottom = 0.0, 0.0  # of the smallest fraction; fractions are compared without dividing
    for part in range(2):
        first, end = (start, len(means)) if part == 0 else (0, start)
        for arm in range(first, end):
            lag, whole = means[arm] + edge, inverses[arm] + share
            if arm != leader and (found < 0 or lag * lag * bottom < top * whole):
                found, top, bottom = arm, lag * lag, whole
    return found
