"""The TypeScript client, built where Node is, and driven over a pipe."""

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from typing import Any

import pytest

from .once import made_once
from .pages import ROOT

PACKAGE = ROOT / "clients" / "typescript"
NODE, NPM = shutil.which("node"), shutil.which("npm")


def built(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Node's path, after the client was compiled; skips where there is no Node, or no npm registry."""
    if NODE is None:
        pytest.skip(
            "no Node is installed, so the TypeScript client was NOT tested: apt install nodejs npm"
        )
    _, problem = made_once(tmp_path_factory, "typescript", lambda _: _build())
    if problem:
        pytest.skip(problem)
    return NODE


def _build() -> str:
    """Install and compile; returns why that is not possible here, or nothing."""
    if not (PACKAGE / "node_modules" / "typescript").is_dir():
        if NPM is None:
            return "no npm is installed, so the TypeScript client was NOT tested: apt install npm"
        install = [NPM, "ci", "--ignore-scripts", "--no-audit", "--no-fund"]
        done = subprocess.run(install, cwd=PACKAGE, capture_output=True, text=True)
        if done.returncode:
            return f"npm ci failed, so the TypeScript client was NOT tested: {done.stderr[-300:]}"
    compiler = PACKAGE / "node_modules" / "typescript" / "bin" / "tsc"
    done = subprocess.run(
        [str(NODE), str(compiler), "-p", "."], cwd=PACKAGE, capture_output=True, text=True
    )
    assert done.returncode == 0, f"the TypeScript client does not compile:\n{done.stdout}"
    return ""


def without_key() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if name != "DECOUPLED_KEY"}


class Bridge:
    """Clients in a process of Node; calls are lines of JSON."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self._process, self._ids = process, count()

    def call(self, client: int | None, method: str, args: list[Any]) -> dict[str, Any]:
        """Call a method of a client; the answer has a result or an error."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        sent = {"id": next(self._ids), "client": client, "method": method, "args": args}
        self._process.stdin.write(f"{json.dumps(sent)}\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        assert line, "the bridge ended"
        answer: dict[str, Any] = json.loads(line)
        assert answer["id"] == sent["id"]
        return answer


@contextmanager
def bridged(node: str) -> Iterator[Bridge]:
    script = PACKAGE / "test" / "bridge.mjs"
    process = subprocess.Popen(
        [node, str(script)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=without_key(),
    )
    try:
        yield Bridge(process)
    finally:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.close()
        process.wait(20)
        process.stdout.close()
