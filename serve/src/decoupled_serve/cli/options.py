"""What the commands share: flags made from the definitions of their options, and how a long-running one starts."""

import gc
import inspect
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import FrameType
from typing import Annotated, Any

import typer

from decoupled.cli import flag, report_errors, with_parameters_of

from ..options.definitions import CONFIG, STORES, Option
from ..options.sources import OptionValues, config_path, resolved, serve_file, unknown_variables


@contextmanager
def loading() -> Iterator[None]:
    """Load modules without looking for garbage, now or later: there is none, and looking takes a seventh of the service's start."""
    gc.disable()
    try:
        yield
        gc.freeze()
    finally:
        gc.enable()


@contextmanager
def ends_on_sigterm() -> Iterator[None]:
    """End in order on SIGTERM, until something else handles it.

    The first process of a container ignores signals without a handler: stopped while it starts, it would have to be killed.
    """

    def end(number: int, frame: FrameType | None) -> None:
        raise SystemExit(0)

    if threading.current_thread() is not threading.main_thread():  # which alone may set handlers
        yield
        return
    before = signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


_BY_VARIABLE = "You can also set options by variables, such as DECOUPLED_STORE for --store. See docs/settings.md."
Decorator = Callable[[Callable[..., None]], Callable[..., None]]
Resolve = Callable[[dict[str, Any]], OptionValues]


def takes(options: Sequence[Option], resolve: Resolve) -> Decorator:
    """Give a command the flags of `options`. It is called with its own arguments and, as `settings`, with what holds.

    `resolve` gets all arguments by name; a flag that was not given is None.
    """

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        names = [name for name in inspect.signature(command).parameters if name != "settings"]

        def run(**values: Any) -> None:
            with report_errors(arguments=("CONFIG.toml",)):
                settings = resolve(values)
            command(settings=settings, **{name: values[name] for name in names})

        with_parameters_of(command, run, "settings", [_flag(option) for option in options])
        run.__doc__ = f"{command.__doc__}\n\n{_BY_VARIABLE}"
        return run

    return decorate


def _flag(option: Option) -> inspect.Parameter:
    """The flag of an option: None if it is not given, so that a variable or the file can set it."""
    switch = not option.kind.metavar
    declared = typer.Option(
        f"{option.flag}/--no-{option.name}" if switch else option.flag,
        metavar=option.kind.metavar or None,
        help=option.meaning,
        show_default=False if switch else option.shown_default or False,
    )
    kind: Any = bool | None if switch else str | None
    return flag(option.identifier, Annotated[kind, declared], None)


def takes_serve_options(options: Sequence[Option], *, warn: bool = False) -> Decorator:
    """Give a command `--config` and some options of `decoupled serve`; warn about unknown variables if asked."""

    def resolve(values: dict[str, Any]) -> OptionValues:
        if warn:
            warn_of_unknown_variables()
        return resolved(options, values, file=serve_file(config_path(values[CONFIG.identifier])))

    return takes((CONFIG, *options), resolve)


def warn_of_unknown_variables() -> None:
    """Print a warning for each variable that looks like one of this package, and is none."""
    for warning in unknown_variables():
        typer.echo(f"warning: {warning}", err=True)


takes_store = takes_serve_options(STORES)
