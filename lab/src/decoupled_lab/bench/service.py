"""Measures the decision service under load.

Load is pairs of decision and feedback from many clients that keep their connections.

The service runs in a process of its own, as a user would start it; the clients run here and are as lean as
they can be, since they share its cores. Every acknowledged write was flushed to disk before.
"""

import asyncio
import json
import os
import random
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from decoupled.policies import FTPL, Ladder, Policy

from .timing import Rate, Reading

_LENGTH = re.compile(rb"content-length: (\d+)", re.IGNORECASE)


@contextmanager
def server(*arguments: str) -> Iterator[tuple[int, "subprocess.Popen[str]"]]:
    """A module of Python that serves, and prints its port; it is asked to end when the block ends."""
    command = [sys.executable, "-m", *arguments]
    quiet = subprocess.DEVNULL  # a mirror logs every copy that fails
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=quiet, text=True) as process:
        try:
            found = re.search(r":(\d+)\s*$", process.stdout.readline() if process.stdout else "")
            if found is None:
                raise ChildProcessError(f"{' '.join(command)}: did not start; run it to see why")
            yield int(found[1]), process
        finally:
            process.terminate()
            with suppress(subprocess.TimeoutExpired):
                process.wait(30)
            process.kill()


@contextmanager
def running_service(
    store: Path | None, *options: str
) -> Iterator[tuple[int, "subprocess.Popen[str]"]]:
    """A service on a free port of the loopback; on an empty store if none is given."""
    with tempfile.TemporaryDirectory() as folder:
        place = str(store or Path(folder) / "store.db")
        with server("decoupled", "serve", "--store", place, "--port", "0", *options) as found:
            yield found


class Connection(asyncio.Protocol):
    """One keep-alive connection that sends a request and waits for its answer."""

    def __init__(self) -> None:
        self._transport: asyncio.Transport | None = None
        self._buffer = b""
        self._answer: asyncio.Future[tuple[int, bytes]] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        """Gather an answer until it is whole."""
        self._buffer += data
        end = self._buffer.find(b"\r\n\r\n")
        if end < 0:
            return
        found = _LENGTH.search(self._buffer, 0, end)
        size = end + 4 + (int(found[1]) if found else 0)
        if len(self._buffer) >= size and self._answer is not None and not self._answer.done():
            whole, self._buffer = self._buffer, self._buffer[size:]
            self._answer.set_result((int(whole[9:12]), whole[end + 4 : size]))

    def connection_lost(self, error: Exception | None) -> None:
        """Tell whoever waits."""
        if self._answer is not None and not self._answer.done():
            self._answer.set_exception(ConnectionError("the service hung up"))

    def close(self) -> None:
        """Hang up."""
        if self._transport is not None:
            self._transport.close()

    async def ask(
        self, method: str, path: str, body: bytes = b"", key: str = "", expected: int | None = None
    ) -> tuple[int, bytes]:
        """Send a request; the status and body of its answer. A status other than the expected one is an error."""
        assert self._transport is not None
        head = f"{method} {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n"
        if key:
            head += f"Idempotency-Key: {key}\r\n"
        self._answer = asyncio.get_running_loop().create_future()
        self._transport.write(head.encode() + b"\r\n" + body)
        status, answer = await self._answer
        if status != (expected or status):
            raise ConnectionError(f"{method} {path} was refused: {status} {answer[:500]!r}")
        return status, answer


async def connected(port: int) -> Connection:
    """A connection to a server on this machine."""
    loop = asyncio.get_running_loop()
    return (await loop.create_connection(Connection, "127.0.0.1", port))[1]


async def create(
    connection: Connection, name: str, policy: Policy, arms: int | Sequence[str]
) -> None:
    """Create an experiment, and wait until its policy is compiled."""
    settings = json.dumps({"policy": policy.to_dict(), "arms": arms}).encode()
    status, answer = 202, b""
    while status == 202:  # created, and its policy is being compiled
        status, answer = await connection.ask("PUT", f"/v1/experiments/{name}", settings)
    if status not in (200, 201):
        raise ConnectionError(f"the experiment was not created: {answer!r}")


