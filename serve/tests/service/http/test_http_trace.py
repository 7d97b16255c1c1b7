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
from decoupled_serve.service.experiment.records import Settings
from decoupled_serve.service.http.admission import digest_of, new_key
from decoupled_serve.service.service import DecisionService, open_service
from support.wire import Wire, request, wired

MOST_FILES = 29  # from the connection to the store; nine of them are the learner, its lock and its confidence sequences
MOST_OF_THE_SERVICE = 20
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


async def ask(wire: Wire, key: str, method: str, path: str, body: Any) -> Any:
    """Send one request to the service, and return the content of its response."""
    wire.send(request(method, path, json.dumps(body).encode(), f"Authorization: Bearer {key}"))
    answer = await wire.answer()
    assert answer.status in (200, 201), answer.body
    return answer.json


async def trace_one_loss(service: DecisionService, tracer: Tracer) -> None:
    key = new_key()
    await service.keys.add("local", "admin", digest_of(key))
    await service.experiments.put("local", "one", Settings({"name": "FTPL"}, ("a", "b", "c")))
    async with wired(service, open_to_all=False) as http:
        wire = http.connect()
        made = await ask(wire, key, "POST", "/v1/experiments/one/decisions", {"count": 2})
        for each in made["decisions"]:  # the first warms up
            tracer.on = each is made["decisions"][-1]
            body = {"loss": 0.5, "arm": each["explore"]}
            applied = await ask(wire, key, "PUT", f"/v1/decisions/{each['id']}/feedback", body)
            assert applied["status"] == "applied"
        tracer.on = False


def test_a_loss_passes_through_few_files(tmp_path: Path, tracer: Tracer) -> None:
    service = open_service(tmp_path / "store.db")
    try:
        asyncio.run(trace_one_loss(service, tracer))
    finally:
        service.close()
    ends = {"service/http/transport/connection.py", "service/commits/loop.py", "service/store/sqlite.py"}
    assert ends <= tracer.files
    assert len(tracer.files) <= MOST_FILES, "\n".join(sorted(tracer.files))
    mine = {each for each in tracer.files if each.startswith("service/")}
    assert len(mine) <= MOST_OF_THE_SERVICE, "\n".join(sorted(mine))
