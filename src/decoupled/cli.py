"""The command line: parsing only; what a command needs is imported when it runs."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(
    help="Decoupled bandits: exploit one arm, explore another.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


def _version(wanted: bool) -> None:
    if wanted:
        from . import __version__

        typer.echo(__version__)
        raise typer.Exit


@app.callback()
def _main(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    pass


@app.command()
def policies() -> None:
    """List the policies, each as the call that makes it, with one line on what it is."""
    from .policies import Policy

    for kind in Policy.known().values():
        typer.echo(f"{kind()!r}\n    {(kind.__doc__ or '').splitlines()[0]}")


@app.command()
def environments() -> None:
    """List the environments with one line on what each is."""
    from .environments import Environment

    for name, kind in Environment.known().items():
        typer.echo(f"{name}\n    {(kind.__doc__ or '').splitlines()[0]}")


@app.command()
def demo(
    runs: Annotated[int, typer.Option(min=2, help="Runs of each policy.")] = 1_000,
    horizon: Annotated[int, typer.Option(min=100, help="Rounds of each run.")] = 10_000,
    seed: Annotated[int, typer.Option(min=0, help="Seed of all randomness.")] = 0,
    out: Annotated[Path, typer.Option(help="Folder for the figure.")] = Path("out"),
    quiet: Annotated[bool, typer.Option("--quiet", help="No progress bar.")] = False,
) -> None:
    """Compare the policies on the paper's alternating environment, K = 8: a table and a figure."""
    from .environments import Alternating
    from .policies import FTPL, Exp3, FollowTheLeader, TsallisINF
    from .simulation.command import show
    from .simulation.plan import make_plan

    typer.echo(
        "The policies on the paper's alternating environment. The first time, compiling takes half a minute."
    )
    policies = (FTPL(), TsallisINF(), Exp3(), FollowTheLeader())
    with _errors_said():
        out.mkdir(parents=True, exist_ok=True)
        plan = make_plan(policies, Alternating(arms=8, gap=0.125), horizon, runs, seed)
        show(plan, out / "demo", quiet=quiet, resume=False)


@app.command()
def simulate(
    specification: Annotated[Path, typer.Argument(metavar="SPEC.toml", help="What to simulate.")],
    out: Annotated[Path, typer.Option(help="Folder for results; a rerun goes on where it was.")] = Path(
        "out"
    ),
    workers: Annotated[int | None, typer.Option(min=1, help="Threads; all cores if not given.")] = None,
    dask: Annotated[str | None, typer.Option(metavar="ADDRESS", help="Run on a Dask cluster.")] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print the plan and an estimate of its time.")
    ] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="No progress bar.")] = False,
) -> None:
    """Run a simulation written in a TOML file; see examples/simulation.toml."""
    from .simulation.command import estimate, run_all
    from .simulation.specification import read_specification

    with _errors_said("finished blocks are kept; the same command goes on from there"):
        plans = read_specification(specification)
        if dry_run:
            typer.echo(estimate(plans, workers))
        else:
            run_all(plans, out, workers=workers, dask=dask, quiet=quiet)


@contextmanager
def _errors_said(kept: str = "nothing was written") -> Iterator[None]:
    """Errors of this package and of files, and interruptions, end a command with one line."""
    from .errors import DecoupledError

    try:
        yield
    except (DecoupledError, OSError) as error:
        typer.echo(f"error: {error}", err=True)
        raise typer.Exit(2) from None
    except KeyboardInterrupt:
        typer.echo(f"interrupted: {kept}", err=True)
        raise typer.Exit(130) from None


@app.command()
def bench(
    groups: Annotated[
        list[str] | None, typer.Argument(help="Any of learner, engine, start; all if none is named.")
    ] = None,
    repetitions: Annotated[int, typer.Option(min=3, help="Repetitions of every line.")] = 15,
    out: Annotated[Path, typer.Option(help="File for the lines as JSON.")] = Path("out/bench.json"),
) -> None:
    """Measure speed: every line is a ratio of two things timed in turn within this run."""
    from .bench.command import run_bench

    with _errors_said():
        run_bench(groups or [], repetitions, out)


def main() -> None:
    """Run the command line."""
    app()
