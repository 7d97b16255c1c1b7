"""`decoupled serve` as a process that can be killed, paused and started again on the same port."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from support.reliability.asking import Asking, Unanswered
from support.waiting import free_port, wait_for

COMMAND = ("-m", "decoupled")
WORDS_OF_TROUBLE = ("Traceback", "ERROR", "CRITICAL")


class Server:
    """One service on a store; `program` is the Python arguments instead of the command, `further` more options."""

    def __init__(
        self,
        store: str | Path,
        log: Path,
        program: Sequence[str] = COMMAND,
        further: Sequence[str] = (),
    ) -> None:
        self.port = free_port()
        self.log = log
        options = [
            "--store",
            str(store),
            "--port",
            str(self.port),
            "--rate",
            "0",
            "--drain",
            "10",
            *further,
        ]
        self._command = [sys.executable, *program, "serve", *options]
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def start(self) -> None:
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(self._command, stdout=log, stderr=log)

    def ended(self) -> bool:
        assert self._process is not None
        return self._process.poll() is not None

    def check_alive(self) -> None:
        assert not self.ended(), f"the service ended by itself:\n{self.log.read_text()[-3000:]}"

    def ask(self, method: str, path: str, body: object = None) -> tuple[int, bytes]:
        with Asking(self.port) as asking:
            return asking.ask(method, path, body)

    def create(self, name: str, settings: object) -> None:
        """Create an experiment, and wait until its policy is compiled."""
        path = f"/v1/experiments/{name}"
        first = status = self.ask("PUT", path, settings)[0]
        while status == 202:
            status = self.ask("PUT", path, settings)[0]
        assert (first, status) in ((201, 201), (202, 200)), (first, status)

    def await_ready(self) -> None:
        def ready() -> bool:
            self.check_alive()
            try:
                return self.ask("GET", "/readyz")[0] == 200
            except Unanswered:
                return False

        wait_for(ready, "the service to be ready", self.log)

    def signal(self, number: signal.Signals) -> None:
        os.kill(self.pid, number)

    def kill(self) -> None:
        assert self._process is not None
        self._process.kill()
        self._process.wait()

    def end(self) -> int:
        assert self._process is not None
        self._process.terminate()
        return self._process.wait(60)

    def troubles(self) -> list[str]:
        lines = self.log.read_text().splitlines()
        return [line for line in lines if any(word in line for word in WORDS_OF_TROUBLE)]


@contextmanager
def serving(
    store: str | Path, log: Path, program: Sequence[str] = COMMAND, further: Sequence[str] = ()
) -> Iterator[Server]:
    """A service that is ready, until the block ends."""
    server = Server(store, log, program, further)
    server.start()
    try:
        server.await_ready()
        yield server
    finally:
        server.kill()
