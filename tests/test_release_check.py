"""The script of `make release-check`."""

import zipfile
from pathlib import Path

import pytest

import decoupled as dc
import release_check
from support import packages


def wheel(path: Path, **files: str) -> Path:
    with zipfile.ZipFile(path, "w") as made:
        for name, content in files.items():
            made.writestr(name, content)
    return path


def test_two_wheels_are_the_same_if_all_their_files_are(tmp_path: Path) -> None:
    one = wheel(tmp_path / "one.whl", a="1", b="2")
    assert packages.same(one, wheel(tmp_path / "two.whl", b="2", a="1")).passed
    others = ({"a": "1"}, "b"), ({"a": "1", "b": "3"}, "b"), ({"a": "1", "b": "2", "c": "3"}, "c")
    for files, different in others:
        row = packages.same(one, wheel(tmp_path / "other.whl", **files))
        assert (row.passed, row.detail) == (False, different)
    assert packages.same(tmp_path / "none.whl", one).passed is False


def test_a_command_that_fails_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    row = packages.ran("a step", "sh", "-c", "echo reason; exit 3")
    assert str(row).split() == ["FAILED", "a", "step", "exit", "status", "3"]
    assert "reason" in capsys.readouterr().out
    assert packages.ran("a step", "/no/such/program") == (
        "a step",
        False,
        "/no/such/program is missing",
    )
    assert packages.ran("a step", "printf", "one\\ntwo\\n").detail == "two"


def test_the_version_is_read_from_the_tree() -> None:
    assert packages.version() == dc.__version__


def test_the_quick_suite_wants_an_installed_package(capsys: pytest.CaptureFixture[str]) -> None:
    if "site-packages" in str(dc.__file__):
        pytest.skip("the package is installed")
    assert release_check.quick([]) == 2
    assert "install a wheel first" in capsys.readouterr().out
