"""The comparison of all systems, in small: its claims are judged."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from decoupled.cli.main import app
from decoupled.paper.systems import SYSTEMS


def test_systems_are_run_and_judged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Within this process, which avoids starting three others that load the package and all machine code.
    monkeypatch.setenv("DECOUPLED_OFFLINE", "1")
    monkeypatch.setattr("decoupled.paper.runner.compile_all", lambda code: None)
    options = ["--quick", "--runs", "8", "--out", str(tmp_path)]
    done = CliRunner().invoke(app, ["reproduce", "systems", *options])
    assert done.exit_code == 0, done.output
    claims = {claim["id"]: claim for claim in json.loads((tmp_path / "claims.json").read_text())}
    assert len(claims["systems-geometric"]["parts"]) == 3
    # The expectation is exactly 1; eight runs of 1,000 rounds at K = 8 estimate it within a factor of two.
    part = next(part for part in claims["systems-conditional"]["parts"] if part["of"] == "K = 8")
    assert 0.5 < part["measured"] < 2.0
    page = (tmp_path / "report.html").read_text()
    assert all(name in page for name, _ in SYSTEMS.values())