CLIENTS = 16
MANY_CLIENTS = 40  # more of them share a flush
SECONDS = 10.0
WARM_UP = 2.0
NAME = "bench"
ARMS = tuple(f"arm-{place}" for place in range(8))
POLICIES = {"FTPL()": FTPL(), "Ladder()": Ladder()}
BATCH = 1_000
# What the service is meant to reach on two cores that it shares with its clients.
PAIRS = 5_000  # in a second
SLOWEST = 10.0  # milliseconds of a request
SLOWEST_BATCH = 50.0
FLUSHED = 16_384  # bytes; about what the log gains by a commit of sixteen requests


@dataclass
class Workload:
    """What clients measured: seconds of each decision and of each feedback, and the memory of the service."""

    decisions: list[float] = field(default_factory=list)
    feedback: list[float] = field(default_factory=list)
    pairs: int = 0
    seconds: float = 0.0
    memory: list[float] = field(default_factory=list)  # MiB, each second
    service_cpu: float = 0.0  # seconds of processor time, which a busy machine disturbs less
    client_cpu: float = 0.0

    def slope(self) -> float:
        """MiB of memory gained in a minute, by least squares, once the first quarter of the load is over.

        >>> round(Workload(memory=[100.0 + second / 60 for second in range(120)]).slope(), 6)
        1.0
        """
        later = self.memory[len(self.memory) // 4 :]
        return (
            60.0 * float(np.polyfit(np.arange(len(later)), later, 1)[0]) if len(later) > 2 else 0.0
        )

    def quantile(self, q: float) -> float:
        """A quantile of the time of a request, in milliseconds."""
        return 1e3 * float(np.quantile(np.array(self.decisions + self.feedback), q))


def measure(repetitions: int = 15) -> Iterator[Reading | Rate]:
    """Every line of this group; the limits are those the service is meant to keep on two cores."""
    yield from _disk()
    for policy in POLICIES:
        for clients in (CLIENTS, MANY_CLIENTS):
            load = run_load(seconds=SECONDS, clients=clients, policy=policy)
            yield from _of_load(load, policy, clients)
    yield Reading("memory of the service", load.memory[-1], "MiB", 500.0)
    yield Reading("memory gained during the load", load.memory[-1] - load.memory[0], "MiB", 50.0)
    with running_service(None, "--rate", "0") as (port, _):
        times = asyncio.run(_batches(port, repetitions))
    name = f"a batch of {BATCH:,} decisions, and one of their feedback"
    yield Reading(name, median(times), "ms", SLOWEST_BATCH)
    yield from _disk()  # again: it may have changed meanwhile


def _of_load(load: Workload, policy: str, clients: int) -> Iterator[Reading | Rate]:
    each, who = 1e3 / max(load.pairs, 1), f"{policy}, {clients} clients:"
    yield Rate(
        f"{who} pairs of decision and feedback per second", load.pairs / load.seconds, "", PAIRS
    )
    yield Reading(f"{who} time of a request, median", load.quantile(0.5), "ms", SLOWEST)
    yield Reading(f"{who} time of a request, 99th percentile", load.quantile(0.99), "ms", SLOWEST)
    limit = 1e3 / PAIRS
    yield Reading(
        f"{who} processor time of the service for a pair", each * load.service_cpu, "ms", limit
    )
    yield Reading(
        f"{who} processor time of the clients for a pair", each * load.client_cpu, "ms", limit
    )


def _disk() -> Iterator[Rate]:
    """What the disk alone gives, where the stores of the other lines are."""
    with tempfile.TemporaryDirectory() as folder:
        times = flush_times(Path(folder))
    yield Rate("the disk alone: flushes of a small append", len(times) / sum(times), "a second")
    yield Rate("the disk alone: one flush, median", median(times), "ms")


def soak(seconds: float) -> Iterator[Reading]:
    """The same load for long: what is held must not grow."""
    load = run_load(seconds=seconds)
    each, rate = 1e3 * load.seconds / max(load.pairs, 1), load.pairs / load.seconds
    told = f"{load.pairs:,} pairs in {load.seconds / 60:.1f} minutes ({rate:,.0f} pairs/s)"
    yield Reading(told, each, "ms", 1e3 / PAIRS)
    yield Reading(
        "time of a request in the soak, 99th percentile", load.quantile(0.99), "ms", SLOWEST
    )
    yield Reading("memory of the service at the end", load.memory[-1], "MiB", 500.0)
    yield Reading("memory gained in a minute, by least squares", load.slope(), "MiB", 0.5)


def run_load(*, seconds: float, clients: int = CLIENTS, policy: str = "FTPL()") -> Workload:
    """Start a service on an empty store, load it, and stop it."""
    with running_service(None, "--rate", "0") as (port, process):
        return asyncio.run(_load(port, process.pid, seconds, clients, policy))


async def _load(port: int, pid: int, seconds: float, clients: int, policy: str) -> Workload:
    connections = [await connected(port) for _ in range(clients)]
    await create(connections[0], NAME, POLICIES[policy], ARMS)
    await asyncio.gather(
        *(client(each, Workload(), time.perf_counter() + WARM_UP) for each in connections)
    )
    load, start = Workload(), time.perf_counter()
    service_cpu, client_cpu = _cpu(pid), time.process_time()
    watching = asyncio.create_task(_watch(pid, load))
    await asyncio.gather(*(client(each, load, start + seconds) for each in connections))
    load.seconds = time.perf_counter() - start
    load.service_cpu, load.client_cpu = _cpu(pid) - service_cpu, time.process_time() - client_cpu
    watching.cancel()
    load.memory.append(_memory(pid))
    return load


async def _batches(port: int, repetitions: int) -> list[float]:
    """The seconds that each batch of decisions, and then one of their feedback, took."""
    connection = await connected(port)
    await create(connection, NAME, FTPL(), ARMS)
    times, wanted = list[float](), json.dumps({"count": BATCH}).encode()
    for _ in range(repetitions + 1):
        start = time.perf_counter()
        _, answer = await connection.ask(
            "POST", f"/v1/experiments/{NAME}/decisions", wanted, expected=201
        )
        took = time.perf_counter() - start
        made = json.loads(answer)["decisions"]
        losses = [{"decision": each["id"], "loss": random.random()} for each in made]
        sent = json.dumps({"items": losses}).encode()
        start = time.perf_counter()
        _, answer = await connection.ask("POST", "/v1/feedback", sent, expected=200)
        took += time.perf_counter() - start
        if any(each["status"] != 200 for each in json.loads(answer)["results"]):
            raise ConnectionError(f"a batch of feedback was refused: {answer[:500]!r}")
        times.append(took)
    connection.close()
    return times[1:]  # the first loads the experiment


async def client(connection: Connection, load: Workload, until: float, name: str = NAME) -> None:
    """Pairs of decision and feedback, one after another, until a time of `perf_counter`."""
    ask, now = connection.ask, time.perf_counter
    while (start := now()) < until:
        key = f"{random.getrandbits(128):032x}"
        _, answer = await ask("POST", f"/v1/experiments/{name}/decisions", key=key, expected=201)
        between = now()
        told = (
            f"/v1/decisions/{json.loads(answer)['id']}/feedback",
            b'{"loss": %.3f}' % random.random(),
        )
        sent = now()
        await ask("PUT", *told, expected=200)
        load.decisions.append(between - start)
        load.feedback.append(now() - sent)
        load.pairs += 1


async def _watch(pid: int, load: Workload) -> None:
    while True:
        load.memory.append(_memory(pid))
        await asyncio.sleep(1.0)


def _memory(pid: int) -> float:
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGESIZE") / 2**20


def _cpu(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def flush_times(folder: Path, seconds: float = 1.0) -> list[float]:
    """The seconds that each append and its flush took, in a file of its own, one after the other."""
    path, content, times = folder / "flushes", os.urandom(FLUSHED), list[float]()
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
