"""Every endpoint, over a real socket: what it answers, and in which shape it refuses."""

import csv
import io
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pyarrow.parquet as pq
import pytest

import decoupled as dc
from decoupled.client.errors import ServiceError
from decoupled_serve.service.analysis.export import TIMES
from decoupled_serve.service.experiment.records import Experiment, Settings
from decoupled_serve.service.http.models.schemas import experiment_out
from decoupled_serve.service.http.observe.metrics import HELP, NAMES
from decoupled_serve.service.service import DecisionService
from support.http_service import FTPL, Service, served


class Clock:
    """A clock that a test moves."""

    now = 1_000_000_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture(scope="module")
def clock() -> Clock:
    return Clock()


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory, clock: Clock) -> Iterator[Service]:
    folder = tmp_path_factory.mktemp("api")
    (folder / "backups").mkdir()
    with served(folder, clock=clock, backups=folder / "backups") as running:
        yield running


def refused(answer: httpx.Response, status: int, *words: str) -> dict[str, Any]:
    """Every refusal has one shape, and its words help."""
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    problem: dict[str, Any] = answer.json()
    always = {"type", "title", "status", "detail", "request_id"}
    assert always <= set(problem) <= always | {"errors"}
    assert problem["request_id"] == answer.headers["x-request-id"]
    assert problem["status"] == status
    for word in words:
        assert word in problem["detail"]
    return problem


def test_an_experiment_is_created_once(service: Service) -> None:
    settings = {**FTPL, "loss_range": [0, 250], "deadline_seconds": 60, "expired_loss": 250, "seed": 7}
    service.create("compiled-before")
    first = service.http.put("/v1/experiments/once", json=settings)
    again = service.http.put("/v1/experiments/once", json=settings)
    assert (first.status_code, again.status_code) == (201, 200)
    assert first.json() == again.json() == service.http.get("/v1/experiments/once").json()
    assert first.json()["policy"]["alpha"] == 3.0, "defaults are written out"
    assert "seed" not in first.text, "who knows the seed knows the draws to come"
    refused(
        service.http.put("/v1/experiments/once", json={**settings, "deadline_seconds": 61}),
        409,
        "other settings (deadline_seconds is 60.0, and you sent 61.0); settings are fixed",
    )


def test_a_demo_experiment_is_marked_for_good(service: Service) -> None:
    service.create("shown", demo=True)
    assert service.http.get("/v1/experiments/shown").json()["demo"] is True
    refused(service.http.put("/v1/experiments/shown", json=FTPL), 409, "other settings")
    assert service.http.put("/v1/experiments/shown", json={**FTPL, "demo": True}).status_code == 200
    refused(service.http.put("/v1/experiments/other", json={**FTPL, "demo": "yes"}), 422, "demo")


def test_an_experiment_has_the_label_of_its_policy(service: Service) -> None:
    policy = dc.Ladder()
    service.create("labelled", policy=policy.to_dict())
    assert service.http.get("/v1/experiments/labelled").json()["policy_label"] == policy.label
    tuned = dc.FTPL(c=0.5, ranking="strata", estimator="centred", c_exploit=3, schedule="losses")
    service.create("tuned", policy=tuned.to_dict())
    shown = service.http.get("/v1/experiments/tuned").json()["policy_label"]
    assert shown.startswith("FTPL(c=0.5, ")
    assert len(shown) <= 30 < len(tuned.label)
    unknown = Settings({"name": "OfAnotherProcess", "c": 1.0}, ("a", "b"))
    assert experiment_out(Experiment("me", "one", unknown, ("a", "b"), (), 0.0, None, 0, 7, "ready"))[
        "policy_label"
    ] == ("OfAnotherProcess")


def test_access_shows_what_a_key_may_do(service: Service, tmp_path: Path) -> None:
    may = ["read", "decide", "admin"]
    assert service.http.get("/v1/access").json()["may"] == may, "without keys, everything"
    with served(tmp_path, open_to_all=False) as locked:
        for count, role in enumerate(may, start=1):
            told = locked.http.get("/v1/access", headers=locked.key(role, "shop")).json()
            assert told == {"tenant": "shop", "role": role, "may": may[:count], "mirror": None}


