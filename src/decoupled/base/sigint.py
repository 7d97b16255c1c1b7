"""Ctrl-C waits while the compiler works.

Python raises `KeyboardInterrupt` between any two steps of the main thread. Inside the compiler's clean-up it
is either lost there or leaves memory that is freed a second time, which ends the process with a crash.
"""

import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

COMPILER = ("llvmlite", "numba")  # packages in whose midst nothing is raised
AGAIN = 0.02  # seconds until a Ctrl-C that has to wait is tried again


@contextmanager
def held_while_compiling() -> Iterator[None]:
    """Within this, Ctrl-C raises `KeyboardInterrupt` as soon as no step of the compiler is under way.

    It changes nothing outside the main thread, or where Ctrl-C means something else already.

    >>> with held_while_compiling():
    ...     pass
    """
    if (
        threading.current_thread() is not threading.main_thread()
        or signal.getsignal(signal.SIGINT) is not signal.default_int_handler
    ):
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
        waiting.append(_sent_again())

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


def _sent_again() -> threading.Timer:
    timer = threading.Timer(AGAIN, _send)
    timer.daemon = True
    timer.start()
    return timer


def _send() -> None:
    if sys.platform == "win32":
        signal.raise_signal(signal.SIGINT)
    else:  # to the main thread itself, which may be waiting for a lock by now
        main = threading.main_thread().ident
        assert main is not None
        signal.pthread_kill(main, signal.SIGINT)
