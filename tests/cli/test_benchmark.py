"""`decoupled benchmark`: its exit statuses and its folder."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from decoupled.cli.main import app
from decoupled_lab.cli.bench import default_folder


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (["Lader()"], 2, "did you mean 'Ladder'"),
        (["gone.py"], 2, "is no file"),
        (["Ladder()", "--time-limit", "0"], 2, "time_limit = 0.0"),
        (["Ladder()", "--workers", "0"], 2, "--workers"),
    ],
)
def test_exit_statuses(arguments: list[str], status: int, message: str, tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["benchmark", *arguments, "--quick", "--out", str(tmp_path)])
    assert (done.exit_code, message in done.output) == (status, True), done.output


def test_the_folder_is_named_after_the_policy() -> None:
    assert default_folder("policies/my_policy.py", None) == "my-policy"
    assert default_folder("my_policy.py", "Soft(rate=0.2)") == "my-policy-Soft-rate-0.2"
    assert default_folder("Ladder()", None) == "Ladder"
