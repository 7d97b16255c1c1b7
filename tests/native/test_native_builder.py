"""Building: what is compiled, what cannot be, and what the wheel carries."""

import json
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import decoupled
from decoupled.builder import build, catalogue
from decoupled.builder.objects import UnsuitableError, objects_of
from decoupled.builder.wrappers import types_of, wrap
from decoupled.kernels.jit import translate
from decoupled.native import cpu, load
from decoupled.native.calls import FORMAT
from decoupled.native.sources import COMPILED, source_digest

ROOT = Path(decoupled.__file__).parents[2]


def test_a_build_can_be_loaded(tmp_path: Path) -> None:
    told: list[str] = []
    build.build(tmp_path / "lib", 1, lambda name: name == catalogue.COMMON, told.append)
    found = load.load(tmp_path / "lib")
    assert found.functions.keys() == {export.name for export in catalogue.group(catalogue.COMMON).exports}
    manifest = load.read_manifest(tmp_path / "lib")
    assert manifest["format"] == FORMAT
    assert manifest["digest"] == source_digest(*COMPILED)
    assert manifest["libraries"].keys() == set(cpu.targets())
    assert len(told) == 2  # the group, and the whole


@pytest.mark.skipif(load.why_not() is not None, reason=f"{load.why_not()}; make native")
def test_what_is_up_to_date(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "lib"
    shutil.copytree(load.FOLDER, folder)
    manifest = load.read_manifest(folder)
    monkeypatch.setenv(load.SWITCH, "here")
    assert build.wanted() == cpu.runnable()[:1]
    written = {**manifest, "builder": build.builder_digest()}
    for changed, expected in (
        ({}, True),
        ({"builder": "0" * 16}, False),
        ({"digest": "0" * 16}, False),
        ({"libraries": {}}, False),
    ):
        (folder / load.MANIFEST).write_text(json.dumps({**written, **changed}))
        assert build.is_built(folder) is expected, changed
    # A wheel is for all kinds of processors.
    monkeypatch.delenv(load.SWITCH)
    assert build.wanted() == cpu.targets()
    best = cpu.runnable()[0]
    (folder / load.MANIFEST).write_text(
        json.dumps({**written, "libraries": {best: manifest["libraries"][best]}})
    )
    assert build.is_built(folder) is (cpu.targets() == (best,))
    monkeypatch.setenv(load.SWITCH, "here")
    assert build.is_built(folder)


def test_every_policy_is_built_and_every_adversary() -> None:
    labels = {policy.label for policy in catalogue.policies()}
    assert {"FTPL", "FTPL(ranking='strata')", "TopTwo", "UCB1", "Forgetting(Exp3, discount=0.5)"} <= labels
    known = {
        kind.__name__
        for kind in decoupled.environments.Adversary.__subclasses__()
        if kind.__module__.startswith("decoupled.")
    }
    assert known == {type(adversary).__name__ for adversary in catalogue.adversaries()}


def test_building_needs_numpy_and_numba_alone() -> None:
    # All that is installed where a wheel is built in an environment of its own.
    others = ("h5netcdf", "h5py", "matplotlib", "pandas", "plotly", "rich", "scipy", "typer", "xarray")
    code = (
        f"import sys; sys.modules.update(dict.fromkeys({others}));"
        "from decoupled.builder import build, catalogue, objects;"
        "[catalogue.group(name) for name in catalogue.names()]"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_what_allocates_cannot_be_shipped() -> None:
    def order(values: Any) -> float:
        return float(np.argsort(values)[0])

    function = translate(order, keep=False, counting=True)
    with pytest.raises(UnsuitableError, match="NRT_"):
        objects_of(wrap(function, types_of((np.zeros(2),))), "order", cpu.targets())


def test_without_a_linker_there_is_a_reason(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("CC", "")
    with pytest.raises(build.UnbuiltError, match="no linker was found"):
        build.find_linker()


def wheel_in(folder: Path, **environment: str) -> tuple[str, list[str]]:
    done = subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        env={**os.environ, **environment},
    )
    assert done.returncode == 0, done.stderr
    (path,) = folder.glob("*.whl")
    with zipfile.ZipFile(path) as wheel:
        return path.name, [name for name in wheel.namelist() if "/native/lib/" in name]


@pytest.mark.skipif(load.why_not() is not None, reason=f"{load.why_not()}; make native")
def test_a_wheel_carries_the_library(tmp_path: Path) -> None:
    name, carried = wheel_in(tmp_path / "with", DECOUPLED_NATIVE="here")
    assert "-py3-none-" in name
    assert not name.endswith("-any.whl")
    assert sorted(Path(each).name for each in carried) == sorted(
        [load.MANIFEST, *load.read_manifest(load.FOLDER)["libraries"].values()]
    )
    name, carried = wheel_in(tmp_path / "without", DECOUPLED_NATIVE="off")
    assert name.endswith("-py3-none-any.whl")
    assert carried == []
