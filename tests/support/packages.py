"""The packages of a release: built, checked and installed. `tests/release_check.py` uses it."""

import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
DEVELOPMENT, BUILDING = (ROOT / name / "bin" / "python" for name in (".venv", ".venv-wheel"))
# The rating of a package with neither an address nor an author with one, and nothing else to find fault with.
LOWEST_RATING = "8"
SAME = "it has the files of the wheel from the tree"
ENDS = ("*-manylinux*.whl", "*-any.whl", "*.tar.gz")
DECIDE = """
import decoupled as dc
learner = dc.FTPL().start(arms=3, seed=7)
for turn in range(200):
    decision = learner.decide()
    learner.observe(decision, loss=(decision.explore + turn % 2) / 3)
print(dc.__version__, decision.exploit, decision.explore, decision.propensity)
"""


class Row(NamedTuple):
    """One line of the table."""

    what: str
    passed: bool | None  # None: it could not be done here
    detail: str = ""

    def __str__(self) -> str:
        mark = {True: "passed", False: "FAILED", None: "not done"}[self.passed]
        return f"{mark:<9} {self.what:<52} {self.detail[:100]}".rstrip()


def ran(
    what: str,
    *command: str | Path,
    cwd: Path = ROOT,
    env: Mapping[str, str] | None = None,
    shows: str = r"(.*\S)\s*\Z",
) -> Row:
    """Run a command. Its status decides, and what the pattern finds in its output is shown; all of it after a failure."""
    words = [str(word) for word in command]
    if sys.stdout.isatty():
        print(f"{'':<9} {what} ...", end="\r", flush=True)
    environment = {**os.environ, "NO_COLOR": "1", "COLUMNS": "200", **(env or {})}
    try:
        done = subprocess.run(
            words, cwd=cwd, env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        )
    except FileNotFoundError:
        return Row(what, False, f"{words[0]} is missing")
    if done.returncode:
        print(f"$ {' '.join(words)}\n{done.stdout}", flush=True)
        return Row(what, False, f"exit status {done.returncode}")
    found = re.findall(shows, done.stdout)
    return Row(what, True, found[-1].strip() if found else "")


def checker(name: str) -> Path:
    """The program of a checker."""
    return Path(sys.executable).with_name(name)


def version() -> str:
    """The version of the package in the tree."""
    [found] = re.findall(
        r'^__version__ = "(.*)"$', (ROOT / "core/src/decoupled/__init__.py").read_text("utf-8"), re.M
    )
    return str(found)


def build(folder: Path) -> Iterator[Row]:
    """The packages in dist/, and again from the sdist."""
    yield ran("make build", "make", "build", shows=r"[^/\s]+\.whl")
    off, hatch = {"DECOUPLED_NATIVE": "off"}, (BUILDING, "-m", "hatchling", "build", "-t", "wheel")
    yield ran("the wheel without machine code", *hatch, env=off, shows=r"[^/\s]+\.whl")
    kinds = [len([*(ROOT / "dist").glob(end)]) for end in ENDS]
    yield Row("dist has a wheel of each kind and an sdist", kinds == [1, 1, 1], " ".join(map(str, kinds)))
    if kinds != [1, 1, 1]:
        return
    [sdist] = (ROOT / "dist").glob("*.tar.gz")
    shutil.unpack_archive(sdist, folder)
    [unpacked] = folder.iterdir()
    yield ran("the wheel from the sdist", *hatch, "-d", folder, cwd=unpacked, shows=r"[^/\s]+\.whl")
    # Where the builder fails there is a wheel all the same, of sources alone.
    wheels = [*folder.glob(ENDS[0])]
    yield (
        same(ROOT / "dist" / wheels[0].name, wheels[0])
        if wheels
        else Row(SAME, False, "no machine code was built")
    )


def same(one: Path, other: Path) -> Row:
    """Whether two wheels have the same files."""
    held = [contents(one), contents(other)] if one.exists() else [{}, contents(other)]
    different = sorted(
        name for name in held[0].keys() | held[1].keys() if held[0].get(name) != held[1].get(name)
    )
    detail = f"{len(held[1])} files, to the bit" if not different else ", ".join(different[:5])
    return Row(SAME, not different, detail)


