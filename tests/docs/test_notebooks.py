"""The notebooks run from the top, draw what their page shows, and are kept without outputs."""

import json
import re
from pathlib import Path
from typing import Any

import nbformat
import numpy as np
import pytest
from PIL import Image

from support.notebooks import NOTEBOOKS, TOOL, executed
from support.pages import ROOT
from support.pictures import far_away

each_notebook = pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
# A cell that draws nothing would be noticed.
PICTURES = {"engineer": 6, "researcher": 7, "student": 6}


def read(path: Path) -> Any:
    return nbformat.read(path, as_version=4)  # type: ignore[no-untyped-call]


def source(path: Path, kind: str) -> str:
    return "\n".join(cell["source"] for cell in read(path)["cells"] if cell["cell_type"] == kind)


@each_notebook
def test_a_notebook_is_kept_in_one_form_without_outputs_and_its_links_lead_somewhere(path: Path) -> None:
    text = path.read_text()
    assert TOOL["canonical"](json.loads(text)) == text, "run: python docs/tools/notebooks.py"
    nbformat.validate(read(path))
    links = re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", source(path, "markdown"))
    assert links
    assert [link for link in links if not (path.parent / link).exists()] == []


@each_notebook
def test_a_notebook_runs_and_draws(path: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    drawn = 0
    for cell in read(executed(tmp_path_factory, path))["cells"]:
        if cell["cell_type"] == "markdown":
            continue
        assert cell["execution_count"], "was not run"
        for output in cell["outputs"]:
            assert output.get("name") != "stderr", output["text"]
            data = output.get("data", {})
            assert "image/png" in data or "Figure" not in data.get("text/plain", ""), "a picture not drawn"
        for _ in TOOL["pictures"](cell):
            drawn += 1
            assert len(cell["metadata"]["alt"]) > 30, "what the picture shows, in words"
    assert drawn == PICTURES[path.stem]


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
