"""The exit status says whether the command line is wrong, or something else."""

from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

import decoupled as dc
from decoupled.cli.main import app
from decoupled.cli.shared import report_errors
from decoupled.errors import Message


def status(*arguments: str | Path) -> int:
    return CliRunner().invoke(app, [str(each) for each in arguments]).exit_code


@pytest.mark.parametrize(
    "arguments",
    [
        ["polices"],
        ["simulate"],
        ["simulate", "some.toml", "--worker", "2"],
        ["simulate", "some.toml", "--workers", "none"],
        ["reproduce", "gird"],
        ["bench", "learnr"],
        ["serve", "--port", "99999999"],
        ["serve", "--log-format", "xml"],
        ["mirror"],
        ["client", "create", "colours", "red", "blue", "--policy", "{"],
    ],
    ids=" ".join,
)
def test_a_wrong_command_line(arguments: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DECOUPLED_CONFIG", raising=False)
    assert status(*arguments) == 2


def test_something_else_that_is_wrong_and_a_command_that_succeeds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec = tmp_path / "spec.toml"
    spec.write_text("horizon = -1")
    assert status("simulate", spec) == 1, "what a file says"
    assert status("simulate", tmp_path / "none.toml") == 1, "a file that is not there"
    assert status("report", tmp_path) == 1, "a folder without a run"
    assert status("doctor", "--store", tmp_path / "none.db") == 1, "a store that is not there"
    monkeypatch.setenv("DECOUPLED_PORT", "none")
    assert status("config", "serve") == 1, "a variable is not the command line"
    assert status("policies") == status("--version") == status("simulate", "--help") == 0


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (dc.ParameterError(Message("--risk = 7: must be below 1", "try 0.05", "--risk")), 2),
        (dc.ParameterError("--tls-certificate, --tls-key: must be given together; give both, or none"), 2),
        (dc.ParameterError(Message("group = 'x': is not known", "see --help", "group")), 2),
        (dc.ParameterError(Message("groups = 'x': is not known", "see --help", "groups")), 1),
        (dc.StateError("state: is damaged; give another"), 1),
        (FileNotFoundError(2, "No such file", "--odd"), 1),
        (ModuleNotFoundError("No module named 'uvicorn'", name="uvicorn"), 1),
        (KeyboardInterrupt(), 130),
    ],
    ids=repr,
)
def test_by_the_error(error: BaseException, expected: int) -> None:
    with pytest.raises(typer.Exit) as end, report_errors(arguments=("group",)):
        raise error
    assert end.value.exit_code == expected
