"""`decoupled mcp`: the SDK's own client starts it as an assistant does, and asks about a service."""

import asyncio
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

mcp = pytest.importorskip("mcp", reason="needs the extra mcp")

from decoupled.client import Client  # noqa: E402
from support.http_service import Service, served  # noqa: E402

pytestmark = pytest.mark.slow
COMMAND = ["-m", "decoupled", "mcp"]
REPLAY = {"experiment": "models", "policy": "good"}


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """A service with keys; `good` never loses, `bad` always does, and nothing was decided about `new`."""
    with served(tmp_path_factory.mktemp("mcp"), open_to_all=False) as running:
        key = running.key("admin")["Authorization"].removeprefix("Bearer ")
        with Client(running.url, key) as client:
            client.create("models", arms=["good", "bad"], seed=3, context={"kind": "text"})
            client.create("new", arms=["x", "y"])
            for n in range(400):
                made = client.decide("models", context={"kind": "code" if n % 2 else "prose"})
                client.feedback(made, loss=float(made.explore == "bad"))
        yield running


def told(
    service: Service, *calls: tuple[str, dict[str, Any]], logs: Path | None = None
) -> list[Any]:
    """The tools, and what each call returned, of one process that has a key to read."""
    key = service.key("read")["Authorization"].removeprefix("Bearer ")
    words = [*COMMAND, "--url", service.url, *(() if logs is None else ("--logs", str(logs)))]
    start = mcp.StdioServerParameters(
        command=sys.executable, args=words, env={**os.environ, "DECOUPLED_KEY": key}
    )

    async def ask() -> list[Any]:
        async with mcp.Client(start, read_timeout_seconds=60) as session:
            tools = (await session.list_tools()).tools
            return [tools, *[await session.call_tool(name, given) for name, given in calls]]

    return asyncio.run(asyncio.wait_for(ask(), 120))


def test_an_assistant_can_tell_whether_it_is_safe_to_switch(service: Service) -> None:
    tools, *answers = told(
        service,
        ("experiments", {"prefix": "mod"}),
        ("gate", {"experiment": "models", "arm": "good", "against": "bad"}),
        ("gate", {"experiment": "models", "arm": "bad", "against": "good", "margin": 0.1}),
        ("gate", {"experiment": "new", "arm": "x"}),
        ("verdict", {"experiment": "models"}),
        ("segments", {"experiment": "models", "by": ["kind"]}),
        ("replay", REPLAY),
    )
    assert {each.name for each in tools} == {"experiments", "verdict", "segments", "gate", "replay"}
    assert all(each.annotations.read_only_hint and each.description for each in tools)
    # The key may only read, so a tool that writes would fail.
    assert [each.content[0].text for each in answers if each.is_error] == []
    listed, passed, failed, waiting, verdict, segments, replay = (
        each.structured_content for each in answers
    )
    assert [each["name"] for each in listed["experiments"]] == ["models"]
    assert [each["state"] for each in (passed, failed, waiting)] == ["passed", "failed", "waiting"]
    assert (verdict["state"], verdict["best"]) == ("decided", "good")
    assert {each["segment"]["kind"] for each in segments["segments"]} == {"code", "prose"}
    assert replay["candidate"]["name"] == "always good"
    assert replay["candidate"]["doubly_robust"] == pytest.approx(0.0, abs=0.02)
    assert replay["candidate_minus_served"]["high"] <= 0.1


def test_files_come_from_the_folder_and_assistants_read_errors(
    service: Service, tmp_path: Path
) -> None:
    logs = tmp_path / "logs"
    logs.mkdir()
    for folder in (logs, tmp_path):
        rows = "explore,exploit,propensity,loss\n" + "a,a,0.5,20\nb,a,0.5,80\n" * 500
        (folder / "log.csv").write_text(rows)
    (logs / "linked.csv").symlink_to(tmp_path / "log.csv")
    given = {"policy": {"a": 0.5, "b": 0.5}, "loss_range": [0, 100]}
    wrong: list[tuple[str, dict[str, Any], str]] = [
        ("replay", {**given, "file": "../log.csv"}, "folder of logs"),
        ("replay", {**given, "file": "linked.csv"}, "folder of logs"),
        ("replay", {**given, "file": str(tmp_path / "log.csv")}, "folder of logs"),
        ("replay", given, "give either experiment or file"),
        ("replay", {**REPLAY, "policy": {"name": "FTLP"}}, "FTPL"),
        ("verdict", {"experiment": "modles"}, "modles"),
        ("gate", {"experiment": "models", "arm": "god"}, "god"),
    ]
    good = ("replay", {**given, "file": "log.csv"})
    _, *refused, inside = told(
        service, *((name, given) for name, given, _ in wrong), good, logs=logs
    )
    for answer, (_, _, part) in zip(refused, wrong, strict=True):
        assert answer.is_error
        assert part in answer.content[0].text
    assert inside.structured_content["candidate"]["doubly_robust"] == pytest.approx(50.0, abs=1.0)
    [away] = told(service, ("replay", {**given, "file": "log.csv"}))[1:]
    assert "the option --logs" in away.content[0].text


def test_without_the_sdk_the_command_says_what_to_install() -> None:
    script = "import sys; sys.modules['mcp'] = None\nfrom decoupled.cli import main\nsys.argv[1:] = ['mcp']\nmain()"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=60
    )
    assert (done.returncode, done.stdout) == (1, "")
    assert "needs the package mcp" in done.stderr
    assert "decoupled-bandits[mcp]" in done.stderr
