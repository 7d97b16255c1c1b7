"""`decoupled benchmark`: its exit statuses and its folder."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from decoupled.cli.main import app
from decoupled_lab.cli import benchmark
from decoupled_lab.cli.benchmark import default_folder
from support.made_entries import made_up


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


def test_without_matplotlib_an_entry_has_its_tables_and_no_picture(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(benchmark, "find_spec", lambda name: None)
    assert list(benchmark.write_shown(made_up(), tmp_path, latex=True)) == ["table.md", "table.tex"]
    assert {file.name for file in tmp_path.iterdir()} == {"table.md", "table.tex"}
