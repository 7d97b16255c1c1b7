"""Launches are planned to fit on a device.

Under Numba's simulator, the code around the compiled loops is correct.
"""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import decoupled as dc
from decoupled.errors import ParameterError, UnsupportedError
from decoupled.kernels.lazy_numba import OPEN, common_values
from decoupled.kernels.random.stream import fill_stream, seed_pool
from decoupled.simulation.cpu import run_streams
from decoupled.simulation.gpu import memory
from decoupled.simulation.gpu.memory import (
    Device,
    LaunchRequirements,
    block_size,
    check_fits,
    launch_grid,
    most_runs,
    registers,
    resident_threads,
    shape_of,
    toolkit,
)
from decoupled.simulation.gpu.switches import switches_of
from decoupled.simulation.plan import Plan, make_plan
from support.custom_game import ScriptedGreedy
from support.once import fits_folder, made_once

LARGE = Device(0, "large", 132, 140 * 2**30)
SMALL = Device(1, "small", 8, 2**30)


def has_device() -> bool:
    try:
        toolkit()
    except UnsupportedError:
        return False
    return True


def needs(
    arms: int, checkpoints: int = 100, horizon: int = 10_000, adaptive: bool = False
) -> LaunchRequirements:
    worlds = dc.environments
    world = worlds.PunishLast(arms) if adaptive else worlds.Alternating(arms, 0.125)
    return LaunchRequirements(shape_of(dc.FTPL(), world), horizon, checkpoints)


def test_streams_are_those_of_numpy() -> None:
    stream = np.zeros(2, np.uint64)
    for seed in (0, 1, 2**32, 2**64 + 17, 2**127 + 3, 2**200 + 11):
        pool = seed_pool(seed)
        for run in (0, 1, 77, 2**32 - 1):
            for child, expected in enumerate(run_streams(seed, run)):
                fill_stream(pool, run, child, stream)
                assert np.array_equal(stream, expected), (seed, run, child)


