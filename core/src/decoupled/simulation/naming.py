"""Names that a user gives to policies in a figure or a table."""

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from ..errors import ParameterError

# By policy or label, or in order. A mapping's keys are invariant: a dictionary by FTPL is none by Policy.
Labels: TypeAlias = Mapping[Any, str] | Sequence[str]
"""Names of policies in figures: by policy or by label, or one for each in order."""


def renamed(names: dict[str, str], labels: Labels | None, known: Mapping[Any, str]) -> list[str]:
    """The names by label, with those replaced that `labels` gives; `known` has the label of each of its keys.

    >>> renamed({"FTPL": "FTPL", "Exp3": "Exp3"}, ["ours", "theirs"], {})
    ['ours', 'theirs']
    """
    if labels is None:
        return list(names.values())
    if isinstance(labels, Mapping):
        chosen = list((names | {known[key]: name for key, name in labels.items()}).values())
    elif isinstance(labels, str) or not isinstance(labels, Sequence) or len(labels) != len(names):
        rule = f"must be a dictionary, or a list of {len(names)} names"
        raise ParameterError.of("labels", labels, rule, f"the policies are {[*names]}, in this order")
    else:
        chosen = list(labels)
    for name in chosen:
        if not isinstance(name, str):
            raise ParameterError.of("labels", name, "must be text", 'such as "ours"')
        if chosen.count(name) > 1:
            rule = "must name one policy only"
            raise ParameterError.of("labels", name, rule, "give each policy its own name")
    return chosen
