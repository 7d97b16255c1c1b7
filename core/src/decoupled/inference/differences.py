"""The difference of two arms, with its interval, by the same evidence as a verdict about them."""

import numpy as np

from ..base.arrays import Floats
from ..kernels.betting import COMPARABLE, OTHER, PLAIN, ROUNDS
from .boundary import lower_difference
from .evidence import lower_plain_difference, weighted_difference
from .interval import Interval
from .sums import Shown, Sums


def difference(sums: Sums, arm: int, other: int, drift: bool) -> Interval:
    """One arm's mean loss minus another's. It excludes 0 if, and only if, the sums have settled the two.

    Once they are settled it stays so. If the evidence has become less since, this is the interval that showed it.
    """
    if arm == other:
        return Interval(0.0, 0.0, 0.0)
    now = difference_now(sums, arm, other, drift)
    if drift != sums.drift:
        return now
    for pair, sign in (((arm, other), 1.0), ((other, arm), -1.0)):
        if pair in sums.settled:
            return now if sign * now[1 if sign > 0.0 else 2] > 0.0 else _signed(sums.settled[pair], sign)
    return Interval.around(now.estimate, min(now.low, 0.0), max(now.high, 0.0))


def difference_now(sums: Sums, arm: int, other: int, drift: bool) -> Interval:
    """The same by the evidence of now alone."""
    # Weights that cannot be right may show more than any two losses differ.
    low, high = (min(_lower(sums, *pair, drift), 1.0) for pair in ((arm, other), (other, arm)))
    return Interval.around(estimated_difference(sums, arm, other, drift), low, -high)


def estimated_difference(sums: Sums, arm: int, other: int, drift: bool) -> float:
    """The estimate alone."""
    one, two = sums.pairs.slots((arm, other)).tolist()
    if drift and min(one, two) >= 0:
        return sums.pairs.difference(one, two)
    mean, their_mean = comparable_means(sums, drift)[[arm, other]]
    return float(mean - their_mean)


def comparable_means(sums: Sums, drift: bool) -> Floats:
    """The estimated mean loss of every arm, over rounds that compare all of them."""
    moments = sums.moments[:, COMPARABLE:OTHER] if drift else sums.moments[:, PLAIN:COMPARABLE]
    return ratio(moments[:, 0], moments[:, 2])


def ratio(loss: Floats, gain: Floats) -> Floats:
    """The self-normalised estimate: weighted losses over weights; 1/2 where nothing was seen."""
    weights = loss + gain
    with np.errstate(invalid="ignore"):
        return np.where(weights > 0.0, loss / np.where(weights > 0.0, weights, 1.0), 0.5)


def _lower(sums: Sums, arm: int, other: int, drift: bool) -> float:
    if not drift:
        return lower_plain_difference(sums, arm, other)
    one, two = sums.pairs.slots((arm, other)).tolist()
    if min(one, two) >= 0:
        share = float(sums.share_of_pairs(np.array([arm]), other)[0])
        return sums.pairs.lower(one, two, sums.risk * share)
    total, squares = weighted_difference(sums, np.array([arm]), np.array([other]))
    bound = lower_difference(sums.rounds[ROUNDS], total, squares, sums.risk * sums.share_of_new_pairs())
    return float(bound[0])


def _signed(shown: Shown, sign: float) -> Interval:
    estimate, low, high, _ = shown
    return Interval(estimate, low, high) if sign > 0.0 else Interval(-estimate, -high, -low)
