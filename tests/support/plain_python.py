"""Programs in a Python of their own, and kernels as plain Python: nothing is compiled, and Python checks every index."""

import os
import subprocess
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from types import FunctionType
from typing import Any


def ran(*words: object, cwd: Path | None = None, **variables: str) -> str:
    """What Python prints if it is called with these words, and further variables; it must succeed."""
    command, environment = [sys.executable, *map(str, words)], {**os.environ, **variables}
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def output_of(module: str) -> str:
    """What a module of the tests prints where Numba is disabled."""
    return ran(
        "-m", module, NUMBA_DISABLE_JIT="1", PYTHONPATH=os.pathsep.join(filter(None, sys.path))
    )


@cache
def as_python(function: Any) -> Callable[..., Any]:
    """A compiled function and all that it calls."""
    source = getattr(function, "py_func", function)
    known = dict(source.__globals__)
    for name in source.__code__.co_names:
        if hasattr(known.get(name), "py_func"):
            known[name] = as_python(known[name])
    return FunctionType(source.__code__, known, source.__name__, source.__defaults__)
