"""Lists, deleting, saved learners and replayed logs over HTTP; backups, and a database that fails."""

import hashlib
import json
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest

import decoupled as dc
from decoupled_serve.service.http.admission import Limits
from decoupled_serve.service.store.postgres import PostgresStore
from support.http_service import Service, served

NDJSON = {"Content-Type": "application/x-ndjson"}


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    limits = Limits(rate=0.0, replay=4_000)
    with served(tmp_path_factory.mktemp("data"), delete_after=0.0, limits=limits) as running:
        yield running


def refused(answer: httpx.Response, status: int, *words: str) -> None:
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    for word in words:
        assert word in answer.json()["detail"]


def test_pages_have_one_shape(service: Service) -> None:
    for name in ("page-1", "page-2", "page-3"):
        service.create(name)
    asked: dict[str, Any] = {"prefix": "page-", "sort": "-created_at", "limit": 2}
    one = service.http.get("/v1/experiments", params=asked).json()
    two = service.http.get("/v1/experiments", params={**asked, "after": one["next"]}).json()
    assert [each["name"] for each in one["experiments"] + two["experiments"]] == [
        "page-3",
        "page-2",
        "page-1",
    ]
    assert two["next"] is None
    for _ in range(3):
        service.decide("page-1")
    first = service.http.get("/v1/experiments/page-1/decisions?limit=2").json()
    rest = service.http.get(f"/v1/experiments/page-1/decisions?limit=2&after={first['next']}").json()
    assert [len(first["decisions"]), len(rest["decisions"]), rest["next"]] == [2, 1, None]
    refused(service.http.get(f"/v1/experiments?after={first['next']}"), 422, "sorted by name")
    refused(service.http.get("/v1/experiments?sort=size"), 422, "sort: ")
    refused(service.http.get("/v1/experiments/page-1/decisions?limit=0"), 422, "limit")
    refused(service.http.get("/v1/experiments/nobody/decisions"), 404)


def test_deleting_takes_two_steps(service: Service) -> None:
    service.create("doomed")
    made = service.decide("doomed")
    path = "/v1/experiments/doomed"
    refused(service.http.delete(path), 422, "confirm: Field required")
    refused(service.http.delete(f"{path}?confirm=domed"), 422, "pass confirm=doomed")
    refused(service.http.delete(f"{path}?confirm=doomed"), 409, "archive it first")
    service.http.post(f"{path}/archive")
    done = service.http.delete(f"{path}?confirm=doomed")
    assert (done.status_code, done.json()["name"]) == (200, "doomed")
    refused(service.http.delete(f"{path}?confirm=doomed"), 404)
    refused(service.http.get(path), 404)
    refused(service.http.put(f"/v1/decisions/{made['id']}/feedback", json={"loss": 0.5}), 410, "deleted")
    service.create("doomed")


def test_a_learner_moves_in_and_out(service: Service) -> None:
    learner = dc.Ladder().start(["a", "b"], seed=7)
    learner.watch(risk=0.01, drift=False)
    learner.guardrails = dc.Guardrails(holdout=0.1, control="a")
    for loss in (0.1, 0.9, 0.4):
        learner.observe(learner.decide(), loss=loss)
    path, text = "/v1/experiments/moved", learner.to_json()
    created = service.http.put(path, json={"learner": text + "\n", "deadline_seconds": 60})
    assert created.status_code == 201, created.text
    found = created.json()
    assert (found["arms"], found["risk"], found["drift"]) == (["a", "b"], 0.01, False)
    assert found["guardrails"]["control"] == "a"
    assert service.http.put(path, json={"learner": text, "deadline_seconds": 60}).status_code == 200
    made, twin = service.decide("moved"), learner.decide()
    assert (made["exploit"], made["explore"], made["propensity"]) == (
        twin.exploit,
        twin.explore,
        twin.propensity,
    )
    back = dc.Learner.from_json(service.http.get(f"{path}/learner").content)
    assert service.decide("moved")["explore"] == back.decide().explore
    refused(service.http.put(path, json={"learner": text, "arms": ["a", "b"]}), 422, "arms: comes with")
    refused(service.http.put(path, json={"learner": text[:-9]}), 422, "learner:")
    refused(service.http.put(path, json={"learner": "{}"}), 422, "learner: has no 'format'")
    refused(service.http.put(path, json={}), 422, "arms: Field required")


