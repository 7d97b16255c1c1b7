"""Check a release as far as one machine can, and say what is left to the forge: `make release-check`.

    python tests/release_check.py              # all of it; --no-tests leaves out `make test`, which comes last
    python tests/release_check.py files dist   # the packages in a folder, with the stock checkers
    python tests/release_check.py quick        # the tests of `make quick`, against the package that is installed

It needs nothing but Python, except for the checkers, which are taken from the folder of the interpreter (`.venv-release`).
"""

import argparse
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

ROOT = Path(__file__).parents[1]
WORKFLOWS = [str(path) for path in sorted((ROOT / ".github" / "workflows").glob("*.yml"))]
DEVELOPMENT, BUILDING = (ROOT / name / "bin" / "python" for name in (".venv", ".venv-wheel"))
# The rating of a package with neither an address nor an author with one, and nothing else to find fault with.
LOWEST_RATING = "8"
DECIDE = "import decoupled as dc; print(dc.__version__, dc.FTPL().start(arms=3, seed=7).decide())"
FORGE = """\
Only the forge can do the rest, with .github/workflows/release.yml and a tag:
  build the wheels of Linux on x86-64 and aarch64 in the manylinux container, each on a machine of its kind
  run the quick suite on both, on macOS and on Windows
  attest where the packages come from, and publish them after an approval
  archive the tag (.zenodo.json)"""


class Row(NamedTuple):
    """One line of the table."""

    what: str
    passed: bool | None  # None: it could not be done here
    detail: str = ""

    def __str__(self) -> str:
        mark = {True: "passed", False: "FAILED", None: "not done"}[self.passed]
        return f"{mark:<9} {self.what:<52} {self.detail}".rstrip()


def ran(
    what: str,
    *command: str | Path,
    cwd: Path = ROOT,
    env: Mapping[str, str] | None = None,
    shows: str = r"(.*\S)\s*\Z",
) -> Row:
    """Run a command. Its status decides, and what the pattern finds in its output is shown; all of it after a failure."""
    words = [str(word) for word in command]
    environment = {**os.environ, "NO_COLOR": "1", **(env or {})}
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
    return Row(what, True, found[-1].strip()[:100] if found else "")


def checker(name: str) -> Path:
    """The program of a checker."""
    return Path(sys.executable).with_name(name)


def version() -> str:
    """The version of the package in the tree."""
    [found] = re.findall(
        r'^__version__ = "(.*)"$', (ROOT / "src/decoupled/__init__.py").read_text("utf-8"), re.M
    )
    return str(found)


