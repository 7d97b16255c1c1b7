"""Shows which options hold, and where each value came from: `decoupled config`."""

import typer

from decoupled.cli import aligned, report_errors

from ..options.definitions import MIRROR, SERVE
from ..options.sources import OptionValues
from ..options.tables import held_rows
from .mirror import ConfigFile, config_file, read, takes_mirror_options
from .options import takes_serve_options

config = typer.Typer(
    help="Show the options of a command as they hold, and where each value came from.",
    no_args_is_help=True,
)


@config.command("serve")
@takes_serve_options(SERVE, warn=True)
def config_serve(settings: OptionValues) -> None:
    """Show what `decoupled serve` would run with. Passwords are not shown."""
    typer.echo(aligned(held_rows(SERVE, settings)))


@config.command("mirror")
@takes_mirror_options
def config_mirror(settings: OptionValues, config: ConfigFile = None) -> None:
    """Show what `decoupled mirror` would run with, and every other key of its file. Secrets are not shown."""
    with report_errors():
        from ..mirror.config_file import file_keys

        read(settings, config)  # raises the errors that starting it would raise
        typer.echo(aligned([*held_rows(MIRROR, settings), *file_keys(config_file(config))]))
