"""A real LaTeX, for the tests that compile."""

import shutil
import subprocess
from pathlib import Path

import pytest

PACKAGES = "booktabs, graphicx, longtable, siunitx"


def compiled(folder: Path, body: str, packages: str = PACKAGES) -> str:
    """The text of the PDF of an article, with its layout; "" without pdftotext."""
    lines = [
        rf"\documentclass[a4paper]{{article}}\usepackage{{{packages}}}",
        r"\begin{document}",
        body,
    ]
    (folder / "article.tex").write_text("\n".join([*lines, r"\end{document}"]), encoding="utf-8")
    command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "article.tex"]
    for _ in range(2):  # a long table needs a second pass
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout[-2000:]
    reader = shutil.which("pdftotext")
    if reader is None:
        return ""
    page = [reader, "-layout", str(folder / "article.pdf"), "-"]
    return subprocess.run(page, capture_output=True, text=True, check=True).stdout


def latex_has(file: str) -> bool:
    """Whether there is a LaTeX that finds this file of a package."""
    finder = shutil.which("kpsewhich")
    return (
        finder is not None and subprocess.run([finder, file], capture_output=True).returncode == 0
    )


def pdflatex_or_skip() -> str:
    """The body of a fixture: the path of pdflatex."""
    program = shutil.which("pdflatex")
    if program and latex_has("siunitx.sty"):
        return program
    pytest.skip("no LaTeX here, so tables were NOT compiled: apt-get install texlive-science")
