"""The notebooks, each executed once for all processes of a test run."""

import json
import runpy
from pathlib import Path
from typing import Any

import pytest

from support.once import made_once
from support.pages import ROOT

TOOL: dict[str, Any] = runpy.run_path(str(ROOT / "docs" / "tools" / "notebooks.py"))
NOTEBOOKS: list[Path] = TOOL["NOTEBOOKS"]


def executed(tmp_path_factory: pytest.TempPathFactory, path: Path) -> Path:
    """The file of a notebook with its outputs."""

    def run(folder: Path) -> str:
        folder.mkdir()
        (folder / path.name).write_text(json.dumps(TOOL["executed"](path)))
        return ""

    folder, _ = made_once(tmp_path_factory, f"notebook-{path.stem}", run)
    return folder / path.name
