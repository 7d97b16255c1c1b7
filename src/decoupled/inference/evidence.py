"""Evidence that one arm is worse than another: the logarithm of a supermartingale that starts at 1.

It exceeds log(1 / risk) at some moment with a probability of at most `risk`, unless the arm is worse. So exp(-evidence)
is a p-value that may be watched, and a difference of arms is bounded below by the smallest one without enough evidence
against it.

Unlike `boundary`, this also serves arms whose losses are compared unweighted. If mu <= m <= nu for two arms, the
evidence of the first arm against "my mean is at most m" and that of the second against "mine is at least m" come from
different rounds. So their product is a supermartingale, and its minimum over m bears evidence against mu <= nu.
"""

from collections.abc import Callable

import numpy as np

from ..base.arrays import Floats, Ints
from . import shares
from .boundary import log_wealth, log_wealth_of_difference, lower_mean
from .sums import Sums

_STEPS = 30  # halvings of an interval of means
_FARTHEST = 1e6  # times the observations so far that a look ahead reaches


def weighted_evidence(sums: Sums, arms: Ints) -> Floats:
    """The evidence that each of these arms (rows) is worse than each of them (columns), from weighted losses."""
    moments = np.array([sums.arms[arm].comparable for arm in arms.tolist()])
    loss, losses, gain, gains = moments.T
    either = loss[:, None] + gain
    evidence: Floats = log_wealth_of_difference(
        either - sums.rounds, losses[:, None] + gains + sums.rounds - 2.0 * either
    )
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
    enough = -np.log(risk * shares.of_plain_differences(sums, arms, rival)[0])
    low, high = -1.0, 1.0
    while high - low > 1e-6:
        middle = 0.5 * (low + high)
        if plain_evidence(sums, arms, rival, middle)[0] >= enough:
            low = middle
        else:
            high = middle
    return low


# For verdicts: the p-value of "no other arm is better" for each arm, and the look ahead.


def weighted_chances(sums: Sums, live: Ints) -> Floats:
    """The smallest risk at which weighted losses show, for each arm, that another one is better."""
    evidence = weighted_evidence(sums, live)
    chances: Floats = np.exp(-np.maximum(evidence.max(axis=1), 0.0)) / shares.of_difference(sums)
    return chances


def plain_chances(sums: Sums, live: Ints) -> Floats:
    """The same from unweighted losses, in comparison with the arm whose upper end is the lowest."""
    moments = np.array([sums.arms[arm].plain for arm in live.tolist()])
    seen = np.array([sums.arms[arm].seen for arm in live.tolist()])
    rival = int(live[np.argmax(lower_mean(seen, moments[:, 2], moments[:, 3], 0.05))])
    evidence = np.where(live == rival, 0.0, plain_evidence(sums, live, rival))
    chances: Floats = np.exp(-np.maximum(evidence, 0.0)) / shares.of_plain_differences(sums, live, rival)
    return chances


def weighted_times(sums: Sums, arms: Ints, leader: int, risk: float) -> float:
    """How many times the observations it takes until these arms are out, if all sums grow in proportion."""
    loss, losses = np.array([sums.arms[arm].comparable[:2] for arm in arms.tolist()]).T
    gain, gains = sums.arms[leader].comparable[2:]
    total = loss + gain - sums.rounds
    squares = losses + gains + sums.rounds - 2.0 * (loss + gain)
    goal = -np.log(risk * shares.of_difference(sums))
    if np.any(total <= 0.0):
        return np.inf
    return _times(
        lambda times: float(np.min(log_wealth_of_difference(times * total, times * squares) - goal))
    )


def plain_times(sums: Sums, arms: Ints, leader: int, risk: float) -> float:
    """The same from unweighted losses."""
    seen = np.array([sums.arms[arm].seen for arm in arms.tolist()])
    if sums.arms[leader].seen == 0 or np.any(seen == 0):
        return np.inf
    goals = -np.log(risk * shares.of_plain_differences(sums, arms, leader))
    last = np.argmin(plain_evidence(sums, arms, leader) - goals)
    slowest, goal = arms[last : last + 1], float(goals[last])
    return _times(lambda times: float(plain_evidence(sums, slowest, leader, times=times)[0]) - goal)


def _times(surplus: Callable[[float], float]) -> float:
    """The factor from 1 on at which a surplus of evidence becomes positive, to a few percent."""
    high = 1.0
    while surplus(high) < 0.0:
        high *= 4.0
        if high > _FARTHEST:
            return np.inf
    low = max(high / 4.0, 1.0)
    while high > 1.02 * low:
        middle = np.sqrt(low * high)
        low, high = (low, middle) if surplus(middle) >= 0.0 else (middle, high)
    return high
