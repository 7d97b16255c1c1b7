"""A real Dask scheduler with two worker processes, one of which is killed in the middle."""

import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import decoupled as dc

distributed = pytest.importorskip("distributed", reason="the [dask] extra is not installed")


class Cluster:
    """A scheduler and two workers, as subprocesses."""

    def __init__(self, folder: Path) -> None:
        self.file = folder / "scheduler.json"
        module = [sys.executable, "-m"]
        self.scheduler = self._start(
            [
                *module,
                "distributed.cli.dask_scheduler",
                "--host",
                "127.0.0.1",
                "--port",
                "0",
                "--no-dashboard",
                "--scheduler-file",
                str(self.file),
            ]
        )
        limit = time.monotonic() + 60
        while not self.file.exists() and time.monotonic() < limit:
            time.sleep(0.05)
        self.workers = [
            self._start(
                [
                    *module,
                    "distributed.cli.dask_worker",
                    "--scheduler-file",
                    str(self.file),
                    "--no-nanny",
                    "--nthreads",
                    "1",
                    "--no-dashboard",
                    "--local-directory",
                    str(folder / str(number)),
                ]
            )
            for number in range(2)
        ]

    @staticmethod
    def _start(command: list[str]) -> subprocess.Popen[bytes]:
        return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def stop(self) -> None:
        for process in [*self.workers, self.scheduler]:
            process.kill()
            process.wait()


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    started = Cluster(tmp_path)
    yield started
    started.stop()


@pytest.mark.filterwarnings("ignore")  # the client warns of the lost worker, which is the point
def test_same_bits_though_a_worker_is_killed(cluster: Cluster) -> None:
    environment = dc.environments.Alternating(arms=4, gap=0.2)
    arguments = ([dc.FTPL(), dc.Exp3()], environment, 5_000, 400)
    alone = dc.simulate(*arguments, seed=5)
    done: list[int] = []

    def strike_after_first_block(rounds: int, seconds: float) -> None:
        done.append(rounds)
        if len(done) == 1:
            cluster.workers[0].send_signal(signal.SIGKILL)

    with distributed.Client(scheduler_file=str(cluster.file)) as client:
        client.wait_for_workers(2, timeout=60)
        together = dc.simulate(
            *arguments, seed=5, executor=client.get_executor(), block=10, report=strike_after_first_block
        )
        assert len(client.scheduler_info(n_workers=-1)["workers"]) == 1
    assert len(done) == 80
    assert cluster.workers[0].wait(10) == -signal.SIGKILL
    for name in alone.data:
        assert np.array_equal(alone.data[name].values, together.data[name].values)
    assert threading.active_count() < 50
