"""The kernels under Numba's CUDA simulator: what a device does beside the compiled loops is right."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import decoupled as dc

ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def told() -> Any:
    """What `interpreted` found, in a process whose Numba neither compiles nor has a device."""
    simulator = {"NUMBA_ENABLE_CUDASIM": "1", "NUMBA_DISABLE_JIT": "1", "DECOUPLED_OFFLINE": "1"}
    paths = os.pathsep.join([str(ROOT / "src"), str(ROOT / "tests")])
    # Words of a random stream wrap around, of which NumPy warns where nothing is compiled.
    done = subprocess.run(
        [sys.executable, "-W", "ignore::RuntimeWarning", str(ROOT / "tests/support/interpreted_gpu.py")],
        env={**os.environ, **simulator, "PYTHONPATH": paths},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def test_every_policy_and_environment_plays_as_on_the_cpu(told: Any) -> None:
    assert told["wrong"] == []


def test_the_simulator_plays_as_compiled_code_does(told: Any) -> None:
    environment = dc.environments.Alternating(arms=3, gap=0.25)
    ours = dc.simulate([dc.FTPL(), dc.Exp3()], environment, 12, 5, seed=4, checkpoints=3)
    assert np.allclose(told["sample"], ours.data.regret.values, rtol=0.0, atol=1e-12)
