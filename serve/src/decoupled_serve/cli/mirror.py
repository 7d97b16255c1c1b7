"""Defines the commands of a mirror, `decoupled config`, which shows options, and `decoupled init`, which writes a first file."""

import asyncio
import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from typer import Argument, Option

from decoupled.cli import aligned, report_errors
from decoupled.errors import ParameterError

from ..options.definitions import MIRROR, SERVE
from ..options.sources import OptionValues, config_path, held_rows, read_file, resolved
from .options import ends_on_sigterm, loading, takes, takes_serve_options, warn_of_unknown_variables

if TYPE_CHECKING:
    from ..mirror.config import MirrorConfig

ConfigFile = Annotated[
    str | None,
    Argument(
        metavar="CONFIG.toml", help="The file with the upstreams and the loss; or DECOUPLED_CONFIG."
    ),
]


def _resolved(values: dict[str, Any]) -> OptionValues:
    warn_of_unknown_variables()
    return resolved(MIRROR, values, file=read_file(config_file(values["config"])))


def config_file(argument: str | None) -> Path:
    """The file that the argument or DECOUPLED_CONFIG names."""
    path = config_path(argument)
    if path is None:
        remedy = "give the file of the mirror, or set DECOUPLED_CONFIG"
        raise ParameterError(f"CONFIG.toml: is missing; {remedy}")
    return path


takes_mirror_options = takes(MIRROR, _resolved)


@takes_mirror_options
def mirror(
    settings: OptionValues,
    config: ConfigFile = None,
    check: Annotated[
        bool,
        Option(
            "--check",
            help="Check the configuration, ask each arm once and have a sample pair judged (which costs what such calls cost), "
            "print what came of it, and exit; with 1 if an arm does not answer well.",
        ),
    ] = False,
    offline: Annotated[bool, Option("--offline", help="With --check: ask nobody.")] = False,
) -> None:
    """Serve each request from one upstream, mirror some to another, and learn which is best."""
    with report_errors("the mirror has ended", flags=False), ends_on_sigterm():
        found = read(settings, config)
        if offline and not check:
            rule, remedy = "is for a check alone", "add --check, or leave it out"
            raise ParameterError.of("--offline", True, rule, remedy)
        if check:
            if not _is_well(found, offline=offline):
                raise typer.Exit(1)
            return
        with loading():
            from ..mirror.server import run

        run(found)


def _is_well(found: "MirrorConfig", *, offline: bool) -> bool:
    """Print what a configuration means and, unless `offline`, what the arms and the judge answer; returns whether all arms do."""
    from ..mirror.checking import checked_arms
    from ..mirror.config_file import doubts, explained
    from ..mirror.judging import judged_sample

    typer.echo(explained(found))
    arms = [] if offline else asyncio.run(checked_arms(found))
    for each in arms:
        typer.echo(each, err=not each.is_well)
    if found.loss.judge is not None and not offline:
        judged = asyncio.run(judged_sample(found.loss.judge, found.folder))
        loss = None if judged is None else judged.loss
        typer.echo(f"judged a sample pair: {'no loss' if loss is None else f'loss {loss:g}'}")
    for doubt in doubts(found):
        typer.echo(f"Warning: {doubt}", err=True)
    unwell = [each.arm for each in arms if not each.is_well]
    if unwell:
        remedy = "start or correct them; --offline checks the file alone"
        typer.echo(f"Error: arms that do not answer well: {', '.join(unwell)}; {remedy}", err=True)
    return not unwell


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
        Option(
            metavar="OTHER.toml",
            help="A file with another [loss.judge]; may be repeated. Default: the mirror's own.",
        ),
    ] = None,
) -> None:
    """Run a judge on the pairs that people labelled, and show how often it agrees with them."""
    with report_errors():
        from ..mirror.config_file import read_config
        from ..mirror.judging import agreement, preferred, rejudged
        from ..mirror.server import open_store_of

        found = read(settings, config)
        if found.service is not None:
            remedy = "run this with --store, where the store is"
            raise ParameterError(f"service: pairs are not sent over HTTP; {remedy}")
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
                raise ParameterError.of(
                    "--judge", file, "has no [loss.judge]", "name a file that has one"
                )
            said = asyncio.run(rejudged(other, other.loss.judge, kept))
            right, same = (str(agreement(said, others)) for others in (people, first))
            rows.append((file, right, same, str(said.count(None))))
        typer.echo(aligned(rows))
        told = "agreement is the same of better, worse and tie"
        typer.echo(f"Shares with 95 % intervals (Wilson), for one look; {told}.")


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


