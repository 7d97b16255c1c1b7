"""Numba, loaded when something has to be compiled and not before: loading it takes as long as all else."""

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from threading import RLock
from typing import Any, TypeVar

from ..errors import MissingExtraError
from ..native.load import why_not

Function = TypeVar("Function", bound=Callable[..., object])

HOW_LONG = "10 to 40 s"

_loading = RLock()
_waiting: list[Callable[[], None]] = []  # what is to be done as soon as Numba is there
_listeners: list[Callable[[], None]] = []
_loaded: list[Any] = []
_subject: list[str] = []


def numba() -> Any:
    """The module, with all that waited for it done."""
    if not _loaded:
        with _loading:
            if not _loaded:
                module = _import()
                _listen()
                _loaded.append(module)
    while _waiting:
        with _loading:
            if _waiting:
                _waiting.pop(0)()
    return _loaded[0]


def _import() -> Any:
    try:
        return import_module("numba")
    except ImportError:
        reason = why_not()
        shipped = (
            "no machine code ships for it" if reason is None else f"of the shipped machine code: {reason}"
        )
        raise MissingExtraError(
            f"{_subject[-1] if _subject else 'this function'}: has to be compiled ({shipped}), and Numba is not "
            "installed; pip install 'decoupled-bandits[jit]'"
        ) from None


def is_loaded() -> bool:
    """Whether Numba is there, or about to be: somebody else may have loaded it."""
    return sys.modules.get("numba") is not None


def jit_disabled() -> bool:
    """Whether functions are to stay plain Python, which Numba's own setting says."""
    settings = getattr(sys.modules.get("numba"), "config", None)  # None also while another thread loads it
    if settings is not None:
        return bool(settings.DISABLE_JIT)
    return os.environ.get("NUMBA_DISABLE_JIT", "0") not in ("", "0")


def overload(function: Callable[..., object], **options: Any) -> Callable[[Function], Function]:
    """`numba.extending.overload`, as soon as Numba is there."""

    def decorate(implementation: Function) -> Function:
        _waiting.append(lambda: numba().extending.overload(function, **options)(implementation))
        if is_loaded():
            numba()
        return implementation

    return decorate


# Saying so


def compiling_for(name: str) -> None:
    """Note which policy the next functions to be compiled are for."""
    _subject[:] = [name]


@contextmanager
def told_of_compiling(listener: Callable[[], None]) -> Iterator[None]:
    """Call a function, in the thread that compiles, whenever a function begins to be compiled."""
    _listeners.append(listener)
    try:
        yield
    finally:
        _listeners.remove(listener)


def _listen() -> None:
    event: Any = import_module("numba.core.event")

    class Listener(event.Listener):  # type: ignore[misc]
        def on_start(self, event: object) -> None:
            for listener in tuple(_listeners):
                listener()

        def on_end(self, event: object) -> None:
            pass

    event.register("numba:compile", Listener())


def _tell_the_terminal() -> None:
    # Once, and not by every worker: whoever waits at a terminal for the first time should know what for.
    _listeners.remove(_tell_the_terminal)
    from multiprocessing import parent_process

    if parent_process() is None and sys.stderr is not None and sys.stderr.isatty():
        reason = why_not()
        because = "" if reason is None else f" (of the shipped machine code: {reason})"
        what = _subject[-1] if _subject else "machine code"
        print(f"decoupled: compiling {what} for this machine, once, {HOW_LONG}{because}", file=sys.stderr)


_listeners.append(_tell_the_terminal)
