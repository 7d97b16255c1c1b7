"""The names of experiments, tenants and tags, by one rule: fit for URLs, labels and files."""

import re
from collections.abc import Sequence
from dataclasses import fields

from .spec import Description

NAME_SHAPE = "[A-Za-z0-9][A-Za-z0-9._-]*"
LONGEST_NAME = 100


def is_name(value: object, longest: int = LONGEST_NAME) -> bool:
    """Whether a value is a name.

    >>> is_name("checkout-2.1"), is_name(".."), is_name("a/b"), is_name(7)
    (True, False, False, False)
    """
    return (
        isinstance(value, str)
        and len(value) <= longest
        and re.fullmatch(NAME_SHAPE, value) is not None
    )


def name_rule(longest: int = LONGEST_NAME) -> str:
    """The rule, for an error.

    >>> name_rule()
    'must be 1 to 100 letters, digits, dots, dashes and underscores, a letter or a digit first'
    """
    letters = "letters, digits, dots, dashes and underscores, a letter or a digit first"
    return f"must be 1 to {longest} {letters}"


LONGEST_LABEL = 30  # characters; longer labels are shortened


def short_labels(descriptions: Sequence[Description]) -> list[str]:
    """A name for each description in a legend or a table.

    Different descriptions have different names.

    A short label stays as it is. A long one keeps as many of its first parameters as fit; "…"
    stands for the others. If two would have the same name, both keep their labels.

    >>> import decoupled as dc
    >>> tuned = dc.Ladder(mean_rate=0.5, hedge_rate=0.25, uniform_share=0.125)
    >>> short_labels([dc.FTPL(c=0.5), dc.Ladder(), tuned])
    ['FTPL(c=0.5)', 'Ladder', 'Ladder(hedge_rate=0.25, …)']
    """
    names = [_shortened(description) for description in descriptions]
    return [
        description.label if names.count(name) > 1 else name
        for description, name in zip(descriptions, names, strict=True)
    ]


def _shortened(description: Description) -> str:
    """The label, or its first parameters that fit into `LONGEST_LABEL` characters."""
    if len(description.label) <= LONGEST_LABEL:
        return description.label
    name = type(description).__name__
    parameters: list[str] = []
    for text in _changed_parameters(description):
        if len(_call(name, [*parameters, text, "…"])) > LONGEST_LABEL:
            break
        parameters.append(text)
    return _call(name, [*parameters, "…"])


def _call(name: str, parameters: Sequence[str]) -> str:
    return f"{name}({', '.join(parameters)})"


def _changed_parameters(description: Description) -> list[str]:
    """The parameters that are not at their defaults, as in a call.

    A description among them has its short label.
    """
    texts = []
    for field in fields(description):  # type: ignore[arg-type]
        value = getattr(description, field.name)
        if isinstance(value, Description):
            texts.append(_shortened(value))
        elif value != field.default:
            number = f"{value:.4g}" if isinstance(value, float) else repr(value)
            texts.append(f"{field.name}={number}")
    return texts
