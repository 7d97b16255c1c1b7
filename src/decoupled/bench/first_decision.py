"""The decision service from nothing: a fresh process over an empty store, until it has answered with a decision."""

import http.client
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from .connection import running_service

LOAD_ONCE = "import decoupled.cli.main, decoupled.service.http.server, decoupled.service.store.sqlite"


def first_decision(repetitions: int) -> float:
    """The lowest of several times in seconds: from exec to the first decision's answer."""
    # An image has its bytecode. Python writes it when a module is first loaded, if it may.
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    subprocess.run([sys.executable, "-c", LOAD_ONCE], check=True, env=environment)
    return min(_seconds() for _ in range(repetitions))


def _seconds() -> float:
    with tempfile.TemporaryDirectory() as folder:
        start = time.perf_counter()
        with running_service(Path(folder) / "store.db") as (port, _):
            decide_once(port)
            return time.perf_counter() - start


def decide_once(port: int, key: str | None = None) -> str:
    """Create an experiment and decide once; return the id of the decision."""
    headers = {"Content-Type": "application/json"} | ({"Authorization": f"Bearer {key}"} if key else {})
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    try:
        connection.request("PUT", "/v1/experiments/first", json.dumps({"arms": ["a", "b"]}), headers)
        _answer(connection)
        connection.request("POST", "/v1/experiments/first/decisions", headers=headers)
        return str(_answer(connection)["id"])
    finally:
        connection.close()


def _answer(connection: http.client.HTTPConnection) -> dict[str, object]:
    answer = connection.getresponse()
    body = answer.read()
    if answer.status not in (200, 201):
        raise ConnectionError(f"{answer.status} {body[:500]!r}")
    found: dict[str, object] = json.loads(body)
    return found
