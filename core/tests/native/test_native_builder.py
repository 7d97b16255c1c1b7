"""Building: what is compiled, what cannot be, and what the wheel carries."""

import json
import re
import runpy
import shutil
import struct
import sys
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import decoupled
from decoupled.builder import build, catalogue
from decoupled.builder.build import BuildCache, Built
from decoupled.builder.objects import ALLOWED, Shared, UnsuitableError, objects_of, types_of, wrap
from decoupled.kernels.jit import translate
from decoupled.native import load
from decoupled.native.calls import FORMAT
from decoupled.native.load import COMPILED, code_digest, source_digest, without_docstrings
from support.plain_python import ran

ROOT = Path(decoupled.__file__).parents[2]
# A group that is soon compiled.
SMALL = decoupled.UCB1().to_json()


def test_an_interrupted_build_goes_on_and_loads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(load.SWITCH, "here")  # another kind of processor would take as long again
    told: list[str] = []

    def interrupt(*_: object) -> str:
        raise KeyboardInterrupt

    with monkeypatch.context() as broken:
        broken.setattr(build, "link", interrupt)
        with pytest.raises(KeyboardInterrupt):
            build.build(tmp_path / "lib", 1, lambda name: name == SMALL, told.append)
    assert f"each for {load.runnable()[0]}" in told[0]
    assert re.fullmatch(r" +1/1 .*: \d+ functions, [\d.]+ s", told[1])
    told.clear()
    build.build(tmp_path / "lib", 1, lambda name: name == SMALL, told.append)
    assert told[1].endswith("kept from an interrupted build")
    assert not list((tmp_path / "lib").glob(".unfinished-*"))
    found = load.load(tmp_path / "lib")
    assert found.functions.keys() == {export.name for export in catalogue.group(SMALL).exports}
    manifest = load.read_manifest(tmp_path / "lib")
    assert manifest["format"] == FORMAT
    assert manifest["digest"] == source_digest(*COMPILED)
    assert manifest["code"] == code_digest(*COMPILED)
    assert manifest["libraries"].keys() == {load.runnable()[0]}
    assert len(told) == 3  # the plan, the group, and the whole


@pytest.mark.skipif(
    load.unavailable_reason() is not None, reason=f"{load.unavailable_reason()}; make native"
)
def test_an_edited_docstring_compiles_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "lib"
    shutil.copytree(load.FOLDER, folder)
    before = {**load.read_manifest(folder), "builder": build.builder_digest(), **build.sources()}
    build.write_manifest(folder, {**before, "digest": "0" * 16})
    build.renew_digests(folder)
    assert load.read_manifest(folder) == before
    manifest = load.read_manifest(load.FOLDER)
    monkeypatch.setenv(load.SWITCH, "here")
    assert build.wanted() == load.runnable()[:1]
    written = {**manifest, "builder": build.builder_digest()}
    for changed, expected in (
        ({}, True),
        ({"builder": "0" * 16}, False),
        ({"digest": "0" * 16, "code": "0" * 16}, False),
        ({"digest": "0" * 16}, True),  # only comments or docstrings have changed
        ({"libraries": {}}, False),
    ):
        (folder / load.MANIFEST).write_text(json.dumps({**written, **changed}))
        assert build.is_built(folder) is expected, changed
    # A wheel is for all kinds of processors.
    monkeypatch.delenv(load.SWITCH)
    assert build.wanted() == load.targets()
    best = load.runnable()[0]
    (folder / load.MANIFEST).write_text(
        json.dumps({**written, "libraries": {best: manifest["libraries"][best]}})
    )
    assert build.is_built(folder) is (load.targets() == (best,))
    monkeypatch.setenv(load.SWITCH, "here")
    assert build.is_built(folder)


