"""`decoupled bench engine --against CHECKOUT`: two versions of the package, timed in turn."""

import re
from pathlib import Path

import pytest
import typer

import decoupled as dc
from decoupled_lab.bench import engine
from decoupled_lab.cli.bench import bench
from support.pages import ROOT


def test_a_checkout_beside_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "CASES", [("FTPL()", 8)])
    monkeypatch.setattr(engine, "ROUNDS", 100)
    [line] = engine.measure_against(ROOT, repetitions=3)
    assert line.name == "FTPL(), K = 8"
    assert "same regret" in line.rival
    assert line.lowest <= line.ratio <= line.highest


def test_a_folder_without_the_package_is_refused(tmp_path: Path) -> None:
    with pytest.raises(
        dc.ParameterError, match=r"--against = .*: is not a checkout of decoupled; try"
    ):
        list(engine.measure_against(tmp_path))


def test_it_is_refused_where_it_changes_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(typer.Exit):
        bench(["learner"], 3, tmp_path / "bench.json", against=ROOT)
    assert re.search(
        r"--against = .*: compares simulated rounds", " ".join(capsys.readouterr().err.split())
    )
    assert list(tmp_path.iterdir()) == []


def test_a_version_that_lacks_the_policy_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "CASES", [("NoSuchPolicy()", 8)])
    with pytest.raises(dc.UnsupportedError, match=r"NoSuchPolicy\(\) could not be simulated"):
        list(engine.measure_against(ROOT, repetitions=3))
