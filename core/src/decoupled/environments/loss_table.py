"""Losses given as a table: arrays, or a recorded log in a CSV or Parquet file, every cell of which is checked."""

import hashlib
import math
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import numpy as np

from ..base.arrays import Floats
from ..base.extras import needed_for
from ..base.validation import as_loss, is_missing, is_number, kind_of, one_of, set_number
from ..errors import Message, ParameterError, near_name
from ..kernels.random.sampling import KINDS
from ..kernels.rounds import Table
from .base import Environment

_BOOLEANS = (True, False, "True", "False")  # pandas reads a column of these as booleans


def checked_cells(array: Any, place: Callable[[int, int], str]) -> Floats:
    """The table as numbers in [0, 1]; `place` names a cell in an error."""
    losses = np.empty(array.shape) if array.dtype.kind == "O" else np.array(array, np.float64)
    if array.dtype.kind == "O":
        for (row, arm), value in np.ndenumerate(array):
            number = as_loss(value)
            if number is None:
                raise _bad_cell(place(row, arm), value)
            losses[row, arm] = number
    outside = ~((losses >= 0.0) & (losses <= 1.0))  # NaN is outside too
    if outside.any():
        row, arm = (int(number) for number in np.argwhere(outside)[0])
        raise _bad_cell(place(row, arm), float(losses[row, arm]))
    return losses


def _bad_cell(place: str, value: object) -> ParameterError:
    if is_missing(value):
        rule = "is missing, and every row needs the loss of every arm"
        remedy = (
            "drop the row or fill it in; if only the arm tried was recorded, use Learner.replay() instead"
        )
    elif isinstance(value, float) and math.isinf(value):
        rule, remedy = "must lie in [0, 1]", "drop the row or correct it"
    elif not is_number(value):
        rule, remedy = f"is {kind_of(value)}", "give a number in [0, 1]"
    else:
        rule, remedy = "must lie in [0, 1]", "rescale the losses"
    return ParameterError.of(place, value, rule, remedy)


def read_table(path: Any, others: Sequence[str] = ()) -> tuple[Floats, dict[str, list[object]]]:
    """Read a .parquet file, or any other file as CSV, with one column per arm.

    Columns named in `others` hold something else than losses: also return their values, None where one is missing.
    """
    file, text = Path(path).name, Path(path).suffix != ".parquet"
    frame = _read_csv(path) if text else _read_parquet(path)
    for name in others:
        if name not in frame.columns:
            raise _broken(file, f"has no column {name!r}", near_name(name, frame.columns))
    # Whole numbers with gaps are floats in pandas, until its own types are asked for.
    columns = {name: frame[name].convert_dtypes().tolist() for name in others}
    found = {name: [None if is_missing(each) else each for each in columns[name]] for name in others}
    losses = frame.drop(columns=list(others))
    if text:
        _refuse_words(losses, file)
    return _losses_of(losses, file), found


def _read_csv(path: str | os.PathLike[str]) -> Any:
    """Read a CSV file with a header of names."""
    with needed_for("a CSV file"):
        import pandas

    file = Path(path).name
    try:
        header = pandas.read_csv(path, header=None, nrows=1, dtype=str, keep_default_na=False)
        frame = pandas.read_csv(path)
    except pandas.errors.EmptyDataError:
        remedy = "write a line of arms' names, then a line of losses for each round"
        raise _broken(file, "is empty", remedy) from None
    except ValueError as error:
        remedy = "give every line one loss for each arm"
        raise _broken(file, f"is not a table ({_one_line(error)})", remedy) from None
    names = header.iloc[0].tolist()
    _check_header(file, [str(name) for name in names])
    # pandas turns the first values of lines longer than the header into an index.
    if not isinstance(frame.index, pandas.RangeIndex):
        problem = f"has lines with more values than the {len(names)} names of its header"
        raise _broken(file, problem, "give every column a name")
    frame.columns = names
    return frame


def _refuse_words(frame: Any, file: str) -> None:
    """Raise an error that names the first word among the numbers of a CSV file."""
    import pandas

    for name in frame.columns:
        if frame[name].dtype.kind not in "biuf":  # one word turns a whole column into strings
            numbers = pandas.to_numeric(frame[name], errors="coerce")
            words = frame[name].notna() & numbers.isna() & ~frame[name].isin(_BOOLEANS)
            if words.any():
                row = int(words.argmax())
                rule, remedy = "is not a number", "give a number in [0, 1]"
                raise ParameterError.of(_cell(file, row, name), frame[name].iloc[row], rule, remedy)


def _read_parquet(path: str | os.PathLike[str]) -> Any:
    with needed_for("a Parquet file"):
        import pandas
        import pyarrow.parquet  # noqa: F401 # pandas reads with it

    file = Path(path).name
    try:
        return pandas.read_parquet(path)
    except ValueError as error:
        problem = f"is not a Parquet file ({_one_line(error)})"
        raise _broken(file, problem, "write it with pyarrow or pandas") from None


def _broken(file: str, problem: str, remedy: str) -> ParameterError:
    return ParameterError(Message(f"{file}: {problem}", remedy))


