"""The commands that run and manage a service: `serve`, `doctor`, `backup`, `restore`, `keys`."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .client import client
from .errors import report_errors

if TYPE_CHECKING:
    from ..service.decision_service import DecisionService
    from ..service.parts.keys import ApiKey

STORE = "decoupled.db"

Store = Annotated[
    str,
    typer.Option(
        envvar="DECOUPLED_STORE", metavar="PATH|postgresql://...", help="Where everything is stored."
    ),
]

keys = typer.Typer(help="API keys of a store: make, list, rotate, revoke.", no_args_is_help=True)


def add_to(app: typer.Typer) -> None:
    """Add the service's commands."""
    app.command()(serve)
    app.command()(doctor)
    app.command()(backup)
    app.command()(restore)
    app.add_typer(keys, name="keys")
    app.add_typer(client, name="client")


def serve(
    store: Store = STORE,
    host: Annotated[
        str, typer.Option(help="Address to listen on; any but loopback needs keys.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port; 0 for a free one.")] = 8000,
    tls_certificate: Annotated[Path | None, typer.Option(help="Certificate chain, PEM.")] = None,
    tls_key: Annotated[Path | None, typer.Option(help="Private key of the certificate, PEM.")] = None,
    backups: Annotated[Path | None, typer.Option(help="Folder that POST /v1/backups writes to.")] = None,
    body_limit: Annotated[int, typer.Option(min=1024, help="Largest body, in bytes.")] = 1_048_576,
    rate: Annotated[
        float, typer.Option(min=0.0, help="Requests a second for each key; 0 for no limit.")
    ] = 10_000.0,
    burst: Annotated[float, typer.Option(min=1.0, help="Requests that may arrive at once.")] = 20_000.0,
    experiments_in_memory: Annotated[
        int, typer.Option(min=1, help="Experiments kept in memory; others are restored when they are used.")
    ] = 2_000,
    drain: Annotated[
        int, typer.Option(min=1, help="Seconds that open requests have to finish on shutdown.")
    ] = 30,
    access_log: Annotated[
        bool, typer.Option("--access-log", help="Log every request, without secrets.")
    ] = False,
) -> None:
    """Run the decision service: decisions over HTTP, and everything it acknowledges is on disk."""
    with report_errors("the service has ended"):
        from ..service.http.limits import Limits
        from ..service.http.server import Serving, run

        limits = Limits(body=body_limit, rate=rate, burst=burst)
        serving = Serving(
            store, host, port, tls_certificate, tls_key, backups, access_log, drain=drain, limits=limits,
            experiments_in_memory=experiments_in_memory,
        )  # fmt: skip
        run(serving)


def doctor(store: Store = STORE) -> None:
    """Check a store: its versions, its disk, the clock, and its log against its state."""
    with report_errors():
        from ..service.analysis.doctor import examine

        sound = True
        for check in examine(store):
            sound = sound and check.good
            typer.echo(f"{'ok  ' if check.good else 'FAIL'} {check.name}: {check.finding}")
    if not sound:
        raise typer.Exit(1)


def backup(
    file: Annotated[Path, typer.Argument(help="The copy to write; it opens as a store.")],
    store: Store = STORE,
    force: Annotated[
        bool, typer.Option("--force", help="Replace FILE if it exists, but never a store in use.")
    ] = False,
) -> None:
    """Write a consistent copy of a store, even while a service is using it."""
    with report_errors(), _opened(store) as service:
        service.logs.backup(file, force=force).result()
        typer.echo(f"Written to {file}")


def restore(
    file: Annotated[Path, typer.Argument(help="A file that backup wrote.")], store: Store = STORE
) -> None:
    """Copy a backup into a store that is empty or does not exist yet."""
    with report_errors():
        from ..service.store.backup import restore as copy_back

        typer.echo(f"Restored {copy_back(file, store)} experiments into {store}")


@contextmanager
def _opened(store: str) -> Iterator["DecisionService"]:
    """The service over an existing store, for the length of a command."""
    from ..service.decision_service import open_service

    service = open_service(store, create=False)
    try:
        yield service
    finally:
        service.close()


# Keys


@keys.command("add")
def keys_add(
    store: Store = STORE,
    role: Annotated[
        str, typer.Option(help="read, decide or admin; each includes those before it.")
    ] = "decide",
    tenant: Annotated[
        str, typer.Option(help="Whose experiments; 'local' also manages the instance.")
    ] = "local",
    label: Annotated[str, typer.Option(help="A label to recognise it by.")] = "",
) -> None:
    """Make a key and show it once; only its digest is stored."""
    from ..service.http.auth import checked_role, digest_of, new_key

    with report_errors(), _opened(store) as service:
        key = new_key()
        made = service.keys.add(checked_tenant(tenant), checked_role(role), digest_of(key), label).result()
        typer.echo(f"Key {key_id(made)} ({made.role} of {made.tenant}); it is shown only once:", err=True)
        typer.echo(key)


@keys.command("list")
def keys_list(store: Store = STORE) -> None:
    """List keys: id, tenant, role, label, and when they were made and revoked. Never the keys themselves."""
    with report_errors(), _opened(store) as service:
        from ..service.experiment.records import moment

        for key in service.keys.list().result():
            state = "active" if key.revoked_at is None else f"revoked {moment(key.revoked_at)}"
            typer.echo(
                f"{key_id(key)}  {key.tenant}  {key.role}  {key.label!r}  made {moment(key.created_at)}  {state}"
            )


@keys.command("revoke")
def keys_revoke(
    id: Annotated[str, typer.Argument(help="The id that keys list shows.")],  # noqa: A002
    store: Store = STORE,
) -> None:
    """Revoke a key; running services refuse it from now on."""
    with report_errors(), _opened(store) as service:
        service.keys.revoke(_active(service, id).digest).result()
        typer.echo(f"Key {id} is revoked.")


@keys.command("rotate")
def keys_rotate(
    id: Annotated[str, typer.Argument(help="The key to replace.")],  # noqa: A002
    store: Store = STORE,
    keep_old: Annotated[
        bool, typer.Option("--keep-old", help="Leave the old key active; revoke it later.")
    ] = False,
) -> None:
    """Make a key with the tenant, role and label of another, and revoke that one."""
    from ..service.http.auth import digest_of, new_key

    with report_errors(), _opened(store) as service:
        old = _active(service, id)
        key = new_key()
        made = service.keys.add(old.tenant, old.role, digest_of(key), old.label).result()
        if not keep_old:
            service.keys.revoke(old.digest).result()
        typer.echo(f"Key {key_id(made)} replaces {id}; it is shown only once:", err=True)
        typer.echo(key)


def key_id(key: "ApiKey") -> str:
    """The id of a key: the start of its digest, from which the key cannot be found."""
    return key.digest[:12]


def _active(service: "DecisionService", id: str) -> "ApiKey":  # noqa: A002
    from ..errors import ParameterError, invalid_value

    for key in service.keys.list().result():
        if key_id(key) == id and key.revoked_at is None:
            return key
    raise ParameterError(invalid_value("key", id, "is not an active key", "see decoupled keys list"))


def checked_tenant(tenant: str) -> str:
    """A tenant's name.

    >>> checked_tenant("shop-7")
    'shop-7'
    """
    import re

    from ..errors import ParameterError, invalid_value

    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}", tenant):
        rule = "must be 1 to 100 letters, digits, dots, dashes or underscores"
        raise ParameterError(invalid_value("tenant", tenant, rule, "choose another name"))
    return tenant
