"""Interrupt a call wherever a signal could: its handler runs after a call of C code, or when a function begins."""

import sys
from collections.abc import Callable, Iterator
from types import FrameType


class Interrupted(BaseException):
    """What the handler of a signal raises; like `KeyboardInterrupt`, it is no `Exception`."""


def interrupted_at(point: int, act: Callable[[], object]) -> bool:
    """Run a call and raise `Interrupted` at this point of it. Return False if it has fewer."""
    left = point

    def look(frame: FrameType, event: str, argument: object) -> None:
        nonlocal left
        if event in ("call", "c_return"):
            left -= 1
            if left < 0:
                raise Interrupted

    sys.setprofile(look)
    try:
        act()
    except Interrupted:
        return True
    finally:
        sys.setprofile(None)
    return False


def at_every_point(start: Callable[[], Callable[[], object]]) -> Iterator[int]:
    """Interrupt a call at its first point, its second, and so on; `start` prepares it anew. Yield each point."""
    point = 0
    while interrupted_at(point, start()):
        yield point
        point += 1
