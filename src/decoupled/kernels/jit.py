"""`compiled`: the one way this package turns a function into machine code.

Most of it ships with the package (see `decoupled.native`). What does not is compiled by Numba, on first use.

Numba keeps machine code on disk, but it watches only the file of the function it cached: when a kernel
that function calls changes in another file, the stale code stays. So the cache lives in a folder named
by a digest of the sources that compiled functions call into: `COMPILED`. Compiled functions elsewhere in
the package call only into those and into their own file, which Numba watches, so that an edit elsewhere
recompiles nothing.
"""

import os
import re
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache, partial
from importlib import import_module
from pathlib import Path
from threading import Lock
from typing import Any, TypeVar, cast

from ..native.load import name_of
from ..native.sources import COMPILED as COMPILED
from ..native.sources import source_digest as source_digest
from .numba_later import jit_disabled, numba
from .on_first_use import OnFirstUse

fcntl: Any
try:
    fcntl = import_module("fcntl")
except ImportError:  # not a POSIX system: code is compiled at every start
    fcntl = None

Function = TypeVar("Function", bound=Callable[..., object])

_one_at_a_time = Lock()

PACKAGE = __name__.partition(".")[0]
UNUSED_FOR = 30 * 24 * 3600.0  # seconds after which the folder of another version is swept away


@cache
def cache_folder() -> str | None:
    """The folder for machine code, or None where no folder can be written or no file locked.

    `NUMBA_CACHE_DIR` is honoured; otherwise the user's cache folder is used.
    """
    if fcntl is None:
        return None
    try:
        base = numba().config.CACHE_DIR or os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
        root = Path(base) / PACKAGE / "compiled"
        folder = root / source_digest(*COMPILED)
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
        os.utime(folder)
    except (OSError, RuntimeError):  # no home, or none that can be written
        return None
    _sweep(root)
    return str(folder)


def _sweep(root: Path) -> None:
    for folder in root.iterdir():
        if not re.fullmatch("[0-9a-f]{16}", folder.name):  # no digest: not ours to remove
            continue
        try:
            if time.time() - folder.stat().st_mtime > UNUSED_FOR:
                shutil.rmtree(folder, ignore_errors=True)
        except OSError:  # another process swept it first
            continue


@contextmanager
def _cache_directory(folder: str) -> Iterator[None]:
    # Numba reads the setting when a function is decorated, so it is ours for that moment only; and one
    # thread's alone, or another could restore it too soon.
    settings = numba().config
    with _one_at_a_time:
        before = settings.CACHE_DIR
        settings.CACHE_DIR = folder
        try:
            yield
        finally:
            settings.CACHE_DIR = before


def is_ours(*things: Callable[..., object]) -> bool:
    """Whether all these functions and classes are of this package.

    The digest covers no one else's sources, so machine code that depends on them is not kept on disk.
    """
    return all(thing.__module__.partition(".")[0] == PACKAGE for thing in things)


def compiled(function: Function) -> Function:
    """Compile a function that allocates nothing; it runs without the interpreter lock."""
    # Counting references to arrays costs two atomic operations each time one is passed on, which at
    # eight arms is five times the round itself. Code that allocates nothing has no need of it.
    return translate(function, keep=is_ours(function), counting=False)


def compiled_apart(function: Function) -> Function:
    """The same for a function that is long and seldom called, and so is not copied into its callers."""
    return translate(function, keep=is_ours(function), counting=False, inline=False)


def translate(function: Function, keep: bool, counting: bool, inline: bool = True) -> Function:
    """Compile a function on first use; `keep` the machine code on disk, `counting` references or not.

    Where references are not counted it is copied into whatever calls it, unless `inline` is False. Where the
    package ships machine code of a function that is kept, that is called and nothing is compiled.
    """
    if jit_disabled():  # as under the CUDA simulator, whose arrays no machine code can take
        return function
    make = partial(_dispatcher, function, keep, counting, inline)
    return cast(Function, OnFirstUse(function, make, name_of(function) if keep else None))


def _dispatcher(function: Callable[..., object], keep: bool, counting: bool, inline: bool) -> Any:
    """Numba's own object for a function."""
    folder = cache_folder() if keep else None
    copied = inline and not counting
    # error_model="numpy" drops the zero-division branches that keep loops from being vectorised. What is
    # copied into its callers needs no entry for C, which is one more copy to optimise: a fifth of the time.
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
    """What a decorator that caches makes of a function, its machine code kept in a folder of ours."""
    with _cache_directory(folder):
        dispatcher = jit(function)
    _save_alone(dispatcher, folder)
    return dispatcher


def name_apart(kind: type) -> None:
    """Give a type of tuples, of which there are many called `Params`, a name that no other has.

    Machine code is linked by the names of the types it takes, without their modules. Two policies whose
    `Params` look alike would have functions of one name, and a process that loads from disk what two
    others compiled would be served one policy's round under the other's name.
    """
    # An identifier, because a tuple type that travels to another process is made anew under its name.
    kind.__name__ = re.sub(r"\W", "_", f"{kind.__module__}.{kind.__qualname__}")


def _save_alone(dispatcher: Any, folder: str) -> None:
    """Let one process at a time write to the cache.

    Numba numbers the files of a function's variants by what its index lists. Two processes that add
    different variants at once would pick the same number, and one of them would later be served the
    other's machine code: another policy's round, say, under this policy's name.
    """
    save = dispatcher._cache.save_overload

    def save_alone(signature: object, result: object) -> None:
        with open(os.path.join(folder, "lock"), "a") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)  # let go when the file is closed
            save(signature, result)

    dispatcher._cache.save_overload = save_alone
