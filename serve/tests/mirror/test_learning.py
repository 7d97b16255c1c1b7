"""A mirror with the decision service: embedded, elsewhere, and as a command that is told to end."""

import asyncio
import json
import logging
import signal
import threading
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from decoupled.client import Retries
from decoupled.client.aio import AsyncClient
from decoupled.client.errors import Compiling, Conflict, Invalid
from decoupled.decision import Mode
from decoupled_serve.mirror.backend import UNKNOWN, Embedded, Remote, Routing, Traits
from decoupled_serve.mirror.config import MirrorConfig
from decoupled_serve.mirror.prefetch import FEWEST, MOST, Prefetch
from decoupled_serve.service.service import open_service
from support.held_compiler import Held
from support.http_service import served
from support.mirrors.late_arms import copies_of, verdict_of
from support.mirrors.running import (
    Fixed,
    RunningMirror,
    Start,
    UpstreamProcess,
    asking,
    commanded,
    mirror,
    upstreams,
    write_config,
)
from support.waiting import wait_for
from support.wire import on_loop

HALF = '[mirror]\nshare = 0.5\n[experiment]\nname = "releases"\nseed = 5\npolicy = "FTPL"\n'
CHEAPEST = "cheapest_within = 0.1\nprices = { stable = 2.0, next = 1.0 }\nswitch_margin = 0.02\n"
RULES = f"[guardrails]\nfloors = {{ next = 0.1 }}\n{CHEAPEST}[budget]\nrate = [5, 3600]\ncost = {{ next = 2.0 }}\ntotal = 100\n"


@contextmanager
def remote(start: Start, text: str) -> Iterator[tuple[RunningMirror, httpx.Client]]:
    """A mirror whose service is elsewhere, and a client of the service."""
    with served(start.folder) as service:
        config = start.config(f'service = "{service.url}"\n{text}')
        backend = Remote(AsyncClient(service.url, outbox=config.file("outbox")), config)
        with mirror(config, backend) as running:
            yield running, service.http


def state_of(store: Path, name: str) -> Any:
    service = open_service(store)
    try:
        return service.experiments.state("local", name).result()
    finally:
        service.close()


def test_a_mirror_learns_which_arm_to_serve(start: Start) -> None:
    with start.embedded(HALF) as running:
        target = "/x?stable=status:200&next=status:503"
        served_by = [running.http.get(target).status_code for _ in range(300)]
        status = running.settled()
    # With seeds 0 to 19, the bad arm served at most 2 of the last 100 requests. An arm that is chosen blindly serves
    # 50, and at least 20 except once in 10^9 runs.
    assert Counter(served_by[200:])[503] < 20
    assert status["learned"]["applied"] == sum(status["copied"].values()) + sum(
        status["reused"].values()
    )


def test_no_decision_waits_for_a_loss_that_does_not_come(start: Start) -> None:
    """What is drawn and not used, and what is dropped after it was drawn, is given up."""
    with start.embedded(
        HALF.replace("0.5", '1.0\nrepeat = ["* /*"]\nbody_limit = 1000')
    ) as running:
        for size in (10, 600):
            running.http.post("/ok", content=iter([b"a" * size] * 2))
        running.settled()
        status = running.until(lambda status: status["dropped"]["too_large"])
    assert status["learned"]["applied"] == status["dropped"]["too_large"] == 1
    state = state_of(start.store, "releases")
    assert (state.applied, state.pending, state.expired >= 3) == (1, 0, True)


def test_a_mirror_waits_while_its_policy_compiles(
    start: Start, caplog: pytest.LogCaptureFixture
) -> None:
    config, held = start.config(HALF), Held()
    backend = Embedded(open_service(start.store, compiler=held, patience=0.0), config)
    caplog.set_level(logging.INFO, "decoupled.mirror")
    with mirror(config, backend) as running, ThreadPoolExecutor(1) as client:
        waiting = client.submit(running.http.get, "/x")
        wait_for(lambda: "requests wait" in caplog.text, "a reason")
        assert not waiting.done()
        held.let_go()
        assert waiting.result(60).status_code == 200
    assert caplog.text.count("is being compiled") == 1


def test_a_mirror_that_waits_for_the_compiler_gives_up_or_ends_when_told(start: Start) -> None:
    config, held = start.config(HALF), Held()
    service = open_service(start.store, compiler=held, patience=0.0)
    with pytest.raises(
        Compiling, match="not compiled after 0 s; to wait longer, start the mirror again"
    ):
        asyncio.run(Embedded(service, config, Retries(compiling=0.0)).prepare())
    with mirror(config, Embedded(service, config)) as running:
        assert held.begun.wait(60)
        running.end()
    held.let_go()


def test_a_service_elsewhere_decides_and_learns(start: Start) -> None:
    with remote(start, HALF) as (running, http):

        def learned() -> Any:
            for _ in range(20):
                running.http.get("/x?stable=status:200&next=status:503")
            status = running.settled()
            return status["learned"]["applied"] > 5 and status

        status = wait_for(learned, "losses")
        state = http.get("/v1/experiments/releases/state").json()
    assert state["applied"] == status["learned"]["applied"]
    assert state["decisions"] >= sum(status["served"]["stable"].values()) - status["repeated"]


