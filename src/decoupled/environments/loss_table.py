"""Losses given as a table: arrays, or a recorded log."""

import hashlib
import math
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import numpy as np

from ..base.arrays import Floats
from ..base.validation import as_loss, is_missing, is_number, kind_of, number_in, one_of
from ..errors import ParameterError, UnsupportedError, invalid_value
from ..kernels.random.noise import KINDS
from ..kernels.rounds import Table
from .base import Environment

_TRUTHS = (True, False, "True", "False")  # in a column of their own they are read as such


@dataclass(frozen=True, eq=False, repr=False)
class LossTable(Environment):
    """Losses in rows, and the row that holds in each round.

    Rows are *mean* losses: in each round a loss of 0 or 1 is drawn with the mean of its arm. A *file* is a
    recorded log: its losses are what happened, and they are played back as they are. `noise` overrides either.

    Args:
        rows: mean losses, rows x arms, each in [0, 1]; or the name of a .csv or .parquet file of
            recorded losses.
        index: the row of each round. Left out, round t has row t. A horizon longer than the index starts
            it again.
        noise: "bernoulli" (a loss is 0 or 1 with that mean), "none" (the loss is the number in the table) or
            "beta". Left out, it is "bernoulli" for rows and "none" for a file.
        concentration: for "beta": a loss is Beta(mean * concentration, (1 - mean) * concentration).

    >>> import decoupled as dc
    >>> log = dc.environments.LossTable(rows=[[0.1, 0.9], [0.8, 0.2]], noise="none")
    >>> log.arms, log.table(horizon=5).row_at.tolist()
    (2, [0, 1, 0, 1, 0])
    >>> dc.environments.LossTable(rows=[[0.1, 0.9], [0.8, 0.2]]).noise
    'bernoulli'
    """

    rows: Any = field(metadata={"depth": 2})
    index: Any = field(default=None, metadata={"depth": 1})
    noise: str | None = None
    concentration: float = 10.0

    def __post_init__(self) -> None:
        recorded = isinstance(self.rows, (str, os.PathLike))
        rows = _read(self.rows) if recorded else _checked_rows(self.rows)
        index = _checked_index(self.index, len(rows))
        rows.setflags(write=False)
        index.setflags(write=False)
        object.__setattr__(self, "rows", rows)
        object.__setattr__(self, "index", index)
        if self.noise is None:
            object.__setattr__(self, "noise", "none" if recorded else "bernoulli")
        one_of("noise", self.noise, KINDS)
        concentration = number_in("concentration", self.concentration, 0.0, remedy="the default is 10")
        object.__setattr__(self, "concentration", concentration)
        content = hashlib.sha256(repr((rows.shape, self.noise, concentration)).encode())
        content.update(rows.tobytes())
        content.update(index.tobytes())
        object.__setattr__(self, "_digest", content.hexdigest())

    @classmethod
    def from_csv(cls, path: str | os.PathLike[str], **parameters: Any) -> Self:
        r"""A recorded log: a header with the arms' names, then one line of losses a round.

        The losses are played back as they are. For a file of mean losses, give `noise="bernoulli"`.

        >>> import decoupled as dc, pathlib, tempfile
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "log.csv"
        >>> _ = path.write_text("left,right\n0.1,0.9\n0.8,0.2\n")
        >>> log = dc.environments.LossTable.from_csv(path)
        >>> log.rows.tolist(), log.noise
        ([[0.1, 0.9], [0.8, 0.2]], 'none')
        """
        return cls(_read_csv(path), **{"noise": "none", **parameters})

    @classmethod
    def from_parquet(cls, path: str | os.PathLike[str], **parameters: Any) -> Self:
        """A recorded log, as in `from_csv`: a column of losses for each arm, a row a round. Needs pyarrow."""
        return cls(_read_parquet(path), **{"noise": "none", **parameters})

    @property
    def arms(self) -> int:  # type: ignore[override]
        """How many arms there are."""
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

    def __eq__(self, other: object) -> bool:
        return isinstance(other, LossTable) and self._digest == other._digest  # type: ignore[attr-defined]

    def __hash__(self) -> int:
        return hash(self._digest)  # type: ignore[attr-defined]

    def to_dict(self) -> dict[str, Any]:
        return {
            "name": "LossTable",
            "rows": self.rows.tolist(),
            "index": self.index.tolist(),
            "noise": self.noise,
            "concentration": self.concentration,
        }

    @classmethod
    def examples(cls) -> tuple[Self, ...]:
        return (cls([[0.1, 0.9], [0.8, 0.2]], [0, 1, 1], noise="beta", concentration=4.0),)

    def table(self, horizon: int) -> Table:
        row_at = np.resize(self.index, horizon)
        return Table(np.array(self.rows), row_at, KINDS.index(self.noise), self.concentration)


def _checked_rows(rows: Any) -> Floats:
    try:
        array = np.asarray(rows)
    except (TypeError, ValueError):  # rows of different lengths
        array = np.empty(0, object)
    if array.dtype.kind not in "biuf":  # anything else is looked at cell by cell, as it was given
        array = _objects(rows)
    if array.ndim != 2 or len(array) < 1 or array.shape[1] < 2:
        _refuse_ragged(rows)
        raise ParameterError("rows: must be rows x arms of numbers, two arms at least; give a 2-D array")
    return _checked_cells(array, lambda row, arm: f"rows[{row}][{arm}]")


def _objects(rows: Any) -> Any:
    try:
        return np.array(rows, object)
    except (TypeError, ValueError):
        return np.empty(0, object)


