"""Adds the commands of research: `reproduce`, `report`, `benchmark` and `bench`."""

import typer


def add_to(app: typer.Typer) -> None:
    """Add the commands."""
    from .bench import bench, benchmark
    from .reproduce import report, reproduce

    for command in (reproduce, report, benchmark, bench):
        app.command()(command)
