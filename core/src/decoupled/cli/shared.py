"""What commands share: flags, tables, errors and exit statuses."""

import inspect
import re
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from contextlib import contextmanager

import typer

from ..base.extras import as_missing_extra
from ..errors import DecoupledError


def with_parameters_of(
    command: Callable[..., None],
    run: Callable[..., None],
    filled: str,
    added: Sequence[inspect.Parameter],
) -> Callable[..., None]:
    """Give `run` the signature of `command`, and the added parameters.

    The parameter that `run` fills in itself is left out.

    >>> def command(service: object, name: str) -> None: ...
    >>> run = lambda **values: None
    >>> run = with_parameters_of(command, run, "service", [flag("url", str, "here")])
    >>> print(inspect.signature(run))
    (*, name: str, url: str = 'here')
    """
    parameters = [
        parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY)
        for parameter in inspect.signature(command).parameters.values()
        if parameter.name != filled
    ]
    parameters += added
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    run.__name__ = command.__name__
    run.__doc__ = command.__doc__
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return run


def flag(name: str, annotation: object, default: object) -> inspect.Parameter:
    """A parameter of a command that is a flag.

    >>> print(flag("url", str, "http://127.0.0.1:8000"))
    url: str = 'http://127.0.0.1:8000'
    """
    return inspect.Parameter(
        name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation
    )


def aligned(rows: Iterable[tuple[str, ...]]) -> str:
    """Rows as text in columns.

    >>> print(aligned([("a", "bb"), ("ccc", "d")]))
    a    bb
    ccc  d
    """
    rows = list(rows)
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ([cell.ljust(width) for cell, width in zip(row, widths, strict=True)] for row in rows)
    return "\n".join("  ".join(line).rstrip() for line in lines)


# The exit statuses of every command; 0 if it succeeds.
WRONG = 1
WRONG_COMMAND_LINE = 2
INTERRUPTED = 130


@contextmanager
def report_errors(
    outcome: str = "nothing was written", *, arguments: Container[str] = (), flags: bool = True
) -> Iterator[None]:
    """End a command with one line after an error of this package, a file error or an interruption.

    The exit status is 2 if the message begins with a flag or with one of `arguments`, the names of
    what the user gave there. Without `flags` it is 1, because a variable or a file may have set
    what the flag names.

    >>> try:
    ...     with report_errors():
    ...         raise DecoupledError("--arms = 1: must be two or more")
    ... except typer.Exit as ended:
    ...     ended.exit_code == WRONG_COMMAND_LINE
    True
    """
    try:
        yield
    except (DecoupledError, OSError) as error:
        typer.echo(f"error: {error}", err=True)
        request_id = getattr(error, "request_id", None)
        if request_id is not None and getattr(error, "status", 0) >= 500:
            # Only the service's log tells more.
            typer.echo(f"The id of the request is {request_id}.", err=True)
        first_word = re.match(r"[\w.-]+", str(error))
        argument = "" if first_word is None else first_word.group()
        is_usage = (flags and argument.startswith("--")) or argument in arguments
        raise typer.Exit(WRONG_COMMAND_LINE if is_usage else WRONG) from None
    except ModuleNotFoundError as error:
        missing = as_missing_extra(error, "this command")
        if missing is None:
            raise
        typer.echo(f"error: {missing}", err=True)
        raise typer.Exit(WRONG) from None
    except KeyboardInterrupt:
        typer.echo(f"interrupted: {outcome}", err=True)
        raise typer.Exit(INTERRUPTED) from None
