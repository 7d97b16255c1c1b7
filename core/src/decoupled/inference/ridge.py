"""A ridge regression of losses on contexts, one for each arm: the model of the doubly robust
estimate.

A prediction may use the past alone, or the estimate would be biased. Decisions are cut into blocks,
in the order in which they were made, and a block is predicted by a fit to the losses that were
known before its first decision. Each block ends half as far again as the last, so that a log of a
million decisions takes 28 fits.
"""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..base.arrays import Floats, Ints
from ..base.validation import is_missing

PENALTY = 5.0  # as many losses of a segment as the mean of all is worth
FIRST = 16  # decisions of the first block, which is predicted by the mean alone
GROWTH = 1.5
# So that time is linear in decisions and fields: the fields that most contexts have, and the values
# of a field that have a column of their own, those seen first, of all fields together and of one;
# the others share one.
MOST_FIELDS, MOST_COLUMNS, MOST_VALUES = 32, 128, 64
_CHUNK = 20_000  # rows that are held as a matrix at a time
_FAR = 4.0  # standard deviations beyond which a number counts as this far


class Design:
    """The contexts of a log as columns: numbers, scaled, and an indicator for each value of every
    other field.

    A field is a number if all its values are. A missing number counts as the mean, another missing
    value as a value.

    >>> design = Design([{"kind": "a", "size": 3}, {"kind": "b"}, {"size": 5}])
    >>> design.matrix(np.arange(3), np.array([4.0]), np.array([1.0])).tolist()
    [[-1.0, 1.0, 0.0, 0.0], [0.0, 0.0, 1.0, 0.0], [1.0, 0.0, 0.0, 1.0]]
    """

    def __init__(self, contexts: Sequence[Mapping[str, Any]]) -> None:
        found = Counter(name for context in contexts for name in context)
        self.unused = max(len(found) - MOST_FIELDS, 0)
        fields = [name for name, _ in found.most_common(MOST_FIELDS)]
        columns = {name: [context.get(name) for context in contexts] for name in fields}
        numeric = [name for name in fields if all(map(_is_number_or_none, columns[name]))]
        self.numbers: Floats = np.array(
            [
                [math.nan if value is None else float(value) for value in columns[name]]
                for name in numeric
            ]
        ).reshape(len(numeric), len(contexts))
        coded = [name for name in fields if name not in numeric]
        self.codes = [
            _codes(columns[name], min(MOST_VALUES, MOST_COLUMNS // len(coded))) for name in coded
        ]
        self._widths = [int(codes.max(initial=0)) + 1 for codes in self.codes]

    def scales(self, rows: Ints) -> tuple[Floats, Floats]:
        """The mean and the standard deviation of every number in some rows; 1 where it never
        varies.
        """
        chosen = self.numbers[:, rows]
        known = ~np.isnan(chosen)
        if (
            chosen.size > 0
        ):  # clipped, so that a few values that are far out do not make all others equal
            ranked = np.sort(chosen, axis=1)  # those that are missing come last
            places = np.maximum(known.sum(axis=1) - 1, 0)[:, None] * np.array([1, 3]) // 4
            low, high = np.take_along_axis(ranked, places, axis=1).T[:, :, None]
            chosen = np.clip(chosen, low - _FAR * (high - low), high + _FAR * (high - low))
        count = np.maximum(known.sum(axis=1), 1)
        means = np.where(known, chosen, 0.0).sum(axis=1) / count
        spread = np.sqrt((np.where(known, chosen - means[:, None], 0.0) ** 2).sum(axis=1) / count)
        return means, np.where(spread > 0.0, spread, 1.0)

    def matrix(self, rows: Ints, means: Floats, spreads: Floats) -> Floats:
        """The columns of some rows, one row each."""
        found: Floats = np.zeros((len(rows), len(self.numbers) + sum(self._widths)))
        scaled = (self.numbers[:, rows] - means[:, None]) / spreads[:, None]
        found[:, : len(means)] = np.clip(np.nan_to_num(scaled, nan=0.0), -_FAR, _FAR).T
        start = len(means)
        for codes, width in zip(self.codes, self._widths, strict=True):
            found[np.arange(len(rows)), start + codes[rows]] = 1.0
            start += width
        return found


def _is_number_or_none(value: Any) -> bool:
    return value is None or (isinstance(value, (int, float)) and not isinstance(value, bool))


def _codes(values: list[Any], most: int) -> Ints:
    """The number of each value, in the order in which values are first seen."""
    found: dict[Any, int] = {}
    for value in values:
        found.setdefault(None if is_missing(value) else value, min(len(found), most))
    return np.array([found[None if is_missing(value) else value] for value in values], np.int64)


def ridge(
    design: Design, mine: Ints, loss: Floats, settled: Floats, made: Floats, level: Floats
) -> Floats:
    """What an arm's regression predicts for every decision, given when all of them were made.

    `mine` are the decisions that explored the arm and whose losses are known, in the order in which
    these were settled. `level` is, for every decision, the mean of the losses that were known of
    the arm: what a prediction begins from.
    """
    predicted = level.copy()
    order = np.argsort(made, kind="stable")
    for start, stop in _blocks(len(made)):
        block = order[start:stop]
        known = int(np.searchsorted(settled, made[block[0]], side="left"))
        if known > 0:
            means, spreads = design.scales(mine[:known])
            rest = loss[:known] - float(loss[:known].mean())
            found = _fit(design, mine[:known], rest, means, spreads)
            for some in _chunks(block):
                # The fit is about the mean that it knew, and the level may know later losses: it
                # wins in time.
                predicted[some] = level[some] + design.matrix(some, means, spreads) @ found
    return np.asarray(np.clip(predicted, 0.0, 1.0))


def _blocks(count: int) -> list[tuple[int, int]]:
    ends = [FIRST]
    while ends[-1] < count:
        ends.append(math.ceil(GROWTH * ends[-1]))
    return list(zip(ends[:-1], np.minimum(ends[1:], count).tolist(), strict=True))


def _chunks(rows: Ints) -> list[Ints]:
    return [rows[start : start + _CHUNK] for start in range(0, len(rows), _CHUNK)]


def _fit(design: Design, rows: Ints, rest: Floats, means: Floats, spreads: Floats) -> Floats:
    size = len(design.matrix(rows[:0], means, spreads).T)
    gram: Floats = PENALTY * np.eye(size)
    sums: Floats = np.zeros(size)
    for start, some in zip(range(0, len(rows), _CHUNK), _chunks(rows), strict=True):
        columns = design.matrix(some, means, spreads)
        gram += columns.T @ columns
        sums += columns.T @ rest[start : start + len(some)]
    return np.asarray(np.linalg.solve(gram, sums), np.float64)
