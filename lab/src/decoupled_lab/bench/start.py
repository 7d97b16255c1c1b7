"""Startup: a first decision, the help text, a small simulation with and without a cache, and memory."""

import asyncio
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

from decoupled.policies import Ladder

from .service import connected, create, decide_once, running_service
from .timing import Reading

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

FIRST_DECISION = "import decoupled as dc; dc.{policy}.start(arms=8, seed=0).decide()"

THOUSAND_RUNS = """
import resource
import decoupled as dc
easy = dc.environments.Alternating(arms=8, gap=0.125)
dc.simulate(dc.FTPL(), easy, horizon=10_000, runs=1_000, seed=0)
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""


def measure(repetitions: int = 3) -> Iterator[Reading]:
    """Every line of this group."""
    with tempfile.TemporaryDirectory() as folder:
        specification = Path(folder) / "small.toml"
        specification.write_text(SMALL)
        yield from first_decisions(folder, repetitions)
        yield from service_start(repetitions)
        command = ["simulate", str(specification), "--out"]
        helped = min(_seconds(["--help"]) for _ in range(repetitions))
        yield Reading("help text", helped, "s", 0.5)

        def simulated(kind: str, i: int, cache: int) -> float:
            return _seconds([*command, f"{folder}/{kind}-{i}"], cache=f"{folder}/cache-{cache}")

        cold = min(simulated("cold", i, cache=i) for i in range(min(repetitions, 2)))
        yield Reading("simulate a small specification, empty cache", cold, "s", 40.0)
        warm = min(simulated("warm", i, cache=0) for i in range(repetitions))
        yield Reading("simulate a small specification, warm", warm, "s", 1.5)
    done = subprocess.run(
        [sys.executable, "-c", THOUSAND_RUNS], check=True, capture_output=True, text=True
    )
    yield Reading("peak memory of a process for 1,000 runs", int(done.stdout) / 1024, "MiB", 500.0)


def first_decisions(folder: str, repetitions: int) -> Iterator[Reading]:
    """From a fresh interpreter with nothing cached to a decision; and what loading NumPy takes of it."""

    def lowest(code: str, name: str) -> float:
        caches = (f"{folder}/{name}-{i}" for i in range(repetitions))
        return min(_seconds(["-c", code], cache=cache, module=False) for cache in caches)

    yield Reading("import numpy alone", lowest("import numpy", "numpy"), "s", 0.5)
    for policy in ("FTPL()", "Ladder()"):
        value = lowest(FIRST_DECISION.format(policy=policy), policy)
        yield Reading(f"first decision of {policy}, empty cache", value, "s", 1.0)


def _seconds(arguments: list[str], cache: str | None = None, module: bool = True) -> float:
    environment = dict(os.environ)
    if cache:
        environment["NUMBA_CACHE_DIR"] = cache
    start = time.perf_counter()
    command = [sys.executable, *(("-m", "decoupled") if module else ()), *arguments]
    subprocess.run(command, check=True, capture_output=True, env=environment)
    return time.perf_counter() - start


LOAD_ONCE = "import decoupled.cli.main, decoupled_serve.service.http.server, decoupled_serve.service.store.sqlite"


def service_start(repetitions: int) -> Iterator[Reading]:
    """The service from exec to its first decision, the lowest of several times; it needs the extra `service`."""
    if find_spec("uvicorn") is None or find_spec("apsw") is None:
        return
    # An image has its bytecode. Python writes it when a module is first loaded, if it may.
    environment = {
        name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"
    }
    subprocess.run([sys.executable, "-c", LOAD_ONCE], check=True, env=environment)

    async def decide(port: int) -> None:
        await create(await connected(port), "first", Ladder(), ["a", "b"])
        await decide_once(port, "first")

    seconds = []
    for _ in range(repetitions):
        start = time.perf_counter()
        with running_service(None) as (port, _):
            asyncio.run(decide(port))
            seconds.append(time.perf_counter() - start)
    yield Reading("first decision of the service, over HTTP", min(seconds), "s", 1.0)
