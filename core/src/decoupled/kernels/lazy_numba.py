"""Load Numba only when something must be compiled, because loading it takes long.

`pinned` makes parameters compile-time constants. Some parameters choose between branches, such as
the form of a power, and never change within a run. A CPU predicts such a branch. A GPU still
fetches instructions past the code of the other branches, and FTPL is a quarter faster there with
the common values compiled in.
"""

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from importlib import import_module
from threading import RLock
from typing import Any, TypeVar

from ..errors import MissingExtraError
from ..native.load import unavailable_reason

Function = TypeVar("Function", bound=Callable[..., object])


_loading = RLock()
_waiting: list[Callable[[], None]] = []  # calls to make once Numba is loaded
_listeners: list[Callable[[], None]] = []
_loaded: list[Any] = []
_subject: list[str] = []


def numba() -> Any:
    """Numba, with all pending registrations done."""
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
    """Numba, or an error that says why it is needed and how to install it."""
    try:
        return import_module("numba")
    except ImportError:
        reason = unavailable_reason()
        shipped = (
            "no machine code ships for it"
            if reason is None
            else f"of the shipped machine code: {reason}"
        )
        subject = _subject[-1] if _subject else "this function"
        raise MissingExtraError(
            f"{subject}: has to be compiled ({shipped}), and Numba is not installed; "
            "pip install 'decoupled-bandits[jit]'"
        ) from None


def is_loaded() -> bool:
    """Whether Numba is loaded or loading; other code may have loaded it."""
    return sys.modules.get("numba") is not None


def jit_disabled() -> bool:
    """Whether Numba's own setting disables compilation, so that functions stay plain Python."""
    # Also None while another thread loads it.
    settings = getattr(sys.modules.get("numba"), "config", None)
    if settings is not None:
        return bool(settings.DISABLE_JIT)
    return os.environ.get("NUMBA_DISABLE_JIT", "0") not in ("", "0")


def overload(function: Callable[..., object], **options: Any) -> Callable[[Function], Function]:
    """Like `numba.extending.overload`, applied once Numba is loaded."""

    def decorate(implementation: Function) -> Function:
        _waiting.append(lambda: numba().extending.overload(function, **options)(implementation))
        if is_loaded():
            numba()
        return implementation

    return decorate


def on_cpu(function: Function) -> Function:
    """Let code that is compiled for a CPU call a function as it stands.

    For a GPU the function is overloaded.
    """
    overload(function, target="cpu")(wraps(function)(lambda *_: function))
    return function


# Reporting


def compiling_for(name: str) -> None:
    """Record the policy whose functions are compiled next."""
    _subject[:] = [name]


@contextmanager
def on_compile(listener: Callable[[], None]) -> Iterator[None]:
    """Call `listener`, in the compiling thread, whenever the compilation of a function starts."""
    _listeners.append(listener)
    try:
        yield
    finally:
        _listeners.remove(listener)


def _listen() -> None:
    """Call the listeners whenever Numba starts to compile."""
    event: Any = import_module("numba.core.event")

    class Listener(event.Listener):  # type: ignore[misc]
        def on_start(self, event: object) -> None:
            for listener in tuple(_listeners):
                listener()

        def on_end(self, event: object) -> None:
            pass

    event.register("numba:compile", Listener())


def _tell_the_terminal() -> None:
    """Say once, and not in every worker, why a user at a terminal has to wait."""
    _listeners.remove(_tell_the_terminal)
    from multiprocessing import parent_process

    if parent_process() is None and sys.stderr is not None and sys.stderr.isatty():
        reason = unavailable_reason()
        because = "" if reason is None else f" (of the shipped machine code: {reason})"
        what = _subject[-1] if _subject else "machine code"
        print(
            f"decoupled: compiling {what} for this machine, once, 10 to 40 s{because}",
            file=sys.stderr,
        )


_listeners.append(_tell_the_terminal)


COMMON = (0.0, 1.0, 1.5, 2.0, 3.0, 4.0)
OPEN = float("nan")  # marks a parameter that is not a constant


def common_values(params: Any, names: tuple[str, ...]) -> tuple[float, ...]:
    """The value of each parameter in `names` that has a common value, and `OPEN` for the others."""
    named = zip(params._fields, params, strict=True)
    return tuple(value if name in names and value in COMMON else OPEN for name, value in named)


def pinned(params: Any, values: tuple[float, ...]) -> Any:
    """The same parameters; in compiled code, those in `values` are constants."""
    return params


@overload(pinned)
def _pinned(params: Any, values: Any) -> Any:
    """`pinned` in compiled code: the common value of each field that has one."""
    # Numba needs a call with one argument for each field, so the source is generated.
    fields = [
        f"values[{i}] if values[{i}] == values[{i}] else params[{i}]"
        for i in range(len(params.types))
    ]
    scope: dict[str, Any] = {"kind": params.instance_class, "Any": Any}
    head = "def implementation(params: Any, values: Any) -> Any:"
    exec(f"{head}\n    return kind({', '.join(fields)})\n", scope)
    return scope["implementation"]
