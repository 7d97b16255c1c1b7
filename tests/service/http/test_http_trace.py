"""The way of one loss over HTTP stays short enough to read."""

import asyncio
import json
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

import decoupled
from decoupled.service.decision_service import DecisionService, open_service
from decoupled.service.http.app import create_app
from decoupled.service.http.auth import digest_of, new_key
from decoupled.service.http.gateway import Gateway

MOST_FILES = 32  # six update the confidence sequences, three say who asked and count it, two check the key and the memory
PACKAGE = Path(decoupled.__file__).parent


class Tracer:
    """Notes the files of the package in which a function starts, in every thread, while it is on."""

    def __init__(self) -> None:
        self.on = False
        self.files: set[str] = set()

    def __call__(self, frame: FrameType, event: str, argument: object) -> None:
        if self.on:
            path = Path(frame.f_code.co_filename)
            if path.is_relative_to(PACKAGE):
                self.files.add(path.relative_to(PACKAGE).as_posix())


@pytest.fixture
def tracer() -> Iterator[Tracer]:
    """A tracer for the threads that start from now on, and for this one."""
    tracer, before = Tracer(), sys.gettrace()
    threading.settrace(tracer)
    sys.settrace(tracer)
    yield tracer
    sys.settrace(before)
    threading.settrace(before)


async def ask(app: Gateway, key: str, method: str, path: str, body: Any) -> Any:
    """Send one request to the application, and return the content of its response."""
    content = json.dumps(body).encode()
    headers = {
        "host": "localhost",
        "authorization": f"Bearer {key}",
        "content-type": "application/json",
        "content-length": str(len(content)),
    }
    sent: list[Any] = []

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": content, "more_body": False}

    async def send(message: Any) -> None:
        sent.append(message)

    scope = {
        "type": "http",
        "http_version": "1.1",
        "method": method,
        "scheme": "http",
        "path": path,
        "raw_path": path.encode(),
        "root_path": "",
        "query_string": b"",
        "headers": [(name.encode(), value.encode()) for name, value in headers.items()],
        "client": ("127.0.0.1", 1),
        "server": ("127.0.0.1", 80),
    }
    await app(scope, receive, send)
    assert sent[0]["status"] in (200, 201), sent[1]["body"]
    return json.loads(sent[1]["body"])


async def trace_one_loss(service: DecisionService, tracer: Tracer) -> None:
    key = new_key()
    await service.keys.add("local", "admin", digest_of(key))
    app = create_app(service, patience=60.0)
    settings = {"policy": {"name": "FTPL"}, "arms": ["a", "b", "c"]}
    await ask(app, key, "PUT", "/v1/experiments/one", settings)
    made = await ask(app, key, "POST", "/v1/experiments/one/decisions", {"count": 2})
    for each in made["decisions"]:  # the first warms up
        tracer.on = each is made["decisions"][-1]
        body = {"loss": 0.5, "arm": each["explore"]}
        applied = await ask(app, key, "PUT", f"/v1/decisions/{each['id']}/feedback", body)
        assert applied["status"] == "applied"
    tracer.on = False


def test_a_loss_passes_through_few_files(tmp_path: Path, tracer: Tracer) -> None:
    service = open_service(tmp_path / "store.db")
    try:
        asyncio.run(trace_one_loss(service, tracer))
    finally:
        service.close()
    assert {"service/http/gateway.py", "service/commit_loop.py", "service/store/sqlite.py"} <= tracer.files
    assert len(tracer.files) <= MOST_FILES, "\n".join(sorted(tracer.files))
