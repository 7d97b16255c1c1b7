"""Evidence that one arm is worse than another, of arms that are not followed as `pairs`, and of losses seen unweighted.

It is the logarithm of a supermartingale that starts at 1. It exceeds log(1 / risk) at some moment with a probability of
at most `risk`, unless the arm is worse. So exp(-evidence) is a p-value that may be watched, and a difference of arms is
bounded below by the smallest one without enough evidence against it.

Losses are compared unweighted like this. If mu <= m <= nu for two arms, the evidence of the first arm against "my mean is
at most m" and that of the second against "mine is at least m" come from different rounds. So their product is a
supermartingale, and its minimum over m bears evidence against mu <= nu.
"""

import numpy as np

from ..base.arrays import Floats, Ints
from ..kernels.betting import COMPARABLE, OTHER, PLAIN, ROUNDS, SEEN
from .boundary import log_wealth, log_wealth_of_difference
from .sums import Sums

_RIVALS = 50
_STEPS = 30  # halvings of an interval of means


def weighted_evidence(sums: Sums, arms: Ints) -> tuple[Floats, Ints]:
    """The evidence that each of these arms (rows) is worse than a rival (columns), from weighted losses; and the rivals.

    The rivals are the arms with the most gains: all of them, unless there are many, since the evidence of every pair
    would take seconds with a thousand arms.
    """
    moments = sums.moments[arms, COMPARABLE:OTHER]
    rivals = np.argsort(-moments[:, 2], kind="stable")[:_RIVALS]
    total, squares = weighted_difference(sums, arms[:, None], arms[rivals])
    evidence = log_wealth_of_difference(total, squares)
    evidence[rivals, np.arange(len(rivals))] = 0.0  # an arm is not its own rival
    return evidence, arms[rivals]


def weighted_difference(sums: Sums, arms: Ints, rivals: Ints) -> tuple[Floats, Floats]:
    """The sum and the sum of squares, over comparable rounds, of "loss of an arm + gain of a rival - 1"."""
    rounds = sums.rounds[ROUNDS]
    loss, losses = sums.moments[arms, COMPARABLE], sums.moments[arms, COMPARABLE + 1]
    gain, gains = sums.moments[rivals, COMPARABLE + 2], sums.moments[rivals, COMPARABLE + 3]
    either = loss + gain
    return either - rounds, losses + gains + rounds - 2.0 * either


def plain_evidence(sums: Sums, arms: Ints, rival: int, by: float = 0.0, times: float = 1.0) -> Floats:
    """The evidence that each of these arms is worse than one rival by more than `by`, from the losses seen of them.

    `times` multiplies all that was seen, for a look ahead.
    """
    moments = times * sums.moments[arms, PLAIN:COMPARABLE]
    seen = times * sums.counts[arms, SEEN]
    other = times * sums.moments[rival, PLAIN:COMPARABLE]
    theirs_seen, gain, gains = (
        np.full(len(seen), each) for each in (times * sums.counts[rival, SEEN], other[2], other[3])
    )

    def at(mean: Floats) -> tuple[Floats, Floats]:
        mine, down = log_wealth(seen, moments[:, 0], moments[:, 1], mean + by)
        theirs, up = log_wealth(theirs_seen, gain, gains, 1.0 - mean)
        return mine + theirs, down - up

    # Convex in the mean, so its slope tells on which side the minimum lies.
    low, high = np.full(len(seen), max(0.0, -by)), np.full(len(seen), min(1.0, 1.0 - by))
    for _ in range(_STEPS):
        middle = 0.5 * (low + high)
        falling = at(middle)[1] < 0.0
        low, high = np.where(falling, middle, low), np.where(falling, high, middle)
    return at(0.5 * (low + high))[0]


def lower_plain_difference(sums: Sums, arm: int, rival: int) -> float:
    """A lower bound of an arm's mean loss minus a rival's, if neither changes."""
    arms = np.array([arm])
    enough = -np.log(sums.risk * sums.share_of_pairs(arms, rival)[0])
    low, high = -1.0, 1.0
    while high - low > 1e-6:
        middle = 0.5 * (low + high)
        if plain_evidence(sums, arms, rival, middle)[0] >= enough:
            low = middle
        else:
            high = middle
    return low
