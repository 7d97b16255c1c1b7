"""Defines the commands `decoupled mirror` and `decoupled config`, which shows the options and where each came from."""

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from decoupled.cli import aligned, report_errors
from decoupled.errors import ParameterError

from ..options.definitions import MIRROR, SERVE
from ..options.sources import OptionValues, config_path, held_rows, read_file, resolved
from .options import ends_on_sigterm, loading, takes, takes_serve_options, warn_of_unknown_variables

if TYPE_CHECKING:
    from ..mirror.config import MirrorConfig

ConfigFile = Annotated[
    str | None,
    typer.Argument(metavar="CONFIG.toml", help="The upstreams, and what is a loss; or DECOUPLED_CONFIG."),
]


def _resolved(values: dict[str, Any]) -> OptionValues:
    warn_of_unknown_variables()
    return resolved(MIRROR, values, file=read_file(config_file(values["config"])))


def config_file(argument: str | None) -> Path:
    """The file that the argument or DECOUPLED_CONFIG names."""
    path = config_path(argument)
    if path is None:
        raise ParameterError(
            "CONFIG.toml: is missing; give the file of the mirror, or set DECOUPLED_CONFIG"
        )
    return path


takes_mirror_options = takes(MIRROR, _resolved)


@takes_mirror_options
def mirror(
    settings: OptionValues,
    config: ConfigFile = None,
    check: Annotated[
        bool, typer.Option("--check", help="Check the configuration, print what it means, and end.")
    ] = False,
) -> None:
    """Serve each request from one upstream, mirror some to another, and learn which is best."""
    with report_errors("the mirror has ended", flags=False), ends_on_sigterm():
        found = read(settings, config)
        if check:
            from ..mirror.config_file import doubts, explained
            from ..mirror.judging import judged_sample

            typer.echo(explained(found))
            if found.loss.judge is not None:
                judged = asyncio.run(judged_sample(found.loss.judge, found.folder))
                loss = None if judged is None else judged.loss
                typer.echo(f"judged a sample pair: {'no loss' if loss is None else f'loss {loss:g}'}")
            for doubt in doubts(found):
                typer.echo(f"Warning: {doubt}", err=True)
            return
        with loading():
            from ..mirror.server import run

        run(found)


def read(settings: OptionValues, config: str | None) -> "MirrorConfig":
    """The whole configuration of a mirror."""
    from ..mirror.config_file import read_config

    return read_config(config_file(config), settings)


@takes_mirror_options
def rejudge(
    settings: OptionValues,
    config: ConfigFile = None,
    judge: Annotated[
        list[str] | None,
        typer.Option(
            metavar="OTHER.toml",
            help="A file with another [loss.judge]; may be repeated. Default: the mirror's own.",
        ),
    ] = None,
) -> None:
    """Have a judge look at the pairs that people labelled, and show how often it agrees with them."""
    with report_errors():
        from ..mirror.config_file import read_config
        from ..mirror.judging import agreement, preferred, rejudged
        from ..mirror.server import open_store_of

        found = read(settings, config)
        if found.service is not None:
            raise ParameterError(
                "service: pairs are not sent over HTTP; run this with --store, where the store is"
            )
        service = open_store_of(found, create=False)
        try:
            kept = service.pairs.kept("local", found.experiment.name).result()
        finally:
            service.close()
        people: list[str | None] = [each.label for each in kept]
        first: list[str | None] = [preferred(each.verdict) for each in kept]
        rows = [("judge", "agrees with people", "with the first judge", "no verdict")]
        rows.append(("the first", str(agreement(first, people)), "", ""))
        for file in judge or [str(config_file(config))]:
            other = read_config(file)
            if other.loss.judge is None:
                raise ParameterError.of("--judge", file, "has no [loss.judge]", "name a file that has one")
            said = asyncio.run(rejudged(other, other.loss.judge, kept))
            rows.append(
                (file, str(agreement(said, people)), str(agreement(said, first)), str(said.count(None)))
            )
        typer.echo(aligned(rows))
        typer.echo(
            "Shares with 95 % intervals (Wilson), for one look; agreement is the same of better, worse and tie."
        )


config = typer.Typer(
    help="Show the options of a command as they hold, and where each value came from.", no_args_is_help=True
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
