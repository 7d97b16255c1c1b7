"""The simulator: its numbers are those of `simulate`, and its work is limited."""

import json
import threading
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

import decoupled as dc
from decoupled.service.api import simulator
from decoupled.service.api.simulator import FRAMES, POLICIES, Question, WorldName
from decoupled.service.http.admission.limits import Limits
from decoupled.service.http.routes import simulator as simulating
from support.http_service import Service, served


@pytest.mark.parametrize("world", ["alternating", "drifting", "punish-last"])
def test_the_numbers_are_those_of_simulate(world: WorldName) -> None:
    # Steps of uneven length, so that a step that is lost or run twice changes the result.
    question = Question(world, arms=3, gap=0.2, rounds=1_037, runs=3, seed=5)
    first, *steps = map(json.loads, simulator.lines(question))
    results = dc.simulate(list(POLICIES.values()), question.environment(), 1_037, 3, seed=5)
    assert [each["name"] for each in first["policies"]] == list(POLICIES)
    assert len(steps) == FRAMES == first["steps"]
    assert [each["regret"] for each in steps[-1]["policies"]] == pytest.approx(
        results.summary()["mean"].to_list(), abs=1e-3
    )


def test_shares_are_of_their_step_alone() -> None:
    # The best arm changes after each quarter of the rounds. At half time each arm was the best for half of the
    # rounds, so its share over all rounds so far would be at most about a half.
    question = Question("drifting", arms=2, gap=0.5, rounds=4_000, runs=4)
    steps = [json.loads(line) for line in simulator.lines(question)][1:]
    for step in steps:
        for each in step["policies"]:
            assert sum(each["exploit"]) == pytest.approx(1.0, abs=1e-3)
            assert sum(each["explore"]) == pytest.approx(1.0, abs=1e-3)
    first, second = (steps[i]["policies"][1]["exploit"] for i in (24, 49))
    assert first[0] > 0.9
    assert second[1] > 0.6


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Service]:
    with served(tmp_path, open_to_all=False) as running:
        yield running


def test_the_simulator_needs_a_key_that_may_read(service: Service) -> None:
    assert service.http.get("/v1/simulator").status_code == 401
    answer = service.http.get("/v1/simulator?rounds=100&runs=1", headers=service.key("read"))
    assert answer.status_code == 200
    assert answer.headers["content-type"] == "application/x-ndjson"
    assert len([line for line in answer.text.splitlines() if line]) == 1 + FRAMES


@pytest.mark.parametrize(
    "query", ["rounds=100000&runs=32", "rounds=100000&arms=2&runs=6", "environment=moon", "round=100"]
)
def test_too_much_work_and_invalid_queries_are_refused(service: Service, query: str) -> None:
    answer = service.http.get(f"/v1/simulator?{query}", headers=service.key("read"))
    assert answer.status_code == 422, answer.text
    assert answer.headers["content-type"] == "application/problem+json"


def test_a_few_at_once(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    go_on = threading.Event()

    def slow(_: Question) -> Iterator[str]:
        yield "{}\n"
        go_on.wait(30)

    monkeypatch.setattr(simulating, "lines", slow)
    monkeypatch.setattr(simulating, "PULSE", 0.05)
    key = service.key("read")
    with (
        httpx.Client(base_url=service.url, headers=key, verify=False) as one,
        one.stream("GET", "/v1/simulator") as first,
        one.stream("GET", "/v1/simulator") as second,
    ):
        # The line, and after a while an empty one that keeps the connection open.
        heard = [each.iter_raw() for each in (first, second)]
        assert b"".join(next(heard[0]) for _ in range(3)).replace(b"\n", b"") == b"{}"
        refused = service.http.get("/v1/simulator", headers=key)
        assert refused.status_code == 429
        assert refused.headers["retry-after"] == "1"
        assert service.http.get("/v1/experiments", headers=key).status_code == 200, "others are served"
        go_on.set()
        assert b"".join(heard[1]).replace(b"\n", b"") == b"{}"
    assert service.http.get("/v1/simulator", headers=key).status_code == 200, "and then there is room again"


def test_work_is_charged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(simulating, "lines", lambda _: iter(["{}\n"]))
    with served(tmp_path, limits=Limits(rate=100.0, burst=200.0)) as running:
        assert running.http.get("/v1/simulator?rounds=10000&runs=16").status_code == 200
        assert running.http.get("/v1/experiments").status_code == 429
