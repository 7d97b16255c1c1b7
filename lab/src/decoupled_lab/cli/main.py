"""The commands `reproduce`, `report`, `benchmark` and `bench`. Each imports what it needs when it runs."""

import os
from pathlib import Path
from typing import Annotated

import typer

from decoupled.cli import report_errors

from ..paper import EXPERIMENTS, GROUPS

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
    quick: Annotated[bool, typer.Option("--quick", help="A small version: a minute or two.")] = False,
    runs: Annotated[
        int | None, typer.Option(min=2, help="Runs of each policy. Default: 1,000, or 40 with --quick.")
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of all randomness.")] = 0,
    out: Annotated[
        Path | None, typer.Option(help="Folder for results. Default: out/paper, or out/quick with --quick.")
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Continue an earlier run.")] = False,
    data: Annotated[Path | None, typer.Option(help="Folder with MovieLens 100K (u.data).")] = None,
    device: Annotated[str, typer.Option(help="cpu, or cuda for NVIDIA GPUs.")] = "cpu",
    latex: Latex = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="Show no progress.")] = False,
) -> None:
    """Run the paper's experiments, draw its figures and judge its claims."""
    from ..cli.reproduce import print_claims
    from ..movielens.files import FOLDER_VARIABLE
    from ..paper import runner as paper
    from ..paper.base import Scale

    folder = out or Path("out") / ("quick" if quick else "paper")
    count = runs or (paper.QUICK_RUNS if quick else paper.FULL_RUNS)
    scale = Scale(count, quick, seed, device)
    if not quiet:
        typer.echo(f"The paper's experiments, {count:,} runs each. The first time, this compiles code.")
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
    replication: Annotated[
        bool,
        typer.Option(
            "--replication",
            help="Also write a replication report: replication.md, and with pandoc .tex and .pdf.",
        ),
    ] = False,
    latex: Latex = False,
) -> None:
    """Judge the claims and write report.html again from saved results, without running anything."""
    from ..cli.reproduce import print_claims, print_replication
    from ..paper import runner as paper

    with report_errors():
        sections = paper.rebuild(folder, latex=latex)
        print_claims(sections, folder, latex=latex)
        if replication:
            print_replication(sections, folder)


def benchmark(
    policy: Annotated[
        str,
        typer.Argument(
            metavar="POLICY", help="A Python file such as my_policy.py, or a call such as 'Ladder()'."
        ),
    ],
    name: Annotated[
        str | None,
        typer.Option(
            "--policy", metavar="NAME", help="Which policy of the file: a name, or a call with its values."
        ),
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="A small version: a minute.")] = False,
    out: Annotated[
        Path | None,
        typer.Option(help="Folder for results; a rerun resumes there. Default: out/benchmark/POLICY."),
    ] = None,
    workers: Annotated[int | None, typer.Option(min=1, help="Processes. Default: all cores.")] = None,
    data: Annotated[
        Path | None, typer.Option(help="Folder with recorded tables, for the tasks that need them.")
    ] = None,
    time_limit: Annotated[
        float, typer.Option(metavar="SECONDS", help="The most that the runs of one task may take.")
    ] = 900.0,
    latex: Annotated[
        bool, typer.Option("--latex", help="Write table.tex and picture.pdf as well, for a paper.")
    ] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="Show no progress bar.")] = False,
) -> None:
    """Run the frozen suite with a policy, of your own or of the package, and compare it with four references."""
    from ..cli.benchmark import run_benchmark

    kept = "finished tasks are kept; run the same command to continue"
    with report_errors(kept, arguments=("policy", "time_limit")):
        run_benchmark(
            policy,
            name,
            quick=quick,
            out=out,
            workers=workers,
            data=data,
            time_limit=time_limit,
            quiet=quiet,
            latex=latex,
        )


def bench(
    groups: Annotated[
        list[str] | None,
        typer.Argument(
            help="Any of learner, engine, start, service, limits, mirror, gpu. Default: the first three."
        ),
    ] = None,
    repetitions: Annotated[int, typer.Option(min=3, help="Repetitions of every line.")] = 15,
    out: Annotated[Path, typer.Option(help="File for the lines as JSON.")] = Path("out/bench.json"),
    soak: Annotated[
        float, typer.Option(min=0.0, help="With service: extra minutes, to check that memory stays flat.")
    ] = 0.0,
    against: Annotated[
        Path | None,
        typer.Option(metavar="CHECKOUT", help="With engine: compare with the package of another checkout."),
    ] = None,
) -> None:
    """Measure speed, mostly as ratios of two things timed in turn."""
    from ..cli.bench import run_bench

    with report_errors(arguments=("group",)):
        run_bench(groups or [], repetitions, out, soak, against)
