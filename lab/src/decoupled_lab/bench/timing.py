"""Times two things in turn, so that a noisy machine affects both equally; the lines of a measurement, and its machine."""

import gc
import os
import platform
import re
import time
from collections.abc import Callable
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import NamedTuple

import numpy as np

from decoupled.base import Floats


class Ratio(NamedTuple):
    """How many times as long the rival takes, with the range over repetitions."""

    name: str
    seconds: float
    rival: str
    rival_seconds: float
    ratio: float
    lowest: float
    highest: float

    @classmethod
    def of(cls, name: str, rival: str, pairs: Floats) -> "Ratio":
        """The ratio of two things whose seconds are the columns of `pairs`, a row for each repetition."""
        ratios = pairs[:, 1] / pairs[:, 0]
        ours, theirs = map(float, np.median(pairs, axis=0))
        range_ = float(np.median(ratios)), float(ratios.min()), float(ratios.max())
        return cls(name, ours, rival, theirs, *range_)


class Rate(NamedTuple):
    """A single measurement that should be high, and its target (0 for none)."""

    name: str
    value: float
    unit: str
    least: float = 0.0


class Reading(NamedTuple):
    """A single measurement with its limit: the lowest of several repetitions, because noise only adds to it."""

    name: str
    value: float
    unit: str
    limit: float


def seconds_per_call(
    function: Callable[[], object],
    calls: int,
    clock: Callable[[], float] = time.perf_counter,
) -> float:
    """The mean time of a call, with the garbage collector off."""
    gc.collect()
    gc.disable()
    try:
        start = clock()
        for _ in range(calls):
            function()
        return (clock() - start) / calls
    finally:
        gc.enable()


def race(
    name: str,
    function: Callable[[], object],
    rival: str,
    rival_function: Callable[[], object],
    *,
    calls: int = 1,
    units: int = 1,
    rival_units: int | None = None,
    repetitions: int = 15,
    clock: Callable[[], float] = time.perf_counter,
) -> Ratio:
    """Time both in turn, many times, with one ratio per repetition.

    With `time.process_time` as the clock, other programs on the machine count for little. `units` and `rival_units`, by default the same, count the work of one call, such as rounds. Times are per unit.
    """
    for each in (function, rival_function):
        seconds_per_call(each, calls // 10 + 1, clock)  # compile, and warm the caches
    sides = ((function, units), (rival_function, rival_units or units))
    pairs = np.array(
        [
            [seconds_per_call(each, calls, clock) / count for each, count in sides]
            for _ in range(repetitions)
        ]
    )
    return Ratio.of(name, rival, pairs)


def describe() -> dict[str, object]:
    """Describe the machine and the versions that affect speed."""
    return {
        "platform": platform.platform(),
        "cpu": _processor(),
        "processors": os.cpu_count(),
        "python": platform.python_version(),
        **{
            name: _version(name) for name in ("numba", "numpy", "scipy", "scs", "decoupled-bandits")
        },
    }


def _processor() -> str:
    """The name of the processor where Linux tells it, otherwise its kind."""
    with suppress(OSError):
        known = re.search(
            r"^model name\s*: (.+)$", Path("/proc/cpuinfo").read_text("utf-8"), re.MULTILINE
        )
        if known:
            return known[1]
    return platform.processor() or platform.machine()


def _version(name: str) -> str | None:
    """None if it is not installed: machine code that ships runs without Numba."""
    try:
        return version(name)
    except PackageNotFoundError:
        return None
