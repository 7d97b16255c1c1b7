"""Evidence that one arm is worse than another: the logarithm of a supermartingale that starts at 1.

It exceeds log(1 / risk) at some moment with a probability of at most `risk`, unless the arm is worse. So exp(-evidence)
is a p-value that may be watched, and a difference of arms is bounded below by the smallest one without enough evidence
against it.

Unlike `boundary`, this also serves arms whose losses are compared unweighted. If mu <= m <= nu for two arms, the
evidence of the first arm against "my mean is at most m" and that of the second against "mine is at least m" come from
different rounds. So their product is a supermartingale, and its minimum over m bears evidence against mu <= nu.
"""

import numpy as np

from ..base.arrays import Floats, Ints
from . import shares
from .boundary import log_wealth, log_wealth_of_difference
from .pairs import Pairs
from .sums import Sums

_RIVALS = 50
_STEPS = 30  # halvings of an interval of means


def weighted_evidence(sums: Sums, arms: Ints) -> Floats:
    """The evidence that each of these arms (rows) is worse than a rival (columns), from weighted losses.

    The rivals are the arms with the most gains: all of them, unless there are many, since the evidence of every pair
    would take seconds with a thousand arms.
    """
    moments = np.array([sums.arms[arm].comparable for arm in arms.tolist()])
    rivals = np.argsort(-moments[:, 2], kind="stable")[:_RIVALS]
    loss, losses = moments[:, 0], moments[:, 1]
    gain, gains = moments[rivals, 2], moments[rivals, 3]
    either = loss[:, None] + gain
    evidence: Floats = log_wealth_of_difference(
        either - sums.rounds, losses[:, None] + gains + sums.rounds - 2.0 * either
    )
    evidence[rivals, np.arange(len(rivals))] = 0.0  # an arm is not its own rival
    return evidence


def paired_evidence(pairs: Pairs, arms: Ints) -> Floats:
    """The same from arms compared two by two."""
    both = np.ix_(arms, arms)
    evidence = log_wealth_of_difference(pairs.differences[both], pairs.squares[both])
    np.fill_diagonal(evidence, 0.0)
    return evidence


def plain_evidence(sums: Sums, arms: Ints, rival: int, by: float = 0.0, times: float = 1.0) -> Floats:
    """The evidence that each of these arms is worse than one rival by more than `by`, from the losses seen of them.

    `times` multiplies all that was seen, for a look ahead.
    """
    moments = times * np.array([sums.arms[arm].plain for arm in arms.tolist()])
    seen = times * np.array([sums.arms[arm].seen for arm in arms.tolist()], np.float64)
    other = times * np.array(sums.arms[rival].plain)
    theirs_seen, gain, gains = (
        np.full(len(seen), each) for each in (times * sums.arms[rival].seen, other[2], other[3])
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


def lower_plain_difference(sums: Sums, risk: float, arm: int, rival: int) -> float:
    """A lower bound of an arm's mean loss minus a rival's, if neither changes."""
    arms = np.array([arm])
    enough = -np.log(risk * shares.of_lasting_difference(sums, arms, rival)[0])
    low, high = -1.0, 1.0
    while high - low > 1e-6:
        middle = 0.5 * (low + high)
        if plain_evidence(sums, arms, rival, middle)[0] >= enough:
            low = middle
        else:
            high = middle
    return low
