"""Run the handler of a signal wherever a signal could: after a call of C code, or when a function begins."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import NoReturn


class Interrupted(BaseException):
    """What the handler of a signal raises; like `KeyboardInterrupt`, it is no `Exception`."""


def handled_at(point: int, handler: Callable[[], object], act: Callable[[], object]) -> int:
    """Run a call, and a handler at this point of it. Return how many points there were."""
    passed = 0

    def look(frame: FrameType, event: str, argument: object) -> None:
        nonlocal passed
        if event in ("call", "c_return"):
            passed += 1
            if passed == point + 1:
                handler()

    sys.setprofile(look)  # it does not look at what the handler does
    try:
        act()
    finally:
        sys.setprofile(None)
    return passed


def _interrupt() -> NoReturn:
    raise Interrupted


@contextmanager
def _lost_where_a_generator_ends() -> Iterator[None]:
    """Python itself drops what a handler raises while a generator is finalised, and tells the hook."""
    told = sys.unraisablehook
    sys.unraisablehook = lambda found: None if found.exc_type is Interrupted else told(found)
    try:
        yield
    finally:
        sys.unraisablehook = told


def at_every_point(start: Callable[[], Callable[[], object]], most: int = 40) -> Iterator[int]:
    """Interrupt a call at every point, or at so many of them; `start` prepares it anew. Yield each point."""
    points = handled_at(sys.maxsize, _interrupt, start())
    for point in range(0, points, points // most + 1):
        with suppress(Interrupted), _lost_where_a_generator_ends():
            handled_at(point, _interrupt, start())
        yield point
