"""The names of experiments, tenants and tags: one rule, by which each is a segment of a path, a label and a file name."""

import re
from collections.abc import Sequence
from dataclasses import fields

from .spec import Description, parameter_text

NAME_SHAPE = "[A-Za-z0-9][A-Za-z0-9._-]*"
LONGEST_NAME = 100


def is_name(value: object, longest: int = LONGEST_NAME) -> bool:
    """Whether a value is a name.

    >>> is_name("checkout-2.1"), is_name(".."), is_name("a/b"), is_name(7)
    (True, False, False, False)
    """
    return isinstance(value, str) and len(value) <= longest and re.fullmatch(NAME_SHAPE, value) is not None


def name_rule(longest: int = LONGEST_NAME) -> str:
    """The rule, for an error.

    >>> name_rule()
    'must be 1 to 100 letters, digits, dots, dashes and underscores, a letter or a digit first'
    """
    letters = "letters, digits, dots, dashes and underscores, a letter or a digit first"
    return f"must be 1 to {longest} {letters}"


LONGEST = 30  # characters; longer labels are shortened


def short_labels(shown: Sequence[Description]) -> list[str]:
    """A name for each description in a legend or a table: different names for different descriptions.

    In a sweep, every name has the parameters that differ, also where they are at their defaults. Otherwise, a short
    label stays as it is. A long one keeps the parameters that tell it from the others of its class, then as many of its
    first parameters as fit; "…" stands for the rest.

    >>> import decoupled as dc
    >>> short_labels([dc.FTPL(c=0.5), dc.FTPL(c=2), dc.Exp3()])
    ['FTPL(c=0.5)', 'FTPL(c=2)', 'Exp3']
    >>> tuned = dc.FTPL(c=0.5, ranking="strata", estimator="centred", c_exploit=3, schedule="losses")
    >>> short_labels([dc.FTPL(), dc.Ladder(), tuned])
    ['FTPL', 'Ladder', 'FTPL(c=0.5, c_exploit=3, …)']
    """
    names = [_shortened(each, shown) for each in shown]
    for kind in {type(each) for each in shown}:
        for number, name in _swept(kind, shown).items():
            names[number] = name
    return [each.label if names.count(name) > 1 else name for each, name in zip(shown, names, strict=True)]


def _swept(kind: type[Description], shown: Sequence[Description]) -> dict[int, str]:
    """Names, by place, with every parameter that differs among the descriptions of a class, if all of them are short."""
    mine = {place: each for place, each in enumerate(shown) if type(each) is kind}
    texts = {
        field.name: {parameter_text(field.name, getattr(each, field.name)) for each in mine.values()}
        for field in fields(kind)  # type: ignore[arg-type]
    }
    differing = [name for name, found in texts.items() if len(found) > 1]
    names = {}
    for place, each in mine.items():
        own, told = each._changed(), each._changed(differing).items()
        kept = [parameter_text(name, value) for name, value in told if value is not None or name in own]
        names[place] = kind.__name__ + (f"({', '.join(kept)})" if kept else "")
    return names if differing and all(len(name) <= LONGEST for name in names.values()) else {}


def _shortened(each: Description, shown: Sequence[Description]) -> str:
    if len(each.label) <= LONGEST:
        return each.label
    name, texts = type(each).__name__, _own_parameters(each)
    others = [other for other in shown if type(other) is type(each) and other != each]
    kept = set(_telling(each, texts, others))
    for parameter in texts:
        if len(_call(name, texts, kept | {parameter})) <= LONGEST:
            kept.add(parameter)
    return _call(name, texts, kept)


def _call(name: str, texts: dict[str, str], kept: set[str]) -> str:
    """The call with the kept parameters, in the order in which the class names them."""
    inside = [text for parameter, text in texts.items() if parameter in kept]
    return f"{name}({', '.join([*inside, *(['…'] if len(kept) < len(texts) else [])])})"


def _own_parameters(each: Description) -> dict[str, str]:
    """The parameters that are not at their defaults, as in a call."""
    texts = {}
    for field in fields(each):  # type: ignore[arg-type]
        value = getattr(each, field.name)
        if isinstance(value, Description):
            texts[field.name] = short_labels([value])[0]
        elif value != field.default:
            shown = f"{value:.4g}" if isinstance(value, float) else repr(value)
            texts[field.name] = f"{field.name}={shown}"
    return texts


def _telling(each: Description, texts: dict[str, str], others: list[Description]) -> list[str]:
    """Few parameters that together differ from every other description: the most telling first."""
    chosen: list[str] = []
    while others and len(chosen) < len(texts):
        rest = [name for name in texts if name not in chosen]
        best = max(
            rest, key=lambda name: sum(getattr(other, name) != getattr(each, name) for other in others)
        )
        left = [other for other in others if getattr(other, best) == getattr(each, best)]
        if len(left) == len(others):
            break  # they differ only where this one has a default
        chosen, others = [*chosen, best], left
    return chosen
