"""Error handling that the commands share."""

from collections.abc import Iterator
from contextlib import contextmanager

import typer

from ..base.extras import as_missing_extra
from ..base.sigint import held_while_compiling
from ..errors import DecoupledError


@contextmanager
def report_errors(kept: str = "nothing was written") -> Iterator[None]:
    """End a command with one line after an error of this package, a file error or an interruption."""
    try:
        with held_while_compiling():
            yield
    except (DecoupledError, OSError) as error:
        typer.echo(f"error: {error}", err=True)
        request = getattr(error, "request_id", None)
        if request is not None and getattr(error, "status", 0) >= 500:  # only the service's log tells more
            typer.echo(f"The id of the request is {request}.", err=True)
        raise typer.Exit(2) from None
    except ModuleNotFoundError as error:
        missing = as_missing_extra(error, "this command")
        if missing is None:
            raise
        typer.echo(f"error: {missing}", err=True)
        raise typer.Exit(2) from None
    except KeyboardInterrupt:
        typer.echo(f"interrupted: {kept}", err=True)
        raise typer.Exit(130) from None
