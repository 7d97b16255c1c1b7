"""The script of `make release-check`."""

import json
import shutil
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


def test_a_wheel_of_sources_alone_from_the_sdist_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dist, folder, source = (tmp_path / name for name in ("dist", "built", "source"))
    for each in (dist, folder, source / "decoupled"):
        each.mkdir(parents=True)
    for name in ("a-manylinux.whl", "a-any.whl"):
        wheel(dist / name, a="1")
    shutil.make_archive(str(dist / "a"), "gztar", source)

    def ran(what: str, *command: object, **options: object) -> packages.Row:
        if "from the sdist" in what:
            wheel(folder / made, a="1")
        return packages.Row(what, True)

    monkeypatch.setattr(packages, "ROOT", tmp_path)
    monkeypatch.setattr(packages, "ran", ran)
    made = "a-manylinux.whl"
    assert [*packages.build(folder)][-1] == (packages.SAME, True, "1 files, to the bit")
    shutil.rmtree(folder)
    folder.mkdir()
    made = "a-any.whl"
    assert [*packages.build(folder)][-1] == (packages.SAME, False, "no machine code was built")


def test_a_checker_that_fails_is_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(packages, "checker", tmp_path.joinpath)
    (tmp_path / "auditwheel").write_text("#!/bin/sh\necho $said >&2\nexit $status\n")
    (tmp_path / "auditwheel").chmod(0o755)
    checked = wheel(tmp_path / "a-manylinux_2_17_x86_64.whl", a="1")
    outcomes = [
        ("3", "reason", False, "exit status 3"),
        ("0", "GLIBC_2.17 GLIBC_2.4", True, "needs glibc 2.17, and the tag says 2.17"),
        ("0", "GLIBC_2.18", False, "needs glibc 2.18, and the tag says 2.17"),
    ]
    for status, said, *expected in outcomes:
        monkeypatch.setenv("status", status)
        monkeypatch.setenv("said", said)
        assert [*next(packages.machine_code(checked))[1:]] == expected
    assert "reason" in capsys.readouterr().out


def test_what_an_archive_lacks_is_named() -> None:
    held = json.loads((packages.ROOT / ".zenodo.json").read_text())
    assert release_check.archived(json.dumps(held)).passed
    wrongs = {"license": "", "access_right": "Open", "title": 3, "creators": [{"family": "A"}]}
    for name, value in wrongs.items():
        without = {each: held[each] for each in held if each != name}
        for broken in (without, {**held, name: value}):
            assert release_check.archived(json.dumps(broken))[1:] == (False, name)


def test_relative_links_of_the_page_wait_for_an_address() -> None:
    bare, addressed = "[project]", "[project.urls]\nHome = 'https://h'"
    assert release_check.linked("[a](https://a) [b](#b)", addressed).passed
    for relative in ("[a](docs/a.md)", '<img src="a.svg">'):
        assert release_check.linked(relative, bare)[1:] == (
            None,
            "1 are relative: no address of the repository yet",
        )
        assert release_check.linked(relative, addressed).passed is False


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
