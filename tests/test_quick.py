"""What `make quick` runs, that what the Makefile and the workflows name exists, and that a policy is added as CONTRIBUTING.md says."""

import os
import re
import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import decoupled as dc
from support.pages import ROOT, blocks
from support.plain_python import ran
from support.quick import SETS, sample


def item(name: str, parameter: object = None, *, slow: bool = False) -> Any:
    called = {} if parameter is None else {"callspec": SimpleNamespace(params={"one": parameter})}
    nodeid = f"{name}[{parameter!r}]"
    return SimpleNamespace(nodeid=nodeid, get_closest_marker=lambda kind: slow or None, **called)


def test_a_sample_has_one_policy_for_each_law_a_few_sets_of_parameters_and_nothing_slow() -> None:
    policies = [dc.FTPL(), dc.FTPL(c=1.0), dc.FTPL(ranking="strata"), dc.Exp3(), dc.Exp3(c=1.0)]
    laws = [item("laws", policy) for policy in policies]
    sets = [item("sets", number) for number in range(100)]
    rest = [item("plain"), item("slow", slow=True)]
    assert sample([*laws, *sets, *rest]) == [
        laws[0],
        laws[2],
        laws[3],
        *sets[:: 100 // SETS],
        rest[0],
    ]


@pytest.mark.parametrize(
    "file", ["Makefile", ".github/workflows/ci.yml", ".github/workflows/release.yml"]
)
def test_what_make_and_the_workflows_name_exists(file: str) -> None:
    paths = set(
        re.findall(
            r"(?<![\w./$-])(?:core|serve|lab|tests|examples|clients)/[\w./-]*\w",
            (ROOT / file).read_text(),
        )
    )
    built = [path for path in paths if "native/lib" in path]
    assert [path for path in sorted(paths - {*built}) if not (ROOT / path).exists()] == []


GUIDE = ROOT / "CONTRIBUTING.md"
# The files of the guide's policy, by the number of the block that shows them.
PLACES = {
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
        shutil.copytree(
            ROOT / part, root / part, ignore=shutil.ignore_patterns("lib")
        )  # bytecode stays
    for file in ("pyproject.toml", "conftest.py"):
        shutil.copy(ROOT / file, root)
    for number, file in PLACES.items():
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


def test_the_guide_names_these_places_and_a_new_name_is_exported_listed_and_documented(
    copy: Path,
) -> None:
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
    assert len(PLACES) == 3
    assert "## Adding a policy: one file and one line\n" in text
    assert f"`{LIST}`: `{LINE}`" in text
    assert f"`{PLACES[2]}`" in text
    assert f"`{PLACES[3]}`" in text
    assert not any((ROOT / file).exists() for file in PLACES.values())


@pytest.mark.slow
def test_it_is_held_against_its_twin(copy: Path) -> None:
    wanted = "type_and_an_example or InverseGap and (under_contract or laws_are_the_twins_at) or inverse_gap"
    files = ("core/tests/test_public.py", "core/tests/policies/test_contract.py", PLACES[3])
    out = run(copy, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-n0", *files, "-k", wanted)
    assert "5 passed" in out, (
        "an example in its docstring, a twin, its laws, and the two tests of its file"
    )
