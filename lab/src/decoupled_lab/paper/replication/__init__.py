"""A replication report: what a run found about the paper, as a short document in Markdown and LaTeX."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from decoupled.base import write_atomically

from ...report import latex
from ...report.document.latex import to_latex
from ...report.document.markdown import to_markdown
from ...report.section import Section
from .contents import replication

NAME = "replication"


class Written(NamedTuple):
    """The files of a replication report; `pdf` is None where there is no LaTeX."""

    markdown: Path
    tex: Path
    pdf: Path | None


def write_replication(folder: Path, record: dict[str, Any], sections: Sequence[Section]) -> Written:
    """Write the replication report beside the results and figures that it shows."""
    document = replication(record, sections)
    markdown, tex = folder / f"{NAME}.md", folder / f"{NAME}.tex"
    write_atomically(markdown, to_markdown(document))
    write_atomically(tex, to_latex(document))
    if latex.found() is None:
        (folder / f"{NAME}.pdf").unlink(missing_ok=True)  # it would be that of other results
        return Written(markdown, tex, None)
    return Written(markdown, tex, latex.compile(tex))