def test_losses_wait_while_a_service_elsewhere_is_gone(start: Start) -> None:
    with served(start.folder) as service:
        config = start.config(f'service = "{service.url}"\n{HALF}')

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


def prepared(config: MirrorConfig, store: Path, change: dict[str, Any] | None = None) -> Any:
    """The experiment after a start, before which somebody may have changed a guardrail."""

    async def scenario() -> Any:
        service = open_service(store)
        backend = Embedded(service, config)
        try:
            if change is not None:
                await service.experiments.change_guardrails("local", config.experiment.name, change)
            await backend.prepare()
            return await service.experiments.get("local", config.experiment.name)
        finally:
            await backend.close()

    return asyncio.run(scenario())


def test_arms_may_change_between_two_starts_and_settings_may_not(start: Start) -> None:
    away = UpstreamProcess("third", "http://127.0.0.1:9", start.arms["next"].process)
    third = {**start.arms, "third": away}

    def arms_with(*names: str, text: str = HALF) -> list[Any]:
        config = Start({name: third[name] for name in names}, start.folder).config(text)
        return list(prepared(config, start.store).arms)

    assert arms_with("stable", "next") == ["stable", "next"]
    assert arms_with(*third) == ["stable", "next", "third"]
    assert arms_with("stable", "third") == ["stable", "third"]
    with pytest.raises(Conflict, match=r"exists with policy = .*FTPL.*; settings are fixed"):
        arms_with("stable", "third", text=HALF.replace('"FTPL"', '"Exp3"'))
    with pytest.raises(Conflict, match="exists with another seed; settings are fixed"):
        arms_with("stable", "third", text=HALF.replace("seed = 5", "seed = 6"))


def test_the_file_sets_rules_at_every_start_and_leaves_others_alone(start: Start) -> None:
    config, store = start.config(RULES), start.store
    first = prepared(config, store)
    assert first.guardrails.floors == {"next": 0.1}
    assert first.budget.to_dict()["rate"] == [5, 3600]
    assert (first.guardrails.cheapest_within, first.guardrails.switch_margin) == (0.1, 0.02)
    assert first.guardrails.prices == {"stable": 2.0, "next": 1.0}
    again = prepared(config, store, {"pinned": "stable", "floors": {}})
    assert again.guardrails.pinned == "stable", "the kill switch holds over a restart"
    assert again.guardrails.floors == {"next": 0.1}, "the file names floors"
    assert prepared(config, store).state_version == again.state_version, (
        "nothing is changed, or logged"
    )
    with pytest.raises(Invalid, match="stabel"):
        prepared(start.config('[guardrails]\npinned = "stabel"\n'), store)


def test_a_pin_holds_for_a_running_mirror_though_decisions_were_drawn_ahead(start: Start) -> None:
    with remote(start, "[mirror]\nshare = 0.0\n") as (running, http):
        running.http.get("/x")  # answered once the experiment exists
        for name in ("next", "stable"):
            http.patch(
                "/v1/experiments/mirror/guardrails", json={"pinned": name}
            ).raise_for_status()

            def all_by(name: str = name) -> bool:
                return {running.http.get("/x").headers["x-arm"] for _ in range(20)} == {name}

            wait_for(all_by, f"every request served by {name}")


def test_copies_stay_within_the_budget(start: Start) -> None:
    with remote(start, f"[mirror]\nshare = 1.0\n{RULES}") as (running, http):
        for _ in range(60):
            assert running.http.get("/x").status_code == 200
        status = running.settled()
        found = http.get("/v1/experiments/mirror").json()
        assert found["budget"]["rate"] == [5, 3600]
        assert found["guardrails"]["floors"] == {"next": 0.1}
    assert 0 < sum(status["copied"].values()) + sum(status["reused"].values()) <= 5


@pytest.mark.parametrize(
    ("slow", "patience", "mirrors", "most"),
    [
        ("next", 1.0, 2, 1),
        pytest.param("next", 1.0, 5, 2, marks=pytest.mark.exhaustive),
        pytest.param("stable", 0.05, 5, 2, marks=pytest.mark.exhaustive),
    ],
)
def test_late_arms_are_found_equal(
    tmp_path: Path, slow: str, patience: float, mirrors: int, most: int
) -> None:
    """Arms are equal, and one gives its bad answers late; `stable` serves, and clients leave it after `patience` seconds.

    Each verdict is wrong with a probability of at most 5 %: two of two are once in 400 times, more than two of five once in
    800 times. If losses counted as they come, all would be.
    """
    wrong = []
    for number in range(mirrors):
        folder = tmp_path / str(number)
        folder.mkdir()
        is_wrong, counts = verdict_of(folder, 1_000, 501, slow, patience, number)
        if is_wrong:
            wrong.append(counts)
        assert sum(counts["dropped"].values()) == 0
        assert counts["learned"]["applied"] == copies_of(counts) > 500
    assert len(wrong) <= most, wrong


