"""The command line: parsing only; what a command needs is imported when it runs."""

import json
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
) -> None:
    """Compare the policies on the paper's alternating environment, K = 8: a table and a figure."""
    from .demo import run_demo

    run_demo(runs, horizon, seed, out)


@app.command()
def bench(
    repetitions: Annotated[int, typer.Option(min=3, help="Repetitions of every line.")] = 15,
    out: Annotated[Path, typer.Option(help="File for the lines as JSON.")] = Path("out/bench.json"),
) -> None:
    """Measure speed: every line is a ratio of two things timed in turn within this run."""
    from .bench import learner, machine

    lines = []
    typer.echo(f"{'ours':>60}  {'us':>7}  {'rival us':>9}  {'ratio':>6}  (lowest .. highest)")
    for line in learner.measure(repetitions):
        lines.append(line.to_dict())
        typer.echo(
            f"{line.name:>60}  {line.seconds * 1e6:7.2f}  {line.rival_seconds * 1e6:9.2f}"
            f"  {line.ratio:6.2f}  ({line.lowest:.2f} .. {line.highest:.2f})  {line.rival}"
        )
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(json.dumps({"machine": machine.describe(), "lines": lines}, indent=1) + "\n")
    typer.echo(f"Written to {out}")


def main() -> None:
    """Run the command line."""
    app()
