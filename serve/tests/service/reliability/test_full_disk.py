"""A disk that is full, or fails: 503, nothing acknowledged that is not kept, and on it goes when the disk does."""

import json
import os
import resource
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from support.reliability.audit import Audit, audit, last_states
from support.reliability.clients import EXPERIMENTS
from support.reliability.ledger import Ledger
from support.reliability.serving import Server, serving
from support.reliability.sizes import SIZES
from support.reliability.tracing import need_strace, traced
from support.reliability.traffic import Traffic
from support.waiting import wait_for


class Trial:
    """A service under load on a store in a folder."""

    def __init__(self, store: Path, scratch: Path, server: Server, traffic: Traffic) -> None:
        self.store, self.scratch, self.server, self.traffic = store, scratch, server, traffic

    def await_refusals(self, more: int = 20) -> None:
        """Wait until clients are turned away."""
        self.traffic.look()
        wanted = self.traffic.refused + more
        wait_for(
            lambda: (self.traffic.look(), self.traffic.refused >= wanted)[1], "refused requests"
        )

    def hold(self) -> None:
        """While nothing can be written nothing is acknowledged, and the service says that it is not ready."""
        self.await_refusals()
        before, until = (
            self.traffic.look(),
            time.monotonic() + SIZES.held_up + 1.2,
        )  # past an idle sweep
        while time.monotonic() < until:
            status, content = self.server.ask("GET", "/readyz")
            assert (status, json.loads(content)["status"]) == (503, 503)
            assert self.server.ask("GET", "/healthz")[0] == 200
            time.sleep(0.05)
        assert self.traffic.look() == before, "acknowledged, and nothing could be written"

    def exhaust(self) -> None:
        """Wait until nothing has been acknowledged for a while: what the log has room for may still be written."""
        quiet, until, before = time.monotonic(), time.monotonic() + 60.0, self.traffic.look()
        while time.monotonic() - quiet < 0.5:
            assert time.monotonic() < until, "the disk does not get full"
            time.sleep(0.01)
            if self.traffic.look() != before:
                quiet, before = time.monotonic(), self.traffic.acknowledged
        assert self.traffic.refused

    def go_on(self) -> None:
        """By itself: it was not restarted."""
        pid = self.server.pid
        self.traffic.await_more(100)
        assert self.server.ask("GET", "/readyz")[0] == 200
        self.server.check_alive()
        assert self.server.pid == pid

    def end(self, **options: Any) -> tuple[Ledger, Audit]:
        """Let the clients finish, end the service, and hold the store against what they were told."""
        self.traffic.finish()
        states = last_states(self.server)
        assert self.server.end() == 0
        ledger = Ledger().read(self.traffic.folder)
        found = audit(self.store, ledger, states, **options)
        print(ledger.told())
        assert found.faults == []
        assert found.decisions == len(ledger.decided)
        assert found.losses == len(ledger.applied)
        assert ledger.refused > 0
        return ledger, found


@contextmanager
def trial(folder: Path, scratch: Path) -> Iterator[Trial]:
    """A service under load; its log and its clients' journals are elsewhere, where there is room."""
    store = folder / "store.db"
    with serving(store, scratch / "server.log") as server:
        for name, settings in EXPERIMENTS.items():
            server.create(name, settings)
        traffic = Traffic([server.port], scratch / "journals", processes=1, seed=3, timeout=60.0)
        try:
            traffic.await_more(100)
            yield Trial(store, scratch, server, traffic)
        finally:
            traffic.stop()


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 32 MiB."""
    if os.getuid() != 0:
        pytest.skip("only root may mount a small disk: a full disk was NOT tried")
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=32m", "none", str(folder)]
    if subprocess.run(mount, capture_output=True).returncode != 0:
        pytest.skip("a small disk may not be mounted here: a full disk was NOT tried")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)


def fill(folder: Path) -> Path:
    """Take all the room there is."""
    ballast = folder / "ballast"
    with ballast.open("wb", buffering=0) as file:
        size = 1 << 20
        while size:
            try:
                if not file.write(b"\0" * size):
                    size //= 2
            except OSError:
                size //= 2
    return ballast


def test_a_full_disk_is_refused_and_survived(small_disk: Path, tmp_path: Path) -> None:
    with trial(small_disk, tmp_path) as case:
        for _ in range(3 if SIZES.long else 1):
            ballast = fill(small_disk)
            case.exhaust()
            case.hold()
            ballast.unlink()
            case.go_on()
        case.end()


@pytest.mark.skipif(not SIZES.long, reason="in the long form only: make reliability")
def test_a_service_on_a_full_disk_goes_on_when_there_is_room(
    small_disk: Path, tmp_path: Path
) -> None:
    with trial(small_disk, tmp_path) as case:
        ballast = fill(small_disk)
        case.exhaust()
        case.server.kill()
        case.server.start()
        time.sleep(5.0)
        ballast.unlink()
        if (
            case.server.ended()
        ):  # refusing to start is right as well; whoever runs it starts it again
            case.server.start()
        case.server.await_ready()
        case.go_on()
        case.end(doubtful=True)


@pytest.mark.skipif(not SIZES.long, reason="in the long form only: make reliability")
def test_writes_that_fail_are_refused_and_survived(tmp_path: Path) -> None:
    """Every write to a file fails, as long as the process may write no file beyond its first kilobyte."""
    with trial(tmp_path, tmp_path) as case:
        for _ in range(3 if SIZES.long else 1):
            before = resource.prlimit(case.server.pid, resource.RLIMIT_FSIZE)
            resource.prlimit(case.server.pid, resource.RLIMIT_FSIZE, (1024, before[1]))
            case.hold()
            resource.prlimit(case.server.pid, resource.RLIMIT_FSIZE, before)
            case.go_on()
        case.end()


@pytest.mark.skipif(not SIZES.long, reason="in the long form only: make reliability")
def test_flushes_that_fail_are_refused_and_survived(tmp_path: Path) -> None:
    """The rows are written and the flush fails: nobody is told yes. Then the service is killed at once."""
    need_strace()
    failing = ("-e", "trace=fsync,fdatasync", "-e", "inject=fsync,fdatasync:error=EIO")
    with trial(tmp_path, tmp_path) as case:
        for turn in range(3 if SIZES.long else 1):
            with traced(case.server.pid, tmp_path / f"trace{turn}", *failing):
                case.await_refusals()
                before = case.traffic.look()
                case.await_refusals()
                assert case.traffic.look() == before, "acknowledged, and the flush had failed"
                case.server.signal(signal.SIGKILL)
            case.server.kill()
            case.server.start()
            case.server.await_ready()
            case.go_on()
        case.end(doubtful=True)
