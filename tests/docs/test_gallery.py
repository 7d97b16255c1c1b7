"""The programs of the gallery run, draw the committed pictures and use public names only; the pages show all of them."""

import ast
import os
import runpy
import sys
from typing import Any

import pytest

from support.pages import ROOT
from support.pictures import assert_shows
from support.plain_python import ran

SCRIPT: dict[str, Any] = runpy.run_path(str(ROOT / "docs" / "tools" / "gallery.py"))
GALLERY = ROOT / "docs" / "gallery"
EXAMPLES = {each.name: each for each in SCRIPT["examples"]()}
AGAIN = "run: python docs/tools/gallery.py"


def redraw(name: str) -> None:
    """Run a program, and check that the committed pictures show its figure."""
    with SCRIPT["drawn"](EXAMPLES[name].program) as figure:
        for file in (f"{name}.png", f"thumbs/{name}.png"):
            assert_shows(GALLERY / "figures" / file, figure, AGAIN)


@pytest.mark.parametrize("name", EXAMPLES)
def test_a_program_draws_its_committed_picture(name: str) -> None:
    if "\nclass " in EXAMPLES[name].program.read_text():
        # A policy is registered by name, which would disturb other tests, so it gets its own process.
        paths = os.pathsep.join((str(ROOT / "tests"), os.environ.get("PYTHONPATH", "")))
        ran("-W", "error", __file__, name, PYTHONPATH=paths)
    else:
        redraw(name)


def test_programs_pictures_and_the_page_are_those_of_the_contents() -> None:
    assert len(EXAMPLES) >= 12
    assert {each.stem for each in GALLERY.glob("*.py")} == set(EXAMPLES)
    for folder in (GALLERY / "figures", GALLERY / "figures" / "thumbs"):
        assert {each.stem for each in folder.glob("*.png")} == set(EXAMPLES)
    assert (GALLERY / "index.md").read_text() == SCRIPT["index_page"](), AGAIN


@pytest.mark.parametrize("example", EXAMPLES.values(), ids=list(EXAMPLES))
def test_a_program_uses_public_names_only(example: Any) -> None:
    code = example.program.read_text().splitlines()[example.first_line - 1 :]
    tree = ast.parse("\n".join(code))
    imported = {each.name for node in ast.walk(tree) if isinstance(node, ast.Import) for each in node.names}
    imported |= {str(node.module) for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    ours = {each for each in imported if each.startswith("decoupled")}
    assert ours <= {"decoupled", "decoupled.extend", "decoupled_lab"}
    assert not [each for each in ast.walk(tree) if isinstance(each, ast.Attribute) and each.attr[0] == "_"]


if __name__ == "__main__":
    redraw(sys.argv[1])
