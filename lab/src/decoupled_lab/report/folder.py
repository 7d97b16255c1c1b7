"""Writes the folder of a report: claims.json, report.html, every figure with its data, and tables for LaTeX."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from decoupled import __version__
from decoupled.base.files import write_atomically
from decoupled.plots import save_static

from .claims import Claim
from .page import build_page, decisive
from .section import ReportTable, Section
from .tables import latex_table

CLAIMS_FILE = "claims.json"
PAGE_FILE = "report.html"
TABLE_FILE, CLAIMS_TABLE_FILE = "table.tex", "claims.tex"


def write_report(
    folder: Path,
    title: str,
    lead: str,
    facts: Mapping[str, str],
    sections: Sequence[Section],
    *,
    latex: bool = False,
) -> Path:
    """Write the report; return the path of the page."""
    for section in sections:
        for picture in section.pictures:
            save_static(picture, folder / section.name)
    claims = [claim.to_dict() for section in sections for claim in section.claims]
    write_atomically(folder / CLAIMS_FILE, json.dumps(claims, indent=1, allow_nan=False) + "\n")
    write_atomically(folder / PAGE_FILE, build_page(title, lead, facts, sections))
    if latex:
        write_latex(folder, sections)
    return folder / PAGE_FILE


def write_latex(folder: Path, sections: Sequence[Section]) -> None:
    """Write a file with the tables of each section, and one with a table of all claims."""
    claims = [claim for section in sections for claim in section.claims]
    if claims:
        write_atomically(folder / CLAIMS_TABLE_FILE, claims_table(claims))
    for section in sections:
        if section.tables:
            tables = [table_of(section, each, at) for at, each in enumerate(section.tables, 1)]
            write_atomically(folder / section.name / TABLE_FILE, "\n".join(tables))


def claims_table(claims: Sequence[Claim]) -> str:
    """The verdicts on claims, each with the measurement that decides it."""
    rows = [(each.verdict, f"{each.statement} ({each.place})", decisive(each)) for each in claims]
    caption = (
        "Verdicts on the claims. A claim holds if all of its 95 % intervals lie on its side of the threshold, which hold "
        "jointly (Bonferroni). It fails if one lies entirely on the other side; otherwise it is undecided. The measurement "
        f"is the one that is closest to the threshold, with its interval. Made with decoupled {__version__}."
    )
    return latex_table(("Verdict", "Claim", "Measured"), rows, caption, "tab:claims", (0.14, 0.46, 0.3))


def table_of(section: Section, table: ReportTable, number: int) -> str:
    """A table of a section for a paper; its caption begins with the section's title."""
    label = f"tab:{section.name}" + (f"-{number}" if number > 1 else "")
    if table.latex is not None:
        return table.latex(label)
    extent = f" {section.extent}" if section.extent else ""
    caption = f"{section.title}. {table.title}.{extent} Made with decoupled {__version__}."
    return latex_table(table.head, table.rows, caption, label)
