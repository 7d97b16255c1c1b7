"""The notebooks run from the top, draw what their page shows, and are kept without outputs."""

import io
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import nbformat
import numpy as np
import pytest
from nbclient.exceptions import CellExecutionError
from PIL import Image

from support.notebooks import NOTEBOOKS, TOOL, executed
from support.pages import ROOT
from support.phone import PAGE
from support.pictures import far_away

each_notebook = pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
DOTS = 200  # per inch, of a notebook's pictures: twice that of `figure.dpi` in the style
SMALLEST = 9.0  # points, of the style's text; and pixels, on a phone
# At least as many pictures as sections, and the number of them now: a cell that draws nothing would be noticed.
PICTURES = {"engineer": 6, "researcher": 7, "student": 6}


def read(path: Path) -> Any:
    return nbformat.read(path, as_version=4)  # type: ignore[no-untyped-call]


def source(path: Path, kind: str) -> str:
    return "\n".join(cell["source"] for cell in read(path)["cells"] if cell["cell_type"] == kind)


def test_there_is_a_notebook_for_each_kind_of_reader() -> None:
    assert [path.stem for path in NOTEBOOKS] == sorted(PICTURES)


@each_notebook
def test_a_notebook_is_kept_in_one_form_without_outputs(path: Path) -> None:
    text = path.read_text()
    assert TOOL["canonical"](json.loads(text)) == text, "run: python docs/tools/notebooks.py"
    nbformat.validate(read(path))
    assert 12 <= len(read(path)["cells"]) <= 25


@each_notebook
def test_a_notebook_runs_and_every_section_draws(
    path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    notebook = read(executed(tmp_path_factory, path))
    drawn = 0
    section, in_section = "", 0
    for cell in notebook["cells"]:
        if cell["cell_type"] == "markdown":
            heading = re.match(r"## (.*)", cell["source"])
            if heading:
                assert in_section or not section, f"{section}: no picture"
                section, in_section = heading[1], 0
            continue
        assert cell["execution_count"], "was not run"
        for output in cell["outputs"]:
            assert output.get("name") != "stderr", output["text"]
            data = output.get("data", {})
            assert "image/png" in data or "Figure" not in data.get("text/plain", ""), "a picture not drawn"
        for picture in TOOL["pictures"](cell):
            drawn, in_section = drawn + 1, in_section + 1
            width = Image.open(io.BytesIO(picture)).width / DOTS
            assert SMALLEST / 72.0 * PAGE / width >= SMALLEST, "text too small for a phone"
            assert len(cell["metadata"]["alt"]) > 30, "what the picture shows, in words"
    assert in_section, f"{section}: no picture"
    assert drawn == PICTURES[path.stem]


@each_notebook
def test_every_section_ends_with_something_to_try(path: Path) -> None:
    cells = read(path)["cells"]
    starts = [number for number, cell in enumerate(cells) if cell["source"].startswith("## ")]
    assert len(starts) >= 5
    for end in [*starts[1:], len(cells)]:
        last = cells[end - 1]
        assert last["cell_type"] == "markdown"
        assert re.search(r"^\*\*(Try it|A question)\.\*\*", last["source"], re.MULTILINE), last["source"]


@each_notebook
def test_no_text_of_a_picture_is_smaller_than_the_style(path: Path) -> None:
    code = source(path, "code")
    assert 'plt.style.use("decoupled.plots")' in code
    assert "fontsize" not in code
    assert "labelsize" not in code
    widths = re.findall(r"figsize=\(([\d.]+),", code)
    assert all(float(width) <= 4.8 for width in widths)


@each_notebook
def test_links_of_a_notebook_lead_somewhere(path: Path) -> None:
    links = re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", source(path, "markdown"))
    assert links
    assert [link for link in links if not (path.parent / link).exists()] == []


@each_notebook
def test_the_committed_picture_is_the_one_that_the_notebook_draws(
    path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    file = ROOT / "docs" / "figures" / f"notebook-{path.stem}.png"
    drawn = TOOL["cover"](read(executed(tmp_path_factory, path)))
    with Image.open(file) as kept:
        assert kept.size == drawn.size
        difference = np.abs(far_away(kept) - far_away(drawn)).max()
    assert difference < 0.15, "run: python docs/tools/notebooks.py --pictures"
    assert file.stat().st_size < 250_000


def test_a_notebook_starts_in_an_empty_folder_and_an_error_in_it_is_raised(tmp_path: Path) -> None:
    cells = [
        {"cell_type": "code", "source": "import os\nassert os.listdir() == []", "metadata": {}},
        {"cell_type": "code", "source": "raise RuntimeError('broken cell')", "metadata": {}},
    ]
    file = tmp_path / "broken.ipynb"
    file.write_text(TOOL["canonical"]({"cells": cells}))
    with pytest.raises(CellExecutionError, match="broken cell"):
        TOOL["executed"](file)


def test_format_and_lint_cover_the_notebooks() -> None:
    command = [sys.executable, "-m", "ruff", "check", "--show-files", "."]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert [path for path in NOTEBOOKS if str(path) not in done.stdout] == []
