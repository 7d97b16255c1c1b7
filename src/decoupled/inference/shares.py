"""How the risk is shared, so that everything in a family of statements holds together.

There are three families: the mean loss of every arm and of what was exploited; the difference of any two arms; the
difference between any arm and what was exploited. Each holds as a whole, at all moments, with probability 1 - risk.
Arms that come later need a share too. So the arms of the start have nine tenths of the risk, and the b-th addition has
a tenth of it, divided by 2^b: the shares never add up to more than 1, however often arms are added.
"""

import numpy as np

from ..base.arrays import Floats, Ints
from .sums import Sums

_START, _LATER = 0.9, 0.1


def of_batch(batch: int) -> float:
    """The share of all arms that came together.

    >>> [of_batch(0), of_batch(1), of_batch(2)]
    [0.9, 0.05, 0.025]
    """
    return _START if batch == 0 else _LATER * 0.5**batch


def of_arms(sums: Sums) -> tuple[Floats, float]:
    """The share of each arm's interval, and that of what was exploited."""
    batches = np.array([arm.batch for arm in sums.arms])
    sizes = np.bincount(batches, minlength=sums.batches + 1)
    sizes[0] += 1  # what was exploited
    shares = np.array([of_batch(batch) for batch in range(len(sizes))]) / np.maximum(sizes, 1)
    return shares[batches], float(shares[0])


def of_difference(sums: Sums) -> float:
    """The share of "one arm is worse than another" in the comparison that began with the last addition of arms."""
    return of_batch(sums.batches) / (sums.contenders * (sums.contenders - 1))


def of_served_difference(sums: Sums) -> float:
    """The share of each end of the difference between an arm and what was exploited, in the same comparison."""
    return of_batch(sums.batches) / (2 * sums.contenders)


def of_lasting_difference(sums: Sums, firsts: Ints, second: int) -> Floats:
    """The share of "the first arm is worse than the second" in a comparison that never begins anew."""
    batches = np.array([arm.batch for arm in sums.arms])
    ever = np.cumsum(np.bincount(batches, minlength=sums.batches + 1))
    pairs = np.diff(ever * (ever - 1), prepend=0)
    later = np.maximum(batches[firsts], batches[second])
    shares: Floats = np.array([of_batch(batch) for batch in later.tolist()]) / np.maximum(pairs[later], 1)
    return shares
