"""Running the service: checks before it listens, and an orderly shutdown."""

import errno
import gc
import logging
import os
import signal
import socket
import ssl
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import uvicorn

from decoupled.base import needed_for
from decoupled.errors import ParameterError
from decoupled.policies import FTPL, Ladder

from ...options.kinds import is_loopback, shown
from ..api.experiments import DELETE_AFTER
from ..memory.cache import MOST
from ..service import open_service
from ..store.open import is_postgres
from .admission import Limits, register_admin_key
from .app import create_app
from .observe.log_format import LogFormat, set_up_logging
from .transport.connection import connections_within

if TYPE_CHECKING:
    from .observe.telemetry import Telemetry

# Seconds for which a thread may keep the interpreter from another: about as long as a commit. With less they take turns
# too often, and a fifth of the traffic is lost; with more, requests wait for batches.
SWITCH_INTERVAL = 0.002
# The policies that most experiments use are compiled before the first experiment is created.
OFFERED = (Ladder(), FTPL())
log = logging.getLogger("decoupled.service")


@dataclass(frozen=True)
class Serving:
    """The options of `decoupled serve`; see its `--help`."""

    store: str
    host: str = "127.0.0.1"
    port: int = 8000
    tls_certificate: Path | None = None
    tls_key: Path | None = None
    backups: Path | None = None
    access_log: bool = False
    log_format: LogFormat = "text"
    metrics_experiments: int = 0
    otel: bool | None = None
    drain: int = 30
    experiments_in_memory: int = MOST
    limits: Limits = field(default_factory=Limits)
    delete_after: float = DELETE_AFTER
    admin_key_file: Path | None = None


def check(serving: Serving, *, any_key: bool) -> None:
    """Refuse unsafe options, and warn about doubtful ones."""
    if (serving.tls_certificate is None) != (serving.tls_key is None):
        raise ParameterError(
            "--tls-certificate, --tls-key: must be given together; give both, or none"
        )
    for name, file in (
        ("--tls-certificate", serving.tls_certificate),
        ("--tls-key", serving.tls_key),
    ):
        if file is not None and not os.access(file, os.R_OK):
            raise ParameterError.of(
                name, str(file), "cannot be read", "check the path and its permissions"
            )
    if serving.tls_certificate is not None:
        try:  # without a password, OpenSSL would ask the terminal for one
            found = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            found.load_cert_chain(serving.tls_certificate, serving.tls_key, password=b"")
        except OSError as error:  # which those of OpenSSL are, too
            rule = f"are no certificate and its key ({error})"
            remedy = "give PEM files that belong together, the key without a password"
            given = f"{serving.tls_certificate}, {serving.tls_key}"
            raise ParameterError.of("--tls-certificate, --tls-key", given, rule, remedy) from None
    if serving.backups is not None and not serving.backups.is_dir():
        raise ParameterError.of(
            "--backups", str(serving.backups), "is not a folder", "create it first"
        )
    if is_loopback(serving.host):
        if not any_key:
            log.warning("no keys: everyone who can reach %s on this machine is admin", serving.host)
        return
    if not any_key:
        rule = "is not loopback, and the store has no key"
        named = (
            "..." if is_postgres(serving.store) else serving.store
        )  # an address may contain a password
        make = f"make one with `decoupled keys add --store {named} --role admin`"
        remedy = f"{make}, give --admin-key-file, or serve on 127.0.0.1"
        raise ParameterError.of("--host", serving.host, rule, remedy)
    if serving.tls_certificate is None:
        unless = "unless a proxy in front of this service encrypts them"
        log.warning("no TLS: keys are sent unencrypted %s", unless)


def run(serving: Serving) -> None:
    """Serve until SIGTERM or SIGINT; then finish the open requests, and close the store."""
    set_up_logging(serving.log_format, access_log=serving.access_log)
    telemetry = telemetry_of(serving)
    most = serving.experiments_in_memory
    service = open_service(
        serving.store, delete_after=serving.delete_after, experiments_in_memory=most
    )
    try:
        if serving.admin_key_file is not None:
            register_admin_key(service.keys, serving.admin_key_file)
        any_key = any(key.revoked_at is None for key in service.keys.list().result())
        check(serving, any_key=any_key)
        open_to_all = is_loopback(serving.host) and not any_key
        app = create_app(
            service,
            open_to_all=open_to_all,
            limits=serving.limits,
            backups=serving.backups,
            metrics_experiments=serving.metrics_experiments,
            telemetry=telemetry,
        )
        sys.setswitchinterval(SWITCH_INTERVAL)
        outermost = app if telemetry is None else telemetry.traced(app)
        server = uvicorn.Server(configuration(outermost, serving))
        # A signal that arrives before uvicorn handles them must not be lost. After draining, uvicorn raises the
        # signal again for earlier handlers. It must not end the process then, because the store is still to be closed.
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: setattr(server, "should_exit", True))
        with listening(serving.host, serving.port) as listener:
            scheme = "http" if serving.tls_certificate is None else "https"
            print(f"Serving on {scheme}://{shown(listener.getsockname()[:2])}", flush=True)
            service.compile_stored(OFFERED)
            service.deletion.resume()
            # What is loaded by now stays to the end. A full collection would look at it while every request waits: 45 ms.
            gc.collect()
            gc.freeze()
            server.run(sockets=[listener])
    finally:
        service.close()
        if telemetry is not None:
            telemetry.close()
    if service.still_compiling():
        # The compiler cannot be interrupted, and everything is on disk: there is no reason to wait for it.
        logging.shutdown()
        sys.stdout.flush()
        os._exit(0)


def telemetry_of(serving: Serving) -> "Telemetry | None":
    """OpenTelemetry, if it is asked for by --otel or by the environment."""
    from .observe.telemetry_settings import is_wanted

    if not is_wanted(serving.otel, os.environ):
        return None
    with needed_for("--otel", "use --no-otel"):
        from .observe.telemetry import Telemetry
    return Telemetry.from_environment()


def configuration(app: object, serving: Serving) -> uvicorn.Config:
    """The configuration of uvicorn for the service."""
    tls = {"ssl_certfile": serving.tls_certificate, "ssl_keyfile": serving.tls_key}
    return uvicorn_config(app, connections_within(serving.limits), serving.drain, **tls)


def uvicorn_config(app: object, http: Any, drain: int, **others: Any) -> uvicorn.Config:
    """A configuration of uvicorn without its own access log, which would show query strings."""
    return uvicorn.Config(
        app,  # type: ignore[arg-type]
        http=http,
        loop="auto",  # uvloop where it is installed, which is everywhere but on Windows
        ws="none",
        lifespan="off",
        access_log=False,
        log_config=None,
        log_level="warning",
        proxy_headers=False,
        server_header=False,
        timeout_keep_alive=75,  # seconds between two requests
        timeout_graceful_shutdown=drain,
        **others,
    )


def listening(host: str, port: int) -> socket.socket:
    """A listening socket; port 0 takes a free port, and a port in use is an error of one line."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    if os.name == "posix":  # on Windows, two programs could then listen on one port
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
        listener.listen(2048)  # from here on, clients that connect wait and are not refused
    except OSError as error:
        listener.close()
        if error.errno == errno.EADDRINUSE:
            rule = f"is in use on {host}"
            remedy = "choose another with --port, or 0 for any free port"
            raise ParameterError.of("--port", port, rule, remedy) from None
        raise
    return listener
