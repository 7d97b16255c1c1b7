"""Losses that are a table: arrays, or a recorded log in a CSV or Parquet file.

Every cell is checked.
"""

import hashlib
import math
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import numpy as np

from ..base.arrays import Floats
from ..base.tables import as_numbers, as_values, broken, read_columns
from ..base.validation import as_loss, is_missing, is_number, kind_of, one_of, set_number
from ..errors import Message, ParameterError, near_name
from ..kernels.random.sampling import KINDS
from ..kernels.rounds import Table
from .base import Environment


def checked_cells(array: Any, place: Callable[[int, int], str]) -> Floats:
    """The table as numbers in [0, 1]; `place` names a cell in an error."""
    losses = np.empty(array.shape) if array.dtype.kind == "O" else np.array(array, np.float64)
    if array.dtype.kind == "O":
        for (row, arm), value in np.ndenumerate(array):
            number = as_loss(value)
            if number is None:
                raise _bad_cell(place(row, arm), value)
            losses[row, arm] = number
    is_outside = ~((losses >= 0.0) & (losses <= 1.0))  # NaN is outside too
    if is_outside.any():
        row, arm = np.argwhere(is_outside)[0].tolist()
        raise _bad_cell(place(row, arm), float(losses[row, arm]))
    return losses


def _bad_cell(place: str, value: object) -> ParameterError:
    """The error for a cell of a table that is no loss."""
    rule = "must lie in [0, 1]"
    remedy = "rescale the losses"
    if is_missing(value):
        rule = "is missing, and every row needs the loss of every arm"
        remedy = (
            "drop the row or fill it in; if only the arm tried was recorded, use Learner.replay() "
            "instead"
        )
    elif isinstance(value, float) and math.isinf(value):
        remedy = "drop the row or correct it"
    elif not is_number(value):
        rule = f"is {kind_of(value)}"
        remedy = "give a number in [0, 1]"
    return ParameterError.of(place, value, rule, remedy)


def read_table(path: Any, others: Sequence[str] = ()) -> tuple[Floats, dict[str, list[object]]]:
    """Read a .parquet file, or any other file as CSV, with one column per arm.

    Columns named in `others` hold something else than losses: also return their values, None where
    one is missing.
    """
    file = Path(path).name
    is_text = Path(path).suffix != ".parquet"
    columns = read_columns(Path(path), file)
    if not columns:
        remedy = "write a line of arms' names, then a line of losses for each round"
        raise broken(file, "is empty", remedy)
    _check_header(file, list(columns))
    values: dict[str, list[object]] = {}
    for name in others:
        if name not in columns:
            raise broken(file, f"has no column {name!r}", near_name(name, columns))
        column = columns[name]
        cells = as_values(column) if is_text else np.asarray(column, object).tolist()
        values[name] = [None if is_missing(cell) else cell for cell in cells]
    losses = {name: column for name, column in columns.items() if name not in others}
    _check_count(file, list(losses))
    if is_text:
        losses = {name: _numbers_of(file, name, column) for name, column in losses.items()}
    return _losses_of(losses, file), values


def _numbers_of(file: str, name: str, cells: Sequence[str]) -> Floats:
    """A column of a CSV file as numbers; an error names the first word among them."""
    numbers = as_numbers(cells)
    if isinstance(numbers, int):
        place = _cell(file, numbers, name)
        raise ParameterError.of(place, cells[numbers], "is not a number", "give a number in [0, 1]")
    return numbers


def _cell(file: str, row: int, name: object) -> str:
    return f"{file}: row {row + 1}, column {str(name)!r}"


def _check_header(file: str, names: list[str]) -> None:
    _check_count(file, names)
    if all(_is_number(name) for name in names):
        problem = "begins with numbers instead of the arms' names"
        raise broken(file, problem, "add a header line of names")


def _check_count(file: str, names: list[str]) -> None:
    if len(names) < 2:
        columns = f"one column, {names[0]!r}" if names else "no columns"
        remedy = "give a column for each of two arms or more (in a CSV file, separated by commas)"
        raise broken(file, f"has {columns}", remedy)


def _is_number(text: str) -> bool:
    """Whether a column's name is a number, which means that the file has no header."""
    try:
        float(text)
    except ValueError:
        return False
    return True


def _losses_of(columns: dict[str, Any], file: str) -> Floats:
    """The losses of a file, rows x arms."""
    names = list(columns)
    if len(columns[names[0]]) == 0:
        raise broken(file, "has names but no losses", "add a line of losses for each round")
    arrays = [np.asarray(column) for column in columns.values()]
    is_plain = all(array.dtype.kind in "biuf" for array in arrays)
    table = np.stack([array.astype(np.float64 if is_plain else object) for array in arrays], axis=1)
    return checked_cells(table, lambda row, arm: _cell(file, row, names[arm]))


class Recorded(Environment):
    """An environment that holds arrays, and compares by a digest of them."""

    _digest: str

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Recorded) and self._digest == other._digest

    def __hash__(self) -> int:
        return hash(self._digest)


