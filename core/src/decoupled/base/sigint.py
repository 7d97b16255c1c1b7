"""Delay Ctrl-C while the compiler runs.

Python raises `KeyboardInterrupt` between any two steps of the main thread. Inside the compiler's clean-up it is either
lost, or memory is freed twice and the process crashes.
"""

import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

COMPILER = ("llvmlite", "numba")  # packages in which nothing is raised
AGAIN = 0.02  # seconds until a delayed Ctrl-C is tried again


@contextmanager
def held_while_compiling() -> Iterator[None]:
    """Make Ctrl-C wait for the compiler; do nothing outside the main thread, or if SIGINT has another handler."""
    main = threading.current_thread() is threading.main_thread()
    if not main or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield
        return
    waiting: list[threading.Timer] = []

    def drop_waiting() -> bool:
        for timer in waiting:
            timer.cancel()
        dropped = bool(waiting)
        waiting.clear()
        return dropped

    def interrupted(number: int, frame: FrameType | None) -> None:
        drop_waiting()
        if not _compiling(frame):
            raise KeyboardInterrupt
        timer = threading.Timer(AGAIN, _send)
        timer.daemon = True
        timer.start()
        waiting.append(timer)

    try:
        signal.signal(signal.SIGINT, interrupted)
        yield
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        if drop_waiting():
            raise KeyboardInterrupt


def _compiling(frame: FrameType | None) -> bool:
    while frame is not None:
        if str(frame.f_globals.get("__name__")).partition(".")[0] in COMPILER:
            return True
        frame = frame.f_back
    return False


def _send() -> None:
    if sys.platform == "win32":
        signal.raise_signal(signal.SIGINT)
    else:  # to the main thread itself, which may be waiting for a lock
        main = threading.main_thread().ident
        assert main is not None
        signal.pthread_kill(main, signal.SIGINT)