init = typer.Typer(help="Write a configuration to start from.", no_args_is_help=True)
Folder = Annotated[Path, Option("--out", metavar="FOLDER", help="Where to write.")]
Force = Annotated[bool, Option("--force", help="Overwrite existing files.")]


@init.command("llm")
def init_llm(
    models: Annotated[
        list[str],
        Argument(
            metavar="MODEL...",
            help="Two models or more, each NAME or NAME=URL of an OpenAI-style API; the first is the incumbent. "
            "Without a URL, OPENAI_BASE_URL or a provider's key in the environment says where they are.",
        ),
    ],
    judge: Annotated[
        str, Option(metavar="MODEL", help="The model that compares answers: NAME or NAME=URL.")
    ],
    budget: Annotated[
        float, Option(min=0.0, help="Dollars a day, for copies and their judge.")
    ] = 5.0,
    share: Annotated[
        float, Option(min=0.0, max=1.0, help="The share of the requests that are copied.")
    ] = 0.05,
    price: Annotated[
        list[str] | None,
        Option(
            metavar="MODEL=IN,OUT",
            help="Dollars for a million tokens in and out; may be repeated. Default: a cent a call.",
        ),
    ] = None,
    label: Annotated[
        str | None,
        Option(help="Who labels: console for people, a URL, or module:function. Default: console."),
    ] = None,
    key_env: Annotated[
        str | None,
        Option(metavar="VARIABLE", help="The variable with the key of other providers."),
    ] = None,
    to: Annotated[
        Literal["mirror", "litellm"],
        Option(help="mirror.toml, or config.yaml and plugin.py for LiteLLM, without labels."),
    ] = "mirror",
    out: Folder = Path("."),
    force: Force = False,
) -> None:
    """Write the files for language models: an incumbent, a judge, a budget and labels."""
    from ..mirror import config_file as files

    with report_errors(arguments=("MODEL", "--judge", "--price", "--label", "--out")):
        if len(models) < 2:
            raise ParameterError.of("MODEL", models[0], "is one model", "give two or more")
        arms = [files.Model.parse(each, key_env) for each in models]
        judges = files.Model.parse(judge, key_env)
        prices = dict(
            _price(each, {found.name for found in (*arms, judges)}) for each in price or ()
        )
        arms = [each._replace(prices=prices.get(each.name)) for each in arms]
        judges = judges._replace(prices=prices.get(judges.name))
        if to == "mirror":
            text = files.llm_mirror(arms, judges, budget, share, label or "console")
            _written(out, text, force)
            return
        if label is not None:
            rule = "is for a mirror: the plug-in for LiteLLM takes no labels"
            raise ParameterError.of("--label", label, rule, "leave it out")
        files.write_new(out, files.litellm_files(arms, judges, budget, share), force=force)
        typer.echo(f"config.yaml and plugin.py are in {out}. Next: litellm --config config.yaml")


@init.command("http")
def init_http(
    releases: Annotated[
        list[str],
        Argument(
            metavar="URL...",
            help="Two releases or more, each URL or NAME=URL; the first is the incumbent.",
        ),
    ],
    out: Folder = Path("."),
    force: Force = False,
) -> None:
    """Write mirror.toml for releases of a service: an incumbent, a budget, and a loss by status and latency."""
    from ..mirror.config_file import http_mirror

    with report_errors(arguments=("URL", "--out")):
        if len(releases) < 2:
            raise ParameterError.of("URL", releases[0], "is one release", "give two or more")
        found = []
        for place, each in enumerate(releases):
            name, given, rest = each.partition("=http")
            plain = ("stable", "next")[place] if place < 2 else f"next-{place}"
            found.append((name, f"http{rest}") if given else (plain, each))
        _written(out, http_mirror(found), force)


def _price(text: str, known: set[str]) -> tuple[str, tuple[float, float]]:
    name, _, values = text.rpartition("=")
    try:
        prices = [float(each) for each in values.split(",")]
        if (
            name not in known
            or len(prices) != 2
            or not all(0.0 <= each < math.inf for each in prices)
        ):
            raise ValueError
    except ValueError:
        rule = f"must be MODEL=IN,OUT for one of {', '.join(sorted(known))}"
        raise ParameterError.of("--price", text, rule, "for example small=0.15,0.6") from None
    return name, (prices[0], prices[1])


def _written(folder: Path, text: str, force: bool) -> None:
    from ..mirror.config_file import write_new

    write_new(folder, {"mirror.toml": text}, force=force)
    file = folder / "mirror.toml"
    typer.echo(f"{file} is written. Next: decoupled mirror {file} --check")
