"""Recorded losses of requests, and what was known of each request before the decision."""

import hashlib
import json
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Self, cast

import numpy as np

from ..base.arrays import Floats, Ints, ceil_div
from ..base.validation import is_missing, kind_of, one_of
from ..errors import Message, ParameterError, near_name, shown
from ..kernels.random.sampling import NONE
from ..kernels.rounds import Table
from .loss_table import Recorded, checked_rows, read_table

ORDERS = ("given", "shuffled")
ORDER = 3  # the fourth child of a run's seed; the others are noise, draws and traffic
LARGEST = 1e100  # of the numbers of a context, as in a learner
_KINDS = "text, a number, True, False or None"


@dataclass(frozen=True, eq=False, repr=False)
class ContextTable(Recorded):
    r"""Requests with a context.

    A row holds the loss of every arm, and what was known before the decision.

    Losses are played back as they are. Contextual policies and `baselines` see the context; other
    policies are blind to it, so all can be compared in one call. Results also have the regret
    against the best arm for each segment.

    Args:
        losses: rounds x arms, each in [0, 1]; or a .csv or .parquet file with a column for each arm
            and name in `context`.
        context: a mapping of names to columns, one value for each round: text, numbers, True,
            False, or None if unknown. For a file, the names of the columns that are not arms.
        segments: the columns whose values make a segment; by default, those without numbers.
            Policies have segments of their own: these are the ones that regret is measured against.
        order: "given", or "shuffled": another order in every run, which depends on the seed alone.
            If the horizon is longer than the table, it begins again, in yet another order if that
            is shuffled.

    >>> import decoupled as dc
    >>> losses = [[0.1, 0.9], [0.8, 0.2], [0.3, 0.6]]
    >>> context = {"subject": ["law", "art", "law"], "tokens": [120, 80, 300]}
    >>> table = dc.environments.ContextTable(losses, context)
    >>> table.label, table.segments
    ('ContextTable(3 rows, 2 arms)', ('subject',))
    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "log.csv"
    >>> lines = ["law,120,0.1,0.9", "art,80,0.8,0.2", "law,300,0.3,0.6"]
    >>> _ = path.write_text("\n".join(["subject,tokens,small,large", *lines]))
    >>> dc.environments.ContextTable(path, ["subject", "tokens"]) == table
    True
    """

    losses: Any = field(metadata={"depth": 2})
    context: Any = field(metadata={"depth": 1})
    segments: Any = field(default=None, metadata={"depth": 1})
    order: str = "given"

    def __post_init__(self) -> None:
        context: object = self.context
        if isinstance(self.losses, (str, os.PathLike)):
            losses, columns = read_table(self.losses, _names("context", context))
        else:
            losses = checked_rows("losses", self.losses)
            columns = _columns(context)
        checked = {
            name: _checked_column(name, values, len(losses)) for name, values in columns.items()
        }
        losses.setflags(write=False)
        set_value = object.__setattr__
        set_value(self, "losses", losses)
        set_value(self, "context", checked)
        set_value(self, "segments", _checked_segments(self.segments, checked))
        one_of("order", self.order, ORDERS)
        content = hashlib.sha256(
            json.dumps([losses.shape, checked, self.segments, self.order]).encode()
        )
        content.update(losses.tobytes())
        set_value(self, "_digest", content.hexdigest())

    @property
    def arms(self) -> int:  # type: ignore[override]
        """The number of arms."""
        return int(self.losses.shape[1])

    @property
    def label(self) -> str:
        """A short name for tables and figures."""
        order = ", shuffled" if self.order == "shuffled" else ""
        return f"ContextTable({len(self.losses)} rows, {self.arms} arms{order})"

    def __repr__(self) -> str:
        return (
            f"ContextTable(losses=<{len(self.losses)} x {self.arms}>, "
            f"context=<{', '.join(self.context)}>, "
            f"segments={self.segments}, order={self.order!r})"
        )

    @classmethod
    def examples(cls) -> tuple[Self, ...]:
        return (cls([[0.1, 0.9], [0.8, 0.2], [0.3, 0.6]], {"subject": ["law", "art", "law"]}),)

    def table(self, horizon: int) -> Table:
        return Table(np.array(self.losses), np.resize(np.arange(len(self.losses)), horizon), NONE)

    def row_at(self, horizon: int, seed: int, run: int) -> Ints:
        """The row of each round in one run of a simulation.

        Args:
            horizon: the number of rounds.
            seed: the seed of the simulation.
            run: the number of the run.
        """
        rows = len(self.losses)
        if self.order == "given":
            return np.resize(np.arange(rows), horizon)
        words = np.random.PCG64(np.random.SeedSequence(seed, spawn_key=(run, ORDER)))
        # Sorting random words: NumPy may change how it permutes, but never these.
        passes = [
            words.random_raw(rows).argsort(kind="stable") for _ in range(ceil_div(horizon, rows))
        ]
        return np.concatenate(passes)[:horizon]

    def segment_at(self, segments: Sequence[str]) -> Ints:
        """The number of each row's segment, from 0 on in the order of their first rows.

        Args:
            segments: the columns whose values make a segment; none makes one segment of all rows.

        >>> ContextTable.examples()[0].segment_at(["subject"]).tolist()
        [0, 1, 0]
        """
        return _segment_at(self, tuple(segments))

    def available(self, row_at: Ints) -> float:
        """How much the best arm for each segment gains over the best single arm, over these rows.

        Both are known only in hindsight, so no policy can be sure to gain as much.

        Args:
            row_at: the row of each round.

        >>> table = ContextTable.examples()[0]
        >>> row_at = table.row_at(horizon=3, seed=0, run=0)
        >>> round(table.available(row_at), 6)  # the best arm loses 1.2, and the best arms 0.6
        0.6
        """
        numbers = self.segment_at(self.segments)
        visits = np.bincount(row_at, minlength=len(self.losses))
        sums = np.stack([np.bincount(numbers, visits * column) for column in self.losses.T], axis=1)
        return float(sums.sum(axis=0).min() - sums.min(axis=1).sum())

    def numbers(self, name: str) -> Floats:
        """A column as numbers; NaN where one is missing.

        Args:
            name: the name of a column of numbers, or of True and False.
        """
        return np.array([np.nan if value is None else float(value) for value in self.context[name]])


