"""The decision service at its limits: a restart with very many waiting decisions, and a neighbour with a million arms."""

import asyncio
import json
import os
import signal
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from decoupled.policies import Ladder

from .service import Connection, Workload, client, connected, create, running_service
from .timing import Rate, Reading

WAITING = 100_000  # decisions
AT_ONCE = 1_000
ARMS = 1_000_000
SECONDS = 10.0
CLIENTS = 8
BESIDE = 4  # clients of the large experiment


def measure(repetitions: int = 15) -> Iterator[Reading | Rate]:
    """Every line of this group."""
    yield Reading(
        f"first decision after a kill with {WAITING:,} waiting, from the start of the process",
        restarted(),
        "s",
        3.0,
    )
    alone, beside, large = neighbours(SECONDS)
    name = f"beside an experiment with {ARMS:,} arms"
    yield Reading("time of a request of a small experiment alone, median", alone.quantile(0.5), "ms", 25.0)
    yield Reading("time of a request of a small experiment alone, 99 %", alone.quantile(0.99), "ms", 25.0)
    yield Reading(f"the same {name}, median", beside.quantile(0.5), "ms", 25.0)
    yield Reading(f"the same {name}, 99 %", beside.quantile(0.99), "ms", 25.0)
    yield Reading("time of a request of the large experiment, 99 %", large.quantile(0.99), "ms", 25.0)
    yield Rate("pairs of the large experiment per second", large.pairs / large.seconds, "")


def restarted(waiting: int = WAITING) -> float:
    """Seconds from the start of a service to its first decision, for an experiment with so many waiting decisions."""
    with tempfile.TemporaryDirectory() as folder:
        store = Path(folder) / "store.db"
        with running_service(store, "--rate", "0") as (port, process):
            asyncio.run(_decide_often(port, waiting))
            os.kill(process.pid, signal.SIGKILL)  # so that it writes no snapshot
            process.wait()
        start = time.perf_counter()
        with running_service(store) as (port, _):
            asyncio.run(_decide_once(port))
            return time.perf_counter() - start


async def _decide_often(port: int, count: int) -> None:
    connection = await connected(port)
    await create(connection, "one", Ladder(), ["a", "b", "c"])
    for _ in range(count // AT_ONCE):
        body = json.dumps({"count": AT_ONCE}).encode()
        status, answer = await connection.ask("POST", "/v1/experiments/one/decisions", body)
        if status != 201:
            raise ConnectionError(f"decisions were refused: {answer!r}")
        decision = json.loads(answer)["decisions"][0]["id"]
        await connection.ask("PUT", f"/v1/decisions/{decision}/feedback", b'{"loss": 0.5}')
    connection.close()


async def _decide_once(port: int) -> None:
    connection = await connected(port)
    status, answer = 503, b""
    while status == 503:
        status, answer = await connection.ask("POST", "/v1/experiments/one/decisions")
    if status != 201:
        raise ConnectionError(f"a decision was refused: {answer!r}")
    connection.close()


def neighbours(seconds: float, arms: int = ARMS) -> tuple[Workload, Workload, Workload]:
    """The load of a small experiment alone, then beside a large one, and that of the large one."""
    with tempfile.TemporaryDirectory() as folder:
        store = Path(folder) / "store.db"
        with running_service(store, "--rate", "0") as (port, _):
            return asyncio.run(_neighbours(port, seconds, arms))


async def _neighbours(port: int, seconds: float, arms: int) -> tuple[Workload, Workload, Workload]:
    small = [await connected(port) for _ in range(CLIENTS)]
    large = [await connected(port) for _ in range(BESIDE)]
    await create(small[0], "small", Ladder(), [f"arm-{place}" for place in range(8)])
    alone, beside, other = Workload(), Workload(), Workload()
    await asyncio.gather(*(client(each, Workload(), _after(1.0), "small") for each in small))
    await asyncio.gather(*(client(each, alone, _after(seconds), "small") for each in small))
    until = _after(seconds)  # creating and loading the large experiment is part of what is measured
    begun = time.perf_counter()
    await asyncio.gather(
        *(client(each, beside, until, "small") for each in small), _use_large(large, other, until, arms)
    )
    other.seconds = time.perf_counter() - begun
    for each in (*small, *large):
        each.close()
    return alone, beside, other


async def _use_large(connections: list[Connection], load: Workload, until: float, arms: int) -> None:
    await create(connections[0], "large", Ladder(), arms)
    looking, *others = connections
    await asyncio.gather(*(client(each, load, until, "large") for each in others), _look(looking, until))


async def _look(connection: Connection, until: float) -> None:
    """Ask for the state every second, as the console does."""
    while time.perf_counter() < until:
        status, answer = await connection.ask("GET", "/v1/experiments/large/state")
        if status != 200:
            raise ConnectionError(f"the state was refused: {answer!r}")
        await asyncio.sleep(1.0)


def _after(seconds: float) -> float:
    return time.perf_counter() + seconds
