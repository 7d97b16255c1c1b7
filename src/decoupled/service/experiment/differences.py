"""How the settings of an experiment differ from those that somebody asks for."""

import json
from collections.abc import Iterator
from typing import Any

from ...errors import DecoupledError, shown
from ...policies import Policy
from .records import Settings
from .settings import as_text

_NAMES = {"deadline": "deadline_seconds"}  # settings that requests call otherwise


def differences(stored: str, settings: Settings) -> list[str]:
    """Each setting that differs from the stored ones, with both values; empty if they agree.

    >>> there = as_text(Settings({"name": "FTPL"}, ("a", "b"), deadline=60.0))
    >>> differences(there, Settings({"name": "FTPL"}, ("a", "c")))
    ["arms is ['a', 'b'], and you sent ['a', 'c']", 'deadline_seconds is 60.0, and you sent none']
    """
    known, asked = json.loads(stored), json.loads(as_text(settings))
    return [line for name in sorted(known) for line in _lines(name, known, asked)]


def _lines(name: str, known: dict[str, Any], asked: dict[str, Any]) -> Iterator[str]:
    one, other = known.get(name), asked.get(name)
    if one == other:
        return
    if name == "imported":
        yield "it began with another saved learner, or with none"
    elif name == "policy" and (labels := _labels(one, other)) is not None:
        yield _line("policy", *labels)
    elif isinstance(one, dict) and isinstance(other, dict):
        for inner in sorted(one.keys() | other.keys()):
            yield from (f"{name}.{line}" for line in _lines(inner, one, other))
    else:
        yield _line(_NAMES.get(name, name), one, other)


def _line(name: str, known: object, asked: object) -> str:
    there = "not set" if known is None else shown(known)
    return f"{name} is {there}, and you sent {'none' if asked is None else shown(asked)}"


def _labels(known: Any, asked: Any) -> tuple[str, str] | None:
    """Both policies in a few words, which say more than their parameters; None if they do not tell them apart."""
    try:
        labels = Policy.from_dict(known).label, Policy.from_dict(asked).label
    except DecoupledError:  # a policy of another program
        return None
    return labels if labels[0] != labels[1] else None
