"""A function that is compiled when it is first used: until then it costs nothing, not even loading Numba."""

import sys
from collections.abc import Callable
from functools import cache, update_wrapper
from threading import RLock
from typing import Any

from ..native import load
from ..native.calls import UnsuitedError
from .numba_later import is_loaded

_making = RLock()


class OnFirstUse:
    """Stands for a function of Numba's, which is made when its machine code is needed.

    Called from Python it runs the machine code that the package ships, where there is any. Whatever else is
    asked of it, by Numba above all when it compiles a caller, Numba's own object answers.
    """

    py_func: Callable[..., Any]

    def __init__(self, function: Callable[..., Any], make: Callable[[], Any], name: str | None) -> None:
        update_wrapper(self, function)
        self.py_func = function
        self._make, self._name = make, name
        self._made: Any = None
        self._target: Callable[..., Any] = self._first

    @property
    def dispatcher(self) -> Any:
        """Numba's object."""
        if self._made is None:
            with _making:
                if self._made is None:
                    self._made = self._make()
        return self._made

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        """Run it, as shipped or compiled."""
        return self._target(*arguments, **named)

    def _first(self, *arguments: Any, **named: Any) -> Any:
        shipped = self._name is not None and load.ships(self._name)
        self._target = self._as_shipped if shipped else self.dispatcher
        return self._target(*arguments, **named)

    def _as_shipped(self, *arguments: Any, **named: Any) -> Any:
        function = None if named else load.function(str(self._name), *load.admitted(arguments))
        if function is not None:
            try:
                return function(*arguments)
            except UnsuitedError:  # before anything was run: Numba takes other arguments too
                pass
        return self.dispatcher(*arguments, **named)

    def __reduce__(self) -> Any:
        # By name, if another process can import it. Numba knows how to send what a script defines.
        if self.__module__ != "__main__" and _by_name(self.__module__, self.py_func.__qualname__) is self:
            return self.py_func.__qualname__
        return _from_dispatcher, (self.dispatcher,)

    def __repr__(self) -> str:
        return f"<compiled {self.__module__}.{self.py_func.__qualname__}>"

    # What Numba looks for

    @property
    def _numba_type_(self) -> Any:
        return self.dispatcher._numba_type_

    def __getattr__(self, name: str) -> Any:
        # Tools ask everything for special names; none of Numba's is one.
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self.dispatcher, name)

    @property  # type: ignore[misc]
    def __class__(self) -> Any:
        # A compiler for another target knows what to compile anew by its class.
        return type(self.dispatcher) if is_loaded() else OnFirstUse


@cache  # Numba gives the same object each time, and so must this: policies are told apart by their functions
def _from_dispatcher(dispatcher: Any) -> OnFirstUse:
    return OnFirstUse(dispatcher.py_func, lambda: dispatcher, None)


def _by_name(module: str, name: str) -> Any:
    found: Any = sys.modules.get(module)
    for part in name.split("."):
        found = getattr(found, part, None)
    return found
