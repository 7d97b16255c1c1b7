"""The comparison of all systems, small: every policy is in it, and its claims are judged."""

import json
import os
import subprocess
import sys
from pathlib import Path

from decoupled.paper.systems import SYSTEMS
from decoupled.policies.homes import HOMES


def test_every_policy_of_the_package_is_compared() -> None:
    # Forgetting wraps another policy, so it is not a system of its own.
    assert {type(policy).__name__ for policy in SYSTEMS} == {*HOMES} - {"Forgetting"}


def test_systems_are_run_and_judged(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "decoupled", "reproduce", "systems", "--quick", "--runs", "8"]
    environment = {**os.environ, "DECOUPLED_OFFLINE": "1"}
    done = subprocess.run(
        [*command, "--out", str(tmp_path)], capture_output=True, text=True, env=environment
    )
    assert done.returncode == 0, done.stderr
    claims = {claim["id"]: claim for claim in json.loads((tmp_path / "claims.json").read_text())}
    assert len(claims["systems-geometric"]["parts"]) == 3
    # Exactly 1 in expectation; eight runs of 1,000 rounds at K = 8 settle it to a factor of two.
    part = next(part for part in claims["systems-conditional"]["parts"] if part["of"] == "K = 8")
    assert 0.5 < part["measured"] < 2.0
    page = (tmp_path / "report.html").read_text()
    assert all(name in page for name, _ in SYSTEMS.values())