def tree() -> Iterator[Row]:
    """Nothing is left to commit, and all places name one version."""
    asked = ("git", "status", "--porcelain"), ("git", "tag", "--points-at", "HEAD", "v*")
    changed, tags = (subprocess.check_output(each, cwd=ROOT, text=True).split("\n")[:-1] for each in asked)
    yield Row("the tree is clean", not changed, "; ".join(changed[:3]))
    wanted = f"v{version()}"
    if ".dev" in wanted:
        yield Row("the version is a release", False, wanted)
    elif tags:
        yield Row("the tag is the version", tags == [wanted], ", ".join(tags))
    else:
        yield Row("the tag is the version", None, f"no tag here yet; in the end: git tag -s {wanted}")
    yield ran(
        "one version and date everywhere",
        *(DEVELOPMENT, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/docs/test_project.py"),
    )


def metadata() -> Iterator[Row]:
    """The files that say what the project is, and the workflows."""
    schema = (checker("check-jsonschema"), "--builtin-schema")
    yield ran("pyproject.toml: validate-pyproject", checker("validate-pyproject"), "pyproject.toml")
    yield ran("CITATION.cff: its schema", *schema, "vendor.citation-file-format", "CITATION.cff")
    yield ran("workflows: their schema", *schema, "vendor.github-workflows", *WORKFLOWS)
    yield ran("workflows: zizmor", checker("zizmor"), "--offline", "--no-progress", *WORKFLOWS)
    if shutil.which("actionlint"):
        yield ran("workflows: actionlint", "actionlint", *WORKFLOWS)
    else:
        yield Row("workflows: actionlint", None, "not installed here; the workflow `release` runs it")


def build(folder: Path) -> Iterator[Row]:
    """The packages in dist/, and again from the sdist."""
    yield ran("make build", "make", "build", shows=r"(\S+\.whl)")
    off, hatch = {"DECOUPLED_NATIVE": "off"}, (BUILDING, "-m", "hatchling", "build", "-t", "wheel")
    yield ran("the wheel without machine code", *hatch, env=off, shows=r"(\S+\.whl)")
    [sdist] = (ROOT / "dist").glob("*.tar.gz")
    shutil.unpack_archive(sdist, folder, filter="data")
    [unpacked] = folder.iterdir()
    yield ran("the wheel from the sdist", *hatch, "-d", folder, cwd=unpacked, shows=r"([^/\s]+\.whl)")
    for wheel in folder.glob("*.whl"):
        yield same(ROOT / "dist" / wheel.name, wheel)


def same(one: Path, other: Path) -> Row:
    """Whether two wheels have the same files."""
    held = [contents(one), contents(other)] if one.exists() else [{}, contents(other)]
    different = sorted(
        name for name in held[0].keys() | held[1].keys() if held[0].get(name) != held[1].get(name)
    )
    detail = f"{len(held[1])} files, to the bit" if not different else ", ".join(different[:5])
    return Row("it has the files of the wheel from the tree", not different, detail)


def contents(wheel: Path) -> dict[str, str]:
    """The digest of every file of a wheel."""
    with zipfile.ZipFile(wheel) as held:
        return {name: hashlib.sha256(held.read(name)).hexdigest() for name in held.namelist()}


def files(dist: Path) -> Iterator[Row]:
    """The stock checkers."""
    found, wheels = sorted(dist.iterdir()), sorted(dist.glob("*.whl"))
    yield ran(
        "twine check --strict", checker("twine"), "check", "--strict", *found, shows=r"Checking \S+: (\w+)"
    )
    yield ran("check-wheel-contents", checker("check-wheel-contents"), *wheels)
    for sdist in dist.glob("*.tar.gz"):
        yield ran("pyroma", checker("pyroma"), "--min", LOWEST_RATING, sdist, shows=r"(Final rating: .*)")
    for wheel in dist.glob("*-manylinux*.whl"):
        yield from machine_code(wheel)


def machine_code(wheel: Path) -> Iterator[Row]:
    """What the machine code of a wheel needs of the system, and of Python."""
    said = subprocess.run([checker("auditwheel"), "show", wheel], capture_output=True, text=True).stdout
    needed = [int(minor) for minor in re.findall(r"GLIBC_2\.(\d+)", said)]
    [tag] = re.findall(r"-manylinux_2_(\d+)_", wheel.name)
    detail = f"needs glibc 2.{max(needed, default=0)}, and the tag says 2.{tag}"
    yield Row("auditwheel show", 0 < max(needed, default=0) <= int(tag), detail)
    with tempfile.TemporaryDirectory() as folder, zipfile.ZipFile(wheel) as held:
        modules = [held.extract(name, folder) for name in held.namelist() if name.endswith(".abi3.so")]
        audit = (checker("abi3audit"), "--strict", "--summary", "--assume-minimum-abi3", "3.11")
        yield ran("abi3audit", *audit, *modules, shows=r"\d+ extensions? scanned.*")


def installed(folder: Path) -> Iterator[Row]:
    """Each package in a fresh environment, used from an empty folder. All decide alike."""
    ends = ("-manylinux*.whl", "-any.whl", ".tar.gz")
    [native], [pure], [sdist] = ((ROOT / "dist").glob(f"*{end}") for end in ends)
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


def tested(folder: Path) -> Iterator[Row]:
    """The quick suite against the installed wheel; the libraries that it needs are those of .venv."""
    [wheel] = (ROOT / "dist").glob("*-manylinux*.whl")
    where = "import sysconfig; print(sysconfig.get_path('purelib'))"
    python = folder / "venv" / "bin" / "python"
    what = "the quick suite, with the wheel"
    yield ran(f"{what}: installed", DEVELOPMENT, "-m", "venv", python.parents[1])
    ran(what, python, "-m", "pip", "install", "--quiet", "--no-deps", wheel)
    libraries, own = (
        subprocess.check_output([each, "-c", where], text=True).strip() for each in (DEVELOPMENT, python)
    )
    Path(own, "libraries.pth").write_text(libraries, encoding="utf-8")
    yield ran(what, python, __file__, "quick")


def quick(options: list[str]) -> int:
    """Run the tests of `make quick`; doctests are those of the package that is installed, not of the tree."""
    import decoupled

    home = Path(decoupled.__file__).resolve()
    if home.is_relative_to(ROOT / "src"):
        print(f"{home}: is the tree; install a wheel first")
        return 2
    print(f"the quick suite, with {home.parent}", flush=True)
    makefile = (ROOT / "Makefile").read_text("utf-8").replace("\\\n", " ")
    names = re.findall(r"^QUICK := (.*)$", makefile, re.MULTILINE)[0].split()
    modules = [
        name.removeprefix("src/").removesuffix(".py").replace("/", ".")
        for name in names
        if name[:3] == "src"
    ]
    tests = [name for name in names if name[:3] != "src"]
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "--quick",
        "-p",
        "no:cacheprovider",
        *options,
        "--pyargs",
    ]
    return subprocess.run([*command, *tests, *modules], cwd=ROOT).returncode


def everything(*, tests: bool) -> Iterator[Row]:
    """All parts, the long ones last."""
    yield from tree()
    yield from metadata()
    with tempfile.TemporaryDirectory() as folder:
        parts = [Path(folder, name) for name in ("sdist", "installed", "tested")]
        for part in parts:
            part.mkdir()
        yield from build(parts[0])
        yield from files(ROOT / "dist")
        yield from installed(parts[1])
        yield from tested(parts[2])
    if tests:
        yield ran("make test, on this kind of machine", "make", "test", shows=r"\d+ passed.*")
    else:
        yield Row("make test, on this kind of machine", None, "left out by --no-tests")


def main() -> int:
    """Run what is asked for, and print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("part", nargs="?", choices=("all", "files", "quick"), default="all")
    parser.add_argument("folder", nargs="?", type=Path, default=ROOT / "dist")
    parser.add_argument("--no-tests", action="store_true", help="leave out `make test`")
    given, others = parser.parse_known_args()
    if given.part == "quick":
        return quick(others)
    rows = []
    for row in files(given.folder) if given.part == "files" else everything(tests=not given.no_tests):
        print(row, flush=True)
        rows.append(row)
    failed = [row for row in rows if row.passed is False]
    print(
        f"\n{version()} on {os.uname().sysname} {os.uname().machine}: {len(rows)} checks, {len(failed)} failed"
    )
    print(*failed, *([] if given.part == "files" else [FORGE]), sep="\n")
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
