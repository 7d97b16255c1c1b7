"""Reads from an answer what it cost: a header, or its `usage` times prices."""

import math
from collections.abc import Iterator, Mapping
from typing import Any

from ..nested import at
from .exchange import Answer
from .json_fields import parsed

MILLION = 1e6


def stated_cost(answer: Answer, header: str | None, prices: Mapping[str, float]) -> float | None:
    """What an answer says that it cost; None if it does not say.

    Args:
        answer: the answer of an arm.
        header: the name of a header with the cost; None if there is none.
        prices: the price of a million of each field of `usage`, such as "completion_tokens".

    >>> body = b'{"usage": {"prompt_tokens": 1000, "completion_tokens": 200}}'
    >>> stated_cost(Answer("small", 200, (), body), None, {"prompt_tokens": 2.5, "completion_tokens": 10.0})
    0.0045
    >>> stated_cost(Answer("small", 200, (("x-cost", "0.25"),)), "X-Cost", {})
    0.25
    """
    if header is not None and (stated := _amount(answer.header(header))) is not None:
        return stated
    if not prices or not answer.complete:
        return None
    counts: dict[str, Any] = {}
    for usage in _usages(answer):  # a stream may tell it in several events
        counts.update(usage)
    found = {name: _amount(at(counts, name)) for name in prices}
    known = [price * count for name, price in prices.items() if (count := found[name]) is not None]
    return sum(known) / MILLION if known else None


def _usages(answer: Answer) -> Iterator[dict[str, Any]]:
    """Every `usage` in an answer, whether it is one object or a stream of events, at its top or one level below."""
    events = [answer.body]
    if (answer.header("content-type") or "").startswith("text/event-stream"):
        lines = answer.body.splitlines()
        events = [line[5:] for line in lines if line.startswith(b"data:") and b'"usage"' in line]
    for event in events:
        content = parsed(event)
        for place in (content, *(content.values() if isinstance(content, dict) else ())):
            if isinstance(place, dict) and isinstance(usage := place.get("usage"), dict):
                yield usage


def _amount(value: object) -> float | None:
    try:
        number = float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return None
    return number if number >= 0.0 and math.isfinite(number) else None