@pytest.mark.parametrize(
    ("source", "same"),
    [
        ('"""Another."""\n\n\ndef f(x):\n    # why\n    """More."""\n    return x + 1.0', True),
        ("def f(x): return x + 1.0", True),
        ("def f(x): return x + 2.0", False),
        ("def f(x: int): return x + 1.0", False),
        ('def f(x):\n    return x + 1.0\n    """Of nothing."""', True),
        ('def f(x):\n    return x + len("text")', False),
    ],
)
def test_a_digest_of_code_sees_code_alone(source: str, same: bool) -> None:
    original = '"""A module."""\n\ndef f(x):\n    """Add one."""\n    return x + 1.0'
    assert (without_docstrings(source) == without_docstrings(original)) is same


def test_only_the_same_build_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    same = build.unfinished(("x86-64-v3",))
    assert build.unfinished(("x86-64-v3",)) == same
    assert build.unfinished(("x86-64-v3", "x86-64-v2")) != same
    for name, value in (("version", lambda package: "0"), ("source_digest", lambda *folders: "0")):
        with monkeypatch.context() as other:
            other.setattr(build, name, value)
            assert build.unfinished(("x86-64-v3",)) != same, name


def test_a_damaged_part_of_a_build_is_compiled_again(tmp_path: Path) -> None:
    scratch, kept = tmp_path / "scratch", BuildCache(tmp_path / "kept")
    (scratch / "one").mkdir(parents=True)
    (scratch / "one" / "f.o").write_bytes(b"code")
    built = [Built("group", {"f": {"symbol": "f"}}, {}, {}, 1.5)]
    assert kept.restore(["a", "b"], scratch) is None
    kept.keep(["a", "b"], built, scratch, ["one"])
    (scratch / "one" / "f.o").unlink()
    assert kept.restore(["a", "b"], scratch) == built
    assert (scratch / "one" / "f.o").read_bytes() == b"code"
    assert kept.restore(["a"], scratch) is None
    [file] = kept.folder.iterdir()
    file.write_bytes(file.read_bytes()[:-1])
    assert kept.restore(["a", "b"], scratch) is None


def test_every_policy_is_built_and_every_adversary() -> None:
    labels = {policy.label for policy in catalogue.policies()}
    assert {
        kind for kind in decoupled.Policy.homes if kind != "Forgetting"
    } == labels  # which has its policy's functions
    assert len(catalogue.names()) <= 16
    known = {
        kind.__name__
        for kind in decoupled.environments.Adversary.__subclasses__()
        if kind.__module__.startswith("decoupled.")
    }
    assert known == {type(adversary).__name__ for adversary in catalogue.adversaries()}


def test_building_needs_numpy_and_numba_alone() -> None:
    # All that is installed where a wheel is built in an environment of its own.
    others = (
        "h5netcdf",
        "h5py",
        "matplotlib",
        "pandas",
        "plotly",
        "rich",
        "scipy",
        "typer",
        "xarray",
    )
    code = (
        f"import sys; sys.modules.update(dict.fromkeys({others}));"
        "from decoupled.builder import build, catalogue, objects;"
        "[catalogue.group(name) for name in catalogue.names()]"
    )
    ran("-c", code)


def test_what_allocates_cannot_be_shipped() -> None:
    def order(values: Any) -> float:
        return float(np.argsort(values)[0])

    function = translate(order, keep=False, counting=True)
    with pytest.raises(UnsuitableError, match="NRT_"):
        objects_of(wrap(function, types_of((np.zeros(2),))), "order", load.targets())

    def refuse(values: np.ndarray[Any, Any]) -> float:
        if values[0] < 0.0:
            raise ValueError("below 0")
        return float(values[0])

    function = translate(refuse, keep=False, counting=False)
    held = Shared(
        "init", function, "refuse_shared"
    )  # within its caller, its exception would be dropped
    made = objects_of(wrap(function, types_of((np.zeros(2),))), "refuse", load.targets(), held)
    for code in made.code.values():
        assert b"below 0" in code  # the exception is there, and not the file it comes from
        assert b".py" not in code