def _cell(file: str, row: int, name: object) -> str:
    return f"{file}: row {row + 1}, column {str(name)!r}"


def _check_header(file: str, names: list[str]) -> None:
    _check_columns(file, names)
    if all(_is_number(name) for name in names):
        problem = "begins with numbers instead of the arms' names"
        raise _broken(file, problem, "add a header line of names")
    for place, name in enumerate(names):
        if name.strip() == "":
            remedy = "name the arm, or drop the column if it holds row numbers (in pandas, to_csv(..., index=False))"
            raise _broken(file, f"column {place + 1} has no name", remedy)
        if name in names[:place]:
            raise _broken(file, f"has two columns named {name!r}", "give every arm a name of its own")


def _check_columns(file: str, names: list[str]) -> None:
    if len(names) < 2:
        columns = f"one column, {names[0]!r}" if names else "no columns"
        remedy = "give a column for each of two arms or more (in a CSV file, separated by commas)"
        raise _broken(file, f"has {columns}", remedy)


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())


def _is_number(text: str) -> bool:
    """Whether a column's name is a number, which means that the file has no header."""
    try:
        float(text)
    except ValueError:
        return False
    return True


def _losses_of(frame: Any, file: str) -> Floats:
    names = list(frame.columns)
    _check_columns(file, names)
    if len(frame) == 0:
        raise _broken(file, "has names but no losses", "add a line of losses for each round")
    plain = all(isinstance(kind, np.dtype) and kind.kind in "biuf" for kind in frame.dtypes)
    array = frame.to_numpy(np.float64) if plain else frame.to_numpy(object)
    return checked_cells(array, lambda row, arm: _cell(file, row, names[arm]))


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

    Rows are *mean* losses: each round draws a loss of 0 or 1 with the mean of its arm. A *file* is a recorded log,
    whose losses are played back as they are. `noise` overrides either.

    Args:
        rows: mean losses, rows x arms, each in [0, 1]; or the name of a .csv or .parquet file of recorded losses.
        index: the row of each round; by default, row t in round t. It repeats if the horizon is longer.
        noise: "bernoulli" (a loss is 0 or 1 with that mean), "none" (the loss is the number in the table) or "beta".
            The default is "bernoulli" for rows and "none" for a file.
        concentration: for "beta": a loss is Beta(mean * concentration, (1 - mean) * concentration).

    >>> import decoupled as dc
    >>> log = dc.environments.LossTable(rows=[[0.1, 0.9], [0.8, 0.2]], noise="none")
    >>> log.arms, log.table(horizon=5).row_at.tolist()
    (2, [0, 1, 0, 1, 0])
    >>> dc.environments.LossTable(rows=[[0.1, 0.9], [0.8, 0.2]]).noise
    'bernoulli'
    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "log.csv"
    >>> _ = path.write_text("left,right\n0.1,0.9\n0.8,0.2\n")  # the arms' names, then a line for each round
    >>> dc.environments.LossTable(path) == log
    True
    """

    rows: Any = field(metadata={"depth": 2})
    index: Any = field(default=None, metadata={"depth": 1})
    noise: str | None = None
    concentration: float = 10.0

    def __post_init__(self) -> None:
        recorded = isinstance(self.rows, (str, os.PathLike))
        rows = read_table(self.rows)[0] if recorded else checked_rows("rows", self.rows)
        index = _checked_index(self.index, len(rows))
        rows.setflags(write=False)
        index.setflags(write=False)
        object.__setattr__(self, "rows", rows)
        object.__setattr__(self, "index", index)
        if self.noise is None:
            object.__setattr__(self, "noise", "none" if recorded else "bernoulli")
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
        raise ParameterError(
            f"{name}: must be rows x arms of numbers, with at least two arms; give a 2-D array"
        )
    return checked_cells(array, lambda row, arm: f"{name}[{row}][{arm}]")


def _refuse_ragged(name: str, rows: Any) -> None:
    if not isinstance(rows, Sequence):
        return
    if not all(isinstance(row, (Sequence, np.ndarray)) and not isinstance(row, str) for row in rows):
        return
    lengths = [len(row) for row in rows]
    for place, length in enumerate(lengths):
        if length != lengths[0]:
            raise ParameterError(
                f"{name}[{place}]: has length {length}, and {name}[0] has length {lengths[0]}; "
                "give every row one loss for each arm"
            )


def _checked_index(index: Any, rows: int) -> Any:
    if index is None:
        return np.arange(rows, dtype=np.int64)
    array = _as_array(index)
    if array.ndim != 1 or len(array) < 1 or array.dtype.kind not in "iu":
        raise ParameterError(
            "index: must be a list of row numbers, one per round; leave it out for row t in round t"
        )
    if array.min() < 0 or array.max() >= rows:
        wrong = int(array[(array < 0) | (array >= rows)][0])
        rule = f"must be a row number from 0 to {rows - 1}"
        raise ParameterError.of("index", wrong, rule, "rows count from 0")
    return array.astype(np.int64)
