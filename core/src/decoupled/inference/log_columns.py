"""A log of decisions as columns: read from a file, a data frame or a list of rows, and checked."""

import json
import math
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, Protocol, TypeAlias

import numpy as np

from ..base.arrays import Bools, Floats, Ints
from ..base.tables import as_column, read_columns
from ..base.validation import LEAST_PROPENSITY, as_float, is_missing, kind_of
from ..decision import Arm, fit_line
from ..errors import (
    ArmError,
    DecoupledError,
    LossError,
    Message,
    ParameterError,
    near_name,
    shown,
)
from .ordering import PATIENCE_OF_LOGS

NEEDED = ("explore", "propensity", "loss")
OPTIONAL = (
    "exploit",
    "available",
    "status",
    "id",
    "seq",
    "settled_seq",
    "tags",
    "baseline",
    "context",
    "judged",
    "label_probability",
    "law",
)
_KINDS = "give the path of a .csv or .parquet file, a data frame, or a list of rows"

# For the place of an arm: the decisions that have a prediction of its loss, and the predictions,
# scaled to [0, 1].
Predicted: TypeAlias = Mapping[int, tuple[Ints, Floats]]


class Frame(Protocol):
    """A data frame of any library: of pandas, Polars or Arrow."""

    @property
    def columns(self) -> Any:
        """The columns, or their names."""

    def __getitem__(self, name: Any, /) -> Any: ...


LogLike: TypeAlias = (
    str | os.PathLike[str] | Frame | Mapping[str, Iterable[Any]] | Iterable[Mapping[str, Any]]
)
"""A log: the path of a file, a data frame, columns by name, or rows."""


@dataclass(frozen=True, slots=True)
class Log:
    """The decisions of a log that have a loss and could explore every arm, in the order of the log.

    Attributes:
        arms: the names of the arms.
        size: the number of rows.
        decisions: the number of rows with the wanted tags.
        left_out: the number of rows with a loss that could not explore every arm: some were not
            available, or the propensity was 1.
        rows: the row of each decision in the log.
        explore: the places of the explored arms.
        exploit: the places of the exploited arms, -1 for none.
        propensity: that of each explored arm; NaN if it is not known.
        loss: each loss, scaled to [0, 1]; of a log with labels, what `LabelRequest.estimate` makes
            of it, mapped to [0, 1].
        made_at: when each decision was made, as a number that grows with time.
        settled_at: when its loss was observed, on the same scale.
        logged_loss: its loss as it was logged.
        predicted: the losses that were predicted when the decisions were made.
        context: the context of each decision; None if none has one.
        missing: the number of rows that explored and have no loss, apart from those that hold up
            others or are held up; a loss that came too late counts as none.
        waiting: the number of rows with a loss that are held up.
        laws: the probability with which each decision explored each arm, a row of NaN if that is
            not known; None if no row says it.
        width: the width of the range around 1/2 that losses are mapped from; 1 without labels.

    >>> log = read_log([{"explore": "a", "propensity": 0.5, "loss": 3.0}], (0.0, 10.0))
    >>> log.arms, log.loss.tolist(), log.place("a")
    (('a',), [0.3], 0)
    """

    arms: tuple[Arm, ...]
    size: int
    decisions: int
    left_out: int
    rows: Ints
    explore: Ints
    exploit: Ints
    propensity: Floats
    loss: Floats
    made_at: Floats
    settled_at: Floats
    logged_loss: Floats
    predicted: Predicted
    context: tuple[Mapping[str, Any], ...] | None
    missing: int
    waiting: int
    laws: Floats | None = None
    width: float = 1.0

    def __len__(self) -> int:
        return len(self.loss)

    def place(self, arm: object) -> int:
        """The place of an arm. A log that was exported has text only, so 1 also finds "1"."""
        for name in (arm, str(arm)):
            if name in self.arms:
                return self.arms.index(name)
        problem = f"arm = {shown(arm)}: is not an arm of this log"
        raise ArmError(Message(problem, near_name(arm, self.arms)))


