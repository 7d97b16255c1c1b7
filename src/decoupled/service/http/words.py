"""Values, kinds and rules of JSON as error messages name them."""

import json
from collections.abc import Iterable

from ...errors import near_name, shown

_LONGEST = 500  # characters of a value; ids and names are shorter, and never cut


def as_json(value: object) -> str:
    """A value as it was sent; only a long one is cut.

    >>> as_json(None), as_json(["red"]), as_json("é")
    ('null', '["red"]', '"é"')
    """
    try:
        text = json.dumps(value, ensure_ascii=False)
    except (TypeError, ValueError, RecursionError):
        return shown(value)
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 3]}..."


def kind_of(value: object) -> str:
    """What JSON calls a value.

    >>> kind_of("0.5"), kind_of(None), kind_of(True), kind_of([])
    ('a string', 'null', 'a boolean', 'a list')
    """
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "a boolean"
    if isinstance(value, (int, float)):
        return "a number"
    names: dict[type, str] = {str: "a string", list: "a list", dict: "an object"}
    return names.get(type(value), type(value).__name__)


def problem_with(place: str, value: object, rule: str, remedy: str) -> str:
    """One sentence: where in the request, what was sent, the rule, the remedy.

    >>> problem_with("count", 0, "must be at least 1", "for example 10")
    'count = 0: must be at least 1; for example 10'
    """
    return f"{place} = {as_json(value)}: {rule}; {remedy}"


def unknown_field(place: str, value: object, fields: Iterable[str]) -> str:
    """The message for a field that the request does not have.

    >>> unknown_field("colour", "red", ["loss", "arm"])
    'colour = "red": is not a field of this request; the fields are arm, loss'
    >>> unknown_field("items.0.lose", 1, ["loss", "arm"])
    "items.0.lose = 1: is not a field of this request; did you mean 'loss'?"
    """
    known = sorted(fields)
    hint = near_name(place.rpartition(".")[2], known)
    remedy = hint if hint.startswith("did") else f"the fields are {', '.join(known)}"
    return problem_with(place, value, "is not a field of this request", remedy)
