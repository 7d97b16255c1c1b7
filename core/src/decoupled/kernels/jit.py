"""`compiled`: how this package turns a function into machine code.

Most of it ships with the package (see `decoupled.native`). Numba compiles the rest on first use;
until then it need not be loaded.

Numba caches machine code on disk, but watches only the file of the cached function. If that
function calls a kernel in another file and the kernel changes, the stale code stays. So the cache
folder is named by a digest of the sources in `COMPILED`. Compiled functions elsewhere in the
package call only those and functions of their own file, which Numba watches, so an edit elsewhere
recompiles nothing.
"""

import os
import re
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache, partial, update_wrapper
from importlib import import_module
from pathlib import Path
from threading import Lock, RLock
from typing import Any, TypeVar, cast

from ..errors import ParameterError
from ..native import load
from ..native.calls import NativeFunction, UnsuitedError
from ..native.load import COMPILED as COMPILED
from ..native.load import name_of
from ..native.load import source_digest as source_digest
from .lazy_numba import is_loaded, jit_disabled, numba

_making = RLock()


class LazyKernel:
    """Wraps a Numba function, which is created when it is needed.

    A call from Python runs the shipped machine code, if there is any. Everything else, such as a
    use by Numba when it compiles a caller, goes to Numba's own object.
    """

    py_func: Callable[..., Any]

    def __init__(
        self,
        function: Callable[..., Any],
        make_dispatcher: Callable[[], Any],
        name: str | None,
    ) -> None:
        update_wrapper(self, function)
        self.py_func = function
        self._make_dispatcher = make_dispatcher
        self._name = name
        self._dispatcher: Any = None
        self._target: Callable[..., Any] = self._first

    @property
    def dispatcher(self) -> Any:
        """Numba's object."""
        if self._dispatcher is None:
            with _making:
                if self._dispatcher is None:
                    self._dispatcher = self._make_dispatcher()
        return self._dispatcher

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
        function = None if named else load.function(str(self._name), *load.shipped_types(arguments))
        if function is not None:
            try:
                return function(*arguments)
            except UnsuitedError:  # nothing was run yet, and Numba takes other arguments too
                pass
        return self.dispatcher(*arguments, **named)

    def __reduce__(self) -> Any:
        # By name, if another process can import it. Otherwise Numba sends it by value.
        if (
            self.__module__ != "__main__"
            and _by_name(self.__module__, self.py_func.__qualname__) is self
        ):
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
        return type(self.dispatcher) if is_loaded() else LazyKernel


@cache  # one object for each dispatcher, because policies are compared by their functions
def _from_dispatcher(dispatcher: Any) -> LazyKernel:
    """The wrapper of a dispatcher that came from another process."""
    return LazyKernel(dispatcher.py_func, lambda: dispatcher, None)


def _by_name(module: str, name: str) -> Any:
    """What a module holds under a qualified name; None if there is nothing."""
    held: Any = sys.modules.get(module)
    for attribute in name.split("."):
        held = getattr(held, attribute, None)
    return held


fcntl: Any
try:
    fcntl = import_module("fcntl")
except ImportError:  # not a POSIX system: code is compiled at every start
    fcntl = None

Function = TypeVar("Function", bound=Callable[..., object])
"""Any function; a decorator returns one of the same type."""

_one_at_a_time = Lock()

PACKAGE = __name__.partition(".")[0]
UNUSED_FOR = 30 * 24 * 3600.0  # seconds after which the cache folder of another version is removed


@cache
def cache_folder() -> str | None:
    """The folder for machine code, in `NUMBA_CACHE_DIR` or the user's cache folder; None if none is
    writable or files cannot be locked.
    """
    if fcntl is None:
        return None
    try:
        base = (
            numba().config.CACHE_DIR or os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
        )
        root = Path(base) / PACKAGE / "compiled"
        folder = root / source_digest(*COMPILED)
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
        os.utime(folder)
    except (OSError, RuntimeError):  # no home folder, or not writable
        return None
    _sweep(root)
    return str(folder)


def _sweep(root: Path) -> None:
    """Remove the folders of other versions that nobody has used for long."""
    for folder in root.iterdir():
        if not re.fullmatch("[0-9a-f]{16}", folder.name):  # not a digest, so not one of ours
            continue
        try:
            if time.time() - folder.stat().st_mtime > UNUSED_FOR:
                shutil.rmtree(folder, ignore_errors=True)
        except OSError:  # another process removed it first
            continue


@contextmanager
def _cache_directory(folder: str) -> Iterator[None]:
    """Let Numba cache what is decorated in the block in this folder."""
    # Numba reads the setting when a function is decorated. The lock keeps another thread from
    # restoring it too soon.
    settings = numba().config
    with _one_at_a_time:
        before = settings.CACHE_DIR
        settings.CACHE_DIR = folder
        try:
            yield
        finally:
            settings.CACHE_DIR = before


