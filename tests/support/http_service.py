"""A service on a real loopback socket, in a thread, for tests."""

import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast
from unittest.mock import Mock

import httpx
import uvicorn

from decoupled_serve.service.http.admission import Limits, digest_of, new_key
from decoupled_serve.service.http.app import PATIENCE, create_app
from decoupled_serve.service.http.server import Serving, configuration, listening
from decoupled_serve.service.service import DecisionService, open_service

if TYPE_CHECKING:
    from decoupled_serve.service.http.observe.telemetry import Telemetry

FTPL: dict[str, Any] = {"policy": {"name": "FTPL"}, "arms": ["red", "green", "blue"]}


@dataclass
class Service:
    """A running service: its address, the service without HTTP, and a plain HTTP client without a key."""

    url: str
    direct: DecisionService
    http: httpx.Client

    @contextmanager
    def line(self, sent: bytes = b"") -> Iterator[socket.socket]:
        with socket.create_connection(
            ("127.0.0.1", int(self.url.rsplit(":", 1)[1])), timeout=60
        ) as line:
            line.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            line.sendall(sent)
            yield line

    def heard(self, sent: bytes) -> bytes:
        """All that comes in answer to some bytes, until the service closes the connection."""
        with self.line(sent) as line:
            return until_closed(line)

    def key(self, role: str, tenant: str = "local") -> dict[str, str]:
        key = new_key()
        self.direct.keys.add(tenant, role, digest_of(key), "test").result()
        return {"Authorization": f"Bearer {key}"}

    def create(self, name: str, headers: dict[str, str] | None = None, **settings: Any) -> None:
        """Create an experiment with FTPL on three arms, unless told otherwise."""
        path, body = f"/v1/experiments/{name}", {**FTPL, **settings}
        answer = self.http.put(path, json=body, headers=headers)
        while answer.status_code == 202:  # it is created, and its policy is being compiled
            answer = self.http.put(path, json=body, headers=headers)
            assert answer.status_code in (200, 202), answer.text
        assert answer.status_code in (200, 201), answer.text

    def decide(self, name: str, headers: dict[str, str] | None = None, **wanted: Any) -> Any:
        answer = self.http.post(f"/v1/experiments/{name}/decisions", json=wanted, headers=headers)
        assert answer.status_code == 201, answer.text
        return answer.json()


def until_closed(line: socket.socket) -> bytes:
    """All that comes until the service closes the connection; fails if it never does."""
    heard = b""
    with suppress(ConnectionResetError):
        while part := line.recv(65_536):
            heard += part
    return heard


@cache
def openapi_document() -> dict[str, Any]:
    """The OpenAPI document. It needs no service, because no route is called."""
    return create_app(cast(DecisionService, Mock())).inner.openapi()


@contextmanager
def served(
    folder: Path | str,
    *,
    open_to_all: bool = True,
    limits: Limits | None = None,
    backups: Path | None = None,
    clock: Callable[[], float] = time.time,
    patience: float = PATIENCE,
    metrics_experiments: int = 0,
    telemetry: "Telemetry | None" = None,
    mirror: str | None = None,
    **options: Any,
) -> Iterator[Service]:
    """A service over a store in a folder, or at an address; the options are those of `DecisionService`."""
    store = folder / "store.db" if isinstance(folder, Path) else folder
    service = open_service(store, clock=clock, **options)
    app = create_app(
        service, open_to_all=open_to_all, limits=limits, backups=backups, patience=patience,
        metrics_experiments=metrics_experiments, telemetry=telemetry, mirror=mirror,
    )  # fmt: skip
    serving = Serving(store="", drain=5, limits=limits or Limits())
    with listening("127.0.0.1", 0) as listener:
        outermost = app if telemetry is None else telemetry.traced(app)
        server = uvicorn.Server(configuration(outermost, serving))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
        thread.start()
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        try:
            # Loading certificates takes longer than most tests, and nothing here uses TLS.
            with httpx.Client(base_url=url, timeout=60.0, verify=False) as http:
                yield Service(url, service, http)
        finally:
            server.should_exit = True
            thread.join(20)
            service.close()
            assert not thread.is_alive()
