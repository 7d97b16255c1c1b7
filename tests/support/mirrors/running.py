"""A mirror in a thread, upstreams in processes of their own, and a backend that does as it is told."""

import asyncio
import atexit
import json
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import uvloop

from decoupled.decision import Mode
from decoupled_serve.mirror.backend import UNKNOWN, Backend, Embedded, Routing, Traits
from decoupled_serve.mirror.config import MirrorConfig
from decoupled_serve.mirror.config_file import read_config
from decoupled_serve.mirror.news import Known
from decoupled_serve.mirror.server import serve
from decoupled_serve.service.http.server import listening
from decoupled_serve.service.service import open_service
from support.http_service import until_closed
from support.waiting import wait_for

UPSTREAM = Path(__file__).parent / "upstream.py"
# Two arms of a configuration that is read and not run.
ARMS = """
[[arm]]
name = "stable"
url = "http://127.0.0.1:9001"
[[arm]]
name = "next"
url = "http://127.0.0.1:9002"
"""
# Every request is copied, whatever its method.
ALL = '[mirror]\nshare = 1.0\nrepeat = ["* /*"]\n'
PATIENCE = 60.0  # seconds after which a condition that never holds fails a test
# Loading certificates takes longer than most tests, and nothing here uses TLS.
asking = httpx.Client(verify=False, timeout=PATIENCE)
atexit.register(asking.close)


def connected(url: str, *, window: int | None = None) -> socket.socket:
    """A connection to a server on this machine; `window` limits what waits here unread."""
    connection = socket.socket()
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    if window is not None:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, window)
    connection.settimeout(PATIENCE)
    connection.connect(("127.0.0.1", int(url.rpartition(":")[2])))
    return connection


def exchanged(url: str, sent: bytes) -> bytes:
    """All that a server says to these bytes until it closes the connection."""
    with connected(url) as connection:
        connection.sendall(sent)
        return until_closed(connection)


@dataclass
class UpstreamProcess:
    name: str
    url: str
    process: "subprocess.Popen[str]"

    def seen(self) -> list[dict[str, Any]]:
        """The requests that it got, oldest first; names of headers in lower case."""
        found: list[dict[str, Any]] = asking.get(f"{self.url}/seen").json()["seen"]
        for each in found:
            each["headers"] = [(name.lower(), value) for name, value in each["headers"]]
        return found

    def open(self) -> int:
        found: int = asking.get(f"{self.url}/seen").json()["open"]
        return found

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()


@contextmanager
def upstreams(*names: str) -> Iterator[dict[str, UpstreamProcess]]:
    processes = {
        name: subprocess.Popen([sys.executable, UPSTREAM, name], stdout=subprocess.PIPE, text=True)
        for name in names
    }
    try:
        found = {}
        for name, process in processes.items():
            assert process.stdout is not None
            port = int(process.stdout.readline())
            found[name] = UpstreamProcess(name, f"http://127.0.0.1:{port}", process)
        yield found
    finally:
        for process in processes.values():
            process.kill()
            process.wait()
            if process.stdout is not None:
                process.stdout.close()


@dataclass
class Fixed(Backend):
    """A backend whose decisions are always the same, and that notes the losses it gets."""

    exploit: str = "stable"
    explore: str | None = "next"
    losses: dict[str, tuple[str, float]] = field(default_factory=dict)
    positions: dict[str, float | None] = field(default_factory=dict)
    forgotten: list[str] = field(default_factory=list)
    available: Sequence[str] | None = None
    drawn: int = 0
    failing: Exception | None = None
    closed: bool = False
    verdict: Known = field(default_factory=partial(Known, "too early"))

    async def prepare(self) -> None:
        pass

    async def decide(
        self, mode: Mode, count: int, available: Sequence[str] | None, about: Traits = UNKNOWN
    ) -> list[Routing]:
        if self.failing is not None:
            raise self.failing
        self.available, first = available, self.drawn
        self.drawn += count
        explore = None if mode == "exploit" else self.explore
        return [Routing(f"d-{first + number}", self.exploit, explore) for number in range(count)]

    async def learn(
        self,
        decision: str,
        arm: str,
        loss: float,
        position: float | None = None,
        cost: float | None = None,
    ) -> str:
        self.positions[decision] = position
        self.losses[decision] = (arm, loss)
        return "applied"

    def forget(self, decision: str) -> None:
        self.forgotten.append(decision)

    async def rules(self) -> object:
        return ()

    async def known(self) -> Known:
        return self.verdict

    async def tidy(self) -> None:
        pass

    async def close(self) -> None:
        self.closed = True


