"""Runs and manages a service: `serve`, `health`, `migrate`, `doctor`, `backup`, `restore`, `audit`, `keys`."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer import Argument, Option

from decoupled.cli import AuditAction, AuditLimit, AuditSubject, AuditTenant, report_errors

from ..options.definitions import LISTENING, SERVE, STORES
from ..options.kinds import choice, experiment_name, shown, shown_store
from ..options.sources import OptionValues
from .options import ends_on_sigterm, loading, takes_serve_options, takes_store

if TYPE_CHECKING:
    from ..service.api.keys import ApiKey
    from ..service.experiment.records import AuditRecord
    from ..service.service import DecisionService

ANY_ADDRESS = {"0.0.0.0": "127.0.0.1", "::": "::1", "": "127.0.0.1"}
_LONGEST = 200  # characters of a value in a line of the audit trail
keys = typer.Typer(help="API keys of a store: make, list, rotate, revoke.", no_args_is_help=True)


@takes_serve_options(SERVE, warn=True)
def serve(settings: OptionValues) -> None:
    """Run the decision service over HTTP. Everything it acknowledges is on disk."""
    with report_errors("the service has ended", flags=False), ends_on_sigterm():
        with loading():
            from ..service.http.admission import Limits
            from ..service.http.server import Serving, run

        options = (option for option in SERVE if option.name != "store-file")
        given = {option.identifier: settings[option.name] for option in options}
        limits = Limits(
            body=given.pop("body_limit"), rate=given.pop("rate"), burst=given.pop("burst"),
            replay=given.pop("replay_limit"),
        )  # fmt: skip
        delete_after = 86_400.0 * given.pop("delete_after")  # days
        run(Serving(**given, limits=limits, delete_after=delete_after))


@takes_serve_options(STORES, warn=True)
def migrate(settings: OptionValues) -> None:
    """Create the tables of a store, or update those of an earlier release, and exit."""
    with report_errors():
        from ..service.store.open import migrated

        where, before, after = migrated(settings["store"])
        updated = f"updated from {before}" if before else "created"
        typer.echo(
            f"Store {where}: version {after}, {'nothing to do' if before == after else updated}"
        )


@takes_store
def doctor(settings: OptionValues) -> None:
    """Check a store: its versions, its disk, the clock, and its log against its state."""
    with report_errors():
        from ..service.analysis.doctor import examine

        sound = True
        for check in examine(settings["store"]):
            sound = sound and check.good
            typer.echo(f"{'ok  ' if check.good else 'FAIL'} {check.name}: {check.finding}")
    if not sound:
        raise typer.Exit(1)


@takes_store
def backup(
    settings: OptionValues,
    file: Annotated[Path, Argument(help="The copy to write; it opens as a store.")],
    force: Annotated[
        bool, Option("--force", help="Replace FILE if it exists, but never a store in use.")
    ] = False,
) -> None:
    """Write a consistent copy of a store, even while a service is using it."""
    with report_errors(), _opened(settings["store"]) as service:
        service.logs.backup(file, force=force).result()
        typer.echo(f"Written to {file}")


@takes_store
def restore(
    settings: OptionValues, file: Annotated[Path, Argument(help="A file that backup wrote.")]
) -> None:
    """Copy a backup into a store that is empty or does not exist yet."""
    with report_errors():
        from ..service.experiment.request_context import ORIGIN, from_command_line
        from ..service.store.backup import restore as copy_back

        ORIGIN.set(from_command_line())
        store = settings["store"]
        typer.echo(f"Restored {copy_back(file, store)} experiments into {shown_store(store)}")


@takes_store
def audit(
    settings: OptionValues,
    subject: AuditSubject = None,
    action: AuditAction = None,
    tenant: AuditTenant = None,
    limit: AuditLimit = 100,
) -> None:
    """Show who changed what, newest first, from the store itself."""
    with report_errors(), _opened(settings["store"]) as service:
        for entry in service.audit.read(
            tenant, subject=subject, action=action, limit=limit
        ).result():
            typer.echo(audit_line(entry))


def audit_line(entry: "AuditRecord") -> str:
    """A change as one line.

    >>> from decoupled_serve.service.experiment.records import AuditRecord
    >>> change = AuditRecord(7, 0.0, "local", "budget.set", "models", "key 3f29", "till", "r-1", {}, {"share": 0.1})
    >>> audit_line(change)
    '1970-01-01T00:00:00.000000Z  local  budget.set  models  by key 3f29 (till)  request r-1  {} -> {"share": 0.1}'
    """
    from ..service.experiment.records import moment

    who = entry.caller + (f" ({entry.label})" if entry.label else "")
    request = f"  request {entry.request}" if entry.request is not None else ""
    what = f"{entry.tenant}  {entry.action}  {entry.subject}"
    return (
        f"{moment(entry.at)}  {what}  by {who}{request}  {_short(entry.old)} -> {_short(entry.new)}"
    )


def _short(value: Any) -> str:
    if value is None:
        return "nothing"
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 3]}..."


@contextmanager
def _opened(store: str) -> Iterator["DecisionService"]:
    """The service over an existing store, for the length of a command."""
    from ..service.experiment.request_context import ORIGIN, from_command_line
    from ..service.service import open_service

    ORIGIN.set(from_command_line())
    service = open_service(store, create=False)
    try:
        yield service
    finally:
        service.close()


@keys.command("new")
def keys_new() -> None:
    """Print a new key, for the file of --admin-key-file. It is not stored."""
    from ..service.http.admission import new_key

    typer.echo(new_key())


@keys.command("add")
@takes_store
def keys_add(
    settings: OptionValues,
    role: Annotated[
        str,
        Option(
            help="read, decide or admin, each of which includes those before it; or label, which can do nothing else."
        ),
    ] = "decide",
    tenant: Annotated[
        str, Option(help="Whose experiments; 'local' also manages the instance.")
    ] = "local",
    label: Annotated[str, Option(help="A label to recognise it by.")] = "",
) -> None:
    """Create a key and show it once; only its digest is stored."""
    from ..service.http.admission import ROLES, digest_of, new_key

    with report_errors(arguments=("role", "tenant")), _opened(settings["store"]) as service:
        key = new_key()
        whose, may = experiment_name("tenant", tenant), choice(*ROLES).check("role", role)
        made = service.keys.add(whose, may, digest_of(key), label).result()
        typer.echo(
            f"Key {made.id} ({made.role} of {made.tenant}); it is shown only once:", err=True
        )
        typer.echo(key)


@keys.command("list")
@takes_store
def keys_list(settings: OptionValues) -> None:
    """List keys: id, tenant, role, label, and when they were made and revoked. Never the keys themselves."""
    with report_errors(), _opened(settings["store"]) as service:
        from ..service.experiment.records import moment

        for key in service.keys.list().result():
            state = "active" if key.revoked_at is None else f"revoked {moment(key.revoked_at)}"
            made = f"made {moment(key.created_at)}"
            typer.echo(f"{key.id}  {key.tenant}  {key.role}  {key.label!r}  {made}  {state}")


@keys.command("revoke")
@takes_store
def keys_revoke(
    settings: OptionValues,
    id: Annotated[str, Argument(help="The id that keys list shows.")],  # noqa: A002
) -> None:
    """Revoke a key; running services refuse it from now on."""
    with report_errors(), _opened(settings["store"]) as service:
        service.keys.revoke(_active(service, id).digest).result()
        typer.echo(f"Key {id} is revoked.")


@keys.command("rotate")
@takes_store
def keys_rotate(
    settings: OptionValues,
    id: Annotated[str, Argument(help="The key to replace.")],  # noqa: A002
    keep_old: Annotated[
        bool, Option("--keep-old", help="Leave the old key active; revoke it later.")
    ] = False,
) -> None:
    """Create a key with the tenant, role and label of another, and revoke that one."""
    from ..service.http.admission import digest_of, new_key

    with report_errors(), _opened(settings["store"]) as service:
        old = _active(service, id)
        key = new_key()
        made = service.keys.rotate(old.digest, digest_of(key), keep_old=keep_old).result()
        typer.echo(f"Key {made.id} replaces {id}; it is shown only once:", err=True)
        typer.echo(key)


def _active(service: "DecisionService", id: str) -> "ApiKey":  # noqa: A002
    from decoupled.errors import ParameterError

    for key in service.keys.list().result():
        if key.id == id and key.revoked_at is None:
            return key
    raise ParameterError.of("key", id, "is not an active key", "see decoupled keys list")


@takes_serve_options(LISTENING)
def health(
    settings: OptionValues,
    url: Annotated[
        str | None, Option(help="Where the service is. Default: where it listens by its options.")
    ] = None,
    ready: Annotated[
        bool, Option("--ready", help="Ask whether it can decide, not just whether it answers.")
    ] = False,
    timeout: Annotated[float, Option(min=0.1, help="Seconds to wait for the answer.")] = 5.0,
) -> None:
    """Check the service on this machine; exit with 1 if it is not healthy."""
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
        typer.echo(
            f"{target}: {error.code} {error.read(1000).decode('utf-8', 'replace')}", err=True
        )
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
    return f"{scheme}://{shown((host, settings['port']))}"
