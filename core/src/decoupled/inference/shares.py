"""How the risk is shared, so that everything in a family of statements holds together.

There are three families: the mean loss of every arm and of what was exploited; the difference of any two arms; the
difference between any arm and what was exploited. Each holds as a whole, at all moments, with probability 1 - risk.
Arms that come later need a share too. So the arms of the start have nine tenths of the risk, and the b-th addition has
a tenth of it, divided by b (b + 1): the shares never add up to more than 1, however often arms are added.
"""

from typing import TYPE_CHECKING

import numpy as np

from ..base.arrays import Floats, Ints

if TYPE_CHECKING:
    from .sums import Sums

_START = 0.9


def of_batch(batch: int) -> float:
    """The share of all arms that came together.

    >>> [of_batch(0), round(of_batch(1), 4), round(of_batch(2), 4)]
    [0.9, 0.05, 0.0167]
    """
    return _START if batch == 0 else (1.0 - _START) / (batch * (batch + 1))


def of_arms(sums: "Sums") -> tuple[Floats, float]:
    """The share of each arm's interval, and that of what was exploited."""
    sizes = np.bincount(sums.batch, minlength=sums.batches + 1)
    sizes[0] += 1  # what was exploited
    shares = np.array([of_batch(batch) for batch in range(len(sizes))]) / np.maximum(sizes, 1)
    return shares[sums.batch], float(shares[0])


def of_served_difference(sums: "Sums") -> float:
    """The share of each end of the difference between an arm and what was exploited, since arms were last added."""
    return of_batch(sums.batches) / (2 * sums.contenders)


def of_pairs(sums: "Sums", firsts: Ints, second: int) -> Floats:
    """The share of "the first arm is worse than the second" in a comparison that never begins anew."""
    later = np.maximum(sums.batch[firsts], sums.batch[second])
    return _in_batches(later, np.array(sums.compared))


def of_new_pairs(sums: "Sums") -> float:
    """The same in a comparison that began anew when arms were last added."""
    return of_batch(sums.batches) / max(sums.compared[-1], 1)


def of_rivals(sums: "Sums", arm: int, rivals: Ints) -> Floats:
    """The share of "the arm is worse than this rival", if nothing is to be said about any other arm."""
    others = np.maximum(np.delete(sums.batch, arm), sums.batch[arm])
    later = np.maximum(sums.batch[rivals], sums.batch[arm])
    return _in_batches(later, np.bincount(others, minlength=sums.batches + 1))


def _in_batches(batches: Ints, counts: Ints) -> Floats:
    whole = np.array([of_batch(batch) for batch in range(len(counts))])
    shares: Floats = whole[batches] / np.maximum(counts[batches], 1)
    return shares
