"""Losses given as a table: arrays, or a recorded log."""

import hashlib
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import numpy as np

from ..arrays import Floats
from ..checks import number_in, one_of
from ..errors import ParameterError, UnsupportedError, complaint
from ..kernels.drive import Table
from ..kernels.losses import KINDS
from .base import Environment


@dataclass(frozen=True, eq=False, repr=False)
class LossTable(Environment):
    """Mean losses in rows, and the row that holds in each round.

    Args:
        rows: mean losses, rows x arms, each in [0, 1]; or the name of a .csv or .parquet file of them.
        index: the row of each round. Left out, round t has row t. A horizon longer than the index starts
            it again.
        noise: "bernoulli" (a loss is 0 or 1), "none" (the loss is the mean) or "beta".
        concentration: for "beta": a loss is Beta(mean * concentration, (1 - mean) * concentration).

    >>> import decoupled as dc
    >>> log = dc.environments.LossTable(rows=[[0.1, 0.9], [0.8, 0.2]], noise="none")
    >>> log.arms, log.table(horizon=5).row_at.tolist()
    (2, [0, 1, 0, 1, 0])
    """

    rows: Any = field(metadata={"depth": 2})
    index: Any = field(default=None, metadata={"depth": 1})
    noise: str = "bernoulli"
    concentration: float = 10.0

    def __post_init__(self) -> None:
        named = isinstance(self.rows, (str, os.PathLike))
        rows = _checked_rows(_read(self.rows) if named else self.rows)
        index = _checked_index(self.index, len(rows))
        rows.setflags(write=False)
        index.setflags(write=False)
        object.__setattr__(self, "rows", rows)
        object.__setattr__(self, "index", index)
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

        >>> import decoupled as dc, pathlib, tempfile
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "log.csv"
        >>> _ = path.write_text("left,right\n0.1,0.9\n0.8,0.2\n")
        >>> dc.environments.LossTable.from_csv(path, noise="none").rows.tolist()
        [[0.1, 0.9], [0.8, 0.2]]
        """
        return cls(_read_csv(path), **parameters)

    @classmethod
    def from_parquet(cls, path: str | os.PathLike[str], **parameters: Any) -> Self:
        """A recorded log: a column of losses for each arm, a row a round. Needs pyarrow."""
        return cls(_read_parquet(path), **parameters)

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

    def table(self, horizon: int) -> Table:
        row_at = np.resize(self.index, horizon)
        return Table(np.array(self.rows), row_at, KINDS.index(self.noise), self.concentration)


def _checked_rows(rows: Any) -> Floats:
    try:
        array = np.array(rows, np.float64)
    except (TypeError, ValueError):
        array = np.empty(0)
    if array.ndim != 2 or len(array) < 1 or array.shape[1] < 2:
        raise ParameterError("rows: must be rows x arms of numbers, two arms at least; give a 2-D array")
    outside = ~((array >= 0.0) & (array <= 1.0))  # NaN is outside too
    if outside.any():
        row, arm = (int(place) for place in np.argwhere(outside)[0])
        value = float(array[row, arm])
        raise ParameterError(
            complaint(f"rows[{row}][{arm}]", value, "must lie in [0, 1]", "rescale the losses")
        )
    return array


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
            complaint("index", wrong, f"must be a row number from 0 to {rows - 1}", "mend it")
        )
    return array.astype(np.int64)


def _read(path: Any) -> Floats:
    return _read_parquet(path) if Path(path).suffix == ".parquet" else _read_csv(path)


def _read_csv(path: str | os.PathLike[str]) -> Floats:
    import pandas

    try:
        frame = pandas.read_csv(path)
    except ValueError as error:
        raise ParameterError(f"{Path(path).name}: is no table ({error}); mend the file") from None
    if all(_is_number(name) for name in frame.columns):
        raise ParameterError(
            f"{Path(path).name}: begins with numbers where the arms' names belong; put a line of names first"
        )
    return _losses_of(frame, path)


def _read_parquet(path: str | os.PathLike[str]) -> Floats:
    import pandas

    try:
        return _losses_of(pandas.read_parquet(path), path)
    except ImportError:
        raise UnsupportedError(
            "Parquet files need pyarrow: in the repository, pip install -e '.[parquet]'"
        ) from None


def _is_number(text: object) -> bool:
    """Whether a column's name is a number, as it is where a file has no header."""
    try:
        float(str(text))
    except ValueError:
        return False
    return True


def _losses_of(frame: Any, path: str | os.PathLike[str]) -> Floats:
    values: Floats = frame.to_numpy()
    if values.dtype.kind not in "iuf":
        raise ParameterError(
            f"{Path(path).name}: must hold numbers only, a column for each arm; mend the file"
        )
    return values
