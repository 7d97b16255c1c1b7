"""What a call has still to do, written down before it is done, so that an interrupt cannot leave half of it."""

from collections.abc import Callable
from typing import Any, NamedTuple

NEVER = 0  # rounds are numbered from 1


class Unfinished(NamedTuple):
    """The rest of a call. Whoever comes next does it if the call was interrupted.

    Attributes:
        due: the round in which the rest has to be done, because what cannot be repeated is done; in any other round, and
            if it is `NEVER`, the call is taken back. None if it has to be done in any case.
        rest: does the rest. It may be repeated: it sets things, and adds to nothing.
        arguments: what it takes.
        undo: takes the call back; it may be repeated, too.
    """

    due: int | None
    rest: Callable[..., object]
    arguments: tuple[Any, ...]
    undo: Callable[[], object] = lambda: None


def undone_by(undo: Callable[[], object]) -> Unfinished:
    """A call that is taken back if it is interrupted."""
    return Unfinished(NEVER, undo, (), undo)