AARCH64 = "aarch64-unknown-linux-gnu"
OBJECTS = f"""
import sys
from pathlib import Path
from decoupled.builder import catalogue
from decoupled.builder.objects import objects_of, types_of, wrap
for export in catalogue.group(catalogue.COMMON).exports:
    name = export.name.rpartition(".")[2]
    if name in sys.argv[2:]:
        function = wrap(export.function, types_of(export.arguments))
        built = objects_of(function, name, ("generic",), triple={AARCH64!r})
        Path(sys.argv[1], f"{{name}}.o").write_bytes(built.code["generic"])
"""


def test_objects_for_aarch64(tmp_path: Path) -> None:
    # With the settings of a build on such a machine: the C library, and no features of this
    # processor.
    settings = {**build.compiler_settings(("generic",)), "PYTHONPATH": str(ROOT / "src")}
    names = ("draw_loss", "merge_groups")  # the first calls the C library
    ran("-c", OBJECTS, tmp_path, *names, **settings)  # type: ignore[arg-type]
    written = sorted(tmp_path.glob("*.o"))
    assert [path.stem for path in written] == [*names]
    for path in written:
        machine, defined, undefined = elf(path.read_bytes())
        assert machine == 183  # AArch64
        assert defined == {path.stem}
        assert undefined <= ALLOWED
    linker = shutil.which("aarch64-linux-gnu-gcc")
    if linker:  # not on most machines
        build.link(linker, tmp_path, tmp_path, "generic")


def elf(code: bytes) -> tuple[int, set[str], set[str]]:
    """The machine of an ELF object, and the names of the functions that it exports and needs."""
    assert code[:6] == b"\x7fELF\x02\x01"  # 64 bits, little endian
    (machine,) = struct.unpack_from("<H", code, 18)
    (offset,) = struct.unpack_from("<Q", code, 40)
    size, count = struct.unpack_from("<HH", code, 58)
    sections = [
        struct.unpack_from("<IIQQQQII", code, offset + number * size) for number in range(count)
    ]
    [table] = [section for section in sections if section[1] == 2]  # the symbols
    names = sections[table[6]][4]
    found: dict[bool, set[str]] = {True: set(), False: set()}
    for at in range(table[4], table[4] + table[5], 24):
        name, info, _, section = struct.unpack_from("<IBBH", code, at)
        if info >> 4 and name:  # global
            found[section != 0].add(code[names + name : code.index(b"\0", names + name)].decode())
    return machine, found[True], found[False]


def test_a_wheel_may_be_had_without_the_library(tmp_path: Path) -> None:
    ran("-m", "hatchling", "build", "-t", "wheel", "-d", tmp_path, cwd=ROOT, DECOUPLED_NATIVE="off")
    (path,) = tmp_path.glob("*.whl")
    assert path.name.endswith("-py3-none-any.whl")
    with zipfile.ZipFile(path) as wheel:
        assert [name for name in wheel.namelist() if "/native/lib/" in name] == []


HOOK: dict[str, Any] = runpy.run_path(str(ROOT / "hatch_build.py"))


def test_a_wheel_carries_what_the_manifest_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    named = {"libraries": {"x86-64-v2": "two.so", "x86-64-v3": "three.so"}}
    (tmp_path / "manifest.json").write_text(json.dumps(named))
    for name in ("two.so", "three.so", "of-an-earlier-build.so"):
        (tmp_path / name).touch()
    assert [file.name for file in HOOK["carried"](tmp_path)] == [
        "manifest.json",
        "two.so",
        "three.so",
    ]
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("CC", "")
    with pytest.raises(build.UnbuiltError, match="no linker was found"):
        build.find_linker()


@pytest.mark.skipif(sys.platform != "linux", reason="other systems have no manylinux")
def test_the_tag_of_a_wheel_is_the_newest_c_library_that_it_needs(tmp_path: Path) -> None:
    old, new = tmp_path / "old.so", tmp_path / "new.so"
    old.write_bytes(b"GLIBC_2.2.5\0GLIBC_2.14\0")
    new.write_bytes(b"GLIBC_2.17\0GLIBC_2.29\0")
    tags = [HOOK["platform_tag"](files) for files in ([], [old], [old, new])]
    assert [tag.rpartition("_2_")[2].partition("_")[0] for tag in tags] == ["17", "17", "29"]
