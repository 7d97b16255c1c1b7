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
FIRST_BLOCK = 16  # decisions, which are predicted by the mean alone
GROWTH = 1.5  # of the end of a block to that of the one before
# So that time is linear in decisions and fields: the fields that most contexts have, and the values
# of a field that have a column of their own, those seen first, of all fields together and of one;
# the others share one.
MOST_FIELDS = 32
MOST_COLUMNS = 128
MOST_VALUES = 64
_CHUNK = 20_000  # rows that are held as a matrix at a time
_FARTHEST = 4.0  # standard deviations; a number beyond counts as this far


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
        field_counts = Counter(name for context in contexts for name in context)
        self.unused = max(len(field_counts) - MOST_FIELDS, 0)
        fields = [name for name, _ in field_counts.most_common(MOST_FIELDS)]
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
        """The mean and the standard deviation of every number in these rows; 1 if constant."""
        numbers = self.numbers[:, rows]
        is_present = ~np.isnan(numbers)
        if numbers.size > 0:
            # Clipped, so that a few values that are far out do not make all others equal.
            ranked = np.sort(numbers, axis=1)  # those that are missing come last
            places = np.maximum(is_present.sum(axis=1) - 1, 0)[:, None] * np.array([1, 3]) // 4
            low, high = np.take_along_axis(ranked, places, axis=1).T[:, :, None]
            reach = _FARTHEST * (high - low)
            numbers = np.clip(numbers, low - reach, high + reach)
        count = np.maximum(is_present.sum(axis=1), 1)
        means = np.where(is_present, numbers, 0.0).sum(axis=1) / count
        deviations = np.where(is_present, numbers - means[:, None], 0.0)
        spread = np.sqrt((deviations**2).sum(axis=1) / count)
        return means, np.where(spread > 0.0, spread, 1.0)

    def matrix(self, rows: Ints, means: Floats, spreads: Floats) -> Floats:
        """The columns of these rows: scaled numbers, then an indicator for each other value."""
        matrix: Floats = np.zeros((len(rows), len(self.numbers) + sum(self._widths)))
        scaled = (self.numbers[:, rows] - means[:, None]) / spreads[:, None]
        matrix[:, : len(means)] = np.clip(np.nan_to_num(scaled, nan=0.0), -_FARTHEST, _FARTHEST).T
        start = len(means)
        for codes, width in zip(self.codes, self._widths, strict=True):
            matrix[np.arange(len(rows)), start + codes[rows]] = 1.0
            start += width
        return matrix


def _is_number_or_none(value: Any) -> bool:
    return value is None or (isinstance(value, (int, float)) and not isinstance(value, bool))


def _codes(values: list[Any], most: int) -> Ints:
    """The number of each value, in the order in which values are first seen."""
    present = [None if is_missing(value) else value for value in values]
    code_of: dict[Any, int] = {}
    for value in present:
        code_of.setdefault(value, min(len(code_of), most))
    return np.array([code_of[value] for value in present], np.int64)


def ridge(
    design: Design,
    rows_of_arm: Ints,
    loss: Floats,
    settled_at: Floats,
    made_at: Floats,
    level: Floats,
) -> Floats:
    """What an arm's regression predicts for every decision.

    Args:
        design: the contexts of all decisions.
        rows_of_arm: the decisions that explored the arm and whose losses are known, in the order in
            which these were settled.
        loss: the losses of those decisions.
        settled_at: when those losses were settled.
        made_at: when each decision, of all, was made.
        level: for every decision, the mean of the losses that were known of the arm: what a
            prediction begins from.
    """
    predicted = level.copy()
    order = np.argsort(made_at, kind="stable")
    for start, stop in _blocks(len(made_at)):
        block = order[start:stop]
        known_count = int(np.searchsorted(settled_at, made_at[block[0]], side="left"))
        if known_count == 0:
            continue
        rows = rows_of_arm[:known_count]
        losses = loss[:known_count]
        means, spreads = design.scales(rows)
        residuals = losses - float(losses.mean())
        coefficients = _fit(design, rows, residuals, means, spreads)
        for chunk in _chunks(block):
            # The fit is about the mean that it knew, and the level may know later losses: it wins
            # in time.
            matrix = design.matrix(chunk, means, spreads)
            predicted[chunk] = level[chunk] + matrix @ coefficients
    return np.asarray(np.clip(predicted, 0.0, 1.0))


def _blocks(count: int) -> list[tuple[int, int]]:
    """The first decision of each block, and the first one after it; all but the first block."""
    ends = [FIRST_BLOCK]
    while ends[-1] < count:
        ends.append(math.ceil(GROWTH * ends[-1]))
    return list(zip(ends[:-1], np.minimum(ends[1:], count).tolist(), strict=True))


def _chunks(rows: Ints) -> list[Ints]:
    return [rows[start : start + _CHUNK] for start in range(0, len(rows), _CHUNK)]


def _fit(design: Design, rows: Ints, residuals: Floats, means: Floats, spreads: Floats) -> Floats:
    """The coefficients of a ridge regression of residuals on the columns of these rows."""
    size = len(design.matrix(rows[:0], means, spreads).T)
    gram: Floats = PENALTY * np.eye(size)
    sums: Floats = np.zeros(size)
    for start, chunk in zip(range(0, len(rows), _CHUNK), _chunks(rows), strict=True):
        columns = design.matrix(chunk, means, spreads)
        gram += columns.T @ columns
        sums += columns.T @ residuals[start : start + len(chunk)]
    return np.asarray(np.linalg.solve(gram, sums), np.float64)