@dataclass(frozen=True, eq=False, repr=False)
class LossTable(Recorded):
    r"""Rows of losses, and the row of each round.

    Rows are *mean* losses: each round draws a loss of 0 or 1 with the mean of its arm. A *file* is
    a recorded log, whose losses are played back as they are. `noise` overrides either.

    Args:
        rows: mean losses, rows x arms, each in [0, 1]; or the name of a .csv or .parquet file of
            recorded losses.
        index: the row of each round; by default, row t in round t. It repeats if the horizon is
            longer.
        noise: "bernoulli" (a loss is 0 or 1 with that mean), "none" (the loss is the number in the
            table) or "beta". The default is "bernoulli" for rows and "none" for a file.
        concentration: for "beta": a loss is Beta(mean * concentration, (1 - mean) * concentration).

    >>> import decoupled as dc
    >>> log = dc.environments.LossTable(rows=[[0.1, 0.9], [0.8, 0.2]], noise="none")
    >>> log.arms, log.table(horizon=5).row_at.tolist()
    (2, [0, 1, 0, 1, 0])
    >>> dc.environments.LossTable(rows=[[0.1, 0.9], [0.8, 0.2]]).noise
    'bernoulli'
    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "log.csv"
    >>> _ = path.write_text("left,right\n0.1,0.9\n0.8,0.2\n")  # names, then a line for each round
    >>> dc.environments.LossTable(path) == log
    True
    """

    rows: Any = field(metadata={"depth": 2})
    index: Any = field(default=None, metadata={"depth": 1})
    noise: str | None = None
    concentration: float = 10.0

    def __post_init__(self) -> None:
        is_file = isinstance(self.rows, (str, os.PathLike))
        rows = read_table(self.rows)[0] if is_file else checked_rows("rows", self.rows)
        index = _checked_index(self.index, len(rows))
        rows.setflags(write=False)
        index.setflags(write=False)
        object.__setattr__(self, "rows", rows)
        object.__setattr__(self, "index", index)
        if self.noise is None:
            object.__setattr__(self, "noise", "none" if is_file else "bernoulli")
        one_of("noise", self.noise, KINDS)
        concentration = set_number(self, "concentration", 0.0, math.inf, "the default is 10")
        content = hashlib.sha256(repr((rows.shape, self.noise, concentration)).encode())
        content.update(rows.tobytes())
        content.update(index.tobytes())
        object.__setattr__(self, "_digest", content.hexdigest())

    @property
    def arms(self) -> int:  # type: ignore[override]
        """The number of arms."""
        return int(self.rows.shape[1])

    @property
    def label(self) -> str:
        """A short name for tables and figures."""
        return f"LossTable({len(self.rows)} rows, {self.arms} arms)"

    def __repr__(self) -> str:
        return (
            f"LossTable(rows=<{len(self.rows)} x {self.arms}>, index=<{len(self.index)}>, "
            f"noise={self.noise!r}, concentration={self.concentration})"
        )

    @classmethod
    def examples(cls) -> tuple[Self, ...]:
        return (cls([[0.1, 0.9], [0.8, 0.2]], [0, 1, 1], noise="beta", concentration=4.0),)

    def table(self, horizon: int) -> Table:
        row_at = np.resize(self.index, horizon)
        return Table(np.array(self.rows), row_at, KINDS.index(self.noise), self.concentration)


def _as_array(values: Any, kind: Any = None) -> Any:
    """Values as an array; an empty one if they do not make one."""
    try:
        return np.asarray(values, kind)
    except (TypeError, ValueError):  # rows of different lengths
        return np.empty(0, object)


def checked_rows(name: str, rows: Any) -> Floats:
    """Losses as an array of rows x arms; an error names the argument `name`."""
    array = _as_array(rows)
    if array.dtype.kind not in "biuf":  # anything else is checked cell by cell, as given
        array = _as_array(rows, object)
    if array.ndim != 2 or len(array) < 1 or array.shape[1] < 2:
        _refuse_ragged(name, rows)
        rule = "must be rows x arms of numbers, with at least two arms"
        raise ParameterError(Message(f"{name}: {rule}", "give a 2-D array"))
    return checked_cells(array, lambda row, arm: f"{name}[{row}][{arm}]")


def _refuse_ragged(name: str, rows: Any) -> None:
    """Raise an error that names the row whose length differs, if that is what is wrong."""
    if not isinstance(rows, Sequence):
        return
    for row in rows:
        if isinstance(row, str) or not isinstance(row, (Sequence, np.ndarray)):
            return
    lengths = [len(row) for row in rows]
    for place, length in enumerate(lengths):
        if length != lengths[0]:
            rule = f"has length {length}, and {name}[0] has length {lengths[0]}"
            remedy = "give every row one loss for each arm"
            raise ParameterError(Message(f"{name}[{place}]: {rule}", remedy))


def _checked_index(index: Any, rows: int) -> Any:
    """The row of each round; by default each row once."""
    if index is None:
        return np.arange(rows, dtype=np.int64)
    array = _as_array(index)
    if array.ndim != 1 or len(array) < 1 or array.dtype.kind not in "iu":
        problem = "index: must be a list of row numbers, one per round"
        raise ParameterError(Message(problem, "leave it out for row t in round t"))
    if array.min() < 0 or array.max() >= rows:
        wrong = int(array[(array < 0) | (array >= rows)][0])
        rule = f"must be a row number from 0 to {rows - 1}"
        raise ParameterError.of("index", wrong, rule, "rows count from 0")
    return array.astype(np.int64)
