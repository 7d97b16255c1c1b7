"""How much memory there is, and amounts of it as text."""

import os
from functools import cache
from pathlib import Path

CONTAINER = Path("/sys/fs/cgroup/memory.max")  # "max", or the bytes that a container may use
UNKNOWN = 2**40  # bytes; more than machines have on which it cannot be asked


@cache
def whole_memory() -> int:
    """The memory of this machine, or of the container that this runs in, in bytes."""
    try:
        whole = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):  # Windows does not have it
        whole = UNKNOWN
    try:
        return min(whole, int(CONTAINER.read_text()))
    except (OSError, ValueError):
        return whole


def as_memory(size: float) -> str:
    """A number of bytes, as people write it.

    >>> as_memory(8e12), as_memory(1.5e9), as_memory(640e3)
    ('8 TB', '1.5 GB', '640 kB')
    """
    for unit in ("bytes", "kB", "MB", "GB", "TB", "PB"):
        if size < 1000.0 or unit == "PB":
            break
        size /= 1000.0
    return f"{size:,.3g} {unit}" if size < 1000.0 else f"{size:,.0f} {unit}"
