"""A log of decisions as columns: read from a file, a data frame or a list of rows, and checked."""

import json
import math
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, TypeAlias

import numpy as np

from ..base.arrays import Bools, Floats, Ints
from ..base.tables import listed, read_columns
from ..base.validation import LEAST_PROPENSITY, as_float, is_missing, kind_of
from ..decision import Arm, fitted
from ..errors import ArmError, LossError, Message, ParameterError, near_name, shown
from .ordering import PATIENCE_OF_LOGS

NEEDED = ("explore", "propensity", "loss")
OPTIONAL = (
    *("exploit", "available", "status", "id", "seq", "settled_seq", "tags", "baseline", "context"),
    *("judged", "label_probability"),
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

    >>> log = read_log([{"explore": "a", "propensity": 0.5, "loss": 3.0}], (0.0, 10.0))
    >>> log.arms, log.loss.tolist(), log.place("a")
    (('a',), [0.3], 0)
    """

    arms: tuple[Arm, ...]
    size: int  # the number of rows
    decisions: int  # the number of rows with the wanted tags
    # the rows with a loss that could not explore every arm: some away, or a propensity of 1
    left_out: int
    rows: Ints  # of each decision in the log
    explore: Ints  # the places of the explored arms
    exploit: Ints  # those of the exploited arms, -1 for none
    propensity: Floats  # of each explored arm; NaN if it is not known
    # scaled to [0, 1]; of a log with labels, what `Asked.estimate` makes of it, mapped to [0, 1]
    loss: Floats
    made: Floats  # when each decision was made, as a number that grows with time
    settled: Floats  # when its loss was observed, on the same scale
    given: Floats  # its loss as it was logged
    predicted: Predicted  # the losses that were predicted when the decisions were made
    context: tuple[Mapping[str, Any], ...] | None  # of each decision; None if none has one
    missing: int  # the rows that explored and have no loss, apart from those that hold up others
    waiting: int  # the rows with a loss that are held up
    width: float = 1.0  # of the range around 1/2 that losses are mapped from; 1 without labels

    def __len__(self) -> int:
        return len(self.loss)

    def place(self, arm: object) -> int:
        """The place of an arm. A log that was exported has text only, so 1 also finds "1"."""
        for name in (arm, str(arm)):
            if name in self.arms:
                return self.arms.index(name)
        raise ArmError(
            f"arm = {shown(arm)}: is not an arm of this log; {near_name(arm, self.arms)}"
        )


def read_log(
    log: Any,
    loss_range: tuple[float, float],
    arms: Sequence[Arm] | None = None,
    tags: Mapping[str, str] | None = None,
    patience: int = PATIENCE_OF_LOGS,
) -> Log:
    """Read and check a log; `arms` names arms that it may lack, and `tags` those that its decisions
    must have.

    >>> log = [{"explore": "a", "propensity": 0.5, "loss": 0.5}, {"explore": "b", "propensity": 0.5, "loss": None}]
    >>> len(read_log(log, (0.0, 1.0))), read_log(log, (0.0, 1.0)).missing
    (1, 1)
    """
    if isinstance(arms, (str, set, frozenset)):
        raise ArmError.of(
            "arms", arms, "must be a list of names", "their order is that of the result"
        )
    columns = columns_of(log)
    missing = [name for name in NEEDED if name not in columns]
    if missing:
        found = ", ".join(map(repr, columns)) or "none of the columns of a log"
        problem = f"log: has no column {missing[0]!r}, only {found}"
        raise ParameterError(Message(problem, "see docs: The decision log"))
    size = count = len(columns["loss"])
    if (
        wrong := next((name for name, each in columns.items() if len(each) != size), None)
    ) is not None:
        rule = f"has {len(columns[wrong])} values, and the column 'loss' has {size}"
        raise ParameterError(Message(f"log[{wrong!r}]: {rule}", "give one for each decision"))
    for name in ("id", "seq", "explore", "exploit"):
        _check_single(name, columns)
    numbered = all(map(_is_blank, _values(columns.get("id", ()))))
    _check_repeated("seq" if numbered else "id", columns)
    names = _names(list(arms or ()), columns["explore"], columns.get("exploit", ()))
    rows = np.arange(count)
    if tags:
        rows = _tagged(columns.get("tags", [None] * count), tags)
        columns = {name: _chosen(column, rows) for name, column in columns.items()}
        count = len(rows)
    loss, propensity = (
        _numbers("loss", columns["loss"]),
        _numbers("propensity", columns["propensity"]),
    )
    status = columns.get("status")
    seen = ~np.isnan(loss)
    judged, rho = _judgements(columns, loss_range)
    if judged is not None:
        seen |= ~np.isnan(judged)
    if status is not None:
        # One that expired counts too, if a loss was declared for it: the learner learned that.
        seen &= np.array([each not in ("pending", "unobserved") for each in status], np.bool_)
    explored, exploited = columns["explore"], columns.get("exploit", [None] * count)
    explore, exploit = _places(explored, names), _places(exploited, names)
    seen &= explore >= 0
    order = np.arange(count, dtype=np.float64)
    made = _numbers("seq", columns["seq"]) if "seq" in columns else order
    held = _held_up(explore, made, status, patience)
    if "settled_seq" in columns and patience > 0:  # 0: every loss is wanted, in any order
        seen &= ~_too_late(explore, made, _numbers("settled_seq", columns["settled_seq"]), patience)
    without, waiting = int((~seen & ~held & (explore >= 0)).sum()), int((seen & held).sum())
    seen &= ~held
    _check_losses(loss, seen & ~np.isnan(loss), loss_range)
    possible = np.isnan(propensity) | ((propensity >= LEAST_PROPENSITY) & (propensity <= 1.0))
    rule = f"must be a probability of at least {LEAST_PROPENSITY:g}"
    _refuse(
        seen & ~possible, "propensity", propensity, rule, "log the probability of the explored arm"
    )
    whole = (propensity != 1.0) & _blank(columns.get("available", [None] * count))
    kept = np.flatnonzero(seen & whole)
    low, high = loss_range
    settled = (
        _numbers("settled_seq", columns["settled_seq"]) if "settled_seq" in columns else made + 0.5
    )
    settled = np.where(np.isnan(settled), made + 0.5, settled)
    unit, width = (loss - low) / (high - low), 1.0
    if judged is not None:
        width = 2.0 / float(rho[seen].min(initial=1.0)) - 1.0
        estimates = _estimates(judged[seen], unit[seen], rho[seen], made[seen], settled[seen])
        unit[seen] = np.clip(0.5 + (estimates - 0.5) / width, 0.0, 1.0)
    by_row = {"rows": rows, "explore": explore, "exploit": exploit, "propensity": propensity}
    by_row |= {"loss": unit, "made": made, "settled": settled, "given": loss}
    chosen: dict[str, Any] = {name: values[kept] for name, values in by_row.items()}
    chosen |= {
        "missing": without,
        "waiting": waiting,
        "width": width,
        "predicted": {},
        "context": None,
    }
    if "baseline" in columns:
        chosen["predicted"] = _predicted(columns["baseline"], kept, rows, names, loss_range)
    if "context" in columns:
        chosen["context"] = _contexts(columns["context"], kept, rows)
    return Log(tuple(names), size, count, int(seen.sum()) - len(kept), **chosen)


def _judgements(
    columns: dict[str, Any], loss_range: tuple[float, float]
) -> tuple[Floats | None, Floats]:
    """What a judge said, scaled to [0, 1] and NaN if it said nothing, with the probability of a
    label; None if nobody judged.
    """
    low, high = loss_range
    judged = _numbers("judged", columns.get("judged", ()))
    if np.isnan(judged).all():
        return None, judged
    _check_losses(judged, ~np.isnan(judged), loss_range, "judged")
    rho = _numbers("label_probability", columns.get("label_probability", [None] * len(judged)))
    wrong = ~np.isnan(judged) & ~((rho > 0.0) & (rho <= 1.0))
    rule = "must be the probability with which a label was wanted, above 0"
    _refuse(wrong, "label_probability", rho, rule, "log decision.asked.rho with every decision")
    return (judged - low) / (high - low), np.where(np.isnan(judged), 1.0, rho)


def _estimates(judged: Floats, label: Floats, rho: Floats, made: Floats, settled: Floats) -> Floats:
    """What `Asked.estimate` makes of each row, by the labels known when it was made; a loss without
    a judgement as it is.
    """
    labelled = ~np.isnan(judged) & ~np.isnan(label)
    rows = np.flatnonzero(labelled)[np.argsort(settled[labelled], kind="stable")]
    s, g = judged[rows], label[rows]
    sums = np.cumsum(np.stack([np.ones(len(rows)), s, g, s * s, s * g], axis=1), axis=0)
    lines = np.array([fitted((0.0, 0.0, 0.0, 0.0, 0.0)), *(fitted(each) for each in sums.tolist())])
    lam, base = lines[np.searchsorted(settled[rows], made, side="left")].T
    expected = np.where(np.isnan(judged), label, base + lam * judged)
    return np.where(labelled, expected + (label - expected) / rho, expected)


def _held_up(explore: Ints, made: Floats, status: Any, patience: int) -> Bools:
    """Which rows are pending, or come after one that is: see `ordering.settled`."""
    held = np.zeros(len(explore), np.bool_)
    if status is not None:
        rows = np.flatnonzero(explore >= 0)
        last = rows[np.argsort(made[rows], kind="stable")][max(len(rows) - patience, 0) :]
        pending = np.array([status[row] == "pending" for row in last.tolist()], np.bool_)
        held[last] = np.logical_or.accumulate(pending)
    return held


def _too_late(explore: Ints, made: Floats, settled: Floats, patience: int) -> Bools:
    """Which rows have a loss that came after so many newer decisions that they were given up
    before.

    They stay left out: had they come back, what earlier rows say would depend on when the log is
    read.
    """
    ranked = np.sort(made[explore >= 0])
    newer = np.searchsorted(ranked, settled, side="left") - np.searchsorted(
        ranked, made, side="right"
    )
    found: Bools = (newer >= patience) & ~np.isnan(settled)
    return found


def columns_of(log: Any) -> dict[str, Any]:
    """The columns of a log that an evaluation reads, by name.

    >>> columns_of([{"explore": "a", "propensity": 0.5, "loss": 0.3, "note": "not read"}])
    {'explore': ['a'], 'propensity': [0.5], 'loss': [0.3]}
    """
    wanted = (*NEEDED, *OPTIONAL)
    if isinstance(log, (str, os.PathLike)):
        return _from_file(Path(log), wanted)
    if isinstance(log, Mapping) or hasattr(log, "columns"):
        # Those of an Arrow table are not names.
        names = list(
            log if isinstance(log, Mapping) else getattr(log, "column_names", None) or log.columns
        )
        return {name: listed(log[name]) for name in wanted if name in names}
    if isinstance(log, (bytes, int, float)) or not isinstance(log, Iterable):
        raise ParameterError.of("log", log, f"is {kind_of(log)}", _KINDS)
    rows = list(log)
    wrong = next((place for place, row in enumerate(rows) if not isinstance(row, Mapping)), None)
    if wrong is not None:
        rule = f"is {kind_of(rows[wrong])}, and rows must be mappings"
        raise ParameterError.of(f"log[{wrong}]", rows[wrong], rule, _KINDS)
    present = set().union(*(row.keys() for row in rows))
    return {name: [row.get(name) for row in rows] for name in wanted if name in present}


def _chosen(column: Any, rows: Ints) -> Any:
    return (
        column[rows] if isinstance(column, np.ndarray) else [column[row] for row in rows.tolist()]
    )


def _from_file(path: Path, wanted: tuple[str, ...]) -> dict[str, Any]:
    if path.suffix not in (".csv", ".parquet"):
        raise ParameterError.of("log", str(path), "must end in .csv or .parquet", _KINDS)
    return read_columns(path, f"log = {shown(str(path))}", wanted)


def _numbers(name: str, column: Any) -> Floats:
    """A column of numbers, NaN where one is missing."""
    if isinstance(column, np.ndarray) and column.dtype.kind in "fiu":
        return column.astype(np.float64)
    try:
        return np.array(
            [math.nan if is_missing(each) or each == "" else float(each) for each in column]
        )
    except (TypeError, ValueError, OverflowError):
        place, value = next((i, each) for i, each in enumerate(column) if not _is_number(each))
        remedy = "leave it empty if it is missing"
        raise ParameterError.of(f"log[{place}].{name}", value, "is not a number", remedy) from None


def _is_number(value: Any) -> bool:
    try:
        return is_missing(value) or value == "" or float(value) is not None
    except (TypeError, ValueError, OverflowError):
        return False


def _check_single(name: str, columns: dict[str, Any]) -> None:
    for place, value in enumerate(_values(columns.get(name, ()))):
        if isinstance(value, (list, dict, set)):
            rule = "is neither a text nor a number"
            raise ParameterError.of(
                f"log[{place}].{name}", value, rule, "give one for each decision"
            )


def _check_repeated(name: str, columns: dict[str, Any]) -> None:
    """Raise an error if two rows are of one decision: it would count twice."""
    seen: dict[Any, int] = {}
    for place, value in enumerate(_values(columns.get(name, ()))):
        if not _is_blank(value) and (first := seen.setdefault(value, place)) != place:
            rule = f"is the decision of log[{first}] too, and would count twice"
            remedy = "keep the last row of each; evaluate logs of different experiments one by one"
            raise ParameterError.of(f"log[{place}].{name}", value, rule, remedy)


def _names(given: list[Arm], *columns: Any) -> list[Arm]:
    """The names given, then the others in order."""
    found = {value for column in columns for value in set(_values(column)) if not _is_blank(value)}
    return [*given, *sorted(found - set(given), key=lambda name: (isinstance(name, str), name))]


def _places(column: Any, names: list[Arm]) -> Ints:
    """The place of each name, -1 where it is missing."""
    values = _values(column)
    places = {name: place for place, name in enumerate(names)}
    places.update((value, -1) for value in set(values) - places.keys())
    return np.array([places[value] for value in values], np.int64)


def _blank(column: Any) -> Bools:
    """Whether each value is missing."""
    values = _values(column)
    blank = {value for value in set(values) if _is_blank(value)}
    return np.array([value in blank for value in values], np.bool_)


def _values(column: Any) -> Any:
    return column.tolist() if isinstance(column, np.ndarray) else column


def _is_blank(value: Any) -> bool:
    return is_missing(value) or value == ""


def _check_losses(
    loss: Floats, seen: Bools, loss_range: tuple[float, float], name: str = "loss"
) -> None:
    low, high = loss_range
    outside = seen & ~((loss >= low) & (loss <= high))
    rule, remedy = f"must lie in [{low}, {high}]", "give the loss_range of the experiment"
    _refuse(outside, name, loss, rule, remedy, LossError)


def _refuse(
    bad: Bools, name: str, given: Floats, rule: str, remedy: str, kind: Any = ParameterError
) -> None:
    """Raise an error for the first bad value of a column, if there is one."""
    for place in np.flatnonzero(bad)[:1].tolist():
        raise kind.of(f"log[{place}].{name}", float(given[place]), rule, remedy)


# The columns `tags`, `baseline` and `context` of a log: what callers attached to their decisions


LARGEST = 1e100  # as in the context of a learner; its square is finite
_CONTEXT = "give its fields by their names, or leave it empty"
_BASELINE = "give the prediction for each arm by its name, or leave it empty"


def _tagged(column: Iterable[Any], wanted: Any) -> Ints:
    """The rows that have all the tags that are wanted."""
    if not isinstance(wanted, Mapping):
        remedy = "for example {'country': 'de'}"
        raise ParameterError.of("tags", wanted, "must be a mapping from names to values", remedy)
    remedy = "give an object of strings, or leave it empty"
    found = [
        matches(_object(row, "tags", value, remedy), wanted) for row, value in enumerate(column)
    ]
    return np.flatnonzero(found)


def matches(tags: Mapping[Any, Any], wanted: Mapping[str, str]) -> bool:
    """Whether a decision has all wanted tags.

    >>> matches({"country": "de", "age": "30"}, {"country": "de"})
    True
    """
    return all(tags.get(name) == value for name, value in wanted.items())


def _predicted(
    column: Any, rows: Ints, numbers: Ints, names: list[Arm], loss_range: tuple[float, float]
) -> Predicted:
    """The predictions of some rows of a column; `numbers` are the rows that errors name."""
    low, high = loss_range
    # Names in a JSON object are texts. Nothing is estimated of an arm that the log does not have.
    places: dict[Any, int] = {str(name): place for place, name in enumerate(names)}
    places |= {name: place for place, name in enumerate(names)}
    found: dict[int, tuple[list[int], list[float]]] = {}
    for decision, row in enumerate(rows.tolist()):
        for arm, value in _object(numbers[row], "baseline", column[row], _BASELINE).items():
            number = as_float(value)
            if number is None or not low <= number <= high:
                rule = f"must be a loss in [{low}, {high}]"
                raise ParameterError.of(
                    f"log[{numbers[row]}].baseline[{arm!r}]", value, rule, _BASELINE
                )
            if arm in places:
                seen, values = found.setdefault(places[arm], ([], []))
                seen.append(decision)
                values.append((number - low) / (high - low))
    return {
        arm: (np.array(seen, np.int64), np.array(values)) for arm, (seen, values) in found.items()
    }


def _contexts(column: Any, rows: Ints, numbers: Ints) -> tuple[Mapping[str, Any], ...] | None:
    """The contexts of some rows of a column; None if none has one. `numbers` are the rows that
    errors name.
    """
    found = []
    for row in rows.tolist():
        given = _object(numbers[row], "context", column[row], _CONTEXT)
        for name, value in given.items():
            number = isinstance(value, (int, float)) and -LARGEST <= value <= LARGEST
            if not number and not isinstance(value, (str, bool, type(None))):
                rule = (
                    f"must be a text, a number from {-LARGEST:g} to {LARGEST:g}, a boolean or None"
                )
                raise ParameterError.of(
                    f"log[{numbers[row]}].context[{name!r}]", value, rule, _CONTEXT
                )
        found.append({str(name): value for name, value in given.items()})
    return tuple(found) if any(found) else None


def _object(row: int, name: str, value: Any, remedy: str) -> Mapping[Arm, Any]:
    if isinstance(value, Mapping):
        return value
    if is_missing(value) or value == "":
        return {}
    try:
        found = json.loads(value)
    except (TypeError, ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise ParameterError.of(f"log[{row}].{name}", value, "is not a JSON object", remedy)
    return found
