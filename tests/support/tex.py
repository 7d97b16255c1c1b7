"""A real LaTeX, for the tests that compile."""

import shutil
import subprocess
from pathlib import Path

import pytest

PACKAGES = "booktabs, graphicx, longtable, siunitx"


def compiled(folder: Path, body: str, packages: str = PACKAGES) -> str:
    """The text of the PDF of an article, with its layout; "" without pdftotext."""
    lines = [rf"\documentclass[a4paper]{{article}}\usepackage{{{packages}}}", r"\begin{document}", body]
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


def pdflatex_or_skip() -> str:
    """The body of a fixture: the path of pdflatex."""
    program, finder = shutil.which("pdflatex"), shutil.which("kpsewhich")
    if program and finder and subprocess.run([finder, "siunitx.sty"], capture_output=True).returncode == 0:
        return program
    pytest.skip("no LaTeX here, so tables were NOT compiled: apt-get install texlive-science")