def contents(wheel: Path) -> dict[str, str]:
    """The digest of every file of a wheel."""
    with zipfile.ZipFile(wheel) as held:
        return {name: hashlib.sha256(held.read(name)).hexdigest() for name in held.namelist()}


def files(dist: Path) -> Iterator[Row]:
    """The stock checkers."""
    wheels, sdists = sorted(dist.glob("*.whl")), sorted(dist.glob("*.tar.gz"))
    yield ran(
        "twine check --strict", checker("twine"), "check", "--strict", *wheels, *sdists, shows="PASSED"
    )
    yield ran("check-wheel-contents", checker("check-wheel-contents"), *wheels, shows="OK")
    for sdist in sdists:
        yield ran("pyroma", checker("pyroma"), "--min", LOWEST_RATING, sdist, shows="Final rating: .*")
    for wheel in dist.glob("*-manylinux*.whl"):
        yield from machine_code(wheel)


def machine_code(wheel: Path) -> Iterator[Row]:
    """What the machine code of a wheel needs of the system, and of Python."""
    shown = ran("auditwheel show", checker("auditwheel"), "show", wheel, shows=r"(?s).+")
    if shown.passed:
        needed = max(map(int, re.findall(r"GLIBC_2\.(\d+)", shown.detail)), default=0)
        [tag] = re.findall(r"-manylinux_2_(\d+)_", wheel.name)
        shown = Row(shown.what, 0 < needed <= int(tag), f"needs glibc 2.{needed}, and the tag says 2.{tag}")
    yield shown
    with tempfile.TemporaryDirectory() as folder, zipfile.ZipFile(wheel) as held:
        modules = [held.extract(name, folder) for name in held.namelist() if name.endswith(".abi3.so")]
        audit = (checker("abi3audit"), "--strict", "--summary", "--assume-minimum-abi3", "3.11")
        yield ran("abi3audit", *audit, *modules, shows=r"\d+ ABI version mismatch.*")


def installed(folder: Path) -> Iterator[Row]:
    """Each package in a fresh environment, used from an empty folder. All decide alike."""
    [native], [pure], [sdist] = ((ROOT / "dist").glob(end) for end in ENDS)
    rows = [
        decided("the wheel decides, with NumPy alone", f"{native}", folder / "native"),
        decided("the wheel without machine code decides", f"{pure}[jit]", folder / "pure"),
        decided("the sdist, built without machine code, decides", f"{sdist}[jit]", folder / "sdist"),
    ]
    yield from rows
    alike = len({row.detail for row in rows}) == 1
    yield Row("they decide alike, in this version", alike and rows[0].detail.startswith(f"{version()} "))


def decided(what: str, package: str, folder: Path) -> Row:
    """Install a package, and decide once."""
    python, empty = folder / "venv" / "bin" / "python", folder / "empty"
    empty.mkdir(parents=True)
    made = ran(what, DEVELOPMENT, "-m", "venv", folder / "venv")
    pip = (python, "-m", "pip", "--disable-pip-version-check", "install", "--quiet", package)
    if made.passed:
        made = ran(what, *pip, cwd=empty, env={"DECOUPLED_NATIVE": "off"})
    if made.passed:
        made = ran(what, python, "-W", "error", "-c", DECIDE, cwd=empty, env={"DECOUPLED_NATIVE": ""})
    return made


def tested(folder: Path, script: Path) -> Row:
    """The quick suite against the installed wheel; the libraries that it needs are those of .venv."""
    what, python = "the quick suite, with the wheel", folder / "bin" / "python"
    [wheel] = (ROOT / "dist").glob("*-manylinux*.whl")
    made = ran(what, DEVELOPMENT, "-m", "venv", folder)
    if made.passed:
        made = ran(what, python, "-m", "pip", "install", "--quiet", "--no-deps", wheel)
    if not made.passed:
        return made
    where = "import sysconfig; print(sysconfig.get_path('purelib'))"
    libraries, own = (
        subprocess.check_output([each, "-c", where], text=True).strip() for each in (DEVELOPMENT, python)
    )
    Path(own, "libraries.pth").write_text(libraries, encoding="utf-8")
    return ran(what, python, script, "quick")
