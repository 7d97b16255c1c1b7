"""Starts a long-running command: loads what it needs, and ends on SIGTERM meanwhile."""

import gc
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def loading() -> Iterator[None]:
    """Load modules without looking for garbage in between, and never look at what they made again.

    Modules stay for good, so there is no garbage to find; looking for it takes a seventh of the time to start the service.
    """
    gc.disable()
    try:
        yield
        gc.freeze()
    finally:
        gc.enable()


@contextmanager
def ends_on_sigterm() -> Iterator[None]:
    """End in order on SIGTERM, until something else handles it.

    The first process of a container ignores signals that it has no handler for, so without one a container that is
    stopped while it starts would have to be killed.
    """

    def end(number: int, frame: FrameType | None) -> None:
        raise SystemExit(0)

    if threading.current_thread() is not threading.main_thread():  # which alone may set handlers
        yield
        return
    before = signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
