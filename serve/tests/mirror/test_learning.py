"""A mirror with the decision service: embedded, elsewhere, and as a command that is told to end."""

import asyncio
import json
import logging
import re
import signal
import subprocess
import sys
import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest

from decoupled.client import Retries
from decoupled.client.aio import AsyncClient
from decoupled.client.errors import Compiling, Conflict
from decoupled_serve.mirror.backend import Embedded, Remote, Routing
from decoupled_serve.mirror.config_file import read_config
from decoupled_serve.service.service import open_service
from support.held_compiler import Held
from support.http_service import served
from support.mirrors.running import UpstreamProcess, asking, eventually, mirror, upstreams, write_config

Arms = dict[str, UpstreamProcess]
HALF = '[mirror]\nshare = 0.5\n[experiment]\nname = "releases"\nseed = 5\npolicy = "FTPL"\n'


def test_a_mirror_learns_which_arm_to_serve(arms: Arms, tmp_path: Path) -> None:
    file = write_config(tmp_path, arms, HALF)
    backend = Embedded(open_service(tmp_path / "store.db"), read_config(file))
    with mirror(file, backend) as running:
        served_by = [
            running.http.get("/x?stable=status:200&next=status:503").status_code for _ in range(300)
        ]
        status = running.settled()
    # With seeds 0 to 19, the bad arm served at most 2 of the last 100 requests. An arm that is chosen blindly serves
    # 50, and at least 20 except once in 10^9 runs.
    assert Counter(served_by[200:])[503] < 20
    assert status["learned"]["applied"] == sum(status["copied"].values()) + sum(status["reused"].values())


def test_no_decision_waits_for_a_loss_that_does_not_come(arms: Arms, tmp_path: Path) -> None:
    """What is drawn and not used, and what is dropped after it was drawn, is given up."""
    file = write_config(tmp_path, arms, HALF.replace("0.5", '1.0\nrepeat = ["* /*"]\nbody_limit = 1000'))
    service = open_service(tmp_path / "store.db")
    with mirror(file, Embedded(service, read_config(file))) as running:
        for size in (10, 600):
            running.http.post("/ok", content=iter([b"a" * size] * 2))
        running.settled()
        status = eventually(lambda: (found := running.status())["dropped"]["too_large"] and found)
    assert status["learned"]["applied"] == status["dropped"]["too_large"] == 1
    again = open_service(tmp_path / "store.db")
    try:
        state = again.experiments.state("local", "releases").result()
    finally:
        again.close()
    assert (state.applied, state.pending, state.expired >= 3) == (1, 0, True)


