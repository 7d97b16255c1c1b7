"""Adds the commands of the service, the mirror and the gateways."""

import typer


def add_to(app: typer.Typer) -> None:
    """Add the commands."""
    from . import service
    from .config import config
    from .health import health
    from .mirror import mirror
    from .weights import weights

    service.add_to(app)
    for command in (mirror, weights, health):
        app.command()(command)
    app.add_typer(config, name="config")
