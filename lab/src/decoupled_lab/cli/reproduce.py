"""`decoupled reproduce` and `decoupled report`: the verdicts on the paper's claims. They import what they need when they run."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from decoupled.cli import report_errors

from ..paper import EXPERIMENTS, GROUPS

if TYPE_CHECKING:
    from ..report.page import Section

_experiments = ", ".join(
    (*EXPERIMENTS, *(f"{group} ({', '.join(some)})" for group, some in GROUPS.items()))
)

Latex = Annotated[
    bool,
    typer.Option(
        "--latex", help="Write tables for LaTeX as well: claims.tex, and table.tex beside figures."
    ),
]


def reproduce(
    experiments: Annotated[
        list[str] | None, typer.Argument(help=f"Any of {_experiments}. Default: all.")
    ] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="A small version: a minute or two.")
    ] = False,
    runs: Annotated[
        int | None,
        typer.Option(min=2, help="Runs of each policy. Default: 1,000, or 40 with --quick."),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of all randomness.")] = 0,
    out: Annotated[
        Path | None,
        typer.Option(help="Folder for results. Default: out/paper, or out/quick with --quick."),
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Continue an earlier run.")] = False,
    data: Annotated[Path | None, typer.Option(help="Folder with MovieLens 100K (u.data).")] = None,
    device: Annotated[str, typer.Option(help="cpu, or cuda for NVIDIA GPUs.")] = "cpu",
    latex: Latex = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="Show no progress.")] = False,
) -> None:
    """Run the paper's experiments, draw its figures and judge its claims."""
    from ..movielens.files import FOLDER_VARIABLE
    from ..paper import runner as paper
    from ..paper.base import Scale

    folder = out or Path("out") / ("quick" if quick else "paper")
    count = runs or (paper.QUICK_RUNS if quick else paper.FULL_RUNS)
    scale = Scale(count, quick, seed, device)
    if not quiet:
        typer.echo(
            f"The paper's experiments, {count:,} runs each. The first time, this compiles code."
        )
    if data:
        os.environ[FOLDER_VARIABLE] = str(data)  # also for the processes that compile
    kept = "finished work is kept; run the same command with --resume to continue"
    with report_errors(kept, arguments=("experiment", "device")):
        sections = paper.reproduce(
            experiments or [], scale, folder, resume=resume, quiet=quiet, latex=latex
        )
        print_claims(sections, folder, latex=latex)
    if quick:
        typer.echo("For the full version, about half an hour: make paper, or decoupled reproduce")


def report(
    folder: Annotated[Path, typer.Argument(help="A folder that decoupled reproduce wrote.")],
    latex: Latex = False,
) -> None:
    """Judge the claims and write report.html again from saved results, without running anything."""
    from ..paper import runner as paper

    with report_errors():
        sections = paper.rebuild(folder, latex=latex)
        print_claims(sections, folder, latex=latex)


def print_claims(sections: "Sequence[Section]", folder: Path, *, latex: bool = False) -> None:
    """The claims table, for a terminal."""
    from rich.console import Console
    from rich.table import Table

    from ..report.claims import FAILS, HOLDS, UNDECIDED
    from ..report.page import (
        CLAIMS_FILE,
        CLAIMS_TABLE_FILE,
        PAGE_FILE,
        TABLE_FILE,
        counted,
        decisive,
    )
    from ..report.text import readable

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
    print(
        "Verdicts: "
        + ", ".join(f"{number} {kind}" for kind, number in counted(claims).items())
        + "."
    )
    if any(claim.verdict == UNDECIDED for claim in claims):
        print(
            "Undecided: there are too few runs to tell. It does not mean that the claim is wrong."
        )
    for warning in [each for section in sections for each in section.warnings]:
        console.print(warning, style="bold red", markup=False)
    print(f"Figures and data are in {folder}; the claims as data in {folder / CLAIMS_FILE}.")
    if latex:
        print(f"For LaTeX: {folder / CLAIMS_TABLE_FILE}, and {TABLE_FILE} beside the figures.")
    print(f"The report is {folder / PAGE_FILE}: open it in a browser.")
