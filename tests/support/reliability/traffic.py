"""Client processes, and the contents of their journals so far."""

import os
import subprocess
import sys
from pathlib import Path

from support.waiting import wait_for


class Traffic:
    def __init__(
        self, ports: list[int], folder: Path, *, processes: int, seed: int, timeout: float
    ) -> None:
        folder.mkdir()
        self.folder = folder
        here = Path(__file__).resolve().parents[2]
        environment = {
            **os.environ,
            "PYTHONPATH": f"{here}{os.pathsep}{os.environ.get('PYTHONPATH', '')}",
        }
        self._seen: dict[Path, int] = {}
        self._applied: set[bytes] = set()
        self.acknowledged = self.decided = self.refused = 0
        program = [sys.executable, "-m", "support.reliability.clients", str(folder), str(seed)]
        options = [str(timeout), *map(str, ports)]
        self._processes = [
            subprocess.Popen([*program, str(place), *options], env=environment)
            for place in range(processes)
        ]

    def look(self) -> int:
        """The number of decisions and losses acknowledged so far, each counted once."""
        for path in self.folder.glob("*.jsonl"):
            with path.open("rb") as file:
                file.seek(self._seen.get(path, 0))
                *lines, _ = file.read().split(b"\n")
            self._seen[path] = self._seen.get(path, 0) + sum(len(line) + 1 for line in lines)
            for line in lines:
                kind = line[2 : line.index(b'"', 2)]
                if kind == b"decided":
                    made = line.count(b'"propensity"')
                    self.acknowledged += made
                    self.decided += made
                elif kind == b"applied":
                    decision = line.split(b'"', 4)[3]
                    self.acknowledged += decision not in self._applied
                    self._applied.add(decision)
                elif kind == b"refused":
                    self.refused += 1
        return self.acknowledged

    def await_more(self, more: int = 1, patience: float = 120.0) -> None:
        wanted = self.look() + more
        wait_for(lambda: self.look() >= wanted, "something to be acknowledged", seconds=patience)

    def finish(self, patience: float = 120.0) -> None:
        """Tell the clients to make no more decisions, send the feedback that is due, and stop."""
        (self.folder / "stop").touch()
        try:
            for process in self._processes:
                status = process.wait(patience)
                assert status == 0, f"a client process ended with {status}"
        finally:
            self.stop()

    def stop(self) -> None:
        for process in self._processes:
            process.kill()
            process.wait()