def test_a_decision_names_the_arm_whose_loss_to_send(service: Service) -> None:
    service.create("decide")
    both = service.decide("decide")
    assert both["mode"] == "both"
    assert {both["exploit"], both["explore"]} <= set(FTPL["arms"])
    assert both["send_feedback"] == {
        "loss_of": both["explore"],
        "to": f"/v1/decisions/{both['id']}/feedback",
    }
    assert both["status"] == "pending"
    explore = service.decide("decide", mode="explore", available=["green"])
    assert (explore["exploit"], explore["explore"]) == (None, "green")
    exploit = service.decide("decide", mode="exploit")
    assert exploit["send_feedback"] is None
    assert exploit["status"] == "unobserved"
    answer = service.http.put(f"/v1/decisions/{exploit['id']}/feedback", json={"loss": 0.1})
    refused(answer, 409, "exploit")
    several = service.decide("decide", count=3)["decisions"]
    assert len({each["id"] for each in several}) == 3
    assert len({each["state_version"] for each in several}) == 1
    assert service.http.get(f"/v1/decisions/{both['id']}").json() == both


def test_the_same_key_gives_the_same_decision(service: Service) -> None:
    service.create("key")
    path, headers = "/v1/experiments/key/decisions", {"Idempotency-Key": "mine"}
    first, again = (service.http.post(path, json={"count": 4}, headers=headers) for _ in range(2))
    assert first.json() == again.json()
    refused(service.http.post(path, json={"count": 5}, headers=headers), 409, "mine")
    refused(service.http.post(path, headers={"Idempotency-Key": "a b"}), 400, "Idempotency-Key")
    refused(service.http.post(path, headers={"Idempotency-Key": "k" * 256}), 400, "255")
    assert service.http.get("/v1/experiments/key/state").json()["decisions"] == 4


def test_a_batch_has_a_result_for_each_item(service: Service) -> None:
    service.create("batch")
    one, two = service.decide("batch", count=2)["decisions"]
    items = [
        {"decision": one["id"], "loss": 0.5},
        {"decision": "none-7", "loss": 0.5},
        {"decision": one["id"], "loss": 0.75},
        {"decision": two["id"], "loss": 7.0},
        {"decision": two["id"], "reward": 1.0},
    ]
    results = service.http.post("/v1/feedback", json={"items": items}).json()["results"]
    assert [each["status"] for each in results] == [200, 404, 409, 422, 200]
    assert [each["id"] for each in results] == [each["decision"] for each in items]
    assert results[0]["decision"] == service.http.get(f"/v1/decisions/{one['id']}").json()
    assert results[4]["decision"]["loss"] == 0.0
    refused(service.http.post("/v1/feedback", json={"items": []}), 422, "items")
    halves = [{"decision": one["id"], "loss": 0.5}, {"decision": two["id"]}]
    refused(service.http.post("/v1/feedback", json={"items": halves}), 422, "items.1", "explored")


def test_feedback_with_its_arm_and_a_batch_of_it_take_one_transaction_each(
    service: Service, transactions: Callable[[DecisionService], list[str]]
) -> None:
    service.create("once-arm")
    first, *others = service.decide("once-arm", count=6)["decisions"]
    items: list[dict[str, Any]] = [
        {"decision": each["id"], "loss": i / 10, "arm": each["explore"]} for i, each in enumerate(others)
    ]
    items[1]["arm"] = "nobody"
    items += [{"decision": "no-1", "loss": 0.5, "arm": "red"}, {"decision": "not an id", "loss": 0.5}]
    counted = transactions(service.direct)
    path = f"/v1/decisions/{first['id']}/feedback"
    assert service.http.put(path, json={"loss": 0.5, "arm": first["explore"]}).status_code == 200
    assert len(counted) == 1
    results = service.http.post("/v1/feedback", json={"items": items}).json()["results"]
    assert [each["status"] for each in results] == [200, 422, 200, 200, 200, 404, 404]
    assert len(counted) == 2


