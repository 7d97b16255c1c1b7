"""The command line, as a user would call it."""

import json
from pathlib import Path

import numpy as np
from typer.testing import CliRunner

import decoupled as dc
from decoupled.bench.lockstep import lockstep_ftpl
from decoupled.bench.textbook import textbook_ftpl
from decoupled.cli import app

run = CliRunner().invoke


def test_version() -> None:
    assert run(app, ["--version"]).output.strip() == dc.__version__


def test_policies_lists_each_as_the_call_that_makes_it() -> None:
    calls = [line for line in run(app, ["policies"]).output.splitlines() if not line.startswith(" ")]
    assert {eval(call, vars(dc)) for call in calls} == {kind() for kind in dc.Policy.known().values()}


def test_environments_lists_each() -> None:
    output = run(app, ["environments"]).output
    assert all(name in output for name in dc.environments.Environment.known())


def test_demo_prints_a_table_and_writes_a_figure(tmp_path: Path) -> None:
    result = run(app, ["demo", "--runs", "4", "--horizon", "200", "--out", str(tmp_path)])
    assert result.exit_code == 0, result.output
    assert "FollowTheLeader" in result.output
    assert "95 %" in result.output
    assert (tmp_path / "demo" / "regret.png").read_bytes().startswith(b"\x89PNG")


def test_bench_writes_ratios(tmp_path: Path) -> None:
    file = tmp_path / "bench.json"
    result = run(app, ["bench", "learner", "--repetitions", "3", "--out", str(file)])
    assert result.exit_code == 0, result.output
    lines = json.loads(file.read_text())["lines"]
    assert len(lines) == 10
    assert all(line["lowest"] <= line["ratio"] <= line["highest"] for line in lines)


def test_bench_names_its_groups() -> None:
    result = run(app, ["bench", "learnr"])
    assert result.exit_code == 2
    assert "did you mean 'learner'" in result.output


def test_the_twins_of_the_bench_play_the_same_game() -> None:
    # They are timed against the compiled loop, so they must do its work: regret agrees within error.
    environment = dc.environments.Alternating(arms=8, gap=0.125)
    ours = dc.simulate(dc.FTPL(), environment, 1_000, 1_000, seed=0).summary().loc["FTPL"]
    table = environment.table(1_000)
    best = table.rows[table.row_at, 0].sum()
    lockstep = lockstep_ftpl(table, 1_000, 1_000, seed=1) - best
    textbook = np.array([textbook_ftpl(table, 1_000, seed) - best for seed in range(30)])
    for regret in (lockstep, textbook):
        error = np.hypot(ours["standard_error"], regret.std(ddof=1) / np.sqrt(len(regret)))
        # Four standard errors each: a false alarm once in about 8,000 seeds.
        assert abs(regret.mean() - ours["mean"]) < 4 * error
