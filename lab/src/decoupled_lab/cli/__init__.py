"""Adds the commands of research: `reproduce`, `report`, `benchmark` and `bench`."""

import typer


def add_to(app: typer.Typer) -> None:
    """Add the commands."""
    from .main import bench, benchmark, report, reproduce

    for command in (reproduce, report, benchmark, bench):
        app.command()(command)
