"""Parses the command line. Each command imports what it needs when it runs."""

from importlib.metadata import entry_points
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any

import typer

from . import ELSEWHERE
from .client import client
from .shared import WRONG_COMMAND_LINE, report_errors

# Entry points of this group are functions that add commands to the application.
GROUP = "decoupled.commands"

app = typer.Typer(
    help="Decoupled bandits: exploit one arm, explore another.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


def _show_version(is_wanted: bool) -> None:  # noqa: FBT001 - Typer calls it
    """Show the version and end, if the option was given."""
    if is_wanted:
        from .. import __version__

        typer.echo(__version__)
        raise typer.Exit


def _say_what_to_install(command: str, extra: str) -> None:
    """Add a command that says which package it is part of."""
    settings = {"ignore_unknown_options": True, "allow_extra_args": True}

    @app.command(command, hidden=True, context_settings=settings)
    def missing() -> None:
        rule = f"is part of the package decoupled-bandits-{extra}, which is not installed"
        remedy = f"pip install 'decoupled-bandits[{extra}]', or make install in a checkout"
        typer.echo(f"error: decoupled {command} {rule}; {remedy}", err=True)
        raise typer.Exit(WRONG_COMMAND_LINE)


@app.callback()
def _main(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version."),
    ] = False,
) -> None:
    pass


@app.command()
def policies() -> None:
    """List the policies, each as a call with its defaults and a one-line description."""
    from ..policies import Policy

    for kind in Policy.known().values():
        typer.echo(f"{kind()!r}\n    {(kind.__doc__ or '').splitlines()[0]}")


@app.command()
def environments() -> None:
    """List the environments, each with a one-line description."""
    from ..environments import Environment

    for name, kind in Environment.known().items():
        typer.echo(f"{name}\n    {(kind.__doc__ or '').splitlines()[0]}")


@app.command()
def simulate(
    specification: Annotated[Path, typer.Argument(metavar="SPEC.toml", help="What to simulate.")],
    *,
    out: Annotated[Path, typer.Option(help="Folder for results; a rerun resumes there.")] = Path(
        "out"
    ),
    workers: Annotated[int | None, typer.Option(min=1, help="Threads. Default: all cores.")] = None,
    device: Annotated[str, typer.Option(help="cpu, or cuda for NVIDIA GPUs.")] = "cpu",
    dask: Annotated[
        str | None, typer.Option(metavar="ADDRESS", help="Run on a Dask cluster.")
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print the plan and estimated time.")
    ] = False,
    latex: Annotated[
        bool, typer.Option("--latex", help="Write table.tex and regret.pdf as well.")
    ] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="Show no progress bar.")] = False,
) -> None:
    """Run a simulation written in a TOML file; see examples/simulation.toml."""
    from ..simulation.toml import read_specification
    from .simulate import estimate, run_all

    outcome = "finished blocks are kept; run the same command to continue"
    with report_errors(outcome, arguments=("device",)):
        plans = read_specification(specification)
        if dry_run:
            typer.echo(estimate(plans, workers, device))
        else:
            run_all(plans, out, workers=workers, dask=dask, device=device, quiet=quiet, latex=latex)


@app.command()
def compare(
    scores: Annotated[
        Path,
        typer.Argument(
            metavar="SCORES", help="A .csv or .parquet file with the columns item, arm, score."
        ),
    ],
    *,
    labels: Annotated[
        Path | None,
        typer.Option(
            help="What people say of some items: a file with the columns item, arm, label."
        ),
    ] = None,
    label_share: Annotated[
        float | None,
        typer.Option(help="The probability with which each item was drawn to be labelled."),
    ] = None,
    arm: Annotated[
        list[str] | None,
        typer.Option(help="An arm to compare; repeat it for several. Default: all."),
    ] = None,
    baseline: Annotated[str | None, typer.Option(help="The arm that others have to beat.")] = None,
    margin: Annotated[
        float,
        typer.Option(help="By how much they have to; below 0, how much worse they may be."),
    ] = 0.0,
    risk: Annotated[
        float, typer.Option(help="The probability that anything said is ever wrong.")
    ] = 0.05,
    score_range: Annotated[
        tuple[float, float],
        typer.Option(metavar="LOW HIGH", help="The lowest and the highest possible score."),
    ] = (0.0, 1.0),
    label_range: Annotated[
        tuple[float, float] | None,
        typer.Option(metavar="LOW HIGH", help="The same for labels, if it differs."),
    ] = None,
    better: Annotated[
        str, typer.Option(help="Which scores are better: lower or higher.")
    ] = "lower",
    missing: Annotated[
        float | None,
        typer.Option(help="What a missing score counts as. By default its item is left out."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the comparison as JSON.")] = False,
    follow: Annotated[
        bool,
        typer.Option("--follow", help="Read CSV files that grow, until it is decided."),
    ] = False,
    idle: Annotated[
        float | None,
        typer.Option(
            min=0.0, help="With --follow: end after so many seconds without anything new."
        ),
    ] = None,
    learner: Annotated[
        Path | None,
        typer.Option(help="A new file for a Ladder learner that has learned from the scores."),
    ] = None,
) -> None:
    """Compare arms that were scored on the same items, corrected by labels of a few.

    Exits with 0 if an arm is better, 3 if none is better than the baseline, 4 if it is undecided.
    """
    from .client import show
    from .compare import STATUS_OF, Growing, check_learner_file, comparison_text, save_learner
    from .compare import follow as follow_files

    settings: dict[str, Any] = {
        "label_share": label_share,
        "arms": arm or None,
        "baseline": baseline,
        "margin": margin,
        "risk": risk,
        "score_range": score_range,
        "label_range": label_range,
        "better": better,
        "missing": missing,
    }
    with report_errors(arguments=settings):
        from ..inference import ScoreComparison, compare_scores

        def compare_tables(scores: Any, labels: Any) -> ScoreComparison:
            return compare_scores(scores, labels, **settings)

        if learner is not None:
            check_learner_file(learner)
        if follow:
            comparison = follow_files(Growing.checked(scores, labels, arm), compare_tables, idle)
        else:
            comparison = compare_tables(scores, labels)
        if learner is not None:
            save_learner(comparison, learner)
        show(comparison.to_dict(), None if as_json else comparison_text(comparison))
        raise typer.Exit(STATUS_OF[comparison.state])


app.add_typer(client, name="client")
for entry in entry_points(group=GROUP):
    entry.load()(app)
for extra, commands in ELSEWHERE.items():
    if find_spec(f"decoupled_{extra}") is None:
        for command in commands:
            _say_what_to_install(command, extra)
