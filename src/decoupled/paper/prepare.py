"""Compiles in advance, on all cores: within a process, the compiler works on one function at a time."""

import hashlib
import multiprocessing
import os
from collections.abc import Callable, Mapping
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from ..kernels.jit import cache_folder

MOST_PROCESSES = 16  # each may also use a GPU


def compile_all(code: Mapping[object, Callable[[], object]]) -> None:
    """Make every call in another process, so that its machine code is cached; once per version of the code."""
    folder, cores = cache_folder(), min(os.cpu_count() or 1, MOST_PROCESSES)
    if folder is None or cores < 2 or len(code) < 2:
        return
    done = Path(folder) / hashlib.sha256(repr(sorted(map(str, code))).encode()).hexdigest()[:16]
    if done.exists():
        return
    # A forked child would inherit the locks of threads that it does not have.
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(cores, mp_context=context) as processes:
        for future in [processes.submit(call) for call in code.values()]:
            future.result()
    done.touch()
