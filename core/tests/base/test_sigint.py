"""Ctrl-C and the compiler: nothing is raised inside it, and no Ctrl-C is lost."""

import signal
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

from decoupled.base.sigint import AGAIN, held_while_compiling

STEPS = """
def clean_up(interrupt, then):
    try:
        interrupt()
    except KeyboardInterrupt:
        then("raised inside")
        raise
    then("finished")
"""


def step_of(package: str) -> Callable[..., None]:
    """A function whose frame says that it belongs to a module of the package."""
    namespace: dict[str, Any] = {"__name__": f"{package}.binding"}
    exec(STEPS, namespace)
    step: Callable[..., None] = namespace["clean_up"]
    return step


def ctrl_c() -> None:
    signal.raise_signal(signal.SIGINT)
    for _ in range(100):  # steps at which Python looks for signals
        pass


def work(
    package: str, presses: int, told: list[str], wait: Callable[[float], object] = time.sleep
) -> None:
    def press() -> None:
        for _ in range(presses):
            ctrl_c()

    with held_while_compiling():
        step_of(package)(press, told.append)
        told.append("went on")
        wait(100 * AGAIN)
        told.append("never raised")


@pytest.mark.parametrize("package", ["llvmlite", "numba"])
@pytest.mark.parametrize("presses", [1, 3])
def test_the_compiler_finishes_and_then_it_is_raised(package: str, presses: int) -> None:
    told: list[str] = []
    with pytest.raises(KeyboardInterrupt):
        work(package, presses, told)
    assert told == ["finished", "went on"]
    time.sleep(5 * AGAIN)  # no other is pending


def test_a_wait_for_a_lock_is_interrupted() -> None:
    told: list[str] = []
    with pytest.raises(KeyboardInterrupt):
        work("numba", 1, told, threading.Event().wait)
    assert told == ["finished", "went on"]


def test_elsewhere_it_is_raised_at_once_and_at_the_end_what_waits() -> None:
    told: list[str] = []
    with pytest.raises(KeyboardInterrupt):
        work("decoupled", 1, told)
    assert told == ["raised inside"]
    with pytest.raises(KeyboardInterrupt), held_while_compiling():
        step_of("numba")(ctrl_c, str)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_the_handler_is_put_back_and_another_is_left_alone() -> None:
    with held_while_compiling():
        ours = signal.getsignal(signal.SIGINT)
        with held_while_compiling():
            assert signal.getsignal(signal.SIGINT) is ours
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler

    handler = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with held_while_compiling():
            assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, handler)


def test_another_thread_leaves_it_alone() -> None:
    seen = []

    def inside() -> None:
        with held_while_compiling():
            seen.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=inside)
    thread.start()
    thread.join()
    assert seen == [signal.default_int_handler]
