"""A real LaTeX, for the tests that compile."""

import shutil
import subprocess
from pathlib import Path

import pytest

from decoupled_lab.report import latex


def compiled(path: Path, document: str) -> str:
    """The text of a document's PDF, with its layout; "" without pdftotext."""
    path.write_text(document, encoding="utf-8")
    made = latex.compile(path)
    assert made.read_bytes().startswith(b"%PDF")
    reader = shutil.which("pdftotext")
    if reader is None:
        return ""
    return subprocess.run([reader, "-layout", made, "-"], capture_output=True, text=True, check=True).stdout


def pdflatex_or_skip() -> str:
    """The body of a fixture: the path of pdflatex."""
    found = latex.found()
    if found is None:
        pytest.skip(f"no LaTeX here, so tables were NOT compiled: {latex.HINT}")
    return found
