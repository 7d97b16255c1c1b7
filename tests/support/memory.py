"""The memory of another process, and what a call keeps in this one."""

import gc
import os
import tracemalloc
from collections.abc import Callable
from pathlib import Path


def memory_of(pid: int) -> float:
    """What a process has in memory, in MiB."""
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGESIZE") / 2**20


def bytes_kept(call: Callable[[], object]) -> int:
    """How many bytes a call allocates that are not freed when it is done, its result left out."""
    gc.collect()
    tracemalloc.start()
    try:
        call()
        gc.collect()
        return tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