def read_log(
    log: Any,
    loss_range: tuple[float, float],
    arms: Sequence[Arm] | None = None,
    tags: Mapping[str, str] | None = None,
    patience: int = PATIENCE_OF_LOGS,
) -> Log:
    """Read and check a log.

    Args:
        log: what `evaluate` takes.
        loss_range: the lowest and highest possible loss.
        arms: names of arms that the log may lack.
        tags: the tags that a decision must have to be read.
        patience: for how many newer decisions a loss waits for an earlier one.

    >>> rows = [{"explore": arm, "propensity": 0.5, "loss": 0.5} for arm in ("a", "b")]
    >>> rows[1]["loss"] = None
    >>> len(read_log(rows, (0.0, 1.0))), read_log(rows, (0.0, 1.0)).missing
    (1, 1)
    """
    if isinstance(arms, (str, set, frozenset)):
        remedy = "their order is that of the result"
        raise ArmError.of("arms", arms, "must be a list of names", remedy)
    columns = _checked_columns(log)
    names = _names(list(arms or ()), columns["explore"], columns.get("exploit", ()))
    size = len(columns["loss"])
    rows = np.arange(size)
    if tags:
        rows = _tagged(columns.get("tags", [None] * size), tags)
        columns = {name: _chosen(column, rows) for name, column in columns.items()}
    nothing = [None] * len(rows)
    loss = _numbers("loss", columns["loss"])
    propensity = _numbers("propensity", columns["propensity"])
    judgements = _judgements(columns, loss_range)
    explore = _places(columns["explore"], names)
    exploit = _places(columns.get("exploit", nothing), names)
    made_at = np.arange(len(rows), dtype=np.float64)
    if "seq" in columns:
        made_at = _numbers("seq", columns["seq"])

    has_explored = explore >= 0
    has_loss = _has_loss(columns, loss, judgements) & has_explored
    is_held_up = _held_up(explore, made_at, columns.get("status"), patience)
    if "settled_seq" in columns and patience > 0:  # 0: every loss is wanted, in any order
        arrived_at = _numbers("settled_seq", columns["settled_seq"])
        has_loss &= ~_too_late(explore, made_at, arrived_at, patience)
    missing = int((~has_loss & ~is_held_up & has_explored).sum())
    waiting = int((has_loss & is_held_up).sum())
    has_loss &= ~is_held_up
    _check_losses(loss, has_loss & ~np.isnan(loss), loss_range)
    _check_propensities(propensity, has_loss)

    could_explore_all = (propensity != 1.0) & _blank(columns.get("available", nothing))
    used = np.flatnonzero(has_loss & could_explore_all)
    laws = _laws(columns.get("law"), used, rows, names)
    if laws is not None:
        _check_laws(laws, used, rows, explore, propensity)
        is_whole = ~(laws == 0.0).any(axis=1)
        used = used[is_whole]
        laws = laws[is_whole]
    settled_at = _settled_at(columns, made_at)
    unit, width = _unit_losses(loss, loss_range, judgements, has_loss, (made_at, settled_at))
    return Log(
        arms=tuple(names),
        size=size,
        decisions=len(rows),
        left_out=int(has_loss.sum()) - len(used),
        rows=rows[used],
        explore=explore[used],
        exploit=exploit[used],
        propensity=propensity[used],
        loss=unit[used],
        made_at=made_at[used],
        settled_at=settled_at[used],
        logged_loss=loss[used],
        predicted=_predicted(columns.get("baseline"), used, rows, names, loss_range),
        context=_contexts(columns.get("context"), used, rows),
        missing=missing,
        waiting=waiting,
        laws=laws,
        width=width,
    )


def _checked_columns(log: Any) -> dict[str, Any]:
    """The columns of a log: all that it needs, of one length, and with one row for a decision."""
    columns = columns_of(log)
    missing = [name for name in NEEDED if name not in columns]
    if missing:
        present = ", ".join(map(repr, columns)) or "none of the columns of a log"
        problem = f"log: has no column {missing[0]!r}, only {present}"
        raise ParameterError(Message(problem, "see docs: The decision log"))
    size = len(columns["loss"])
    for name, column in columns.items():
        if len(column) != size:
            rule = f"has {len(column)} values, and the column 'loss' has {size}"
            raise ParameterError(Message(f"log[{name!r}]: {rule}", "give one for each decision"))
    for name in ("id", "seq", "explore", "exploit"):
        _check_single(name, columns)
    has_ids = not all(map(_is_blank, plain_values(columns.get("id", ()))))
    _check_repeated("id" if has_ids else "seq", columns)
    return columns


class _Judgements(NamedTuple):
    """The columns of a judge.

    Attributes:
        judged: what the judge said, scaled to [0, 1]; NaN if nothing.
        rho: the probability of a label.
    """

    judged: Floats
    rho: Floats