def test_a_log_comes_in_two_formats_and_is_evaluated(service: Service) -> None:
    service.create("look", seed=3)
    made = service.decide("look")
    service.http.put(f"/v1/decisions/{made['id']}/feedback", json={"loss": 0.25})
    path = "/v1/experiments/look"
    answer = service.http.get(f"{path}/log")
    assert answer.headers["content-type"].startswith("text/csv")
    [row] = csv.DictReader(io.StringIO(answer.text))
    found = service.http.get(f"/v1/decisions/{made['id']}").json()
    assert [row[name] for name in TIMES] == [found[name] or "" for name in TIMES], "one form of times"
    content = service.http.get(f"{path}/log", params={"format": "parquet"}).content
    [kept] = pq.read_table(io.BytesIO(content)).to_pylist()
    assert (kept["id"], kept["loss"], kept["propensity"]) == (made["id"], 0.25, made["propensity"])
    evaluation = service.http.get(f"{path}/evaluation").json()
    assert (evaluation["observed"], [each["arm"] for each in evaluation["arms"]]) == (1, FTPL["arms"])
    refused(service.http.get(f"{path}/log", params={"format": "xlsx"}), 422, "format")
    refused(service.http.get("/v1/experiments/nowhere/log"), 404)


def test_retention_drops_old_rows(service: Service, clock: Clock) -> None:
    service.create("retention")
    decision = service.decide("retention")
    service.http.put(f"/v1/decisions/{decision['id']}/feedback", json={"loss": 0.5})
    clock.now += 100
    service.decide("retention")
    dropped = service.http.post(
        "/v1/experiments/retention/retention", json={"before": "2001-09-09T01:47:00Z"}
    )
    assert dropped.json() == {"dropped": 2}
    refused(service.http.get(f"/v1/decisions/{decision['id']}"), 404)
    assert service.http.get("/v1/experiments/retention/state").json()["applied"] == 1, "counts stay"
    refused(
        service.http.post("/v1/experiments/retention/retention", json={"before": "yesterday"}),
        422,
        "before",
    )


def test_health_and_metrics(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    assert service.http.get("/healthz").json() == service.http.get("/readyz").json() == {"status": "ok"}
    service.create("metrics")
    service.decide("metrics")
    text = service.http.get("/metrics").text
    kinds = dict(re.findall(r"# TYPE decoupled_decisions_(\w+) (\w+)", text))
    assert {name for name, kind in kinds.items() if kind == "gauge"} >= {"queue", "experiments", "pending"}
    assert kinds["made_total"] == kinds["commits_total"] == "counter"
    helps = dict(re.findall(r"# HELP decoupled_decisions_(\w+?)(?:_total)? (.+)", text))
    assert helps == {NAMES.get(name, name): said for name, said in HELP.items()}
    assert service.direct.counters().keys() == HELP.keys()
    assert not [
        told for told in re.findall("# HELP .*", text) if "desk" in told.split(maxsplit=3)[3].lower()
    ]
    line = (
        'decoupled_http_requests_total{method="POST",route="/v1/experiments/{name}/decisions",status="201"}'
    )
    assert line in text
    assert "decoupled_decisions_commits_total" in text
    assert "/metrics" not in text.replace('route="/metrics"', ""), (
        "no paths but routes: callers cannot add labels"
    )
    monkeypatch.setattr(service.direct, "ready", lambda: False)
    refused(service.http.get("/readyz"), 503, "doctor")


def test_an_internal_error_has_the_same_shape_and_no_details(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: Any, **__: Any) -> None:
        raise RuntimeError("secret insides")

    def failed(*_: Any, **__: Any) -> None:
        raise ServiceError("KeyError: insides")

    monkeypatch.setattr(service.direct.experiments, "get", broken)
    monkeypatch.setattr(service.direct.decisions, "decide", broken)
    monkeypatch.setattr(service.direct.experiments, "state", failed)
    paths = [
        ("GET", "/v1/experiments/x"),
        ("POST", "/v1/experiments/x/decisions"),
        ("GET", "/v1/experiments/x/state"),
    ]
    for method, path in paths:
        answer = service.http.request(method, path)
        assert "insides" not in str(refused(answer, 500))
