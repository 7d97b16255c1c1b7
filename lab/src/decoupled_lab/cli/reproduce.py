"""Prints the verdicts on the paper's claims."""

from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table

from ..paper.replication import write_replication
from ..paper.runner import read_record
from ..report.claims import FAILS, HOLDS, UNDECIDED
from ..report.page import CLAIMS_FILE, CLAIMS_TABLE_FILE, PAGE_FILE, TABLE_FILE, Section, counted, decisive
from ..report.text import readable


def print_claims(sections: Sequence[Section], folder: Path, *, latex: bool = False) -> None:
    """The claims table, for a terminal."""
    table = Table(title="What the paper says, and what was measured", show_lines=False)
    table.add_column("verdict")
    table.add_column("claim", ratio=3)
    table.add_column("measured (95 % interval)", ratio=2)
    colours = {HOLDS: "green", FAILS: "red"}
    claims = [claim for section in sections for claim in section.claims]
    for claim in claims:
        colour = colours.get(claim.verdict, "yellow")
        table.add_row(f"[{colour}]{claim.verdict}[/]", readable(claim.statement), decisive(claim))
    console = Console()
    console.print(table)
    print("Verdicts: " + ", ".join(f"{number} {kind}" for kind, number in counted(claims).items()) + ".")
    if any(claim.verdict == UNDECIDED for claim in claims):
        print("Undecided: there are too few runs to tell. It does not mean that the claim is wrong.")
    for warning in [each for section in sections for each in section.warnings]:
        console.print(warning, style="bold red", markup=False)
    print(f"Figures and data are in {folder}; the claims as data in {folder / CLAIMS_FILE}.")
    if latex:
        print(f"For LaTeX: {folder / CLAIMS_TABLE_FILE}, and {TABLE_FILE} beside the figures.")
    print(f"The report is {folder / PAGE_FILE}: open it in a browser.")


def print_replication(sections: Sequence[Section], folder: Path) -> None:
    """Write the replication report, and say where it is."""
    written = write_replication(folder, read_record(folder), sections)
    print(f"The replication report is {', '.join(map(str, written))}.")
    if len(written) < 3:
        print("There is no PDF: install pandoc and a LaTeX such as texlive-xetex, then run this again.")
