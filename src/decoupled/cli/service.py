"""The service's part of the command line: parsing only; what a command needs is imported when it runs."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .errors import report_errors

if TYPE_CHECKING:
    from ..service.client.sync import Client
    from ..service.commands.keys import ApiKey
    from ..service.desk import Desk

STORE = "decoupled.db"

Store = Annotated[
    str,
    typer.Option(
        envvar="DECOUPLED_STORE", metavar="PATH|postgresql://...", help="Where everything is kept."
    ),
]
Url = Annotated[str, typer.Option(envvar="DECOUPLED_URL", help="Where the service is.")]
KeyFile = Annotated[
    Path | None,
    typer.Option(
        "--key-file", help="A file with the API key; or set DECOUPLED_KEY. Never an option: others see it."
    ),
]

keys = typer.Typer(help="API keys of a store: make, list, rotate, revoke.", no_args_is_help=True)
client = typer.Typer(help="Talk to a running service from the shell.", no_args_is_help=True)


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
        str, typer.Option(help="Address to listen on; off loopback keys are needed.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port; 0 for a free one.")] = 8000,
    tls_certificate: Annotated[Path | None, typer.Option(help="Certificate chain, PEM.")] = None,
    tls_key: Annotated[Path | None, typer.Option(help="Private key of the certificate, PEM.")] = None,
    backups: Annotated[Path | None, typer.Option(help="Folder that POST /v1/backups writes to.")] = None,
    body_limit: Annotated[int, typer.Option(min=1024, help="Largest body, in bytes.")] = 1_048_576,
    rate: Annotated[
        float, typer.Option(min=0.0, help="Requests a second for each key; 0 for no limit.")
    ] = 10_000.0,
    burst: Annotated[float, typer.Option(min=1.0, help="Requests that may come at once.")] = 20_000.0,
    drain: Annotated[int, typer.Option(min=1, help="Seconds for open requests when asked to end.")] = 30,
    access_log: Annotated[
        bool, typer.Option("--access-log", help="Log every request, without secrets.")
    ] = False,
) -> None:
    """Run the decision service: decisions over HTTP, and nothing acknowledged that is not on disk."""
    with report_errors("the service has ended"):
        from ..service.http.rate_limit import Limits
        from ..service.http.server import Serving, run

        limits = Limits(body=body_limit, rate=rate, burst=burst)
        run(
            Serving(
                store,
                host,
                port,
                tls_certificate,
                tls_key,
                backups,
                access_log=access_log,
                drain=drain,
                limits=limits,
            )
        )


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
        bool, typer.Option("--force", help="Replace FILE if it exists; a store in use never is.")
    ] = False,
) -> None:
    """Write a consistent copy of a store, also while a service runs on it."""
    with report_errors(), _Opened(store) as desk:
        desk.backup(file, force=force).result()
        typer.echo(f"Written to {file}")


def restore(file: Annotated[Path, typer.Argument(help="What backup wrote.")], store: Store = STORE) -> None:
    """Copy a backup into a store that is empty or not there yet."""
    with report_errors():
        from ..service.store.backup import restore as copy_back

        typer.echo(f"Restored {copy_back(file, store)} experiments into {store}")


class _Opened:
    """A store that is there, for the length of a command."""

    def __init__(self, store: str) -> None:
        self._store = store

    def __enter__(self) -> "Desk":
        from ..service.desk import open_desk

        self._desk = open_desk(self._store, create=False)
        return self._desk

    def __exit__(self, *_: object) -> None:
        self._desk.close()


# Keys


@keys.command("add")
def keys_add(
    store: Store = STORE,
    role: Annotated[
        str, typer.Option(help="read, decide or admin; each may do what those before it may.")
    ] = "decide",
    tenant: Annotated[
        str, typer.Option(help="Whose experiments; 'local' also sees to the instance.")
    ] = "local",
    label: Annotated[str, typer.Option(help="To know it by.")] = "",
) -> None:
    """Make a key and show it once; only its digest is kept."""
    from ..service.api_keys import checked_role, digest_of, new_key

    with report_errors(), _Opened(store) as desk:
        key = new_key()
        made = desk.keys_add(checked_tenant(tenant), checked_role(role), digest_of(key), label).result()
        typer.echo(f"Key {key_id(made)} ({made.role} of {made.tenant}); it is shown only now:", err=True)
        typer.echo(key)


@keys.command("list")
def keys_list(store: Store = STORE) -> None:
    """List keys: id, tenant, role, label, when they were made and revoked. No key can be read from them."""
    with report_errors(), _Opened(store) as desk:
        from ..service.experiment.times import moment

        for key in desk.keys_list().result():
            state = "active" if key.revoked_at is None else f"revoked {moment(key.revoked_at)}"
            typer.echo(
                f"{key_id(key)}  {key.tenant}  {key.role}  {key.label!r}  made {moment(key.created_at)}  {state}"
            )


@keys.command("revoke")
def keys_revoke(
    id: Annotated[str, typer.Argument(help="As keys list shows it.")],  # noqa: A002
    store: Store = STORE,
) -> None:
    """End a key; running services refuse it within seconds."""
    with report_errors(), _Opened(store) as desk:
        desk.keys_revoke(_active(desk, id).digest).result()
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
    from ..service.api_keys import digest_of, new_key

    with report_errors(), _Opened(store) as desk:
        old = _active(desk, id)
        key = new_key()
        made = desk.keys_add(old.tenant, old.role, digest_of(key), old.label).result()
        if not keep_old:
            desk.keys_revoke(old.digest).result()
        typer.echo(f"Key {key_id(made)} replaces {id}; it is shown only now:", err=True)
        typer.echo(key)


def key_id(key: "ApiKey") -> str:
    """How a key is named: by the start of its digest, from which it cannot be found."""
    return key.digest[:12]


def _active(desk: "Desk", id: str) -> "ApiKey":  # noqa: A002
    from ..errors import ParameterError, invalid_value

    for key in desk.keys_list().result():
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


# Client

URL = "http://127.0.0.1:8000"


def _client(url: str, key_file: Path | None) -> "Client":
    from ..service.client.exchange import KEY_VARIABLE, Remedies
    from ..service.client.sync import Client

    class ShellClient(Client):
        remedies = Remedies(
            key=f"pass --key-file, or set {KEY_VARIABLE}",
            url="is `decoupled serve` running there? pass its address with --url, or set DECOUPLED_URL",
            undelivered="run the command again",
        )

    key = None if key_file is None else key_file.read_text().strip()
    return ShellClient(url, key, notify=lambda reason: typer.echo(f"Waiting: {reason}", err=True))


def _show(content: Any) -> None:
    typer.echo(json.dumps(content, indent=1, ensure_ascii=False))


def _at_this_moment(interval: dict[str, float] | None) -> dict[str, Any] | None:
    """An interval that says what it holds for: not for looking again and again."""
    return None if interval is None else {**interval, "interval": "95 %, at this moment"}


def _described(policy: str) -> dict[str, Any]:
    """A policy as the service takes it, by its name or in JSON."""
    from ..errors import ParameterError, invalid_value

    if policy == "recommended":  # what it was called before presets had names
        policy = "FTPL.recommended"
    if not policy.lstrip().startswith("{"):
        return {"name": policy}
    try:
        described: dict[str, Any] = json.loads(policy)
    except ValueError as error:
        raise ParameterError(
            invalid_value(
                "--policy", policy, f"is not JSON ({error})", "give a name, or what policy.to_json() gives"
            )
        ) from None
    return described


@client.command("create")
def client_create(
    name: Annotated[str, typer.Argument(help="The experiment.")],
    arms: Annotated[list[str], typer.Argument(help="Its arms, two or more.")],
    policy: Annotated[
        str, typer.Option(help="A policy's name, such as FTPL or FTPL.recommended, or its JSON.")
    ] = "FTPL.recommended",
    loss_range: Annotated[
        tuple[float, float],
        typer.Option(metavar="LOW HIGH", help="The lowest and the highest loss there can be."),
    ] = (0.0, 1.0),
    deadline: Annotated[float | None, typer.Option(help="Seconds that feedback may take.")] = None,
    expired_loss: Annotated[
        float | None,
        typer.Option(help="The loss that a decision counts as after its deadline; nothing if not given."),
    ] = None,
    seed: Annotated[
        int | None, typer.Option(help="Seed of the draws, for tests; fresh randomness if not given.")
    ] = None,
    demo: Annotated[
        bool, typer.Option("--demo", help="For test traffic only: the console may send it made-up losses.")
    ] = False,
    url: Url = URL,
    key_file: KeyFile = None,
) -> None:
    """Create an experiment."""
    with report_errors(), _client(url, key_file) as service:
        _show(
            service.put_experiment(
                name,
                policy=_described(policy),
                arms=arms,
                loss_range=loss_range,
                deadline_seconds=deadline,
                expired_loss=expired_loss,
                seed=seed,
                demo=demo,
            )
        )


@client.command("decide")
def client_decide(
    name: Annotated[str, typer.Argument(help="The experiment.")],
    mode: Annotated[str, typer.Option(help="both, exploit or explore.")] = "both",
    url: Url = URL,
    key_file: KeyFile = None,
) -> None:
    """Ask for a decision. The loss to send back is that of its *explored* arm."""
    from dataclasses import asdict

    with report_errors(), _client(url, key_file) as service:
        decision = service.decide(name, mode=mode)  # type: ignore[call-overload]
        _show({**asdict(decision), "send_back_the_loss_of": decision.explore})


@client.command("feedback")
def client_feedback(
    decision: Annotated[str, typer.Argument(help="The decision's id.")],
    loss: Annotated[float | None, typer.Option(help="The loss of the *explored* arm.")] = None,
    reward: Annotated[float | None, typer.Option(help="Or its reward.")] = None,
    arm: Annotated[
        str | None,
        typer.Option(help="Whose loss it is, as a safeguard: any but the explored arm is refused."),
    ] = None,
    url: Url = URL,
    key_file: KeyFile = None,
) -> None:
    """Send the loss, or the reward, of the arm that a decision *explored*."""
    from dataclasses import asdict

    from ..service.errors import neither_or_both

    wrong = neither_or_both(loss is not None, reward is not None, "--loss", "--reward")
    if wrong is not None:
        raise typer.BadParameter("; ".join(wrong))
    with report_errors(), _client(url, key_file) as service:
        explored = None if arm is None else service.decision(decision).explore
        whose = explored if str(explored) == arm else arm  # an arm may be a number
        applied = service.feedback(decision, loss=loss, reward=reward, arm=whose)
        assert applied is not None  # without an outbox it is applied, or an error
        _show(asdict(applied))


@client.command("show")
def client_show(
    name: Annotated[
        str | None, typer.Argument(help="An experiment; all are listed if none is named.")
    ] = None,
    url: Url = URL,
    key_file: KeyFile = None,
) -> None:
    """Show what an experiment has learned, or list the experiments."""
    with report_errors(), _client(url, key_file) as service:
        if name is None:
            _show(service.experiments())
            return
        state = service.state(name)
        _show({**state, "regret": _at_this_moment(state["regret"])})


@client.command("evaluate")
def client_evaluate(
    name: Annotated[str, typer.Argument(help="The experiment.")], url: Url = URL, key_file: KeyFile = None
) -> None:
    """The value of every arm and of what was exploited, from the log, with intervals at this moment."""
    with report_errors(), _client(url, key_file) as service:
        found = service.evaluation(name)
        arms = [{**each, "value": _at_this_moment(each["value"])} for each in found["arms"]]
        _show({**found, "arms": arms, "exploited": _at_this_moment(found["exploited"])})


@client.command("log")
def client_log(
    name: Annotated[str, typer.Argument(help="The experiment.")],
    file: Annotated[Path, typer.Argument(help="A new file; its ending, .csv or .parquet, is its format.")],
    format: Annotated[  # noqa: A002
        str | None, typer.Option(help="csv or parquet, whatever the ending.")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace FILE if it exists.")] = False,
    url: Url = URL,
    key_file: KeyFile = None,
) -> None:
    """Write the log of an experiment to a file."""
    from ..service.client.log_file import format_of

    with report_errors(), _client(url, key_file) as service:
        kind = format_of(file, format)
        _check_new(file, force)
        service.log(name, file, kind, overwrite=force)
        typer.echo(f"Written to {file}")


def _check_new(file: Path, force: bool) -> None:
    """Refuse to replace a file before the work is done, if not forced."""
    from ..errors import ParameterError, invalid_value

    if file.is_file() and not force:
        rule, remedy = "exists already", "choose another name, or replace it with --force"
        raise ParameterError(invalid_value("FILE", str(file), rule, remedy))


@client.command("archive")
def client_archive(
    name: Annotated[str, typer.Argument(help="The experiment.")], url: Url = URL, key_file: KeyFile = None
) -> None:
    """End an experiment: it decides no more, and still takes feedback."""
    with report_errors(), _client(url, key_file) as service:
        _show(service.archive(name))
