"""The memory of another process."""

import os
from pathlib import Path


def memory_of(pid: int) -> float:
    """What a process has in memory, in MiB."""
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGESIZE") / 2**20
