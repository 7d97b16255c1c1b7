"""Documents in LaTeX, and their compilation."""

import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

from decoupled.errors import ParameterError, UnsupportedError

SECONDS = 120.0  # for one pass of pdflatex
HINT = "apt-get install texlive-latex-recommended texlive-science"
_START = r"""\documentclass[a4paper]{article}
\usepackage{amsmath, booktabs, graphicx, longtable, siunitx}
\usepackage[hidelinks]{hyperref}
\addtolength{\textwidth}{3cm} \addtolength{\oddsidemargin}{-1.5cm}
\addtolength{\textheight}{2cm} \addtolength{\topmargin}{-1cm}
"""


def document(body: str) -> str:
    r"""A complete article around a body in LaTeX, which stock pdflatex compiles.

    >>> document("Hello.").splitlines()[-3:]
    ['\\begin{document}', 'Hello.', '\\end{document}']
    """
    return "\n".join([_START.rstrip(), r"\begin{document}", body.strip(), r"\end{document}"]) + "\n"


def found() -> str | None:
    """The path of pdflatex; None if there is none, or if it lacks siunitx."""
    program, finder = shutil.which("pdflatex"), shutil.which("kpsewhich")
    if program is None or finder is None:
        return None
    known = subprocess.run([finder, "siunitx.sty"], stdout=subprocess.DEVNULL, check=False)
    return program if known.returncode == 0 else None


def compile(path: str | os.PathLike[str]) -> Path:  # noqa: A001 # used as latex.compile
    """Compile a document with pdflatex, twice for its references; return the PDF, which lies beside it.

    Args:
        path: the document; its figures are found from its folder.

    Raises:
        UnsupportedError: if there is no LaTeX.
        ParameterError: if LaTeX finds a fault in the document; the message has the first.
    """
    program, source = found(), Path(path).resolve()
    if program is None:
        raise UnsupportedError(f"compile(): needs pdflatex with siunitx, which is not here; {HINT}")
    # Otherwise lines of the log are cut, and the PDF has the time in it.
    environment = {"SOURCE_DATE_EPOCH": "0"} | dict(os.environ) | {"max_print_line": "1000"}
    with tempfile.TemporaryDirectory() as folder:
        command = [program, "-interaction=nonstopmode", "-halt-on-error", "-no-shell-escape"]
        command += [f"-output-directory={folder}", source.name]
        for _ in range(2):
            done = subprocess.run(
                command,
                cwd=source.parent,
                env=environment,
                capture_output=True,
                timeout=SECONDS,
                check=False,
            )
            if done.returncode:
                rule = f"pdflatex stopped: {_first_error(done.stdout.decode(errors='replace'))}"
                raise ParameterError.of("path", str(path), rule, "correct the document")
        made = Path(folder) / source.with_suffix(".pdf").name
        return Path(shutil.copyfile(made, source.with_suffix(".pdf")))


def _first_error(log: str) -> str:
    """The first error of a log and the line where it is."""
    found = re.search(r"^! (.*)$", log, re.MULTILINE)
    if found is None:
        return log.strip()[-500:]
    line = re.search(r"^l\.(\d+)", log[found.end() :], re.MULTILINE)
    return found[1] + (f" (line {line[1]})" if line else "")