def _has_loss(columns: dict[str, Any], loss: Floats, judgements: _Judgements | None) -> Bools:
    """Which rows have a loss, or a judgement in its place, that was learned."""
    has_loss: Bools = ~np.isnan(loss)
    if judgements is not None:
        has_loss |= ~np.isnan(judgements.judged)
    if "status" in columns:
        # One that expired counts too, if a loss was declared for it: the learner learned that.
        is_settled = [value not in ("pending", "unobserved") for value in columns["status"]]
        has_loss &= np.array(is_settled, np.bool_)
    return has_loss


def _settled_at(columns: dict[str, Any], made_at: Floats) -> Floats:
    """When each loss was observed; just after its decision, if the log does not say."""
    if "settled_seq" not in columns:
        return made_at + 0.5
    settled_at = _numbers("settled_seq", columns["settled_seq"])
    return np.where(np.isnan(settled_at), made_at + 0.5, settled_at)


def _unit_losses(
    loss: Floats,
    loss_range: tuple[float, float],
    judgements: _Judgements | None,
    has_loss: Bools,
    times: tuple[Floats, Floats],
) -> tuple[Floats, float]:
    """Losses scaled to [0, 1], and the width of the range around 1/2 that they are mapped from.

    With a judge, a loss is what `LabelRequest.estimate` makes of the judgement and the label.
    `times` are those at which decisions were made and losses were observed.
    """
    low, high = loss_range
    unit = (loss - low) / (high - low)
    if judgements is None:
        return unit, 1.0
    made_at, settled_at = times
    judged = judgements.judged[has_loss]
    rho = judgements.rho[has_loss]
    width = 2.0 / float(rho.min(initial=1.0)) - 1.0
    estimates = _estimates(judged, unit[has_loss], rho, made_at[has_loss], settled_at[has_loss])
    unit[has_loss] = np.clip(0.5 + (estimates - 0.5) / width, 0.0, 1.0)
    return unit, width


def _judgements(columns: dict[str, Any], loss_range: tuple[float, float]) -> _Judgements | None:
    """The columns of a judge; None if nobody judged."""
    low, high = loss_range
    judged = _numbers("judged", columns.get("judged", ()))
    if np.isnan(judged).all():
        return None
    is_judged = ~np.isnan(judged)
    _check_losses(judged, is_judged, loss_range, "judged")
    rho = _numbers("label_probability", columns.get("label_probability", [None] * len(judged)))
    is_wrong = is_judged & ~((rho > 0.0) & (rho <= 1.0))
    rule = "must be the probability with which a label was wanted, above 0"
    remedy = "log decision.label_request.rho with every decision"
    _refuse(is_wrong, "label_probability", rho, rule, remedy)
    return _Judgements((judged - low) / (high - low), np.where(is_judged, rho, 1.0))


def _estimates(
    judged: Floats, label: Floats, rho: Floats, made_at: Floats, settled_at: Floats
) -> Floats:
    """What `LabelRequest.estimate` makes of each row, by the labels known when it was made; a loss
    without a judgement as it is.
    """
    has_label = ~np.isnan(judged) & ~np.isnan(label)
    labelled = np.flatnonzero(has_label)
    rows = labelled[np.argsort(settled_at[labelled], kind="stable")]
    x = judged[rows]
    y = label[rows]
    sums = np.cumsum(np.stack([np.ones(len(rows)), x, y, x * x, x * y], axis=1), axis=0)
    lines = np.array(
        [fit_line((0.0, 0.0, 0.0, 0.0, 0.0)), *(fit_line(row) for row in sums.tolist())]
    )
    known_counts = np.searchsorted(settled_at[rows], made_at, side="left")
    lam, base = lines[known_counts].T
    expected = np.where(np.isnan(judged), label, base + lam * judged)
    return np.where(has_label, expected + (label - expected) / rho, expected)


def _held_up(explore: Ints, made_at: Floats, status: Any, patience: int) -> Bools:
    """Which rows are pending, or come after one that is: see `ordering.iter_settled`."""
    is_held_up = np.zeros(len(explore), np.bool_)
    if status is not None:
        rows = np.flatnonzero(explore >= 0)
        in_order = rows[np.argsort(made_at[rows], kind="stable")]
        last = in_order[max(len(rows) - patience, 0) :]
        is_pending = np.array([status[row] == "pending" for row in last.tolist()], np.bool_)
        is_held_up[last] = np.logical_or.accumulate(is_pending)
    return is_held_up


