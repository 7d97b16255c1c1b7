"""Sets fields of JSON bodies, so that arms may share an upstream and differ in a field such as `model`."""

import json
import math
from collections.abc import Mapping
from typing import Any


def json_object(body: bytes) -> dict[str, Any] | None:
    """The object that a body is; None if it is none, or has numbers that JSON cannot write again.

    >>> json_object(b'{"model": "router"}'), json_object(b"[1]"), json_object(b'{"a": 1e999}'), json_object(b"a=1")
    ({'model': 'router'}, None, None, None)
    """
    found = parsed(body, parse_float=_finite, parse_constant=_finite)
    return found if isinstance(found, dict) else None


def parsed(body: bytes, **options: Any) -> Any:
    """The content of a body; None if it is not JSON."""
    try:
        return json.loads(body, **options)
    except (ValueError, RecursionError):
        return None


def with_fields(content: Mapping[str, Any], fields: Mapping[str, Any]) -> dict[str, Any]:
    """The object with these fields set; tables in them set fields of what is inside.

    >>> with_fields({"model": "router", "n": 1, "options": {"seed": 7}}, {"model": "small", "options": {"top_k": 3}})
    {'model': 'small', 'n': 1, 'options': {'seed': 7, 'top_k': 3}}
    """
    found = dict(content)
    for name, value in fields.items():
        inside = found.get(name)
        nested = isinstance(value, Mapping)
        found[name] = with_fields(inside if isinstance(inside, dict) else {}, value) if nested else value
    return found


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(text)
    return number
