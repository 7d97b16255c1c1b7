"""Runs a mirror: two sockets, one event loop, and an orderly end."""

import asyncio
import json
import logging
import os
import signal
import sys
from collections.abc import Callable, Coroutine, Generator
from contextlib import ExitStack, contextmanager, suppress
from socket import socket
from typing import Any

import uvicorn
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from decoupled.client import AsyncClient
from decoupled.errors import ParameterError, reworded

from ..options.kinds import shown
from ..service.http.admission import Limits
from ..service.http.app import create_app
from ..service.http.observe.log_format import set_up_logging
from ..service.http.server import (
    OFFERED,
    SWITCH_INTERVAL,
    Serving,
    configuration,
    listening,
    uvicorn_config,
)
from ..service.http.transport.connection import connections_within
from ..service.http.transport.gateway import LOOPBACK, name_in
from ..service.service import DecisionService, open_service
from ..service.store.open import is_postgres
from .backend import Backend, Embedded, Remote
from .config import MirrorConfig
from .counts import MirrorMetrics
from .mirror import Mirror

_log = logging.getLogger("decoupled.mirror")


class _Server(uvicorn.Server):
    """A server that leaves signals to its owner, because there are two of them."""

    @contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        yield


def server_settings(app: ASGIApp | None, drain: int, seconds: float) -> uvicorn.Config:
    """The configuration of the server in front of the proxy. An answer has the date of its arm, which works for nobody."""
    http = connections_within(Limits(body_seconds=seconds), cancel=True)
    return uvicorn_config(app, http, drain, date_header=False)


def run(config: MirrorConfig) -> None:
    """Mirror until SIGTERM or SIGINT; then finish the open answers and the queued copies, and close the store."""
    set_up_logging(config.log_format)
    # Else it would log every request to a service or a judge.
    logging.getLogger("httpx").setLevel(logging.WARNING)
    with ExitStack() as opened:
        proxy = opened.enter_context(_listening(config.listen, "listen"))
        console = None
        if config.console is not None:
            console = opened.enter_context(_listening(config.console, "console"))
        service = None if config.service is not None else open_store_of(config)
        sys.setswitchinterval(SWITCH_INTERVAL)
        settings = server_settings(None, config.drain, config.client_timeout)
        with asyncio.Runner(loop_factory=settings.get_loop_factory()) as runner:
            runner.run(_until_signal(config, service, proxy, console))
    if service is not None and service.still_compiling():
        # The compiler cannot be interrupted, and everything is on disk: there is no reason to wait.
        logging.shutdown()
        sys.stdout.flush()
        os._exit(0)


def open_store_of(config: MirrorConfig, *, create: bool = True) -> DecisionService:
    """The decision service over the store of a mirror."""
    store = config.store if is_postgres(config.store) else str(config.writable / config.store)
    return open_service(store, create=create)


def _on_signals(ending: asyncio.Event) -> None:
    """Set `ending` on SIGTERM and SIGINT."""
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        try:
            loop.add_signal_handler(number, ending.set)
        except NotImplementedError:  # the event loops of Windows cannot
            signal.signal(number, lambda *_: loop.call_soon_threadsafe(ending.set))


async def _until_signal(
    config: MirrorConfig, service: DecisionService | None, listener: socket, console: socket | None
) -> None:
    ending = asyncio.Event()
    _on_signals(ending)
    inner: ASGIApp | None = None
    backend: Backend
    if service is None:
        assert config.service is not None
        backend = Remote(
            AsyncClient(config.service, config.key, outbox=config.file("outbox")), config
        )
    else:
        backend = Embedded(service, config)
        any_key = any(key.revoked_at is None for key in await service.keys.list())
        inner = create_app(service, open_to_all=not any_key, mirror=config.experiment.name)
        service.compile_stored(OFFERED)
    await serve(config, backend, inner, listener, console, ending)


