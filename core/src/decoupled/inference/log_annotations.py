"""The columns `tags`, `baseline` and `context` of a log: what callers attached to their decisions."""

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from ..base.arrays import Floats, Ints
from ..base.validation import as_float, is_missing
from ..decision import Arm
from ..errors import ParameterError

# For the place of an arm: the decisions that have a prediction of its loss, and the predictions, scaled to [0, 1].
Predicted: TypeAlias = Mapping[int, tuple[Ints, Floats]]

LARGEST = 1e100  # as in the context of a learner; its square is finite
_CONTEXT = "give its fields by their names, or leave it empty"
_BASELINE = "give the prediction for each arm by its name, or leave it empty"


def tagged(column: Iterable[Any], wanted: Any) -> Ints:
    """The rows that have all the tags that are wanted.

    >>> tagged(['{"country": "de"}', None, {"country": "fr"}], {"country": "de"}).tolist()
    [0]
    """
    if not isinstance(wanted, Mapping):
        remedy = "for example {'country': 'de'}"
        raise ParameterError.of("tags", wanted, "must be a mapping from names to values", remedy)
    rows = [
        row
        for row, value in enumerate(column)
        if matches(_object(row, "tags", value, "give an object of strings, or leave it empty"), wanted)
    ]
    return np.array(rows, np.int64)


def matches(tags: Mapping[Any, Any], wanted: Mapping[str, str]) -> bool:
    """Whether a decision has all the tags that are wanted."""
    return all(tags.get(name) == value for name, value in wanted.items())


def predictions(
    column: Sequence[Any],
    rows: Ints,
    places: Mapping[Any, int],
    loss_range: tuple[float, float],
    numbers: Ints,
) -> Predicted:
    """The predictions of some rows of a column, by the places of the arms; `numbers` are the rows that errors name.

    An arm that the log does not have is left out: nothing is estimated of it.

    >>> numbers = np.array([0, 1])
    >>> found = predictions([None, '{"a": 5}'], numbers, {"a": 0}, (0.0, 10.0), numbers)
    >>> [(rows.tolist(), values.tolist()) for rows, values in found.values()]
    [([1], [0.5])]
    """
    low, high = loss_range
    found: dict[int, tuple[list[int], list[float]]] = {}
    for decision, row in enumerate(rows.tolist()):
        for arm, value in _object(numbers[row], "baseline", column[row], _BASELINE).items():
            number = as_float(value)
            if number is None or not low <= number <= high:
                rule = f"must be a loss in [{low}, {high}]"
                raise ParameterError.of(f"log[{numbers[row]}].baseline[{arm!r}]", value, rule, _BASELINE)
            if arm in places:
                seen, values = found.setdefault(places[arm], ([], []))
                seen.append(decision)
                values.append((number - low) / (high - low))
    return {arm: (np.array(seen, np.int64), np.array(values)) for arm, (seen, values) in found.items()}


def contexts(column: Sequence[Any], rows: Ints, numbers: Ints) -> tuple[Mapping[str, Any], ...] | None:
    """The contexts of some rows of a column; None if none has one. `numbers` are the rows that errors name.

    >>> numbers = np.array([0, 1])
    >>> contexts(['{"subject": "law", "tokens": 312}', None], numbers, numbers)
    ({'subject': 'law', 'tokens': 312}, {})
    """
    found = []
    for row in rows.tolist():
        given = _object(numbers[row], "context", column[row], _CONTEXT)
        for name, value in given.items():
            if not isinstance(value, (str, bool, type(None))) and not (
                isinstance(value, (int, float)) and -LARGEST <= value <= LARGEST
            ):
                rule = f"must be a text, a number from {-LARGEST:g} to {LARGEST:g}, a boolean or None"
                raise ParameterError.of(f"log[{numbers[row]}].context[{name!r}]", value, rule, _CONTEXT)
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
