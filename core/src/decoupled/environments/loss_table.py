"""Losses given as a table: arrays, or a recorded log."""

import hashlib
import math
import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np

from ..base.arrays import Floats
from ..base.validation import one_of, set_number
from ..errors import ParameterError
from ..kernels.random.noise import KINDS
from ..kernels.rounds import Table
from .base import Environment
from .loss_files import checked_cells, read_losses


@dataclass(frozen=True, eq=False, repr=False)
class LossTable(Environment):
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
        rows = read_losses(self.rows) if recorded else checked_rows("rows", self.rows)
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
        raise ParameterError.of(
            "index", wrong, f"must be a row number from 0 to {rows - 1}", "rows count from 0"
        )
    return array.astype(np.int64)
