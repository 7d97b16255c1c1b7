"""Writes the folder of a report: claims.json, report.html, every figure with its data, and the same for LaTeX."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from decoupled.base import write_atomically
from decoupled.plots import save_static

from .page import build_page
from .paper_tables import write_latex
from .section import Section

CLAIMS_FILE = "claims.json"
PAGE_FILE = "report.html"


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
        write_latex(folder, title, sections)
    return folder / PAGE_FILE
