"""Many observations added to the sums at once, with the same result to the last bit as one after the other.

One observation takes some tens of small operations, which cost more in Python than they compute. Every sum is a chain
of additions, and `np.add.at` performs such a chain in the order of its indices; so each sum gets the same numbers in the
same order, and is rounded alike.
"""

from collections import Counter
from collections.abc import Sequence
from itertools import groupby

import numpy as np

from ..base.arrays import Floats, Ints
from .pairs import Pairs
from .sums import Moments, Observation, Sums

FEW = 6  # observations; so few are added faster one by one
_COLUMNS = np.arange(4)
_MOST_NUMBERS = 1_000_000  # in the matrices of the laws that are held at once


def add_all(sums: Sums, seen: Sequence[Observation]) -> None:
    """Add observations in their order."""
    for plain, each in groupby(seen, _is_plain):
        group = list(each)
        if plain and not sums.coupled and len(group) > FEW:
            _add_plain(sums, group)
        else:
            for one in group:
                sums.add(one)


def _is_plain(seen: Observation) -> bool:
    """Whether every arm could be explored, and the weight is known: then only the numbers differ."""
    return seen.available is None and seen.weight is not None and seen.weight != 1.0


def _add_plain(sums: Sums, group: list[Observation]) -> None:
    """What `Sums.add` does with each of these."""
    explored = np.array([each.explore for each in group])
    served = np.array([-1 if each.exploit is None else each.exploit for each in group])
    loss = np.array([each.loss for each in group])
    gain = 1.0 - loss
    weight = np.array([each.weight for each in group])
    if sums.pairs is not None:
        add_to_pairs(sums.pairs, [each for each in group if each.law is not None])

    weighted_loss, weighted_gain = weight * loss, weight * gain
    sums.rounds += len(group)
    for arm, count in Counter(explored.tolist()).items():
        sums.arms[arm].seen += count
    _add_moments(sums, "plain", explored, _moments(loss, gain))
    _add_moments(sums, "comparable", explored, _moments(weighted_loss, weighted_gain))
    _add_served(sums, explored, served, weighted_loss, weighted_gain)


def _add_served(sums: Sums, explored: Ints, served: Ints, loss: Floats, gain: Floats) -> None:
    """What `Sums._serve` and `Sums._compare` do."""
    some = served >= 0
    if not some.all():
        explored, served, loss, gain = explored[some], served[some], loss[some], gain[some]
    same = explored == served
    sums.served_rounds += len(served)
    sums.compared += len(served)
    for arm, count in Counter(served.tolist()).items():
        sums.arms[arm].used += count
    their_loss, their_gain = np.where(same, loss, 0.0), np.where(same, gain, 0.0)
    sums.served = _added(sums.served, _moments(their_loss, their_gain))
    above, below = their_gain - 1.0, their_loss - 1.0
    common = _moments(above, below)
    sums.common = _added(sums.common, common)
    # An observation changes two arms, or one if it exploited the arm that it explored.
    arms, changes = np.empty((len(same), 2), np.int64), np.empty((len(same), 2, 4))
    arms[:, 0], arms[:, 1] = served, explored
    changes[:, 0] = 0.0 - common
    changes[:, 1] = _moments(above + loss, below + gain) - common
    counts = np.ones((len(same), 2), bool)
    counts[:, 1] = ~same
    _add_moments(sums, "against", arms[counts], changes[counts])


def add_to_pairs(pairs: Pairs, group: Sequence[Observation]) -> None:
    """What `Pairs.add` does with each of these, whose law is known."""
    arms = len(pairs.weights)
    at_once = max(1, _MOST_NUMBERS // arms**2)
    for start in range(0, len(group), at_once):
        _add_to_pairs(pairs, group[start : start + at_once])


def _add_to_pairs(pairs: Pairs, group: Sequence[Observation]) -> None:
    count, arms = len(group), len(pairs.weights)
    explored = np.array([each.explore for each in group])[:, None]
    laws = np.array([each.law for each in group])
    parts = np.minimum(laws / np.take_along_axis(laws, explored, 1), 1.0)
    parts *= np.array([pairs.above_level(each.loss) for each in group])[:, None]
    np.put_along_axis(parts, explored, 0.0, 1)
    others = np.arange(arms)[None, :]
    cells, changes = np.empty((count, 2, arms), np.int64), np.empty((count, 2, arms))
    cells[:, 0], cells[:, 1] = explored * arms + others, others * arms + explored
    changes[:, 0], changes[:, 1] = parts, -parts
    np.add.at(pairs.differences.reshape(-1), cells.reshape(-1), changes.reshape(-1))
    changes *= changes
    np.add.at(pairs.squares.reshape(-1), cells.reshape(-1), changes.reshape(-1))
    for smaller in np.minimum(laws[:, :, None], laws[:, None, :]):
        pairs.weights += smaller
    pairs.rounds += count


def _moments(loss: Floats, gain: Floats) -> Floats:
    """A row of moments for each observation."""
    rows = np.empty((len(loss), 4))
    rows[:, 0], rows[:, 2] = loss, gain
    np.multiply(rows[:, 0::2], rows[:, 0::2], out=rows[:, 1::2])
    return rows


def _added(moments: Moments, rows: Floats) -> Moments:
    """The moments, with the rows added one after the other."""
    chain = np.empty((len(rows) + 1, 4))
    chain[0], chain[1:] = moments, rows
    added: Moments = np.add.accumulate(chain, axis=0)[-1].tolist()
    return added


def _add_moments(sums: Sums, name: str, arms: Ints, rows: Floats) -> None:
    """Add each row to the moments of that name of its arm."""
    found = sorted(set(arms.tolist()))
    mine = [getattr(sums.arms[arm], name) for arm in found]
    total = np.array(mine).reshape(-1)
    places = np.searchsorted(found, arms) if len(found) < len(sums.arms) else arms
    np.add.at(total, (4 * places[:, None] + _COLUMNS).reshape(-1), rows.reshape(-1))
    for moments, new in zip(mine, total.reshape(-1, 4).tolist(), strict=True):
        moments[:] = new
