"""A mirror that is killed at random moments, before arms and a judge that count what they were asked to spend.

    python killed.py

is a process that forks a mirror for every configuration whose path it reads, a line each, and prints its process id. Each
mirror asks itself for as long as it lives. `kill_mirrors` starts them, kills them, and says what was spent.
"""

import asyncio
import json
import os
import random
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

CEILING = 20  # thousandths: the most that a copy costs, and that an attempt of the judge costs
MORE = 300  # thousandths by which the total is raised before each start
CALLS = 60  # a mirror is killed after fewer that cost something
SERVED = 400  # or after fewer that it served, as when its budget is spent
CLIENTS = 4
LINES = """drain = 1
[mirror]
share = 1.0
queue = 4
concurrency = 2
timeout = 5.0
headers = { X-Mirrored = "1" }
[experiment]
name = "killed"
"""


class Asked(NamedTuple):
    """A request that came to the stub."""

    path: str
    is_copy: bool


@dataclass
class Stub:
    """Arms and a judge at one address, which count in thousandths what every copy and judgement costs."""

    seed: int
    spent: int = 0
    paid_calls: int = 0
    port: int = 0

    def __post_init__(self) -> None:
        self._chance = random.Random(self.seed)
        self._kill_after = 0
        self._pid: int | None = None
        self._served = self._kill_after_served = 0
        self._lock = threading.Lock()

    def start(self, port: int) -> None:
        """Note where it is, in the loop that runs it."""
        self.port = port
        self.ending = asyncio.Event()
        self._loop = asyncio.get_running_loop()

    def end(self) -> None:
        """End its loop, from another thread."""
        self._loop.call_soon_threadsafe(self.ending.set)

    def kill(self, pid: int, calls: int, served: int) -> None:
        """Kill a process when so many more calls that cost something, or so many others, were asked for."""
        with self._lock:
            self._pid, self._kill_after = pid, self.paid_calls + calls
            self._kill_after_served = self._served + served

    def kill_one(self, pid: int | None) -> None:
        """Kill a process, if that is not done."""
        with self._lock:
            is_alive = pid is not None and pid == self._pid
            if is_alive:
                self._pid = None
        if is_alive and pid is not None:
            os.kill(pid, signal.SIGKILL)

    def _spend(self) -> int:
        """Count a call, and say what it costs: the dearest price in half of all cases."""
        with self._lock:
            price = self._chance.choice([CEILING, self._chance.randrange(CEILING + 1)])
            self.spent += price
            self.paid_calls += 1
            is_last = self._pid is not None and self.paid_calls >= self._kill_after
        if is_last:
            later = self._chance.choice([0.0, self._chance.random() / 50])
            asyncio.get_running_loop().call_later(later, self.kill_one, self._pid)
        return price

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError, asyncio.IncompleteReadError, ValueError), closing(writer):
            while True:
                asked = await _read(reader)
                answer = await self._answer(asked)
                if answer is None:  # it breaks off
                    writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{")
                    await writer.drain()
                    return
                writer.write(answer)
                await writer.drain()

    async def _answer(self, asked: Asked) -> bytes | None:
        if asked.path == "/judge":
            price = self._spend()
            await asyncio.sleep(self._chance.random() / 100)
            stated: Any = self._chance.choice([price / 1_000, price / 1_000, None])
            content = (
                {"loss": 0.5}
                if stated is None and price < CEILING
                else {"loss": 0.5, "cost": stated}
            )
            return _written(500 if self._chance.random() < 0.1 else 200, json.dumps(content))
        if not asked.is_copy:  # what a client gets is no part of the budget
            with self._lock:
                self._served += 1
                is_last = self._served >= self._kill_after_served
            if is_last:
                self.kill_one(self._pid)
            return _written(200, "{}", "X-Cost: 0")
        price = self._spend()
        await asyncio.sleep(self._chance.random() / 100)
        if self._chance.random() < 0.05:
            return None
        absurd = ("", "X-Cost: -1", "X-Cost: nan", "X-Cost: 1e999", f"X-Cost: {'9' * 401}")
        is_stated = self._chance.random() < 0.6
        header = f"X-Cost: {price / 1_000}" if is_stated else self._chance.choice(absurd)
        return _written(self._chance.choice([200, 200, 500]), "{}", header)


async def _read(reader: asyncio.StreamReader) -> Asked:
    head = await reader.readuntil(b"\r\n\r\n")
    lines = head.decode("latin-1").lower().split("\r\n")
    headers = dict(line.split(": ", 1) for line in lines[1:] if ": " in line)
    await reader.readexactly(int(headers.get("content-length", 0)))
    return Asked(lines[0].split()[1], "x-mirrored" in headers)


def _written(status: int, content: str, header: str = "") -> bytes:
    lines = [f"HTTP/1.1 {status} Answer", f"Content-Length: {len(content)}"]
    if header:
        lines.append(header)
    return ("\r\n".join([*lines, "", ""]) + content).encode()


@contextmanager
def counting_stub(seed: int) -> Iterator[Stub]:
    """A stub that runs in a thread."""
    stub, started = Stub(seed), threading.Event()

    async def main() -> None:
        server = await asyncio.start_server(stub.serve, "127.0.0.1", 0)
        stub.start(server.sockets[0].getsockname()[1])
        started.set()
        await stub.ending.wait()
        server.close()

    thread = threading.Thread(target=asyncio.run, args=(main(),))
    thread.start()
    started.wait()
    try:
        yield stub
    finally:
        stub.end()
        thread.join()


class Killings(NamedTuple):
    """What was spent, in thousandths, at the end of each run, and what was allowed in all until then."""

    spent: list[int]
    allowed: list[int]
    paid_calls: int


def kill_mirrors(folder: Path, runs: int, seed: int) -> Killings:
    """Start a mirror and kill it that many times, at random moments, with a total that rises before each start."""
    chance = random.Random(seed)
    file = folder / "mirror.toml"
    found = Killings([], [], 0)
    command = [sys.executable, __file__]
    with (
        counting_stub(seed) as stub,
        subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        ) as forks,
    ):
        assert forks.stdin is not None
        assert forks.stdout is not None
        try:
            for run in range(1, runs + 1):
                file.write_text(_configuration(stub.port, run * MORE))
                print(file, file=forks.stdin, flush=True)
                pid = int(forks.stdout.readline())
                stub.kill(pid, chance.randrange(1, CALLS), chance.randrange(1, SERVED))
                assert forks.stdout.readline() == f"{signal.SIGKILL.name}\n", (
                    "it ends because it is killed"
                )
                found.spent.append(stub.spent)
                found.allowed.append(run * MORE)
        finally:
            forks.kill()
        return found._replace(paid_calls=stub.paid_calls)


