"""The kernels under Numba's CUDA simulator: the code around the compiled loops is correct."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import decoupled as dc
from support.once import fits_folder, made_once

ROOT = Path(__file__).parents[4]


@pytest.fixture(scope="module")
def findings(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The findings of `interpreted_gpu`, from a process whose Numba neither compiles nor has a device."""

    def find(_: Path) -> str:
        simulator = {"NUMBA_ENABLE_CUDASIM": "1", "NUMBA_DISABLE_JIT": "1", "DECOUPLED_OFFLINE": "1"}
        simulator["XDG_CACHE_HOME"] = fits_folder(tmp_path_factory)
        paths = os.pathsep.join([str(ROOT / "core/src"), str(ROOT / "tests")])
        # The words of a random stream overflow, and NumPy warns about it in code that is not compiled.
        done = subprocess.run(
            [
                sys.executable,
                "-W",
                "ignore::RuntimeWarning",
                str(ROOT / "tests/support/interpreted_gpu.py"),
            ],
            env={**os.environ, **simulator, "PYTHONPATH": paths},
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout.splitlines()[-1]

    return json.loads(made_once(tmp_path_factory, "interpreted-gpu", find)[1])


def test_every_policy_and_environment_plays_as_on_the_cpu_and_as_compiled_code_does(findings: Any) -> None:
    assert findings["wrong"] == []
    environment = dc.environments.Alternating(arms=3, gap=0.25)
    ours = dc.simulate([dc.FTPL(), dc.Exp3()], environment, 12, 5, seed=4, checkpoints=3)
    assert np.allclose(findings["sample"], ours.data.regret.values, rtol=0.0, atol=1e-12)
