"""Docstrings that two classes share: what is written about a method in one is shown in both."""

import inspect
from collections.abc import Callable
from typing import TypeVar

Kind = TypeVar("Kind", bound=type)


def documented_by(other: type) -> Callable[[Kind], Kind]:
    """A class decorator: what has no docstring has that of `other`, without its examples."""

    def complete(kind: Kind) -> Kind:
        for name, method in vars(kind).items():
            twin = getattr(other, name, None)
            if inspect.isfunction(method) and twin is not None and twin.__doc__:
                method.__doc__ = method.__doc__ or without_examples(twin.__doc__)
        return kind

    return complete


def without_examples(text: str) -> str:
    r"""A docstring up to its examples.

    >>> without_examples("Add one.\n\nArgs:\n    n: a number.\n\n>>> add(1)\n2")
    'Add one.\n\nArgs:\n    n: a number.'
    """
    return inspect.cleandoc(text).partition("\n\n>>>")[0]