@lru_cache(maxsize=16)  # every run needs the same
def _segment_at(table: ContextTable, segments: tuple[str, ...]) -> Ints:
    """`ContextTable.segment_at`, remembered."""
    columns = [map(_segment_value, table.context[name]) for name in segments]
    keys = zip(*columns, strict=True) if columns else [()] * len(table.losses)
    number_of: dict[tuple[object, ...], int] = {}
    numbers = np.array([number_of.setdefault(key, len(number_of)) for key in keys], np.int64)
    numbers.setflags(write=False)
    return numbers


def _segment_value(value: object) -> object:
    """What tells a segment from another, as in a learner: a number is the same as its digits."""
    if value is None:
        return None
    return str(value).lower() if isinstance(value, bool) else str(value)


def _names(argument: str, names: Any) -> tuple[str, ...]:
    """The names of columns that the caller gave as this argument."""
    rule = "must be a list of names of columns"
    remedy = 'such as ["subject"]'
    if isinstance(names, str) or not isinstance(names, Iterable):
        raise ParameterError.of(argument, names, rule, remedy)
    listed = tuple(names)
    for name in listed:
        if not isinstance(name, str) or listed.count(name) > 1:
            raise ParameterError.of(argument, name, f"{rule}, each once", remedy)
    return listed


def _columns(context: Any) -> dict[str, Any]:
    """The columns of a context by name."""
    if not isinstance(context, Mapping):
        remedy = 'such as {"subject": ["law", "art"]}'
        rule = "must be a mapping of names to columns"
        raise ParameterError.of("context", context, rule, remedy)
    return {name: context[name] for name in _names("context", context)}


def _checked_column(name: str, values: Any, rows: int) -> tuple[object, ...]:
    """A column with one value of a permitted type for each of so many rows."""
    listed = values.tolist() if hasattr(values, "tolist") else values
    if not isinstance(listed, list | tuple) or len(listed) != rows:
        what = f"{len(listed)} values" if isinstance(listed, list | tuple) else kind_of(values)
        problem = f"context[{name!r}]: is {what}, and there are {rows} rounds"
        raise ParameterError(Message(problem, "give a list of one value for each round"))
    plain = [value.item() if isinstance(value, np.generic) else value for value in listed]
    for row, value in enumerate(plain):
        is_allowed = value is None or isinstance(value, str | bool | int | float)
        if not is_allowed or (isinstance(value, float) and not np.isfinite(value)):
            rule = f"must be {_KINDS}, and finite"
            remedy = "drop the row or correct it"
            if is_missing(value):
                remedy = "use None for a missing value"
            raise ParameterError.of(f"context[{name!r}][{row}]", value, rule, remedy)
    return tuple(_of_one_kind(plain))


def _of_one_kind(values: list[Any]) -> list[Any]:
    """The values, with all numbers as floats if one is a fraction, and else as whole numbers."""
    has_fraction = any(not value.is_integer() for value in values if isinstance(value, float))
    kind: type[Any] = float if has_fraction else int
    return [kind(value) if type(value) in (int, float) else value for value in values]


def _checked_segments(segments: Any, context: Mapping[str, tuple[object, ...]]) -> tuple[str, ...]:
    """The columns that make segments; by default, those without numbers."""
    if segments is None:
        return tuple(
            name
            for name, values in context.items()
            if all(value is None or isinstance(value, str | bool) for value in values)
        )
    names = _names("segments", segments)
    check_columns(context, names)
    return names


def check_columns(
    context: Mapping[str, tuple[object, ...]], segments: Iterable[str], numbers: Iterable[str] = ()
) -> None:
    """Check the columns for segments, and those of numbers.

    The values of the former must suit as segments.
    """
    for name in segments:
        for row, value in enumerate(_column("segments", name, context)):
            if isinstance(value, float):
                rule = f"has the fraction {value} in row {row}, which makes no segment"
                raise ParameterError.of("segments", name, rule, "round it, or use text")
    for name in numbers:
        for row, value in enumerate(_column("numbers", name, context)):
            if isinstance(value, str) or (value is not None and abs(cast(float, value)) > LARGEST):
                rule = f"has {shown(value)} in row {row}, and needs numbers from -1e+100 to 1e+100"
                raise ParameterError.of("numbers", name, rule, "use it as a segment, or scale it")


def _column(
    argument: str, name: str, context: Mapping[str, tuple[object, ...]]
) -> tuple[object, ...]:
    """A column of a context, which an argument names."""
    if name not in context:
        rule = "is not a column of the context"
        raise ParameterError.of(argument, name, rule, near_name(name, context))
    return context[name]
