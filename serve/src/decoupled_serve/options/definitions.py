"""Every option of `decoupled serve` and `decoupled mirror`. To add one, add a line here.

Its flag, its variable, its key in the file, its help, and its row in docs/settings.md follow from
that line (`python docs/tools/lists.py` writes the rows).
"""

from dataclasses import dataclass
from typing import Any

from .kinds import (
    ADDRESS,
    CONSOLE,
    EXPERIMENT,
    PATH,
    STORE,
    SWITCH,
    TEXT,
    URL,
    Kind,
    choice,
    number,
    whole,
)

PREFIX = "DECOUPLED_"


@dataclass(frozen=True)
class Option:
    """An option that a flag, a variable and a key of a file can set.

    >>> from decoupled_serve.options.kinds import whole
    >>> limit = Option("body-limit", whole(1024), 1_048_576, "Largest body, in bytes.", key="serve.body_limit")
    >>> limit.flag, limit.variable, limit.key, limit.shown_default
    ('--body-limit', 'DECOUPLED_BODY_LIMIT', 'serve.body_limit', '1048576')
    """

    name: str  # its name, as in its flag
    kind: Kind  # what values it takes
    default: Any  # its value if nothing sets it
    meaning: str  # one sentence for the help and the documentation
    key: str  # its key in the file, with the tables that it is in
    fills: str | None = None  # the option that gets the content of the file which this one names

    @property
    def flag(self) -> str:
        """The flag of the command."""
        return f"--{self.name}"

    @property
    def identifier(self) -> str:
        """The name as Python writes it."""
        return self.name.replace("-", "_")

    @property
    def variable(self) -> str:
        """The environment variable."""
        return PREFIX + self.identifier.upper()

    @property
    def shown_default(self) -> str:
        """The default in words, empty if there is none."""
        return "" if self.default is None else self.kind.show(self.default)


CONFIG = Option("config", PATH, None, "TOML file that sets options.", key="")


def _serve(name: str, kind: Kind, default: object, meaning: str, **more: str) -> Option:
    return Option(name, kind, default, meaning, f"serve.{name.replace('-', '_')}", **more)


def _mirror(
    name: str, kind: Kind, default: object, meaning: str, key: str = "", **more: str
) -> Option:
    return Option(name, kind, default, meaning, key or name.replace("-", "_"), **more)


STORES = (
    _serve("store", STORE, "decoupled.db", "Where everything is stored."),
    _serve(
        "store-file", PATH, None, "File with the store's address and its password.", fills="store"
    ),
)

LISTENING = (
    _serve("host", TEXT, "127.0.0.1", "Address to listen on; any but loopback needs keys."),
    _serve("port", whole(0, 65535), 8000, "Port; 0 for a free one."),
    _serve("tls-certificate", PATH, None, "Certificate chain, PEM."),
    _serve("tls-key", PATH, None, "Private key of the certificate, PEM."),
)

LOG_FORMAT = choice("text", "json")

SERVE = (
    *STORES,
    *LISTENING,
    _serve("admin-key-file", PATH, None, "File with an admin key to add to the store."),
    _serve("backups", PATH, None, "Folder that POST /v1/backups writes to."),
    _serve("body-limit", whole(1024), 1_048_576, "Largest body, in bytes."),
    _serve("replay-limit", whole(1024), 67_108_864, "Largest log to replay, in bytes."),
    _serve("delete-after", number(0.0), 30.0, "Days before an archived experiment can be deleted."),
    _serve("rate", number(0.0), 10_000.0, "Requests a second for each key; 0 for no limit."),
    _serve("burst", number(1.0), 20_000.0, "Requests that may arrive at once."),
    _serve(
        "experiments-in-memory",
        whole(1),
        2_000,
        "Experiments in memory; others are restored on use.",
    ),
    _serve("drain", whole(1), 30, "Seconds for open requests to finish on shutdown."),
    _serve("access-log", SWITCH, False, "Log every request, without secrets."),
    _serve("log-format", LOG_FORMAT, "text", "text, or json: one object a line."),
    _serve(
        "metrics-experiments",
        whole(0, 10_000),
        0,
        "Experiments with their own metrics; 0 for none.",
    ),
    _serve(
        "otel", SWITCH, None, "Send to OpenTelemetry; on if OTEL_EXPORTER_OTLP_ENDPOINT is set."
    ),
)

_SHARE = "Share of the repeatable requests to mirror; for a sink, 1 by default."
MIRROR = (
    _mirror("listen", ADDRESS, ("127.0.0.1", 8080), "Address of the proxy; port 0 for a free one."),
    _mirror("sink", SWITCH, False, "Only take copies that another proxy makes."),
    _mirror("console", CONSOLE, ("127.0.0.1", 8081), "Address of the console, on loopback."),
    _mirror("store", STORE, "mirror.db", "Store of the embedded decision service."),
    _mirror("store-file", PATH, None, "File that contains the store's address.", fills="store"),
    _mirror("service", URL, None, "A decision service elsewhere, instead of a store."),
    _mirror("key-file", PATH, None, "File with the API key of that service."),
    _mirror("state-folder", PATH, None, "Folder to write to, if not that of the file."),
    _mirror("clients", whole(1), 1_000, "Requests served at a time; others get the status 503."),
    _mirror(
        "client-timeout", number(0.1), 60.0, "Seconds that a client may stay below 4 KiB a second."
    ),
    _mirror("drain", whole(1), 30, "Seconds to finish open answers on shutdown."),
    _mirror("experiment", EXPERIMENT, "mirror", "Name of the experiment.", "experiment.name"),
    _mirror("log-format", LOG_FORMAT, "text", "text, or json: one object a line."),
    _mirror("share", number(0.0, 1.0), 0.05, _SHARE, "mirror.share"),
)

# Variables that are no options of these two commands.
OTHER_VARIABLES = (
    "DECOUPLED_CONFIG", "DECOUPLED_DATA", "DECOUPLED_KEY", "DECOUPLED_KEY_FILE", "DECOUPLED_NATIVE",
    "DECOUPLED_OFFLINE", "DECOUPLED_URL",
)  # fmt: skip