def test_a_log_is_replayed(service: Service) -> None:
    service.create("learning")
    path = "/v1/experiments/learning/replay"
    row = {"explore": "red", "propensity": 0.5, "loss": 0.25}
    done = service.http.post(path, content=json.dumps(row), headers=NDJSON)
    assert done.status_code == 200, done.text
    assert (done.json()["learned"], done.json()["already"]) == (1, 0)
    assert "hold only if" in done.json()["warnings"][0]
    assert service.http.post(path, content=json.dumps(row), headers=NDJSON).json()["already"] == 1
    table = "explore,propensity,loss\ngreen,0.5,0.75\n"
    assert (
        service.http.post(path, content=table, headers={"Content-Type": "text/csv"}).json()["learned"] == 1
    )
    exported = service.http.get("/v1/experiments/learning/log?format=parquet").content
    parquet = {"Content-Type": "application/vnd.apache.parquet"}
    refused(service.http.post(path, content=exported, headers=parquet), 422, "0 rows and no loss")
    refused(service.http.post(path, content=b"PAR1", headers=parquet), 422, "log:")
    refused(service.http.post(path, json=[row]), 415, "application/x-ndjson")
    refused(service.http.post(path, headers=NDJSON), 422, "is empty")
    refused(service.http.post(path, content=b"x" * 4_001, headers=NDJSON), 413, "4,000 bytes")
    refused(service.http.post(path, content=iter([b"x" * 3_000] * 2), headers=NDJSON), 413)
    without = json.dumps({"explore": "red", "loss": 0.5})
    refused(service.http.post(path, content=without, headers=NDJSON), 422, "propensity")
    refused(service.http.post(f"{path}x", content=without, headers=NDJSON), 415)
    refused(service.http.post("/v1/experiments/nobody/replay", content="{}", headers=NDJSON), 404)


def test_others_are_answered_while_a_backup_is_hashed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hashing, go_on = threading.Event(), threading.Event()
    digest = hashlib.file_digest

    def slow(*arguments: Any) -> Any:
        hashing.set()
        assert go_on.wait(60), "the event loop hashes"
        return digest(*arguments)

    monkeypatch.setattr("decoupled_serve.service.http.routes.operations.hashlib.file_digest", slow)
    with served(tmp_path, backups=tmp_path) as service, ThreadPoolExecutor(1) as pool:
        backup = pool.submit(service.http.post, "/v1/backups")
        assert hashing.wait(60)
        with httpx.Client(base_url=service.url, timeout=30.0) as other:
            assert other.get("/healthz").status_code == 200
        go_on.set()
        found = backup.result()
        assert found.status_code == 201
        written = (tmp_path / found.json()["file"]).read_bytes()
        assert found.json()["sha256"] == hashlib.sha256(written).hexdigest()


def test_a_503_does_not_say_where_the_database_is(postgres: str, caplog: pytest.LogCaptureFixture) -> None:
    with served(postgres, backups=Path("/nowhere")) as service:
        service.create("one")
        store = service.direct._session.store
        assert isinstance(store, PostgresStore)
        right, store._url = store._url, "postgresql://clerk:hunter2@127.0.0.1:1/ledger"
        store.connection.close()
        requests = [
            ("POST", "/v1/experiments/one/decisions"),
            ("GET", "/v1/experiments"),
            ("GET", "/v1/experiments/one/decisions"),
            ("GET", "/v1/experiments/one/log"),
            ("GET", "/v1/experiments/one/evaluation"),
            ("POST", "/v1/backups"),
            ("GET", "/v1/audit"),
            ("POST", "/ofrep/v1/evaluate/flags/one"),
        ]
        for method, path in requests:
            answer = service.http.request(
                method,
                path,
                content=b"{}" if method == "POST" else None,
                headers={"Content-Type": "application/json"},
            )
            assert answer.status_code in (500, 503), (path, answer.text)
            for secret in ("clerk", "hunter2", "127.0.0.1", "ledger", "port", "psycopg", "Operational"):
                assert secret not in answer.text, (path, answer.text)
        assert "127.0.0.1" in caplog.text, "the operator sees it"
        assert "hunter2" not in caplog.text
        store._url = right
