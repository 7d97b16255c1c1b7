"""Docstrings that two classes share: what is written about an argument in one is shown in both."""

import inspect
from collections.abc import Callable
from typing import TypeVar

SECTIONS = ("Args:", "Returns:", "Raises:")
Kind = TypeVar("Kind", bound=type)


def documented_by(other: type) -> Callable[[Kind], Kind]:
    """A class decorator: its methods have the sections about arguments, results and errors of those of `other`."""

    def complete(kind: Kind) -> Kind:
        for name, method in vars(kind).items():
            twin = getattr(other, name, None)
            if inspect.isfunction(method) and method.__doc__ and twin is not None and twin.__doc__:
                method.__doc__ = with_sections(method.__doc__, twin.__doc__)
        if kind.__doc__ and other.__doc__:
            kind.__doc__ = with_sections(kind.__doc__, other.__doc__)
        return kind

    return complete


def with_sections(text: str, source: str) -> str:
    r"""A docstring with the sections of another, before its examples; as it is if it has arguments of its own.

    >>> with_sections("Add.\n\n>>> await add(1)", "Add.\n\nArgs:\n    n: a number.").splitlines()
    ['Add.', '', 'Args:', '    n: a number.', '', '>>> await add(1)']
    """
    lines = inspect.cleandoc(text).splitlines()
    found = sections_of(source)
    if not found or SECTIONS[0] in lines:
        return text
    starts = (place for place, line in enumerate(lines) if line.startswith((">>>", "```")))
    place = next(starts, len(lines))
    head, examples = "\n".join(lines[:place]).rstrip(), "\n".join(lines[place:])
    return "\n\n".join(part for part in (head, found, examples) if part)


def sections_of(text: str) -> str:
    """The sections of a docstring that are about its arguments, results and errors."""
    paragraphs = inspect.cleandoc(text).split("\n\n")
    return "\n\n".join(each for each in paragraphs if each.startswith(SECTIONS))
