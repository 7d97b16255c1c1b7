"""Check a release as far as one machine can, and say what is left to the forge: `make release-check`.

    python tests/release_check.py              # all of it; --no-tests leaves out `make test`, which comes last
    python tests/release_check.py files dist   # the packages in a folder, with the stock checkers
    python tests/release_check.py quick        # the tests of `make quick`, against the package that is installed

It needs nothing but Python, except for the checkers, which are taken from the folder of the interpreter (`.venv-release`).
"""

import argparse
import json
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator
from pathlib import Path

from support.packages import DEVELOPMENT, ROOT, Row, build, checker, files, installed, ran, tested, version

WORKFLOWS = [str(path) for path in sorted((ROOT / ".github" / "workflows").glob("*.yml"))]
FORGE = """\
Only the forge can do the rest, with .github/workflows/release.yml and a tag:
  build the wheels of Linux on x86-64 and aarch64 in the manylinux container, each on a machine of its kind
  run the quick suite on both, on macOS and on Windows
  attest where the packages come from, and publish them after an approval
  make a release of the tag, which Zenodo archives (.zenodo.json)"""


# What Zenodo's documentation asks of the metadata of software, besides creators.
ARCHIVED = {
    "upload_type": "software",
    "publication_date": r"\d{4}-\d\d-\d\d",
    "title": r"\S.*",
    "description": r"\S.*",
    "access_right": "open",
    "license": r"[\w.+-]+",
}


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
    yield archived((ROOT / ".zenodo.json").read_text("utf-8"))
    yield linked((ROOT / "README.md").read_text("utf-8"), (ROOT / "pyproject.toml").read_text("utf-8"))
    yield ran("workflows: their schema", *schema, "vendor.github-workflows", *WORKFLOWS)
    yield ran("workflows: zizmor", checker("zizmor"), "--offline", "--no-progress", *WORKFLOWS)
    if shutil.which("actionlint"):
        yield ran("workflows: actionlint", "actionlint", *WORKFLOWS)
    else:
        yield Row("workflows: actionlint", None, "not installed here")


def archived(text: str) -> Row:
    """Whether Zenodo can take the metadata of a release."""
    held = json.loads(text)
    wrong = [
        name
        for name, form in ARCHIVED.items()
        if not isinstance(held.get(name), str) or not re.fullmatch(form, held[name], re.DOTALL)
    ]
    creators = [each.get("name") for each in held.get("creators", [])]
    wrong += (
        []
        if creators and all(isinstance(name, str) and name.strip() for name in creators)
        else ["creators"]
    )
    return Row(".zenodo.json: what Zenodo requires", not wrong, ", ".join(wrong))


def linked(readme: str, project: str) -> Row:
    """Whether the links of README hold on the page of the package, which knows no other files."""
    found = re.findall(r'(?:\]\(|(?:src|srcset|href)=")(?!https?:|#)', readme)
    addressed = "urls" in tomllib.loads(project)["project"]
    detail = f"{len(found)} are relative" + ("" if addressed else ": no address of the repository yet")
    return Row(
        "README.md: links of the package's page", not found or (False if addressed else None), detail
    )


def quick(options: list[str]) -> int:
    """Run the tests of `make quick`; doctests are those of the package that is installed, not of the tree."""
    import decoupled

    home = Path(decoupled.__file__).resolve()
    if home.is_relative_to(ROOT / "core/src"):
        print(f"{home}: is the tree; install a wheel first")
        return 2
    print(f"the quick suite, with {home.parent}", flush=True)
    makefile = (ROOT / "Makefile").read_text("utf-8").replace("\\\n", " ")
    names = re.findall(r"^QUICK := (.*)$", makefile, re.MULTILINE)[0].split()
    modules = [
        name.removeprefix("core/src/").removesuffix(".py").replace("/", ".")
        for name in names
        if name.startswith("core/src")
    ]
    tests = [name for name in names if not name.startswith("core/src")]
    command = [sys.executable, *["-m", "pytest", "-q", "--quick", "-p", "no:cacheprovider", "--pyargs"]]
    return subprocess.run([*command, *options, *tests, *modules], cwd=ROOT).returncode


def everything(*, tests: bool) -> Iterator[Row]:
    """All parts, the long ones last."""
    yield from tree()
    yield from metadata()
    with tempfile.TemporaryDirectory() as folder:
        parts = [Path(folder, name) for name in ("sdist", "installed", "tested")]
        for part in parts:
            part.mkdir()
        built = True
        for row in build(parts[0]):
            built = built and row.passed is not False
            yield row
        if built:
            yield from files(ROOT / "dist")
            yield from installed(parts[1])
            yield tested(parts[2], Path(__file__))
        else:
            yield Row("the packages", None, "not checked, because they could not be built")
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
    if sys.argv[1:2] == ["quick"]:  # what follows is for pytest
        return quick(sys.argv[2:])
    given = parser.parse_args()
    rows = []
    for row in files(given.folder) if given.part == "files" else everything(tests=not given.no_tests):
        print(row, flush=True)
        rows.append(row)
    failed = [row for row in rows if row.passed is False]
    print(
        f"\n{version()} on {platform.system()} {platform.machine()}: {len(rows)} checks, {len(failed)} failed"
    )
    print(*failed, *([] if given.part == "files" else [FORGE]), sep="\n")
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