def is_ours(*things: Callable[..., object]) -> bool:
    """Whether all these functions and classes belong to this package.

    The digest does not cover other sources, so machine code that depends on them is not cached on
    disk.
    """
    return all(thing.__module__.partition(".")[0] == PACKAGE for thing in things)


def compiled(function: Function) -> Function:
    """Compile a function that allocates no memory; it runs without the interpreter lock.

    Args:
        function: the function. It may call other compiled functions, and must not create arrays,
            lists or strings.

    Returns:
        The same function as machine code, which is made on first use. Its `py_func` is the function
            in plain Python, for a debugger.

    >>> import numpy as np
    >>> @compiled
    ... def smallest(values):
    ...     best = 0
    ...     for place in range(1, len(values)):
    ...         if values[place] < values[best]:
    ...             best = place
    ...     return best
    >>> smallest.py_func(np.array([0.3, 0.1, 0.2]))
    1
    """
    # Reference counting costs two atomic operations each time an array is passed on. At eight arms
    # that takes five times as long as the round itself, and code that allocates nothing does not
    # need it.
    return translate(function, keep=is_ours(function), counting=False)


def compiled_apart(function: Function) -> Function:
    """Like `compiled`, for a long function that is seldom called: it is not inlined."""
    return translate(function, keep=is_ours(function), counting=False, inline=False)


def translate(function: Function, *, keep: bool, counting: bool, inline: bool = True) -> Function:
    """Compile a function on first use, with reference `counting` or without.

    `keep` caches the code on disk.

    Without reference counting the function is inlined into its callers, unless `inline` is False.
    If the package ships machine code of a function that is kept, that is called and nothing is
    compiled.
    """
    if jit_disabled():  # as under the CUDA simulator, whose arrays machine code cannot take
        return function
    make = partial(_dispatcher, function, keep, counting, inline)
    return cast(Function, LazyKernel(function, make, name_of(function) if keep else None))


def _dispatcher(function: Callable[..., object], keep: bool, counting: bool, inline: bool) -> Any:
    """Numba's own object for a function."""
    folder = cache_folder() if keep else None
    copied = inline and not counting
    # error_model="numpy" drops the zero-division branches that keep loops from being vectorised. An
    # inlined function needs no C entry point, which would take a fifth of the compile time.
    jit = numba().njit(
        nogil=True,
        error_model="numpy",
        _nrt=counting,
        cache=folder is not None,
        forceinline=copied,
        no_cfunc_wrapper=copied,
    )
    return jit(function) if folder is None else kept_in(folder, jit, function)


def kept_in(folder: str, jit: Callable[[Any], Any], function: Callable[..., object]) -> Any:
    """Apply a caching decorator to a function, with `folder` as its cache."""
    with _cache_directory(folder):
        dispatcher = jit(function)
    _guard_saving(dispatcher, folder)
    return dispatcher


def add_functions(registry: dict[type, Any], params: type, functions: Any, owner: str) -> None:
    """Register compiled functions under a parameter type of their own."""
    if registry.setdefault(params, functions) != functions:
        raise ParameterError(
            f"params_type = {params.__module__}.{params.__qualname__}: "
            f"belongs to another {owner}'s functions; give this {owner} a Params of its own"
        )
    make_name_unique(params)
    if is_ours(params, *functions):
        load.allow_shipped(params, functions)


def make_name_unique(kind: type) -> None:
    """Give a tuple type a unique name; most of them are called `Params`.

    Machine code is linked by the names of its argument types, without their modules. If two
    policies had parameter types of the same name and fields, a process that loads both from disk
    could run one policy's code for the other.
    """
    # An identifier, because another process recreates the tuple type under its name.
    kind.__name__ = re.sub(r"\W", "_", f"{kind.__module__}.{kind.__qualname__}")


def _guard_saving(dispatcher: Any, folder: str) -> None:
    """Let one process at a time write to the cache, and keep out what depends on other sources.

    Numba numbers the files of a function's variants by its index. Two processes that add different
    variants at once would pick the same number, and one would later load the other's machine code,
    such as another policy's round.
    """
    save = dispatcher._cache.save_overload

    def save_if_ours(signature: Any, result: object) -> None:
        arguments = getattr(signature, "args", signature)  # Numba also takes a tuple of types
        if not all(_is_type_of_ours(kind) for kind in arguments):
            return
        with open(os.path.join(folder, "lock"), "a") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)  # released when the file is closed
            save(signature, result)

    dispatcher._cache.save_overload = save_if_ours


def _is_type_of_ours(kind: Any) -> bool:
    """Whether no named tuple in a Numba type belongs to another package.

    A user's parameters select a user's functions, which the code contains and the digest does not
    cover. And a process that cannot import the tuple's module could not read the cache any more.
    """
    owner = getattr(kind, "instance_class", None)
    if owner is not None and not is_ours(owner):
        return False
    return all(_is_type_of_ours(part) for part in getattr(kind, "types", ()))
