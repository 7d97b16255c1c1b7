"""Reports an error of a command in one line, and sets its exit status."""

import re
from collections.abc import Container, Iterator
from contextlib import contextmanager

import typer

from ..base.extras import as_missing_extra
from ..base.sigint import held_while_compiling
from ..errors import DecoupledError

# The exit statuses of every command; 0 if it succeeds.
WRONG, WRONG_COMMAND_LINE, INTERRUPTED = 1, 2, 130


@contextmanager
def report_errors(
    kept: str = "nothing was written", *, arguments: Container[str] = (), flags: bool = True
) -> Iterator[None]:
    """End a command with one line after an error of this package, a file error or an interruption.

    The command line is wrong if the message begins with a flag or with one of `arguments`, the names that errors have
    for what a user gave there; not without `flags`, because a variable or a file may have set what a flag names.
    """
    try:
        with held_while_compiling():
            yield
    except (DecoupledError, OSError) as error:
        typer.echo(f"error: {error}", err=True)
        request = getattr(error, "request_id", None)
        if request is not None and getattr(error, "status", 0) >= 500:  # only the service's log tells more
            typer.echo(f"The id of the request is {request}.", err=True)
        [named] = re.findall(r"^[\w.-]*", str(error))
        usage = (flags and named.startswith("--")) or named in arguments
        raise typer.Exit(WRONG_COMMAND_LINE if usage else WRONG) from None
    except ModuleNotFoundError as error:
        missing = as_missing_extra(error, "this command")
        if missing is None:
            raise
        typer.echo(f"error: {missing}", err=True)
        raise typer.Exit(WRONG) from None
    except KeyboardInterrupt:
        typer.echo(f"interrupted: {kept}", err=True)
        raise typer.Exit(INTERRUPTED) from None
