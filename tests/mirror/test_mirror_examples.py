"""The examples of `decoupled mirror`, shortened."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from decoupled.mirror.config_file import read_config
from support.pages import ROOT

EXAMPLES = ROOT / "examples"


@pytest.mark.parametrize("folder", ["llm_router", "bad_deploy"])
def test_the_configurations_can_be_read(folder: str) -> None:
    config = read_config(EXAMPLES / folder / "mirror.toml")
    assert len(config.arms) == {"llm_router": 3, "bad_deploy": 2}[folder]
    assert config.mirror.share == 0.05


def test_the_router_runs_and_judges_its_claims(tmp_path: Path) -> None:
    command = [sys.executable, str(EXAMPLES / "llm_router" / "run.py"), "--requests", "60", "--runs", "1"]
    done = subprocess.run([*command, "--out", str(tmp_path)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    claims = json.loads((tmp_path / "claims.json").read_text())
    assert [claim["id"] for claim in claims] == ["llm-loss", "llm-spend", "llm-loss-uniform"]
    assert (tmp_path / "llm-router" / "llm-router.png").exists()
    # One run has no interval, so nothing can be claimed from it.
    assert {claim["verdict"] for claim in claims} == {"undecided"}