def _too_late(explore: Ints, made_at: Floats, settled_at: Floats, patience: int) -> Bools:
    """Which rows have a loss that came too late: so many newer decisions were made before that the
    row was given up.

    Such rows stay left out. If they came back, what earlier rows say would depend on when the log
    is read.
    """
    times = np.sort(made_at[explore >= 0])
    made_before_loss = np.searchsorted(times, settled_at, side="left")
    made_until_decision = np.searchsorted(times, made_at, side="right")
    is_too_late: Bools = (made_before_loss - made_until_decision >= patience) & ~np.isnan(
        settled_at
    )
    return is_too_late


def columns_of(log: Any) -> dict[str, Any]:
    """The columns of a log that an evaluation reads, by name.

    >>> columns_of([{"explore": "a", "propensity": 0.5, "loss": 0.3, "note": "not read"}])
    {'explore': ['a'], 'propensity': [0.5], 'loss': [0.3]}
    """
    return table_columns(log, (*NEEDED, *OPTIONAL), "log")


def table_columns(table: Any, wanted: tuple[str, ...], name: str) -> dict[str, Any]:
    """The wanted columns of a table: the path of a file, a data frame, columns by name, or rows.

    Args:
        table: the table.
        wanted: the columns to read, of which some may be missing.
        name: what errors call the table.

    >>> table_columns({"left": [1.0], "right": [2.0]}, ("right",), "table")
    {'right': [2.0]}
    """
    if isinstance(table, (str, os.PathLike)):
        return _from_file(Path(table), wanted, name)
    if isinstance(table, Mapping) or hasattr(table, "columns"):
        return {
            column: as_column(table[column]) for column in wanted if column in _column_names(table)
        }
    if isinstance(table, (bytes, int, float)) or not isinstance(table, Iterable):
        raise ParameterError.of(name, table, f"is {kind_of(table)}", _KINDS)
    rows = list(table)
    for place, row in enumerate(rows):
        if not isinstance(row, Mapping):
            rule = f"is {kind_of(row)}, and rows must be mappings"
            raise ParameterError.of(f"{name}[{place}]", row, rule, _KINDS)
    present = set().union(*(row.keys() for row in rows))
    return {column: [row.get(column) for row in rows] for column in wanted if column in present}


def _column_names(log: Any) -> list[Any]:
    """The names of the columns of a mapping or of a data frame."""
    if isinstance(log, Mapping):
        return list(log)
    # The columns of an Arrow table are not names.
    return list(getattr(log, "column_names", None) or log.columns)


def _chosen(column: Any, rows: Ints) -> Any:
    """The values of a column in these rows."""
    if isinstance(column, np.ndarray):
        return column[rows]
    return [column[row] for row in rows.tolist()]


def _from_file(path: Path, wanted: tuple[str, ...], name: str) -> dict[str, Any]:
    """The wanted columns of a CSV or Parquet file."""
    if path.suffix not in (".csv", ".parquet"):
        raise ParameterError.of(name, str(path), "must end in .csv or .parquet", _KINDS)
    return read_columns(path, f"{name} = {shown(str(path))}", wanted)


def _numbers(name: str, column: Any) -> Floats:
    """A column of numbers, NaN where one is missing."""
    if isinstance(column, np.ndarray) and column.dtype.kind in "fiu":
        return column.astype(np.float64)
    numbers = np.empty(len(column))
    for place, value in enumerate(column):
        try:
            numbers[place] = math.nan if _is_blank(value) else float(value)
        except (TypeError, ValueError, OverflowError):
            remedy = "leave it empty if it is missing"
            raise ParameterError.of(
                f"log[{place}].{name}", value, "is not a number", remedy
            ) from None
    return numbers


def _check_single(name: str, columns: dict[str, Any]) -> None:
    """Raise an error if a value of a column is a collection."""
    for place, value in enumerate(plain_values(columns.get(name, ()))):
        if isinstance(value, (list, dict, set)):
            rule = "is neither a text nor a number"
            remedy = "give one for each decision"
            raise ParameterError.of(f"log[{place}].{name}", value, rule, remedy)


def _check_repeated(name: str, columns: dict[str, Any]) -> None:
    """Raise an error if two rows are of one decision: it would count twice."""
    first_row: dict[Any, int] = {}
    for place, value in enumerate(plain_values(columns.get(name, ()))):
        if _is_blank(value):
            continue
        first = first_row.setdefault(value, place)
        if first != place:
            rule = f"is the decision of log[{first}] too, and would count twice"
            remedy = "keep the last row of each; evaluate logs of different experiments one by one"
            raise ParameterError.of(f"log[{place}].{name}", value, rule, remedy)