@pytest.mark.parametrize("device", [LARGE, SMALL], ids=lambda device: device.name)
@pytest.mark.parametrize("adaptive", [False, True])
@pytest.mark.parametrize(("arms", "checkpoints"), [(2, 1), (8, 100), (64, 10_000), (1_000, 100)])
def test_what_runs_at_once_fits(
    device: Device, adaptive: bool, arms: int, checkpoints: int
) -> None:
    asked = needs(arms, checkpoints, adaptive=adaptive)
    room = device.free * memory.SHARE / memory.AT_ONCE / (1 + adaptive)
    if (
        adaptive and 8 * checkpoints * arms * memory.WARP > room
    ):  # the losses of every arm, for one warp
        with pytest.raises(UnsupportedError):
            check_fits(asked, device, "FTPL")
        return
    runs = most_runs(asked, device)
    assert 8 * checkpoints * runs <= room
    grid = launch_grid(asked, device, runs)
    assert grid.threads == memory.WARP
    assert grid.size <= device.processors * resident_threads(asked.shape)
    assert registers(asked.shape) * resident_threads(asked.shape) <= 65_536
    if adaptive:
        assert 8 * grid.size * checkpoints * arms <= room
    # A block of threads counts its plays in 31 bits, and all its threads may play one run more than
    # others.
    assert -(-runs // grid.size) * grid.threads * asked.horizon <= memory.MOST_COUNT


def test_runs_are_shared_out_in_whole_warps_and_their_results_fit() -> None:
    assert launch_grid(needs(8), LARGE, 1_000) == (32, 32)
    assert launch_grid(needs(8), LARGE, 1) == (1, 32)
    assert block_size(plan_of(1_000), (LARGE,)) == 1_000
    assert block_size(plan_of(1_000), (LARGE, LARGE)) == 500
    wave = LARGE.processors * resident_threads(needs(8).shape)
    assert block_size(plan_of(10_000_000), (LARGE,)) % wave == 0
    assert 8 * 10_000 * block_size(plan_of(1_000_000, 10_000), (LARGE,)) <= memory.BLOCK_BYTES
    asked = needs(64, 100_000, 10_000_000, adaptive=True)
    runs = most_runs(asked, LARGE)
    grid = launch_grid(asked, LARGE, runs)
    assert -(-runs // grid.size) * grid.threads * asked.horizon <= memory.MOST_COUNT
    for device in (LARGE, SMALL):
        for adaptive in (False, True):
            asked = needs(8, adaptive=adaptive)._replace(pending=400_000)
            check_fits(asked, device, "FTPL")
            grid = launch_grid(asked, device, 10**6)
            assert grid.size * asked.pending <= device.free * memory.SHARE / memory.AT_ONCE / (
                1 + adaptive
            )
            assert grid.size < launch_grid(asked._replace(pending=0), device, 10**6).size


def plan_of(runs: int, checkpoints: int = 100) -> Plan:
    return make_plan(dc.FTPL(), dc.environments.Alternating(8, 0.125), 10_000, runs, 0, checkpoints)


def test_integers_of_a_policy_from_a_script_are_as_wide_as_on_the_cpu() -> None:
    world = dc.environments.Alternating(8, 0.125)
    ours, theirs = shape_of(dc.FTPL(), world), shape_of(ScriptedGreedy(), world)
    assert (ours.int_bytes, theirs.int_bytes) == (4, 8)
    check_fits(needs(1_000), LARGE, "FTPL")
    with pytest.raises(UnsupportedError, match=r"5000 arms.*at most 2048 arms; use device='cpu'"):
        check_fits(needs(5_000), LARGE, "FTPL")
    with pytest.raises(UnsupportedError, match=r"bytes per run.*use device='cpu'"):
        check_fits(needs(2_000), SMALL, "FTPL")
    with pytest.raises(UnsupportedError, match=r"fewer checkpoints, or use device='cpu'"):
        check_fits(needs(64, 100_000, 100_000, adaptive=True), SMALL, "FTPL")
    with pytest.raises(UnsupportedError, match=r"horizon = 100000000: .*use device='cpu'"):
        check_fits(needs(8, horizon=10**8), LARGE, "FTPL")
    with pytest.raises(
        UnsupportedError, match=r"pending decisions.*shorter delay, or use device='cpu'"
    ):
        check_fits(needs(8)._replace(pending=2**24), SMALL, "FTPL")
    world = dc.environments.Alternating(4, 0.2)
    with pytest.raises(ParameterError, match=r"device = 'gpu'.*cuda"):
        dc.simulate(dc.FTPL(), world, 10, 2, device="gpu")
    with pytest.raises(ParameterError, match=r"workers = 2: is for the CPU"):
        dc.simulate(dc.FTPL(), world, 10, 2, device="cuda", workers=2)
    with pytest.raises(UnsupportedError, match=r"device = 'cuda': .*use device='cpu'"):
        dc.simulate(dc.FTPL(), dc.environments.Alternating(4, 0.2), 10, 2, device="cuda")


def test_only_common_values_are_pinned() -> None:
    policy = dc.FTPL(alpha=3.0, c=2.0)
    constants = switches_of(policy.params_type).constants
    pinned = dict(
        zip(policy.params()._fields, common_values(policy.params(), constants), strict=True)
    )
    assert {name for name, value in pinned.items() if value is not OPEN} == set(constants)
    assert (pinned["alpha"], pinned["is_sorting"]) == (3.0, False)
    others = common_values(dc.FTPL(alpha=2.6).params(), ("alpha",))
    assert others == (OPEN,) * len(others)


def test_auto_chooses_the_form_by_the_number_of_arms() -> None:
    policy = dc.FTPL(ranking="auto")
    assert dc.Ladder().at(8) == dc.Ladder()
    assert dc.FTPL(ranking="auto").at(1_100).ranking == "strata"
    assert dc.Exp3().at(8) == dc.Exp3()
    wrapped = dc.Forgetting(policy, period=9).at(8)
    assert wrapped == dc.Forgetting(policy.at(8), period=9)
    assert wrapped.params_type is policy.at(8).params_type
    assert switches_of(wrapped.params_type).shared_rows > 0
    world = dc.environments.Alternating(8, 0.2)
    auto, dense = (dc.simulate(each, world, 200, 5) for each in (policy, policy.at(8)))
    assert np.array_equal(auto.data.final_regret, dense.data.final_regret)


ROOT = Path(__file__).parents[4]


@pytest.fixture(scope="module")
def findings(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The findings of `interpreted_gpu`, from a process whose Numba neither compiles nor has a
    device.
    """

    def find(_: Path) -> str:
        simulator = {
            "NUMBA_ENABLE_CUDASIM": "1",
            "NUMBA_DISABLE_JIT": "1",
            "DECOUPLED_OFFLINE": "1",
        }
        simulator["XDG_CACHE_HOME"] = fits_folder(tmp_path_factory)
        paths = os.pathsep.join([str(ROOT / "core/src"), str(ROOT / "tests")])
        # The words of a random stream overflow, and NumPy warns about it in code that is not
        # compiled.
        program = str(ROOT / "tests/support/interpreted_gpu.py")
        done = subprocess.run(
            [sys.executable, "-W", "ignore::RuntimeWarning", program],
            env={**os.environ, **simulator, "PYTHONPATH": paths},
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout.splitlines()[-1]

    return json.loads(made_once(tmp_path_factory, "interpreted-gpu", find)[1])


def test_every_policy_and_environment_plays_as_on_the_cpu_and_as_compiled_code_does(
    findings: Any,
) -> None:
    assert findings["wrong"] == []
    environment = dc.environments.Alternating(arms=3, gap=0.25)
    ours = dc.simulate([dc.FTPL(), dc.Exp3()], environment, 12, 5, seed=4, checkpoints=3)
    assert np.allclose(findings["sample"], ours.data.regret.values, rtol=0.0, atol=1e-12)
