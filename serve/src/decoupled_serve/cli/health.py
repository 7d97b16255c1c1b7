"""Asks a service whether it is well, for the health check of a container: `decoupled health`."""

from typing import Annotated

import typer

from ..options.definitions import LISTENING
from ..options.sources import OptionValues
from .options import takes_serve_options

ANY_ADDRESS = {"0.0.0.0": "127.0.0.1", "::": "::1", "": "127.0.0.1"}


@takes_serve_options(LISTENING)
def health(
    settings: OptionValues,
    url: Annotated[
        str | None, typer.Option(help="Where the service is. Default: where it listens by its options.")
    ] = None,
    ready: Annotated[
        bool, typer.Option("--ready", help="Ask whether it can decide, not just whether it answers.")
    ] = False,
    timeout: Annotated[float, typer.Option(min=0.1, help="Seconds to wait for the answer.")] = 5.0,
) -> None:
    """Ask the service on this machine whether it is well; exit with 1 if it is not."""
    import ssl  # these take longer to load than all the rest of the command line
    import urllib.error
    import urllib.request

    target = (url or address_of(settings)).rstrip("/") + ("/readyz" if ready else "/healthz")
    try:
        trust = ssl.create_default_context()
        if url is None:  # the certificate names the service as clients reach it, not the loopback
            trust.check_hostname, trust.verify_mode = False, ssl.CERT_NONE
        with urllib.request.urlopen(target, timeout=timeout, context=trust) as answer:
            typer.echo(f"{target}: {answer.status}")
    except urllib.error.HTTPError as error:
        typer.echo(f"{target}: {error.code} {error.read(1000).decode('utf-8', 'replace')}", err=True)
        raise typer.Exit(1) from None
    except (OSError, ValueError) as error:
        typer.echo(f"{target}: no answer ({getattr(error, 'reason', error)})", err=True)
        raise typer.Exit(1) from None


def address_of(settings: OptionValues) -> str:
    """The address of a service on this machine.

    >>> from decoupled_serve.options.sources import resolved
    >>> address_of(resolved(LISTENING, {"host": "0.0.0.0", "port": "9000"}, {}))
    'http://127.0.0.1:9000'
    """
    host = ANY_ADDRESS.get(settings["host"], settings["host"])
    scheme = "http" if settings["tls-certificate"] is None else "https"
    return f"{scheme}://{f'[{host}]' if ':' in host else host}:{settings['port']}"
