"""Adds the commands of the service, the mirror and the gateways."""

import typer


def add_to(app: typer.Typer) -> None:
    """Add the commands."""
    from . import service
    from .mirror import config, init, mirror, rejudge
    from .weights import mcp, weights

    managing = (service.migrate, service.doctor, service.backup, service.restore, service.audit)
    for command in (service.serve, *managing, mirror, rejudge, weights, mcp, service.health):
        app.command()(command)
    app.add_typer(service.keys, name="keys")
    app.add_typer(config, name="config")
    app.add_typer(init, name="init")
