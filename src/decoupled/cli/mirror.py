"""`decoupled mirror`: the command."""

from pathlib import Path
from typing import Annotated

import typer

from .errors import report_errors


def mirror(
    config: Annotated[
        Path, typer.Argument(metavar="CONFIG.toml", help="The upstreams, and what is a loss.")
    ],
    check: Annotated[
        bool, typer.Option("--check", help="Check the configuration, print what it means, and end.")
    ] = False,
    log_format: Annotated[
        str, typer.Option(help="text, or json: one object a line, for programs that collect logs.")
    ] = "text",
) -> None:
    """Serve each request from one upstream, mirror some to another, and learn which is best."""
    with report_errors("the mirror has ended"):
        from ..mirror.reading import read_config

        settings = read_config(config)
        if check:
            from ..mirror.explain import explained

            typer.echo(explained(settings))
            return
        from ..mirror.server import run
        from ..service.http.log_format import checked_format

        run(settings, checked_format(log_format))