def _names(first_names: list[Arm], *columns: Any) -> list[Arm]:
    """These names, then the others of the columns in order."""
    values = set().union(*(set(plain_values(column)) for column in columns))
    others = {value for value in values if not _is_blank(value)} - set(first_names)
    return [*first_names, *sorted(others, key=lambda name: (isinstance(name, str), name))]


def _places(column: Any, names: list[Arm]) -> Ints:
    """The place of each name, -1 where it is missing."""
    values = plain_values(column)
    places = {name: place for place, name in enumerate(names)}
    places.update((value, -1) for value in set(values) - places.keys())
    return np.array([places[value] for value in values], np.int64)


def _blank(column: Any) -> Bools:
    """Whether each value is missing."""
    values = plain_values(column)
    blank = {value for value in set(values) if _is_blank(value)}
    return np.array([value in blank for value in values], np.bool_)


def plain_values(column: Any) -> Any:
    """A column whose values are Python's, not NumPy's.

    >>> plain_values(np.array([0.5, 1.0])), plain_values(["a", "b"])
    ([0.5, 1.0], ['a', 'b'])
    """
    return column.tolist() if isinstance(column, np.ndarray) else column


def _is_blank(value: Any) -> bool:
    """Whether a value is missing, or an empty text as in a CSV file."""
    return is_missing(value) or value == ""


def _check_losses(
    loss: Floats, rows: Bools, loss_range: tuple[float, float], name: str = "loss"
) -> None:
    """Raise an error if one of these rows has a loss outside its range."""
    low, high = loss_range
    is_outside = rows & ~((loss >= low) & (loss <= high))
    rule = f"must lie in [{low}, {high}]"
    remedy = "give the loss_range of the experiment"
    _refuse(is_outside, name, loss, rule, remedy, LossError)


def _check_propensities(propensity: Floats, rows: Bools) -> None:
    """Raise an error if one of these rows has a propensity that is no probability."""
    is_probability = (propensity >= LEAST_PROPENSITY) & (propensity <= 1.0)
    is_wrong = rows & ~np.isnan(propensity) & ~is_probability
    rule = f"must be a probability of at least {LEAST_PROPENSITY:g}"
    _refuse(is_wrong, "propensity", propensity, rule, "log the probability of the explored arm")


def _refuse(
    is_wrong: Bools,
    name: str,
    values: Floats,
    rule: str,
    remedy: str,
    kind: type[DecoupledError] = ParameterError,
) -> None:
    """Raise an error for the first wrong value of a column, if there is one."""
    for place in np.flatnonzero(is_wrong)[:1].tolist():
        raise kind.of(f"log[{place}].{name}", float(values[place]), rule, remedy)


# The columns `tags`, `baseline` and `context` of a log: what callers attached to their decisions


LARGEST = 1e100  # as in the context of a learner; its square is finite
_CONTEXT = "give its fields by their names, or leave it empty"
_LAW = "give the probability with which each arm was explored, or leave it empty"
_LAW_ERROR = 1e-6  # relative, by which a law may miss
_BASELINE = "give the prediction for each arm by its name, or leave it empty"


def _tagged(column: Iterable[Any], wanted: Any) -> Ints:
    """The rows that have all the tags that are wanted."""
    if not isinstance(wanted, Mapping):
        remedy = "for example {'country': 'de'}"
        raise ParameterError.of("tags", wanted, "must be a mapping from names to values", remedy)
    remedy = "give an object of strings, or leave it empty"
    is_wanted = [
        matches(_object(row, "tags", value, remedy), wanted) for row, value in enumerate(column)
    ]
    return np.flatnonzero(is_wanted)


def matches(tags: Mapping[Any, Any], wanted: Mapping[str, str]) -> bool:
    """Whether a decision has all wanted tags.

    >>> matches({"country": "de", "age": "30"}, {"country": "de"})
    True
    """
    return all(tags.get(name) == value for name, value in wanted.items())


