"""The decision service at its limits: a restart with very many waiting decisions."""

import asyncio
import json
import os
import signal
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from decoupled.policies import Ladder

from .service import connected, create, decide_once, running_service
from .timing import Reading

WAITING = 100_000  # decisions
AT_ONCE = 1_000


def measure(repetitions: int = 15) -> Iterator[Reading]:
    """Every line of this group."""
    yield Reading(
        f"first decision after a kill with {WAITING:,} waiting, from the start of the process",
        restarted(),
        "s",
        3.0,
    )


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
            asyncio.run(_decide(port))
            return time.perf_counter() - start


async def _decide(port: int) -> None:
    connection = await connected(port)
    await decide_once(connection, "one")
    connection.close()


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
