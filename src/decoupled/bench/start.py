"""Startup: the help text, a small simulation with a warm and an empty cache, and memory."""

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

SMALL = """
horizon = 1000
runs = 10
[[policy]]
name = "FTPL"
[[environment]]
name = "Alternating"
arms = 8
gap = 0.125
"""

THOUSAND_RUNS = """
import resource
import decoupled as dc
easy = dc.environments.Alternating(arms=8, gap=0.125)
dc.simulate(dc.FTPL(), easy, horizon=10_000, runs=1_000, seed=0)
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""


class Reading(NamedTuple):
    """A single measurement with its limit: the lowest of several repetitions, because noise only adds to it."""

    name: str
    value: float
    unit: str
    limit: float


def measure(repetitions: int = 3) -> Iterator[Reading]:
    """Every line of this group."""
    with tempfile.TemporaryDirectory() as folder:
        specification = Path(folder) / "small.toml"
        specification.write_text(SMALL)
        command = ["simulate", str(specification), "--out"]
        helped = min(_seconds(["--help"]) for _ in range(repetitions))
        yield Reading("help text", helped, "s", 0.5)
        cold = min(
            _seconds([*command, f"{folder}/cold-{i}"], cache=f"{folder}/cache-{i}")
            for i in range(min(repetitions, 2))
        )
        yield Reading("simulate a small specification, empty cache", cold, "s", 40.0)
        warm = min(
            _seconds([*command, f"{folder}/warm-{i}"], cache=f"{folder}/cache-0")
            for i in range(repetitions)
        )
        yield Reading("simulate a small specification, warm", warm, "s", 3.0)
    done = subprocess.run([sys.executable, "-c", THOUSAND_RUNS], check=True, capture_output=True, text=True)
    yield Reading("peak memory of a process for 1,000 runs", int(done.stdout) / 1024, "MiB", 500.0)


def _seconds(arguments: list[str], cache: str | None = None) -> float:
    environment = dict(os.environ)
    if cache:
        environment["NUMBA_CACHE_DIR"] = cache
    start = time.perf_counter()
    subprocess.run(
        [sys.executable, "-m", "decoupled", *arguments], check=True, capture_output=True, env=environment
    )
    return time.perf_counter() - start
