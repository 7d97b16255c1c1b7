"""`decoupled simulate`: what it writes, and what it need not load for that."""

import subprocess
import sys
from pathlib import Path

import pytest

import decoupled as dc
from decoupled.cli.simulate import summary_csv
from decoupled.native import load

SPECIFICATION = """
horizon = 100
runs = 3
[[policy]]
name = "FTPL"
[[environment]]
name = "Bernoulli"
rewards = [0.2, 0.7]
"""
# A second of loading together; a small simulation takes less.
SLOW_TO_LOAD = ("xarray", "pandas", "dask", "distributed", "pyarrow", "plotly", "numba")
SCRIPT = """
import sys
from decoupled.cli.main import app
app(sys.argv[1:], standalone_mode=False)
print("loaded:", *(name for name in {modules!r} if name in sys.modules))
"""


@pytest.mark.slow
def test_a_small_simulation_loads_only_what_it_needs(tmp_path: Path) -> None:
    (tmp_path / "spec.toml").write_text(SPECIFICATION)
    # Without machine code that is up to date, compiling loads Numba.
    expected = [] if load.why_not() is None else ["numba"]
    script = SCRIPT.format(modules=SLOW_TO_LOAD)
    command = [
        sys.executable,
        "-c",
        script,
        "simulate",
        str(tmp_path / "spec.toml"),
        "--out",
        str(tmp_path),
    ]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1].split()[1:] == expected
    written = {path.name for path in next(tmp_path.glob("00-*")).iterdir()}
    assert written >= {"results.nc", "summary.csv", "regret.png"}


@pytest.mark.parametrize("runs", [1, 20])
def test_the_summary_is_the_text_that_pandas_writes(runs: int) -> None:
    policies = [dc.FTPL(), dc.Forgetting(dc.Exp3(), discount=0.9)]  # a label with a comma
    results = dc.simulate(policies, dc.environments.Bernoulli([0.2, 0.7]), 50, runs, seed=0)
    assert summary_csv(results) == results.summary().to_csv()
