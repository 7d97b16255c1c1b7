r"""Writes the tables and figures of a report for LaTeX: files to \input, and a document that holds them all."""

import re
from collections.abc import Sequence
from pathlib import Path

from .. import __version__
from ..base.files import write_atomically
from ..plots import Picture
from .claims import Claim
from .latex import Column, Markup, Table, document, escape, prose
from .page import formatted, needed_runs
from .section import ReportTable, Section

TABLE_FILE, CLAIMS_TABLE_FILE, DOCUMENT_FILE = "table.tex", "claims.tex", "report.tex"
_PAGE = 40  # rows; a table with more may break over pages


def write_latex(folder: Path, title: str, sections: Sequence[Section]) -> Path:
    """Write a table for each section and one of all claims, and a document with them and the figures; return its path."""
    claims = [claim for section in sections for claim in section.claims]
    body = []
    if claims:
        write_atomically(folder / CLAIMS_TABLE_FILE, claims_table(claims).to_latex())
        body += [r"\section{Claims}", rf"\input{{{CLAIMS_TABLE_FILE}}}", r"\clearpage"]
    for section in sections:
        tables = [
            table_of(section, table, number).to_latex() for number, table in enumerate(section.tables, 1)
        ]
        body += [rf"\section{{{escape(section.title)}}}"]
        body += [rf"\textbf{{{escape(warning)}}}" for warning in section.warnings]
        if tables:
            write_atomically(folder / section.name / TABLE_FILE, "\n".join(tables))
            body += [rf"\input{{{section.name}/{TABLE_FILE}}}"]
        body += [*(_figure(section, picture) for picture in section.pictures), r"\clearpage"]
    write_atomically(folder / DOCUMENT_FILE, document("\n".join(body), title))
    return folder / DOCUMENT_FILE


def claims_table(claims: Sequence[Claim]) -> Table:
    r"""The verdicts on claims, each with the measurement that decides it.

    >>> print(claims_table([Claim("a", "Section 4", "It is of order $K^2$.", "", "", (), "holds")]).rows[0][1])
    It is of order $K^2$. \emph{Section 4}
    """
    widths = {"Verdict": 0.14, "Claim": 0.46, "Measured": 0.3}
    columns = [Column(head, "l", width=width) for head, width in widths.items()]
    rows = [
        [
            claim.verdict,
            Markup(rf"{prose(claim.statement)} \emph{{{prose(claim.place)}}}"),
            _measured(claim),
        ]
        for claim in claims
    ]
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
        columns = [Column(prose(head), "r" if place else "l") for place, head in enumerate(table.head)]
        rows = [[prose(_minus(cell)) if cell else None for cell in row] for row in table.rows]
        extent = f" {section.extent}" if section.extent else ""
        caption = f"{section.title}. {table.title}.{extent} Made with decoupled {__version__}."
        found = Table(columns, rows, prose(caption), label)
    return found._replace(long=len(found.rows) > _PAGE)


def _measured(claim: Claim) -> str | None:
    """The decisive measurement in words; None if the claim could not be judged."""
    if not claim.judged or not claim.parts:
        return None
    worst = claim.parts[0]
    words = f"{_minus(formatted(worst))}, claimed: {_minus(claim.threshold)}; {worst.of}"
    return prose("; ".join(filter(None, (words, needed_runs(claim)))))


def _minus(text: str) -> str:
    """A text with the sign before negative numbers, where a hyphen stood."""
    return re.sub(r"(?<![\w).])-(?=\d)", "\u2212", text)


def _figure(section: Section, picture: Picture) -> str:
    width = 0.75 if len(picture.panels) == 1 else 1.0
    options = rf"width = {width:g}\linewidth, height = 0.8\textheight, keepaspectratio"
    caption = " ".join(filter(None, (f"{picture.title}.", picture.caption)))
    lines = [
        r"\begin{figure}[htbp]",
        r"\centering",
        rf"\includegraphics[{options}]{{{section.name}/{picture.name}.pdf}}",
        rf"\caption{{{prose(caption)}}}\label{{fig:{picture.name}}}",
        r"\end{figure}",
    ]
    return "\n".join(lines)