async def serve(
    config: MirrorConfig,
    backend: Backend,
    service: ASGIApp | None,
    listener: socket,
    console: socket | None,
    ending: asyncio.Event,
) -> None:
    """Mirror until `ending` is set, and show `service` beside the status. The backend is closed at the end."""
    mirror = Mirror(config, backend)
    started = False
    try:
        started = await _unless(ending, mirror.start())
    finally:
        if not started:
            await mirror.finish()
            await mirror.close()
    if not started:
        return
    proxy = _Server(server_settings(mirror.front, config.drain, config.client_timeout))
    status: _Server | None = None
    if console is not None:
        page = StatusApp(mirror.status, mirror.metrics, service)
        status = _Server(configuration(page, Serving(store="", drain=config.drain)))
    # Answers that break off, and websockets that are refused, are logged and counted by the mirror itself. A configuration
    # of uvicorn sets this level, so it is set after them.
    logging.getLogger("uvicorn.error").setLevel(logging.CRITICAL)
    running = [asyncio.create_task(proxy.serve([listener]))]
    if status is not None and console is not None:
        running.append(asyncio.create_task(status.serve([console])))
        print(f"Console on {_address(console)}", flush=True)
    does = "Taking copies" if config.sink else "Mirroring"
    print(f"{does} on {_address(listener)}", flush=True)
    await asyncio.wait(
        [asyncio.create_task(ending.wait()), *running], return_when=asyncio.FIRST_COMPLETED
    )
    _log.info("ending: open answers are finished first")
    proxy.should_exit = True
    await running[0]
    await mirror.finish()
    if status is not None:
        status.should_exit = True
    await asyncio.gather(*running[1:])
    await mirror.close()


async def _unless(ending: asyncio.Event, start: Coroutine[Any, Any, None]) -> bool:
    """Start, and return True; or stop and return False once `ending` is set, since starting may have to compile."""
    starting, ended = asyncio.create_task(start), asyncio.create_task(ending.wait())
    await asyncio.wait([starting, ended], return_when=asyncio.FIRST_COMPLETED)
    ended.cancel()
    if starting.done():
        starting.result()
        return True
    starting.cancel()
    with suppress(asyncio.CancelledError):
        await starting
    return False


def _listening(address: tuple[str, int], name: str) -> socket:
    try:
        return listening(*address)
    except ParameterError as error:
        remedy = "choose another, or port 0 for any free one"
        raise ParameterError(reworded(error, argument=name, remedy=remedy)) from None


def _address(listener: socket) -> str:
    return f"http://{shown(listener.getsockname()[:2])}"


class StatusApp:
    """Answers `/mirror` and `/mirror/metrics`; passes all else on to the embedded decision service."""

    def __init__(
        self, status: Callable[[], dict[str, Any]], metrics: MirrorMetrics, service: ASGIApp | None
    ) -> None:
        self._status, self._metrics, self._service = status, metrics, service

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        path, fresh = scope.get("path", ""), {"cache-control": "no-store"}
        if scope["type"] == "http" and path in ("/mirror", "/mirror/metrics"):
            host = next((value for name, value in scope["headers"] if name == b"host"), b"")
            if (
                name_in(host) not in LOOPBACK
            ):  # the page of another site could read it through a browser
                answer = Response(
                    "use a loopback name, such as localhost\n", 403, fresh, "text/plain"
                )
            elif path == "/mirror":
                status = json.dumps(self._status(), indent=1) + "\n"
                answer = Response(status, 200, fresh, "application/json")
            else:
                answer = Response(self._metrics.text(), 200, fresh, "text/plain; version=0.0.4")
            await answer(scope, receive, send)
        elif self._service is not None:
            await self._service(scope, receive, send)
        elif scope["type"] == "http":
            answer = Response(
                "the paths here are /mirror and /mirror/metrics\n", 404, fresh, "text/plain"
            )
            await answer(scope, receive, send)
