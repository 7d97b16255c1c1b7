"""Flags of commands, made from the definitions of their options."""

import inspect
from collections.abc import Callable, Sequence
from typing import Annotated, Any

import typer

from ..options.definitions import CONFIG, STORES
from ..options.option import Option
from ..options.sources import Settings, config_path, resolved, serve_file, unknown_variables
from .errors import report_errors

_BY_VARIABLE = "Variables set the options, too, such as DECOUPLED_STORE for --store. See docs/settings.md."
Resolve = Callable[[dict[str, Any]], Settings]


def takes(
    options: Sequence[Option], resolve: Resolve
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a command the flags of `options`. It is called with its own arguments and, as `settings`, with what holds.

    `resolve` gets all arguments by name; a flag that was not given is None.
    """

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        own = [
            each
            for each in inspect.signature(command, eval_str=True).parameters.values()
            if each.name != "settings"
        ]
        names = [each.name for each in own]

        def run(**values: Any) -> None:
            with report_errors(arguments=("CONFIG.toml",)):
                settings = resolve(values)
            command(settings=settings, **{name: values[name] for name in names})

        parameters = [each.replace(kind=inspect.Parameter.KEYWORD_ONLY) for each in own]
        parameters += [_parameter(option) for option in options]
        run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        run.__name__, run.__doc__ = command.__name__, f"{command.__doc__}\n\n{_BY_VARIABLE}"
        run.__annotations__ = {each.name: each.annotation for each in parameters}
        return run

    return decorate


def _parameter(option: Option) -> inspect.Parameter:
    """The flag of an option: None if it is not given, so that a variable or the file can set it."""
    switch = not option.kind.metavar
    declared = f"{option.flag}/--no-{option.name}" if switch else option.flag
    flag = typer.Option(
        declared,
        metavar=option.kind.metavar or None,
        help=option.meaning,
        show_default=False if switch else option.shown_default or False,
    )
    kind: Any = bool | None if switch else str | None
    return inspect.Parameter(
        option.identifier, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=Annotated[kind, flag]
    )


def takes_serve_options(
    options: Sequence[Option], *, warn: bool = False
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a command `--config` and some options of `decoupled serve`; warn about unknown variables if asked."""

    def resolve(values: dict[str, Any]) -> Settings:
        if warn:
            warn_of_unknown_variables()
        return resolved(options, values, file=serve_file(config_path(values[CONFIG.identifier])))

    return takes((CONFIG, *options), resolve)


def warn_of_unknown_variables() -> None:
    """Print a warning for each variable that looks like one of this package, and is none."""
    for warning in unknown_variables():
        typer.echo(f"warning: {warning}", err=True)


takes_store = takes_serve_options(STORES)