@dataclass
class RunningMirror:
    """A mirror: the addresses of its two sockets, and a client for the first."""

    url: str
    console: str
    http: httpx.Client
    config: MirrorConfig
    backend: Any
    end: Callable[[], None]
    ended: threading.Event

    def status(self) -> dict[str, Any]:
        found: dict[str, Any] = asking.get(f"{self.console}/mirror").json()
        return found

    def until(self, condition: Callable[[dict[str, Any]], Any]) -> dict[str, Any]:
        """The same, once a condition holds for it."""
        return wait_for(lambda: condition(found := self.status()) and found)  # type: ignore[no-any-return]

    def settled(self) -> dict[str, Any]:
        """The same, once no copy is waiting."""
        return self.until(lambda status: status["queue"] == 0)

    @property
    def losses(self) -> list[float]:
        """What a `Fixed` backend has learned, in order."""
        return [loss for _, loss in self.backend.losses.values()]


def write_config(
    folder: Path, arms: dict[str, UpstreamProcess], text: str = "", **arm_lines: str
) -> Path:
    """A configuration for these upstreams, with further tables, and further lines for an arm by its name."""
    tables = "".join(
        f'[[arm]]\nname = "{name}"\nurl = "{arm.url}"\n{arm_lines.get(name, "")}\n'
        for name, arm in arms.items()
    )
    file = folder / "mirror.toml"
    file.write_text(f'listen = "127.0.0.1:0"\nconsole = "127.0.0.1:0"\n{text}\n{tables}')
    return file


@contextmanager
def mirror(config: MirrorConfig | Path, backend: Backend) -> Iterator[RunningMirror]:
    if isinstance(config, Path):
        config = read_config(config)
    ends: list[Callable[[], object]] = []
    problems: list[BaseException] = []
    started, ended = threading.Event(), threading.Event()

    async def main() -> None:
        ending, loop = asyncio.Event(), asyncio.get_running_loop()
        ends.append(partial(loop.call_soon_threadsafe, ending.set))
        started.set()
        await serve(config, backend, None, proxy, console, ending)

    def run() -> None:
        try:
            with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:  # as in production
                runner.run(main())
        except BaseException as error:
            problems.append(error)
        finally:
            ended.set()

    with listening("127.0.0.1", 0) as proxy, listening("127.0.0.1", 0) as console:
        urls = [f"http://127.0.0.1:{each.getsockname()[1]}" for each in (proxy, console)]
        thread = threading.Thread(target=run, daemon=True)
        thread.start()
        started.wait()

        def end() -> None:
            if thread.is_alive():
                ends[0]()
            thread.join(PATIENCE)
            assert not thread.is_alive()
            if problems:
                raise problems[0]

        try:
            with httpx.Client(base_url=urls[0], timeout=PATIENCE, verify=False) as http:
                yield RunningMirror(urls[0], urls[1], http, config, backend, end, ended)
        finally:
            end()


@dataclass
class Start:
    """Starts mirrors before two upstreams. Called with tables of a configuration, a backend and lines for arms."""

    arms: dict[str, UpstreamProcess]
    folder: Path

    def __call__(
        self, text: str = "", backend: Backend | None = None, **arm_lines: str
    ) -> AbstractContextManager[RunningMirror]:
        return mirror(self.file(text, **arm_lines), backend or Fixed())

    def file(self, text: str = "", **arm_lines: str) -> Path:
        return write_config(self.folder, self.arms, text, **arm_lines)

    def config(self, text: str = "", **arm_lines: str) -> MirrorConfig:
        return read_config(self.file(text, **arm_lines))

    def embedded(self, text: str = "") -> AbstractContextManager[RunningMirror]:
        """With the decision service of `store`."""
        return mirror(config := self.config(text), Embedded(open_service(self.store), config))

    @property
    def store(self) -> Path:
        return self.folder / "store.db"

    def seen(self, mark: str, arm: str = "next") -> list[dict[str, Any]]:
        """The requests that an arm got with this mark in their target."""
        return [each for each in self.arms[arm].seen() if mark in each["target"]]


@contextmanager
def commanded(file: Path, *words: str) -> Iterator[tuple["subprocess.Popen[str]", str, str]]:
    """`decoupled mirror` in a process of its own, with the addresses of its console and its proxy.

    Its log is beside the configuration, with the suffix ".log".
    """
    command = [sys.executable, "-m", "decoupled", "mirror", str(file), *words]
    with (
        file.with_suffix(".log").open("w") as log,
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True) as process,
    ):
        try:
            assert process.stdout is not None
            console, url = (process.stdout.readline().split()[-1] for _ in range(2))
            yield process, console, url
        finally:
            process.kill()


def echoed(response: httpx.Response) -> dict[str, Any]:
    """What an upstream says it got, with a dictionary of headers."""
    found: dict[str, Any] = json.loads(response.content)
    found["headers"] = [(name.lower(), value) for name, value in found["headers"]]
    return found
