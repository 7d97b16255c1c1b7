"""Orphans in a container: its first process becomes the parent of every process that loses its own."""

import os
import signal
from contextlib import suppress
from types import FrameType


def reap_orphans() -> None:
    """As the first process of a container, collect the children that end. The service starts none of its own."""
    if os.getpid() == 1 and hasattr(signal, "SIGCHLD"):
        signal.signal(signal.SIGCHLD, _reap)
        _reap(signal.SIGCHLD, None)


def _reap(number: int, frame: FrameType | None) -> None:
    with suppress(ChildProcessError):  # there are no children
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
