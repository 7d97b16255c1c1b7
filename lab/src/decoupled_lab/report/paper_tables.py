r"""Writes the tables and figures of a report for LaTeX: files to \input, and a document that holds them all."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from decoupled import __version__
from decoupled.base import write_atomically
from decoupled.base.latex import Column, Markup, Table
from decoupled.plots import Picture

from .claims import Claim
from .document import Block, Document, Drawing, Heading, Included, Notice
from .document.latex import inline, to_latex
from .page import decisive
from .section import ReportTable, Section

TABLE_FILE, CLAIMS_TABLE_FILE, DOCUMENT_FILE = "table.tex", "claims.tex", "report.tex"
_PAGE = 40  # rows; a table with more may break over pages


def write_latex(folder: Path, title: str, sections: Sequence[Section]) -> Path:
    """Write a table for each section and one of all claims, and a document with them and the figures; return its path."""
    claims = [claim for section in sections for claim in section.claims]
    blocks: list[Block] = []
    if claims:
        write_atomically(folder / CLAIMS_TABLE_FILE, claims_table(claims).to_latex())
        blocks += [Heading("Claims"), Included(CLAIMS_TABLE_FILE)]
    for section in sections:
        blocks += [Heading(section.title), *map(Notice, section.warnings)]
        blocks += drawings(section, section.pictures)
        if section.tables:
            path = f"{section.name}/{TABLE_FILE}"
            tables = [table_of(section, each, at).to_latex() for at, each in enumerate(section.tables, 1)]
            write_atomically(folder / path, "\n".join(tables))
            blocks.append(Included(path))
    write_atomically(folder / DOCUMENT_FILE, to_latex(Document(title, "", "", "", tuple(blocks))))
    return folder / DOCUMENT_FILE


def drawings(section: Section, pictures: Sequence[Picture]) -> Iterator[Drawing]:
    """Figures of a section."""
    for picture in pictures:
        width = 0.55 if picture.columns == 1 else 1.0
        yield Drawing(f"{section.name}/{picture.name}", picture.title, picture.caption, width)


def claims_table(claims: Sequence[Claim]) -> Table:
    r"""The verdicts on claims, each with the measurement that decides it.

    >>> print(claims_table([Claim("a", "Section 4", "It is of order $K^2$.", "", "", (), "holds")]).rows[0][1])
    It is of order $K^2$. \emph{Section 4}
    """
    widths = {"Verdict": 0.14, "Claim": 0.46, "Measured": 0.3}
    columns = [Column(head, "l", width=width) for head, width in widths.items()]
    rows = [
        [each.verdict, Markup(rf"{inline(each.statement)} \emph{{{inline(each.place)}}}"), inline(decisive(each)) or None]
        for each in claims
    ]  # fmt: skip
    caption = (
        "Verdicts on the claims. A claim holds if all of its 95 % intervals lie on its side of the threshold, which hold "
        "jointly (Bonferroni). It fails if one lies entirely on the other side; otherwise it is undecided. The measurement "
        f"is the one that is closest to the threshold, with its interval. Made with decoupled {__version__}."
    )
    return Table(columns, rows, caption, "tab:claims", long=True)


def table_of(section: Section, table: ReportTable, number: int) -> Table:
    """A table of a section for a paper; its caption begins with the section's title."""
    label = f"tab:{section.name}" + (f"-{number}" if number > 1 else "")
    if table.latex is not None:
        found = table.latex._replace(caption=f"{section.title}. {table.latex.caption}", label=label)
    else:
        columns = [Column(inline(head), "r" if place else "l") for place, head in enumerate(table.head)]
        rows = [[inline(cell) if cell else None for cell in row] for row in table.rows]
        extent = f" {section.extent}" if section.extent else ""
        caption = f"{section.title}. {table.title}.{extent} Made with decoupled {__version__}."
        found = Table(columns, rows, inline(caption), label)
    return found._replace(long=len(found.rows) > _PAGE)
