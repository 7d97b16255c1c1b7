"""A policy is added as CONTRIBUTING.md says: its file, one line, its twin. Everything else follows."""

import os
import shutil
from pathlib import Path

import pytest

from support.pages import ROOT, blocks
from support.plain_python import ran

GUIDE = ROOT / "CONTRIBUTING.md"
# The files of the guide's policy, by the number of the block that shows them.
FILES = {
    0: "core/src/decoupled/policies/inverse_gap.py",
    2: "tests/support/twins/inverse_gap.py",
    3: "core/tests/policies/test_inverse_gap.py",
}
LIST = "core/src/decoupled/policies/__init__.pyi"
LINE = "from .inverse_gap import InverseGap as InverseGap"


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the package and its tests, in which a newcomer has followed the guide."""
    root = tmp_path_factory.mktemp("newcomer")
    for part in ("core", "tests", "docs/tools", "docs/data"):
        shutil.copytree(ROOT / part, root / part, ignore=shutil.ignore_patterns("lib"))  # bytecode stays
    for file in ("pyproject.toml", "conftest.py"):
        shutil.copy(ROOT / file, root)
    for number, file in FILES.items():
        (root / file).write_text(blocks(GUIDE, "python")[number].code)
    with (root / LIST).open("a") as names:
        names.write(f"{LINE}\n")
    return root


def run(copy: Path, *command: str) -> str:
    return ran(
        *command,
        cwd=copy,
        PYTHONPATH=os.pathsep.join((str(copy / "core/src"), os.environ.get("PYTHONPATH", ""))),
    )


def test_the_guide_names_these_places_and_a_new_name_is_exported_listed_and_documented(copy: Path) -> None:
    code = """
import runpy, decoupled as dc
from decoupled import policies
assert dc.InverseGap is policies.InverseGap and "InverseGap" in dir(dc)
assert dc.Policy.from_dict({"name": "InverseGap", "c": 0.5}) == dc.InverseGap(c=0.5)
page = runpy.run_path("docs/tools/lists.py")["on_page_markdown"]("<!-- list: policies -->")
assert "::: decoupled.InverseGap" in page.splitlines(), page
"""
    run(copy, "-c", code)
    text = GUIDE.read_text()
    assert len(FILES) == 3
    assert "## Adding a policy: three files and one line\n" in text
    assert f"`{LIST}`: `{LINE}`" in text
    assert f"`{FILES[2]}`" in text
    assert f"`{FILES[3]}`" in text
    assert not any((ROOT / file).exists() for file in FILES.values())


@pytest.mark.slow
def test_it_is_held_against_its_twin(copy: Path) -> None:
    wanted = (
        "type_and_an_example or InverseGap and (under_contract or laws_are_the_twins_at) or inverse_gap"
    )
    files = ("core/tests/test_public.py", "core/tests/policies/test_contract.py", FILES[3])
    out = run(copy, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-n0", *files, "-k", wanted)
    assert "5 passed" in out, "an example in its docstring, a twin, its laws, and the two tests of its file"
