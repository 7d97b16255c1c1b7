"""Pending work of a call, noted before it is done, so that an interrupt cannot leave half of it."""

from collections.abc import Callable
from typing import Any, TypeAlias

NEVER = 0  # rounds are numbered from 1

# What is left of a call, which the next one makes up for if it was interrupted. A plain tuple, because every
# observation makes one:
# - the round in which the rest has to be done, because what cannot be repeated is done; in any other round, and if it
#   is `NEVER`, the call is taken back; None if the rest has to be done in any case;
# - what does the rest. It may be repeated: it sets things, and adds to nothing; and its arguments;
# - what takes the call back; it may be repeated, too.
Unfinished: TypeAlias = tuple[int | None, Callable[..., object], tuple[Any, ...], Callable[[], object]]


def nothing() -> None:
    """Take back a call that has done nothing yet."""


def undone_by(undo: Callable[[], object]) -> Unfinished:
    """A call that is taken back if it is interrupted."""
    return NEVER, undo, (), undo
