"""A function that is compiled on first use. Until then, Numba need not be loaded."""

import sys
from collections.abc import Callable
from functools import cache, update_wrapper
from threading import RLock
from typing import Any

from ..native import load
from ..native.calls import NativeFunction, UnsuitedError
from .lazy_numba import is_loaded

_making = RLock()


class OnFirstUse:
    """Wraps a Numba function, which is created when it is needed.

    A call from Python runs the shipped machine code, if there is any. Everything else, such as a use by Numba when it
    compiles a caller, goes to Numba's own object.
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

    def shipped(self) -> NativeFunction | None:
        """The machine code that the package ships for it, if there is any."""
        return None if self._name is None else load.function(self._name)

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        """Run the shipped or the compiled code."""
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
            except UnsuitedError:  # nothing was run yet, and Numba takes other arguments too
                pass
        return self.dispatcher(*arguments, **named)

    def __reduce__(self) -> Any:
        # By name, if another process can import it. Otherwise Numba sends it by value.
        if self.__module__ != "__main__" and _by_name(self.__module__, self.py_func.__qualname__) is self:
            return self.py_func.__qualname__
        return _from_dispatcher, (self.dispatcher,)

    def __repr__(self) -> str:
        return f"<compiled {self.__module__}.{self.py_func.__qualname__}>"

    # For Numba

    @property
    def _numba_type_(self) -> Any:
        return self.dispatcher._numba_type_

    def __getattr__(self, name: str) -> Any:
        # Tools look for special names on every object, and Numba defines none of them.
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self.dispatcher, name)

    @property  # type: ignore[misc]
    def __class__(self) -> Any:
        # The compiler for another target checks the class to find functions that it must recompile.
        return type(self.dispatcher) if is_loaded() else OnFirstUse


@cache  # one object for each dispatcher, because policies are compared by their functions
def _from_dispatcher(dispatcher: Any) -> OnFirstUse:
    return OnFirstUse(dispatcher.py_func, lambda: dispatcher, None)


def _by_name(module: str, name: str) -> Any:
    found: Any = sys.modules.get(module)
    for part in name.split("."):
        found = getattr(found, part, None)
    return found