def test_a_mirror_waits_while_its_policy_is_compiled(
    arms: Arms, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file, held = write_config(tmp_path, arms, HALF), Held()
    backend = Embedded(open_service(tmp_path / "store.db", compiler=held, patience=0.0), read_config(file))
    with (
        caplog.at_level(logging.INFO, "decoupled.mirror"),
        mirror(file, backend) as running,
        ThreadPoolExecutor(1) as client,
    ):
        waiting = client.submit(running.http.get, "/x")
        eventually(lambda: "requests wait" in caplog.text, "a reason")
        assert not waiting.done()
        held.let_go()
        assert waiting.result(60).status_code == 200
    assert caplog.text.count("is being compiled") == 1


def test_a_mirror_that_waits_for_the_compiler_gives_up_or_ends_when_told(
    arms: Arms, tmp_path: Path
) -> None:
    config, held = read_config(write_config(tmp_path, arms, HALF)), Held()
    service = open_service(tmp_path / "store.db", compiler=held, patience=0.0)
    with pytest.raises(Compiling, match="not compiled after 0 s; to wait longer, start the mirror again"):
        asyncio.run(Embedded(service, config, Retries(compiling=0.0)).prepare())
    with mirror(config, Embedded(service, config)) as running:
        assert held.begun.wait(60)
        running.end()
    held.let_go()


def test_a_service_elsewhere_decides_and_learns(arms: Arms, tmp_path: Path) -> None:
    with served(tmp_path) as service:
        file = write_config(tmp_path, arms, f'service = "{service.url}"\n{HALF}')
        config = read_config(file)
        with mirror(
            file, Remote(AsyncClient(service.url, outbox=config.file("outbox")), config)
        ) as running:
            for _ in range(60):
                running.http.get("/x?stable=status:200&next=status:503")
            status = running.settled()
        state = service.http.get("/v1/experiments/releases/state").json()
    assert state["applied"] == status["learned"]["applied"] > 5
    assert state["decisions"] >= 60 - status["repeated"]


def test_losses_wait_while_a_service_elsewhere_is_gone(arms: Arms, tmp_path: Path) -> None:
    with served(tmp_path) as service:
        config = read_config(write_config(tmp_path, arms, f'service = "{service.url}"\n{HALF}'))

        async def decided() -> Routing:
            there = Remote(AsyncClient(service.url), config)
            await there.prepare()
            [decision] = await there.decide("both", 1, ["next"])
            await there.close()
            return decision

        decision = asyncio.run(decided())

    async def learned() -> str:
        once = Retries(attempts=1)
        gone = Remote(AsyncClient(service.url, outbox=config.file("outbox"), retries=once), config)
        outcome = await gone.learn(decision.id, "next", 0.5)
        await gone.close()
        return outcome

    assert decision.explore == "next"
    assert asyncio.run(learned()) == "kept"
    [kept] = config.file("outbox").glob("*.json")
    assert json.loads(kept.read_text())["loss"] == 0.5


def test_arms_may_change_between_two_starts_and_settings_may_not(arms: Arms, tmp_path: Path) -> None:
    first = read_config(write_config(tmp_path, arms, HALF))
    third = {**arms, "third": UpstreamProcess("third", "http://127.0.0.1:9", arms["next"].process)}
    more = read_config(write_config(tmp_path, third, HALF))
    less = read_config(write_config(tmp_path, {name: third[name] for name in ("stable", "third")}, HALF))
    other = read_config(write_config(tmp_path, arms, HALF.replace('"FTPL"', '"Exp3"')))
    seeded = read_config(write_config(tmp_path, arms, HALF.replace("seed = 5", "seed = 6")))
    service = open_service(tmp_path / "store.db")

    async def names(config: object) -> tuple[object, ...]:
        await Embedded(service, config).prepare()  # type: ignore[arg-type]
        return tuple((await service.experiments.get("local", "releases")).arms)

    try:
        assert asyncio.run(names(first)) == ("stable", "next")
        assert asyncio.run(names(more)) == ("stable", "next", "third")
        assert asyncio.run(names(less)) == ("stable", "third")
        with pytest.raises(Conflict, match=r"exists with policy = .*FTPL.*; settings are fixed"):
            asyncio.run(names(other))
        with pytest.raises(Conflict, match="exists with another seed; settings are fixed"):
            asyncio.run(names(seeded))
    finally:
        service.close()


def test_a_mirror_that_is_told_to_end_finishes_what_it_began(tmp_path: Path) -> None:
    with upstreams("stable", "next") as arms:
        file = write_config(tmp_path, arms, "drain = 20\n[mirror]\nshare = 1.0\n")
        command = [sys.executable, "-m", "decoupled", "mirror", str(file)]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        assert process.stdout is not None
        lines = [process.stdout.readline() for _ in range(2)]
        console, url = (re.search(r"http://\S+", line)[0] for line in lines)  # type: ignore[index]
        answers: list[bytes] = []
        target = "/x?stable=events:20:0.05&next=events:20:0.05"

        def stream() -> None:
            with httpx.Client(verify=False, timeout=60.0) as http:
                answers.append(http.get(f"{url}{target}").content)

        threads = [threading.Thread(target=stream) for _ in range(20)]
        for thread in threads:
            thread.start()
        eventually(lambda: asking.get(f"{console}/mirror").json()["in_flight"] == 20, "twenty open answers")
        assert "<html" in asking.get(f"{console}/").text  # the console of the embedded service
        assert asking.get(f"{console}/v1/experiments/mirror").json()["status"] == "ready"
        assert b"decoupled_mirror_queue " in asking.get(f"{console}/mirror/metrics").content
        process.send_signal(signal.SIGTERM)
        for thread in threads:
            thread.join(60.0)
        _, errors = process.communicate(timeout=60)
    assert process.returncode == 0, errors
    assert len(answers) == 20
    assert all(answer.count(b"\n\n") == 20 for answer in answers), "every answer is whole"
    assert "Traceback" not in errors
    service = open_service(tmp_path / "mirror.db")
    try:
        state = service.experiments.state("local", "mirror").result()
    finally:
        service.close()
    kept = list(tmp_path.glob("*-queue.jsonl"))
    assert state.applied >= 4, "copies that were in the queue were finished"
    assert not kept, "and none was left"