def _refuse_ragged(rows: Any) -> None:
    if not isinstance(rows, Sequence):
        return
    lengths = [
        len(row) for row in rows if isinstance(row, (Sequence, np.ndarray)) and not isinstance(row, str)
    ]
    if len(lengths) < len(rows):
        return
    for place, length in enumerate(lengths):
        if length != lengths[0]:
            raise ParameterError(
                f"rows[{place}]: has length {length}, and rows[0] has length {lengths[0]}; "
                "give every row one loss for each arm"
            )


def _checked_cells(array: Any, place: Callable[[int, int], str]) -> Floats:
    """A table of numbers in [0, 1]; `place` is what an error calls a cell."""
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
    return ParameterError(invalid_value(place, value, rule, remedy))


def _checked_index(index: Any, rows: int) -> Any:
    if index is None:
        return np.arange(rows, dtype=np.int64)
    try:
        array = np.array(index)
    except ValueError:  # rows of different lengths
        array = np.empty((0, 0))
    if array.ndim != 1 or len(array) < 1 or array.dtype.kind not in "iu":
        raise ParameterError(
            "index: must be a list of row numbers, one a round; leave it out for row t in round t"
        )
    if array.min() < 0 or array.max() >= rows:
        wrong = int(array[(array < 0) | (array >= rows)][0])
        raise ParameterError(
            invalid_value("index", wrong, f"must be a row number from 0 to {rows - 1}", "rows count from 0")
        )
    return array.astype(np.int64)


def _read(path: Any) -> Floats:
    return _read_parquet(path) if Path(path).suffix == ".parquet" else _read_csv(path)


def _read_csv(path: str | os.PathLike[str]) -> Floats:
    import pandas

    file = Path(path).name
    try:
        names = (
            pandas.read_csv(path, header=None, nrows=1, dtype=str, keep_default_na=False).iloc[0].tolist()
        )
        frame = pandas.read_csv(path)
    except pandas.errors.EmptyDataError:
        raise ParameterError(
            f"{file}: is empty; put a line of arms' names first, then a line of losses for each round"
        ) from None
    except ValueError as error:
        raise ParameterError(
            f"{file}: is no table ({_one_line(error)}); give every line one loss for each arm"
        ) from None
    _check_header(file, [str(name) for name in names])
    if not isinstance(frame.index, pandas.RangeIndex):  # lines longer than the header: pandas makes it one
        raise ParameterError(
            f"{file}: has lines with more values than the {len(names)} names of its header; "
            "give every column a name"
        )
    frame.columns = names
    for name in names:
        if frame[name].dtype.kind not in "biuf":  # one word makes words of a whole column
            numbers = pandas.to_numeric(frame[name], errors="coerce")
            words = frame[name].notna() & numbers.isna() & ~frame[name].isin(_TRUTHS)
            if words.any():
                row = int(words.argmax())
                place, word = _cell(file, row, name), frame[name].iloc[row]
                raise ParameterError(
                    invalid_value(place, word, "is not a number", "give a number in [0, 1]")
                )
    return _losses_of(frame, file)


def _cell(file: str, row: int, name: object) -> str:
    return f"{file}: row {row + 1}, column {str(name)!r}"


def _check_header(file: str, names: list[str]) -> None:
    if len(names) < 2:
        raise _too_few(file, names)
    if all(_is_number(name) for name in names):
        raise ParameterError(
            f"{file}: begins with numbers where the arms' names belong; put a line of names first"
        )
    for place, name in enumerate(names):
        if name.strip() == "":
            raise ParameterError(
                f"{file}: column {place + 1} has no name; name the arm, or drop the column if it holds row "
                "numbers (in pandas, to_csv(..., index=False))"
            )
        if name in names[:place]:
            raise ParameterError(
                f"{file}: has two columns named {name!r}; give every arm a name of its own"
            )


def _too_few(file: str, names: list[str]) -> ParameterError:
    columns = f"one column, {names[0]!r}" if names else "no columns"
    return ParameterError(
        f"{file}: has {columns}; give a column for each of two arms or more (in a CSV file, separated by commas)"
    )


def _read_parquet(path: str | os.PathLike[str]) -> Floats:
    import pandas

    file = Path(path).name
    try:
        frame = pandas.read_parquet(path)
    except ImportError:
        raise UnsupportedError(
            "Parquet files need pyarrow: in the repository, pip install -e '.[parquet]'"
        ) from None
    except ValueError as error:
        raise ParameterError(
            f"{file}: is no Parquet file ({_one_line(error)}); write it with pyarrow or pandas"
        ) from None
    return _losses_of(frame, file)


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())


def _is_number(text: object) -> bool:
    """Whether a column's name is a number, as it is where a file has no header."""
    try:
        float(str(text))
    except ValueError:
        return False
    return True


def _losses_of(frame: Any, file: str) -> Floats:
    names = list(frame.columns)
    if len(names) < 2:
        raise _too_few(file, names)
    if len(frame) == 0:
        raise ParameterError(f"{file}: has names but no losses; add a line of losses for each round")
    numbers = all(kind.kind in "biuf" for kind in frame.dtypes if isinstance(kind, np.dtype))
    plain = numbers and all(isinstance(kind, np.dtype) for kind in frame.dtypes)
    array = frame.to_numpy(np.float64) if plain else frame.to_numpy(object)
    return _checked_cells(array, lambda row, arm: _cell(file, row, names[arm]))
