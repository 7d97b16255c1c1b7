"""The wheel is what users get: installed with NumPy alone into an empty environment, it decides at
once.
"""

import os
import re
import subprocess
import sys
import tarfile
import zipfile
from importlib.util import find_spec
from pathlib import Path

import pytest

from decoupled.base.extras import EXTRA_OF
from decoupled.native.load import FOLDER, MANIFEST, read_manifest, unavailable_reason
from support.once import made_once
from support.pages import ROOT, blocks

pytestmark = pytest.mark.skipif(
    unavailable_reason() is not None, reason=f"no shipped machine code: {unavailable_reason()}"
)

CORE = ROOT / "core"
FORBIDDEN = [*EXTRA_OF]

CHECK = """
import sys
from pathlib import Path
import decoupled
assert Path(decoupled.__file__).is_relative_to(sys.prefix), decoupled.__file__
loaded = {each.partition(".")[0] for each in sys.modules} & set(sys.argv[1:])
assert not loaded, loaded
"""

OWN_POLICY = (
    "from inverse_gap import *\nprint(InverseGap().start(arms=3, seed=0).decide().propensity)\n"
)


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the wheel and the sdist."""

    def build(folder: Path) -> str:
        command = [sys.executable, "-m", "hatchling", "build", "-d", str(folder)]
        # For this processor only, since `make test` builds no more.
        environment = {**os.environ, "DECOUPLED_NATIVE": "here"}
        done = subprocess.run(command, cwd=CORE, capture_output=True, text=True, env=environment)
        assert done.returncode == 0, done.stderr
        return done.stderr

    return made_once(tmp_path_factory, "dist", build)[0]


def environment(built: Path, folder: Path, *packages: str) -> Path:
    """The interpreter of an environment with the wheel and some packages of this one; nothing is
    downloaded.
    """
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    [site] = folder.glob("lib/python*/site-packages")
    [wheel] = built.glob("*.whl")
    zipfile.ZipFile(wheel).extractall(site)
    for package in packages:
        spec = find_spec(package)
        assert spec is not None
        assert spec.origin is not None
        home = Path(spec.origin).parent
        for each in (home, home.with_name(f"{package}.libs")):
            if each.exists():
                (site / each.name).symlink_to(each)
    return folder / "bin" / "python"


def run(python: Path, script: str, folder: Path, *arguments: str) -> str:
    (folder / "script.py").write_text(script)
    done = subprocess.run(
        [python, folder / "script.py", *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        env={},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


# What the README's lines leave to their reader, and requests for them.
REQUESTS = """
def reply(request, model):
    return model

def judge(request, model):
    return 0.2 if model == "large" else 0.7

served = [handle(request) for request in range(1_000)]
assert served[-100:].count("large") > 90, served[-100:]
"""


def test_the_lines_of_the_readme_run_on_numpy_alone(built: Path, tmp_path: Path) -> None:
    python = environment(built, tmp_path / "env", "numpy")
    [block] = blocks(ROOT / "README.md", "python")
    run(python, block.code + REQUESTS + CHECK, tmp_path, *FORBIDDEN)


def test_every_policy_decides_saves_and_replays_on_numpy_alone(built: Path, tmp_path: Path) -> None:
    python = environment(built, tmp_path / "env", "numpy")
    script = """
import decoupled as dc
for name, kind in dc.Policy.known().items():
    for policy in kind.examples():
        if policy.interpreted or "strata" in repr(policy):  # strata are compiled on first use
            continue
        learner = policy.start(arms=["a", "b", "c"], seed=0)
        learner.observe(learner.decide(), loss=0.5)
        again = dc.Learner.from_json(learner.to_json())
        assert again.decide() == learner.decide(), policy
        again.replay([("a", 0.5, 0.25)])
"""
    run(python, script + CHECK, tmp_path, *FORBIDDEN)


def test_a_policy_of_ones_own_needs_numba_and_says_so(built: Path, tmp_path: Path) -> None:
    codes = [each.code for each in blocks(ROOT / "CONTRIBUTING.md", "python")]
    [policy] = [code for code in codes if "class InverseGap(Policy)" in code]
    (tmp_path / "inverse_gap.py").write_text(policy)
    without = environment(built, tmp_path / "without", "numpy")
    done = subprocess.run(
        [without, "-c", OWN_POLICY],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        env={"PYTHONPATH": "."},
    )
    assert done.returncode == 1
    assert "pip install 'decoupled-bandits[jit]'" in done.stderr
    # With the extra it is compiled.
    jit = environment(built, tmp_path / "jit", "numpy", "numba", "llvmlite")
    assert float(run(jit, OWN_POLICY, tmp_path)) == pytest.approx(1 / 3)


def test_what_the_wheel_says_of_itself(built: Path) -> None:
    [wheel] = built.glob("*.whl")
    assert re.search(r"-py3-none-(?!any)", wheel.name)
    with zipfile.ZipFile(wheel) as held:
        names = held.namelist()
        [metadata] = [name for name in names if name.endswith(".dist-info/METADATA")]
        text = held.read(metadata).decode()
    assert [
        line for line in re.findall("^Requires-Dist: (.*)$", text, re.M) if "extra ==" not in line
    ] == ["numpy>=2.0"]
    extras = set(re.findall("^Provides-Extra: (.*)$", text, re.M))
    assert {"cli", "cuda", "jit", "lab", "plots", "serve", "simulate"} <= extras
    assert {"decoupled/py.typed", "decoupled/__init__.pyi"} <= set(names)
    carried = {MANIFEST, *read_manifest(FOLDER)["libraries"].values()}
    assert {name.rpartition("/")[2] for name in names if "/native/lib/" in name} == carried
    assert not [name for name in names if "tests" in name or "__pycache__" in name]


def test_the_sdist_has_what_building_needs(built: Path) -> None:
    [sdist] = built.glob("*.tar.gz")
    with tarfile.open(sdist) as held:
        names = {name.partition("/")[2] for name in held.getnames()}
    assert {"hatch_build.py", "pyproject.toml", "README.md", "LICENSE"} <= names
    assert {"src/decoupled/builder/build.py", "src/decoupled/__init__.pyi"} <= names
    assert not [name for name in names if name.startswith("src/decoupled/native/lib/")]