def test_a_mirror_that_is_told_to_end_finishes_what_it_began(tmp_path: Path) -> None:
    with upstreams("stable", "next") as arms:
        file = write_config(tmp_path, arms, "drain = 20\n[mirror]\nshare = 1.0\n")
        with commanded(file) as (process, console, url):
            target = f"{url}/x?stable=events:20:0.05&next=events:20:0.05"
            answers: list[bytes] = []

            def stream() -> None:
                with httpx.Client(verify=False, timeout=60.0) as http:
                    answers.append(http.get(target).content)

            threads = [threading.Thread(target=stream) for _ in range(20)]
            for thread in threads:
                thread.start()
            wait_for(
                lambda: asking.get(f"{console}/mirror").json()["in_flight"] == 20, "twenty answers"
            )
            assert "<html" in asking.get(f"{console}/").text  # the console of the embedded service
            assert asking.get(f"{console}/v1/experiments/mirror").json()["status"] == "ready"
            assert b"decoupled_mirror_queue " in asking.get(f"{console}/mirror/metrics").content
            process.send_signal(signal.SIGTERM)
            for thread in threads:
                thread.join(60.0)
            status, said = process.wait(60), file.with_suffix(".log").read_text()
    assert (status, "Traceback" in said) == (0, False), said
    assert [answer.count(b"\n\n") for answer in answers] == [20] * 20, "every answer is whole"
    assert state_of(tmp_path / "mirror.db", "mirror").applied >= 4, (
        "copies in the queue were finished"
    )
    assert not list(tmp_path.glob("*-queue.jsonl")), "and none was left"


class Gated(Fixed):
    def __init__(self) -> None:
        super().__init__()
        self.open = asyncio.Event()
        self.open.set()

    async def decide(
        self, mode: Mode, count: int, available: Sequence[str] | None, about: Traits = UNKNOWN
    ) -> list[Routing]:
        found = await super().decide(mode, count, available)
        await self.open.wait()
        return found


async def settled() -> None:
    for _ in range(20):
        await asyncio.sleep(0)


@on_loop
async def test_what_is_held_follows_the_traffic_and_taking_never_waits() -> None:
    backend = Gated()
    prefetch = Prefetch(backend)
    await prefetch.start()
    assert backend.drawn == sum(FEWEST.values())
    backend.open.clear()
    burst = [prefetch.take("exploit") for _ in range(60)]
    ready = FEWEST["exploit"]
    assert [each is not None for each in burst] == [True] * ready + [False] * (60 - ready)
    await settled()
    backend.open.set()
    await settled()
    for _ in range(40):  # the same burst now finds enough
        assert prefetch.take("exploit") is not None
    before = backend.drawn
    for _ in range(3_000):  # slow traffic needs few, so what is held shrinks again
        assert prefetch.take("exploit") is not None
        await settled()
    assert backend.drawn - before <= 3_000 + 60
    unused = prefetch.unused
    await prefetch.stop()
    assert FEWEST["exploit"] // 2 <= prefetch.unused - unused <= 2 * sum(FEWEST.values())


@on_loop
async def test_no_more_than_a_bounded_number_is_held() -> None:
    prefetch = Prefetch(Fixed())
    await prefetch.start()
    for _ in range(10):
        for _ in range(5_000):
            prefetch.take("both")
        await settled()
    await prefetch.stop()
    assert prefetch.unused <= MOST + FEWEST["exploit"]


@on_loop
async def test_decisions_for_arms_that_went_down_are_not_used() -> None:
    backend = Gated()
    prefetch = Prefetch(backend)
    await prefetch.start()
    backend.open.clear()
    for _ in range(6):
        prefetch.take("exploit")
    await settled()  # a draw among all arms is under way
    backend.exploit = "next"
    prefetch.restrict(["next"])
    assert prefetch.take("exploit") is None
    assert prefetch.last == "next"
    backend.open.set()
    await settled()
    taken = [prefetch.take("exploit") for _ in range(FEWEST["exploit"])]
    assert {each.exploit for each in taken if each is not None} == {"next"}
    assert backend.available == ["next"]
    await prefetch.stop()
    # Nothing waits for the losses of those to mirror: of all arms, and of those that are up.
    first = [f"d-{FEWEST['exploit'] + number}" for number in range(FEWEST["both"])]
    assert backend.forgotten[: FEWEST["both"]] == first
    assert len(backend.forgotten) == 2 * FEWEST["both"]


@on_loop
async def test_decisions_that_nobody_uses_do_not_keep_verdicts_waiting() -> None:
    """Requests with a key or a context have decisions of their own, made after those that are ready."""
    backend = Fixed()
    prefetch = Prefetch(backend)
    await prefetch.start()
    ready = [f"d-{FEWEST['exploit'] + number}" for number in range(FEWEST["both"])]
    assert await prefetch.draw_for(Traits(key="s1"), "both") is not None
    assert backend.forgotten == ready
    assert prefetch.take("both") is None
    await settled()
    assert prefetch.take("both") is not None, "for those without"
    assert await prefetch.draw_for(Traits(key="s2"), "both") is not None
    assert backend.forgotten == ready, "there are such requests"
    await prefetch.stop()