def _configuration(port: int, total: int) -> str:
    price = CEILING / 1_000
    arms = "".join(
        f'[[arm]]\nname = "{name}"\nurl = "http://127.0.0.1:{port}"\n'
        f'cost_header = "X-Cost"\nceiling = {price}\n'
        for name in ("stable", "next")
    )
    judge = (
        f'[loss.judge]\nurl = "http://127.0.0.1:{port}/judge"\nattempts = 2\nceiling = {price}\n'
    )
    return f"{LINES}{judge}[budget]\ntotal = {total / 1_000}\n{arms}"


async def _ask(port: int) -> None:
    """A client that asks for as long as it can."""
    while True:
        with suppress(OSError, asyncio.IncompleteReadError):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
            await reader.read()
            writer.close()


async def _mirror_for_ever(file: Path) -> None:
    from decoupled_serve.mirror.config_file import read_config
    from decoupled_serve.mirror.server import serve
    from decoupled_serve.service.http.server import listening
    from support.mirrors.running import Fixed

    listener = listening("127.0.0.1", 0)
    port = listener.getsockname()[1]
    clients = [asyncio.create_task(_ask(port)) for _ in range(CLIENTS)]
    await serve(read_config(file), Fixed(), None, listener, None, asyncio.Event())
    await asyncio.gather(*clients)


def _fork_for_ever() -> None:
    # Imported once, and not for every fork.
    for module in ("decoupled_serve.mirror.server", "support.mirrors.running"):
        import_module(module)
    for line in sys.stdin:
        pid = os.fork()
        if pid == 0:
            os.dup2(2, 1)
            asyncio.run(_mirror_for_ever(Path(line.strip())))
            os._exit(1)
        print(pid, flush=True)
        _, status = os.waitpid(pid, 0)
        is_killed = os.WIFSIGNALED(status)
        print(signal.Signals(os.WTERMSIG(status)).name if is_killed else "ended", flush=True)


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[2]))
    _fork_for_ever()
