"""A real Dask scheduler with two worker processes. The last test kills one of them."""

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import decoupled as dc
from support import custom_game
from support.waiting import wait_for


class Cluster:
    """A scheduler and two workers, as subprocesses."""

    def __init__(self, folder: Path) -> None:
        self.file = folder / "scheduler.json"
        self.scheduler = self._start("dask_scheduler", "--host", "127.0.0.1", "--port", "0")
        wait_for(self.file.exists, "the scheduler's file")
        places = [("--local-directory", str(folder / str(number))) for number in range(2)]
        self.workers = [
            self._start("dask_worker", "--no-nanny", "--nthreads", "1", *place) for place in places
        ]

    def _start(self, module: str, *options: str) -> subprocess.Popen[bytes]:
        shared = ("--no-dashboard", "--scheduler-file", str(self.file))
        command = [sys.executable, "-m", f"distributed.cli.{module}", *shared, *options]
        # Its profiler looks at every thread a hundred times a second.
        quiet = {**os.environ, "DASK_DISTRIBUTED__WORKER__PROFILE__ENABLED": "False"}
        return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=quiet)

    def stop(self) -> None:
        for process in [*self.workers, self.scheduler]:
            process.kill()
            process.wait()

    @property
    def address(self) -> str:
        return str(json.loads(self.file.read_text())["address"])


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """One cluster for all tests, because its three processes start slowly. The last test kills a worker."""
    started = Cluster(tmp_path_factory.mktemp("cluster"))
    yield started
    started.stop()


# After the text of a user's policy, which is in no module that the workers could import.
SCRIPT = """
if __name__ == "__main__":
    import sys
    from distributed import Client
    easy, greedy = dc.environments.Bernoulli([0.2, 0.9]), ScriptedGreedy(epsilon=1.0)
    alone = dc.simulate(greedy, easy, 200, 20, seed=1)
    with Client(sys.argv[1]) as client:
        together = dc.simulate(greedy, easy, 200, 20, seed=1, executor=client.get_executor())
    assert (alone.final_regret(greedy) == together.final_regret(greedy)).all()
    print("same", alone.final_regret(greedy).mean() > 20)
"""


def test_a_policy_from_a_script_reaches_the_workers(cluster: Cluster, tmp_path: Path) -> None:
    # The workers have never seen the script: the policy carries its compiled functions with it.
    script = tmp_path / "script.py"
    script.write_text(Path(custom_game.__file__).read_text() + SCRIPT)
    command = [sys.executable, str(script), cluster.address]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.stdout.strip() == "same True", done.stderr


@pytest.mark.filterwarnings("ignore")  # the client warns about the lost worker, as it should
def test_killing_a_worker_changes_no_bit(cluster: Cluster) -> None:
    arguments = ([dc.FTPL(), dc.Exp3()], dc.environments.Alternating(arms=4, gap=0.2), 1_000, 100)
    alone = dc.simulate(*arguments, seed=5)
    done: list[int] = []

    def kill_after_first_block(rounds: int, seconds: float) -> None:
        done.append(rounds)
        if len(done) == 1:
            cluster.workers[0].send_signal(signal.SIGKILL)

    import distributed  # takes a second, which only the process with these tests has to spend

    connect: Any = distributed.Client
    with connect(scheduler_file=str(cluster.file)) as client:
        client.wait_for_workers(2, timeout=60)
        together = dc.simulate(
            *arguments, seed=5, executor=client.get_executor(), block=5, report=kill_after_first_block
        )
        assert len(client.scheduler_info(n_workers=-1)["workers"]) == 1
    assert len(done) == 40
    assert cluster.workers[0].wait(10) == -signal.SIGKILL
    for name in alone.data:
        assert np.array_equal(alone.data[name].values, together.data[name].values)
    assert threading.active_count() < 50
