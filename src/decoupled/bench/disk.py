"""Measures how often a second a small append can be flushed to disk, as the log of a database is."""

import os
import time
from pathlib import Path

import numpy as np

SECONDS = 1.0
SIZE = 16_384  # bytes; about what the log gains by a commit of sixteen requests


def flush_times(folder: Path, seconds: float = SECONDS) -> list[float]:
    """The seconds that each append and its flush took, in a file of its own, one after the other."""
    path, content, times = folder / "flushes", os.urandom(SIZE), list[float]()
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    try:
        end = time.perf_counter() + seconds
        while (start := time.perf_counter()) < end:
            os.write(file, content)
            os.fdatasync(file)
            times.append(time.perf_counter() - start)
    finally:
        os.close(file)
        path.unlink()
    return times


def median(times: list[float]) -> float:
    """The median in milliseconds."""
    return 1e3 * float(np.median(times))
