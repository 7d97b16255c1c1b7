"""Results are identical to the last bit for any threads, processes, blocks, interruptions and Dask
workers.
"""

import errno
import json
import os
import random
import runpy
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import Executor, Future, ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import decoupled as dc
from decoupled.base.files import write_atomically
from decoupled.kernels.rounds import play_rounds
from decoupled.simulation import admission
from decoupled.simulation import scheduler as store_module
from decoupled.simulation.admission import as_memory, whole_memory
from decoupled.simulation.plan import Plan, make_plan
from support import custom_game
from support.command_line import run
from support.waiting import wait_for

ENVIRONMENT = dc.environments.Alternating(arms=4, gap=0.2)
POLICIES = (dc.FTPL(), dc.Exp3())


def file_of(folder: Path, **how: object) -> bytes:
    folder.mkdir(exist_ok=True)
    results = dc.simulate(POLICIES, ENVIRONMENT, 300, 130, seed=5, **how)  # type: ignore[arg-type]
    results.save(folder / "results.nc")
    return (folder / "results.nc").read_bytes()


@pytest.fixture(scope="module")
def reference(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    return file_of(tmp_path_factory.mktemp("reference"), workers=1, block=130)


@pytest.mark.parametrize(("workers", "block"), [(1, 7), (2, 130), (16, 1)])
def test_workers_and_blocks_matter_not(
    reference: bytes, tmp_path: Path, workers: int, block: int
) -> None:
    assert file_of(tmp_path, workers=workers, block=block) == reference


CONTEXTS = dc.environments.ContextTable(
    np.random.default_rng(0).random((50, 3)), {"subject": ["law", "art"] * 25}, order="shuffled"
)
LATE = dc.Traffic(delay=("geometric", 30), missing=0.2, explore_share=0.7)
CONTEXTUAL = [
    dc.ContextualLadder(segments=("subject",)),
    dc.Ladder(),
    dc.baselines.LinUCB(["subject"]),
]


@pytest.mark.parametrize(
    ("policies", "world", "traffic"),
    [
        ([dc.Exp3(), dc.CentredFTPL()], ENVIRONMENT, LATE),
        (CONTEXTUAL, CONTEXTS, dc.Traffic()),
    ],
    ids=["late", "contexts"],
)
def test_nor_do_they_for_other_runs_that_resume(
    policies: list[dc.Policy],
    world: dc.environments.Environment,
    traffic: dc.Traffic,
    tmp_path: Path,
) -> None:
    given: dict[str, Any] = {"horizon": 200, "runs": 12, "seed": 2, "traffic": traffic}
    one = dc.simulate(policies, world, **given, workers=1, block=12)
    many = dc.simulate(policies, world, **given, workers=4, block=3, out=tmp_path / "out")
    for block in sorted((tmp_path / "out" / "blocks").iterdir())[::2]:
        block.unlink()
    again = dc.simulate(policies, world, **given, out=tmp_path / "out")
    for each in (many, again, dc.Results.load(tmp_path / "out" / "results.nc")):
        assert each.data.identical(one.data)


def test_processes_change_nothing_and_a_run_depends_on_its_number(
    reference: bytes, tmp_path: Path
) -> None:
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as executor:
        assert file_of(tmp_path, executor=executor, block=65) == reference
    few = dc.simulate(dc.FTPL(), ENVIRONMENT, 300, 3, seed=5)
    many = dc.simulate(dc.FTPL(), ENVIRONMENT, 300, 40, seed=5)
    assert np.array_equal(few.final_regret("FTPL"), many.final_regret("FTPL")[:3])


def test_a_rerun_resumes(tmp_path: Path) -> None:
    whole = dc.simulate(POLICIES, ENVIRONMENT, 300, 40, seed=5, block=10)
    folder = tmp_path / "out"
    dc.simulate(POLICIES, ENVIRONMENT, 300, 40, seed=5, block=10, out=folder)
    blocks = sorted((folder / "blocks").iterdir())
    assert len(blocks) == 8
    blocks[0].unlink()
    blocks[1].write_bytes(blocks[1].read_bytes()[:-20])  # truncated
    content = bytearray(blocks[2].read_bytes())
    content[-30] ^= 1  # altered
    blocks[2].write_bytes(content)
    redone: list[float] = []

    def note(rounds: int, seconds: float) -> None:
        redone.append(seconds)

    again = dc.simulate(POLICIES, ENVIRONMENT, 300, 40, seed=5, out=folder, report=note)
    assert sum(seconds > 0 for seconds in redone) == 3
    # The timings of both parts are saved next to the results.
    assert len(json.loads((folder / "timings.json").read_text())) == 8 + 3
    for label in whole.labels:
        assert np.array_equal(whole.final_regret(label), again.final_regret(label))
    assert not list(folder.rglob(".*"))


def test_another_specification_a_damaged_plan_and_a_bad_folder_are_refused(tmp_path: Path) -> None:
    dc.simulate(POLICIES, ENVIRONMENT, 300, 4, seed=5, out=tmp_path)
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    with pytest.raises(dc.StorageError, match="another specification"):
        dc.simulate(POLICIES, ENVIRONMENT, 300, 4, seed=6, out=tmp_path)
    assert before == {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    dc.simulate(POLICIES, ENVIRONMENT, 300, 4, seed=5, out=tmp_path)
    (tmp_path / "plan.json").write_text("{")
    with pytest.raises(dc.StorageError, match="cannot be read"):
        dc.simulate(POLICIES, ENVIRONMENT, 300, 4, seed=5, out=tmp_path)
    (tmp_path / "file").write_text("")
    with pytest.raises(dc.StorageError, match="cannot be written"):
        dc.simulate(POLICIES, ENVIRONMENT, 300, 4, seed=5, out=tmp_path / "file" / "out")


SPECIFICATION = """
horizon = 4000
runs = 1200
seed = 5
[[policy]]
name = ["FTPL", "Exp3"]
[[environment]]
name = "Alternating"
arms = 4
gap = 0.2
"""


def command(specification: Path, out: Path) -> list[str]:
    return [sys.executable, "-m", "decoupled", "simulate", str(specification), "--out", str(out)]


def results_in(out: Path) -> bytes:
    return next(out.glob("*/results.nc")).read_bytes()


def test_sigkill_at_random_moments(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    specification = tmp_path / "spec.toml"
    specification.write_text(SPECIFICATION)
    assert run(*command(specification, tmp_path / "whole")[3:]).exit_code == 0
    luck, out, kills = random.Random(0), tmp_path / "killed", 0
    # Forked from a process that has loaded the package, because loading takes longer than the whole
    # test.
    forking = get_context("forkserver")
    forking.set_forkserver_preload(["decoupled.cli.main", "decoupled.cli.simulate"])
    monkeypatch.setattr(sys, "argv", command(specification, out)[2:])
    for _ in range(5):
        process = forking.Process(target=runpy.run_module, args=("decoupled", None, "__main__"))
        process.start()
        # Wait until it has started to write, then kill it at a random moment.
        waited = time.monotonic() + 30
        before = len(list(out.rglob("*.npz")))
        while (
            process.exitcode is None
            and len(list(out.rglob("*.npz"))) == before
            and time.monotonic() < waited
        ):
            time.sleep(0.002)
        time.sleep(luck.random() * 0.05)
        process.kill()
        process.join()
        if process.exitcode == 0:
            break
        assert process.exitcode == -signal.SIGKILL
        kills += 1
    assert run(*command(specification, out)[3:]).exit_code == 0
    assert kills >= 3, "the run finished before it could be killed: make it longer"
    assert results_in(out) == results_in(tmp_path / "whole")


def test_ctrl_c_keeps_finished_blocks(tmp_path: Path) -> None:
    specification = tmp_path / "spec.toml"
    # Long enough that the interrupt always comes before the end, even on a busy machine.
    specification.write_text(SPECIFICATION.replace("runs = 1200", "runs = 50000"))
    out = tmp_path / "out"
    process = subprocess.Popen(command(specification, out), stderr=subprocess.PIPE, text=True)
    limit = time.monotonic() + 60
    while not list(out.rglob("*.npz")) and time.monotonic() < limit:
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 130, errors
    assert "finished blocks are kept" in errors
    assert "Traceback" not in errors
    assert list(out.rglob("*.npz"))


def test_a_full_disk_is_explained(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real, calls = write_atomically, []

    def full(path: Path, content: str | bytes, **options: bool) -> None:
        calls.append(path)
        if len(calls) > 3:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        real(path, content, **options)

    monkeypatch.setattr(store_module, "write_atomically", full)
    with pytest.raises(
        dc.StorageError, match=r"No space left.*finished blocks are kept.*free some space"
    ):
        dc.simulate(POLICIES, ENVIRONMENT, 300, 40, seed=5, block=10, out=tmp_path)
    assert len(list(tmp_path.rglob("*.npz"))) == 2


WORLD = dc.environments.Alternating(arms=4, gap=0.25)


def planned(
    horizon: Any = 100, runs: Any = 10, checkpoints: Any = 10, environment: Any = WORLD
) -> Plan:
    return make_plan([dc.FTPL(), dc.Exp3()], environment, horizon, runs, 0, checkpoints)


@pytest.fixture(autouse=True)
def small_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(admission, "whole_memory", lambda: 10**9)


@pytest.mark.parametrize(
    ("sizes", "message"),
    [
        (
            {"horizon": 10**12},
            "horizon = 1000000000000: needs 16 TB of memory, and there are 1 GB; choose",
        ),
        ({"horizon": 10**30}, "must not exceed 1,000,000,000,000,000; the paper has 10,000"),
        (
            {"runs": 10**9},
            "runs = 1000000000: needs 48 GB of memory, and there are 1 GB; choose fewer",
        ),
        ({"runs": 10**30}, "must not exceed 1,000,000,000,000,000; the paper has 1,000"),
        (
            {"horizon": 50_000_000, "checkpoints": "all"},
            "checkpoints = 'all': needs 5 GB of memory",
        ),
        ({"checkpoints": 10**12}, "checkpoints = 1000000000000: needs 100 TB of memory"),
        ({"checkpoints": {"count": 10**12, "spacing": "log"}}, "needs 100 TB of memory"),
    ],
)
def test_what_no_machine_has_is_refused(sizes: dict[str, Any], message: str) -> None:
    with pytest.raises(dc.ParameterError) as error:
        planned(**sizes)
    assert message in str(error.value)


def test_what_fits_is_planned_and_blocks_are_counted_and_not_made() -> None:
    plan = planned(horizon=np.int64(1_000_000), runs=np.int64(1_000_000))
    assert (plan.horizon, plan.runs) == (1_000_000, 1_000_000)
    assert type(plan.horizon) is type(plan.runs) is int, "it is written as JSON"
    adversary = dc.environments.PunishLast(arms=4, gap=0.25)
    assert planned(horizon=10**12, environment=adversary).horizon == 10**12, (
        "it has no table of rounds"
    )
    with pytest.raises(dc.ParameterError, match=r"curves = 'runs': needs 16 GB of memory.*curves="):
        dc.simulate(
            [dc.FTPL(), dc.Exp3()],
            WORLD,
            horizon=10_000,
            runs=100_000,
            checkpoints=10_000,
            curves="runs",
        )
    plan = planned(runs=10**7)
    assert plan.block_count(3) == 2 * 3_333_334
    assert planned(runs=10).block_count(3) == len(list(planned(runs=10).blocks(3)))


def test_memory() -> None:
    assert whole_memory() > 10**8
    assert [as_memory(size) for size in (0, 999, 8e12, 5e18)] == [
        "0 bytes",
        "999 bytes",
        "8 TB",
        "5,000 PB",
    ]


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
        return subprocess.Popen(
            command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=quiet
        )

    def stop(self) -> None:
        for process in [*self.workers, self.scheduler]:
            process.kill()
            process.wait()

    @property
    def address(self) -> str:
        return str(json.loads(self.file.read_text())["address"])


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """One cluster for all tests, because its three processes start slowly.

    The last test kills a worker.
    """
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
            *arguments,
            seed=5,
            executor=client.get_executor(),
            block=5,
            report=kill_after_first_block,
        )
        assert len(client.scheduler_info(n_workers=-1)["workers"]) == 1
    assert len(done) == 40
    assert cluster.workers[0].wait(10) == -signal.SIGKILL
    for name in alone.data:
        assert np.array_equal(alone.data[name].values, together.data[name].values)
    assert threading.active_count() < 50


class AtOnce(Executor):
    """Runs what is submitted before `submit` returns."""

    def submit(self, function: Any, /, *arguments: Any, **named: Any) -> Future[Any]:
        future: Future[Any] = Future()
        future.set_result(function(*arguments, **named))
        return future


def test_a_simulation_reaches_the_loop_through_five_functions() -> None:
    ways: list[list[str]] = []

    def note(frame: Any, event: str, argument: object) -> None:
        if event == "call" and frame.f_locals.get("self") is play_rounds:
            way, caller = [], frame.f_back
            while caller is not None:
                if "decoupled" in caller.f_globals.get("__name__", "").split(".")[:1]:
                    way.append(caller.f_code.co_name)
                caller = caller.f_back
            ways.append(way[::-1])

    dc.simulate(dc.FTPL(), ENVIRONMENT, 30, 2)  # what is done once
    sys.setprofile(note)
    try:
        dc.simulate(dc.FTPL(), ENVIRONMENT, 30, 2, executor=AtOnce(), workers=1)
    finally:
        sys.setprofile(None)
    assert ways[0] == ["simulate", "run_plan", "execute", "timed_block", "run_block"]
