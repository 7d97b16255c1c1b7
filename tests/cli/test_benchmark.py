"""`decoupled benchmark`: its folder, its exit statuses and what it prints."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from decoupled.benchmark import suite
from decoupled.cli.benchmark import default_folder
from decoupled.cli.main import app


def test_a_run_writes_an_entry_and_prints_ratios(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(suite.SIZES, "quick", suite.Size("quick", 2, 1_000))
    monkeypatch.delenv("DECOUPLED_DATA", raising=False)
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(app, ["benchmark", "FTPL(c=1)", "--quick", "--workers", "1"])
    assert done.exit_code == 0, done.output
    assert (tmp_path / "out" / "benchmark" / "FTPL-c-1" / "entry.json").is_file()
    assert "FTPL(c=1) on decoupled-1, quick" in done.output
    assert "Late or lost feedback" in done.output


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (["Lader()"], 2, "did you mean 'Ladder'"),
        (["gone.py"], 2, "is no file"),
        (["Ladder()", "--time-limit", "0"], 2, "time_limit = 0.0"),
        (["Ladder()", "--workers", "0"], 2, "--workers"),
        (["TsallisINF(solver='scs')"], 1, "runs in a learner only"),
    ],
)
def test_exit_statuses(arguments: list[str], status: int, message: str, tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["benchmark", *arguments, "--quick", "--out", str(tmp_path)])
    assert (done.exit_code, message in done.output) == (status, True), done.output


def test_the_folder_is_named_after_the_policy() -> None:
    assert default_folder("policies/my_policy.py", None) == "my-policy"
    assert default_folder("my_policy.py", "Soft(rate=0.2)") == "my-policy-Soft-rate-0.2"
    assert default_folder("Ladder()", None) == "Ladder"
