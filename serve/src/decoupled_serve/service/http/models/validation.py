"""Errors that Pydantic found in a request: its messages, and their places. Values are never shown."""

from collections.abc import Mapping, Sequence
from typing import Any

from decoupled.client import Invalid

from .fields import CHOICES

_LISTED = 20  # errors in a response
_DETAILED = 2_000  # characters of their messages that its detail repeats


def invalid(errors: Sequence[Mapping[str, Any]], *within: str) -> Invalid:
    """The refusal for a request. Each place starts with the part of the request, such as "body".

    >>> invalid([{"loc": ("items", 3, "loss"), "msg": "Input should be a valid number"}], "body").errors
    [{'field': 'items.3.loss', 'message': 'items.3.loss: Input should be a valid number'}]
    """
    found = []
    for each in errors[:_LISTED]:
        part, *place = (str(step) for step in (*within, *each["loc"]) if step not in CHOICES)
        name = ".".join(place) or part
        said = each["msg"].removeprefix("Value error, ").removeprefix(f"{name}: ")
        found.append({"field": name, "message": f"{name}: {said}"})
    detail, *left = (each["message"] for each in found)
    while left and len(detail) + len(left[0]) <= _DETAILED:
        detail += f"; {left.pop(0)}"
    refusal = Invalid(f"{detail}; and {len(left)} more, in errors" if left else detail)
    refusal.errors = found
    return refusal
