"""Recorded losses of requests, and what was known of each request before the decision."""

import hashlib
import json
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Self, cast

import numpy as np

from ..base.arrays import Floats, Ints
from ..base.validation import is_missing, kind_of, one_of
from ..errors import ParameterError, near_name, shown
from ..kernels.random.sampling import NONE
from ..kernels.rounds import Table
from .loss_table import Recorded, checked_rows, read_table

ORDERS = ("given", "shuffled")
ORDER = 3  # the fourth child of a run's seed; the others are noise, draws and traffic
LARGEST = 1e100  # of the numbers of a context, as in a learner
_KINDS = "text, a number, True, False or None"


@dataclass(frozen=True, eq=False, repr=False)
class ContextTable(Recorded):
    r"""Requests with a context: a row holds the loss of every arm, and what was known before the
    decision.

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
    >>> losses, subjects = [[0.1, 0.9], [0.8, 0.2], [0.3, 0.6]], ["law", "art", "law"]
    >>> table = dc.environments.ContextTable(losses, {"subject": subjects, "tokens": [120, 80, 300]})
    >>> table, table.segments
    (ContextTable(losses=<3 x 2>, context=<subject, tokens>, segments=('subject',), order='given'), ('subject',))
    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "log.csv"
    >>> _ = path.write_text("subject,tokens,small,large\nlaw,120,0.1,0.9\nart,80,0.8,0.2\nlaw,300,0.3,0.6\n")
    >>> dc.environments.ContextTable(path, ["subject", "tokens"]) == table
    True
    """

    losses: Any = field(metadata={"depth": 2})
    context: Any = field(metadata={"depth": 1})
    segments: Any = field(default=None, metadata={"depth": 1})
    order: str = "given"

    def __post_init__(self) -> None:
        given: object = self.context
        if isinstance(self.losses, (str, os.PathLike)):
            losses, columns = read_table(self.losses, _names("context", given))
        else:
            losses, columns = checked_rows("losses", self.losses), _columns(given)
        context = {
            name: _checked_column(name, values, len(losses)) for name, values in columns.items()
        }
        losses.setflags(write=False)
        set_value = object.__setattr__
        set_value(self, "losses", losses)
        set_value(self, "context", context)
        set_value(self, "segments", _checked_segments(self.segments, context))
        one_of("order", self.order, ORDERS)
        content = hashlib.sha256(
            json.dumps([losses.shape, context, self.segments, self.order]).encode()
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
            f"ContextTable(losses=<{len(self.losses)} x {self.arms}>, context=<{', '.join(self.context)}>, "
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
        passes = [words.random_raw(rows).argsort(kind="stable") for _ in range(-(-horizon // rows))]
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
        >>> round(table.available(table.row_at(horizon=3, seed=0, run=0)), 6)    # 1.2 and 0.1 + 0.2 + 0.3
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


@lru_cache(maxsize=16)  # every run asks for the same
def _segment_at(table: ContextTable, segments: tuple[str, ...]) -> Ints:
    found: dict[tuple[object, ...], int] = {}
    columns = [map(_segment_value, table.context[name]) for name in segments]
    keys = zip(*columns, strict=True) if columns else [()] * len(table.losses)
    numbers = np.array([found.setdefault(key, len(found)) for key in keys], np.int64)
    numbers.setflags(write=False)
    return numbers


def _segment_value(value: object) -> object:
    """What tells a segment from another, as in a learner: a whole number is the same as its digits."""
    return None if value is None else str(value).lower() if isinstance(value, bool) else str(value)


def _names(argument: str, given: Any) -> tuple[str, ...]:
    rule, remedy = "must be a list of names of columns", 'such as ["subject"]'
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise ParameterError.of(argument, given, rule, remedy)
    names = tuple(given)
    for name in names:
        if not isinstance(name, str) or names.count(name) > 1:
            raise ParameterError.of(argument, name, f"{rule}, each once", remedy)
    return names


def _columns(given: Any) -> dict[str, Any]:
    if not isinstance(given, Mapping):
        rule, remedy = (
            "must be a mapping of names to columns",
            'such as {"subject": ["law", "art"]}',
        )
        raise ParameterError.of("context", given, rule, remedy)
    return {name: given[name] for name in _names("context", given)}


def _checked_column(name: str, values: Any, rows: int) -> tuple[object, ...]:
    listed = values.tolist() if hasattr(values, "tolist") else values
    if not isinstance(listed, list | tuple) or len(listed) != rows:
        found = f"{len(listed)} values" if isinstance(listed, list | tuple) else kind_of(values)
        raise ParameterError(
            f"context[{name!r}]: is {found}, and there are {rows} rounds; give a list of one value for each round"
        )
    plain = [each.item() if isinstance(each, np.generic) else each for each in listed]
    for row, value in enumerate(plain):
        good = value is None or isinstance(value, str | bool | int | float)
        if not good or (isinstance(value, float) and not np.isfinite(value)):
            rule = f"must be {_KINDS}, and finite"
            remedy = (
                "use None for a missing value"
                if is_missing(value)
                else "drop the row or correct it"
            )
            raise ParameterError.of(f"context[{name!r}][{row}]", value, rule, remedy)
    return tuple(_of_one_kind(plain))


def _of_one_kind(values: list[Any]) -> list[Any]:
    """The same with all numbers as floats if one is a fraction, and as whole numbers otherwise."""
    whole = all(value.is_integer() for value in values if isinstance(value, float))
    return [
        (int if whole else float)(value) if type(value) in (int, float) else value
        for value in values
    ]


def _checked_segments(given: Any, context: Mapping[str, tuple[object, ...]]) -> tuple[str, ...]:
    if given is None:
        return tuple(
            name
            for name, values in context.items()
            if all(value is None or isinstance(value, str | bool) for value in values)
        )
    names = _names("segments", given)
    check_columns(context, names)
    return names


def check_columns(
    context: Mapping[str, tuple[object, ...]], segments: Iterable[str], numbers: Iterable[str] = ()
) -> None:
    """Raise an error unless these are columns whose values may make segments, and columns of
    numbers.
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
    if name not in context:
        rule = "is not a column of the context"
        raise ParameterError.of(argument, name, rule, near_name(name, context))
    return context[name]