def _predicted(
    column: Any, rows: Ints, numbers: Ints, names: list[Arm], loss_range: tuple[float, float]
) -> Predicted:
    """The predictions of these rows of a column; none without the column. `numbers` are the rows
    that errors name.
    """
    if column is None:
        return {}
    low, high = loss_range
    # Names in a JSON object are texts. Nothing is estimated of an arm that the log does not have.
    places: dict[Any, int] = {str(name): place for place, name in enumerate(names)}
    places.update({name: place for place, name in enumerate(names)})
    decisions_of: dict[int, list[int]] = {}
    losses_of: dict[int, list[float]] = {}
    for decision, row in enumerate(rows.tolist()):
        for arm, value in _object(numbers[row], "baseline", column[row], _BASELINE).items():
            loss = as_float(value)
            if loss is None or not low <= loss <= high:
                name = f"log[{numbers[row]}].baseline[{arm!r}]"
                rule = f"must be a loss in [{low}, {high}]"
                raise ParameterError.of(name, value, rule, _BASELINE)
            if arm in places:
                place = places[arm]
                decisions_of.setdefault(place, []).append(decision)
                losses_of.setdefault(place, []).append((loss - low) / (high - low))
    return {
        place: (np.array(decisions, np.int64), np.array(losses_of[place]))
        for place, decisions in decisions_of.items()
    }


def _laws(column: Any, rows: Ints, numbers: Ints, names: list[Arm]) -> Floats | None:
    """The laws of exploration of these rows of a column; None if none has one. `numbers` are the
    rows that errors name.
    """
    if column is None:
        return None
    places: dict[Any, int] = {str(name): place for place, name in enumerate(names)}
    places.update({name: place for place, name in enumerate(names)})
    laws = np.full((len(rows), len(names)), np.nan)
    for decision, row in enumerate(rows.tolist()):
        law = _object(numbers[row], "law", column[row], _LAW)
        if not law:
            continue
        laws[decision] = 0.0
        for arm, value in law.items():
            chance = as_float(value)
            argument = f"log[{numbers[row]}].law[{arm!r}]"
            if chance is None or not 0.0 <= chance <= 1.0:
                raise ParameterError.of(argument, value, "must be a probability", _LAW)
            if arm in places:
                laws[decision, places[arm]] = chance
            elif chance > 0.0:
                rule = "is of an arm that the log has nowhere else"
                raise ParameterError.of(argument, value, rule, "name all arms in `arms`")
    return None if np.isnan(laws).all() else laws


def _check_laws(laws: Floats, rows: Ints, numbers: Ints, explore: Ints, propensity: Floats) -> None:
    """Raise an error if a law is none, or does not have the propensity of the explored arm."""
    places = numbers[rows]
    sums = laws.sum(axis=1)
    drawn = laws[np.arange(len(rows)), explore[rows]]
    logged = propensity[rows]
    for values, wanted, rule in (
        (sums, np.ones(len(rows)), "must be probabilities that add up to 1"),
        (drawn, logged, "must have the propensity of the explored arm"),
    ):
        is_wrong = np.abs(values - wanted) > _LAW_ERROR * wanted
        for decision in np.flatnonzero(is_wrong)[:1].tolist():
            argument = f"log[{places[decision]}].law"
            raise ParameterError.of(argument, float(values[decision]), rule, _LAW)


def _contexts(column: Any, rows: Ints, numbers: Ints) -> tuple[Mapping[str, Any], ...] | None:
    """The contexts of these rows of a column; None if none has one. `numbers` are the rows that
    errors name.
    """
    if column is None:
        return None
    contexts = []
    for row in rows.tolist():
        fields = _object(numbers[row], "context", column[row], _CONTEXT)
        for name, value in fields.items():
            is_number = isinstance(value, (int, float)) and -LARGEST <= value <= LARGEST
            if not is_number and not isinstance(value, (str, bool, type(None))):
                argument = f"log[{numbers[row]}].context[{name!r}]"
                rule = (
                    f"must be a text, a number from {-LARGEST:g} to {LARGEST:g}, a boolean or None"
                )
                raise ParameterError.of(argument, value, rule, _CONTEXT)
        contexts.append({str(name): value for name, value in fields.items()})
    return tuple(contexts) if any(contexts) else None


def _object(row: int, name: str, value: Any, remedy: str) -> Mapping[Arm, Any]:
    """What a caller attached to a decision: a mapping, its JSON, or nothing."""
    if isinstance(value, Mapping):
        return value
    if _is_blank(value):
        return {}
    try:
        content = json.loads(value)
    except (TypeError, ValueError, RecursionError):
        content = None
    if not isinstance(content, dict):
        raise ParameterError.of(f"log[{row}].{name}", value, "is not a JSON object", remedy)
    return content
