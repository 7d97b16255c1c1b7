"""The command line, as a user would call it."""

import json
from pathlib import Path

from typer.testing import CliRunner

import decoupled as dc
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
    assert (tmp_path / "demo.png").read_bytes().startswith(b"\x89PNG")


def test_bench_writes_ratios(tmp_path: Path) -> None:
    file = tmp_path / "bench.json"
    result = run(app, ["bench", "--repetitions", "3", "--out", str(file)])
    assert result.exit_code == 0, result.output
    lines = json.loads(file.read_text())["lines"]
    assert len(lines) == 10
    assert all(line["lowest"] <= line["ratio"] <= line["highest"] for line in lines)
