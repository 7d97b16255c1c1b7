"""Every endpoint, over a real socket: what it answers, in which shape it refuses, and exports that clients do not read."""

import hashlib
import json
import re
import socket
import tempfile
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

import decoupled as dc
from decoupled_serve.service.analysis import export
from decoupled_serve.service.http.admission import Limits
from decoupled_serve.service.http.observe.metrics import HELP, NAMES
from decoupled_serve.service.service import DecisionService
from decoupled_serve.service.store.postgres import PostgresStore
from support.http_service import FTPL, Service, served
from support.waiting import Clock, wait_for

CLOCK = Clock()
BACKUPS = Path(tempfile.mkdtemp())
SERVED = {
    "clock": CLOCK,
    "backups": BACKUPS,
    "delete_after": 0.0,
    "limits": Limits(rate=0.0, replay=4_000),
}
NDJSON = {"Content-Type": "application/x-ndjson"}


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
    settings = {
        **FTPL,
        "loss_range": [0, 250],
        "deadline_seconds": 60,
        "expired_loss": 250,
        "seed": 7,
    }
    first = service.http.put("/v1/experiments/once", json=settings)
    again = service.http.put("/v1/experiments/once", json=settings)
    assert (first.status_code, again.status_code) == (201, 200)
    assert first.json() == again.json() == service.http.get("/v1/experiments/once").json()
    assert first.json()["policy"]["alpha"] == 3.0, "defaults are written out"
    assert "seed" not in first.text, "who knows the seed knows the draws to come"
    assert first.json()["policy_label"] == "FTPL"
    refused(
        service.http.put("/v1/experiments/once", json={**settings, "deadline_seconds": 61}),
        409,
        "other settings (deadline_seconds is 60.0, and you sent 61.0); settings are fixed",
    )


def test_access_shows_what_a_key_may_do(service: Service, tmp_path: Path) -> None:
    may = {"read": ["read"], "decide": ["read", "decide"], "label": ["label"]}
    may["admin"] = ["read", "decide", "admin", "label"]
    assert service.http.get("/v1/access").json()["may"] == may["admin"], "without keys, everything"
    with served(tmp_path, open_to_all=False) as locked:
        for role, may_do in may.items():
            told = locked.http.get("/v1/access", headers=locked.key(role, "shop")).json()
            assert told == {"tenant": "shop", "role": role, "may": may_do, "mirror": None}


def test_feedback_with_its_arm_and_a_batch_of_it_take_one_transaction_each(
    service: Service, transactions: Callable[[DecisionService], list[str]]
) -> None:
    service.create("once-arm")
    first, *others = service.decide("once-arm", count=6)["decisions"]
    items: list[dict[str, Any]] = [
        {"decision": each["id"], "loss": i / 10, "arm": each["explore"]}
        for i, each in enumerate(others)
    ]
    items[1]["arm"] = "nobody"
    items += [
        {"decision": "no-1", "loss": 0.5, "arm": "red"},
        {"decision": "not an id", "loss": 0.5},
    ]
    counted = transactions(service.direct)
    path = f"/v1/decisions/{first['id']}/feedback"
    assert service.http.put(path, json={"loss": 0.5, "arm": first["explore"]}).status_code == 200
    assert len(counted) == 1
    results = service.http.post("/v1/feedback", json={"items": items}).json()["results"]
    assert [each["status"] for each in results] == [200, 422, 200, 200, 200, 404, 404]
    assert len(counted) == 2


def test_health_and_metrics(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    assert (
        service.http.get("/healthz").json()
        == service.http.get("/readyz").json()
        == {"status": "ok"}
    )
    service.create("metrics")
    service.decide("metrics")
    text = service.http.get("/metrics").text
    helps = dict(re.findall(r"# HELP decoupled_decisions_(\w+?)(?:_total)? (.+)", text))
    assert helps == {NAMES.get(name, name): said for name, said in HELP.items()}
    assert service.direct.counters().keys() == HELP.keys()
    assert 'method="POST",route="/v1/experiments/{name}/decisions",status="201"' in text
    assert "/metrics" not in text.replace('route="/metrics"', ""), "callers cannot add labels"
    monkeypatch.setattr(service.direct, "ready", lambda: False)
    refused(service.http.get("/readyz"), 503, "doctor")


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
    refused(
        service.http.put(f"/v1/decisions/{made['id']}/feedback", json={"loss": 0.5}), 410, "deleted"
    )
    service.create("doomed")


def test_a_learner_moves_in_and_out(service: Service) -> None:
    learner = dc.Ladder().start(["a", "b"], seed=7)
    learner.watch(risk=0.01, drift=False)
    learner.guardrails = dc.Guardrails(holdout=0.1, control="a")
    path, text = "/v1/experiments/moved", learner.to_json()
    found = service.http.put(path, json={"learner": text + "\n", "deadline_seconds": 60}).json()
    assert (found["arms"], found["risk"], found["drift"]) == (["a", "b"], 0.01, False)
    assert found["guardrails"]["control"] == "a"
    assert service.http.put(path, json={"learner": text, "deadline_seconds": 60}).status_code == 200
    assert service.decide("moved")["explore"] == learner.decide().explore
    back = dc.Learner.from_json(service.http.get(f"{path}/learner").content)
    assert service.decide("moved")["explore"] == back.decide().explore
    refused(
        service.http.put(path, json={"learner": text, "arms": ["a", "b"]}), 422, "arms: comes with"
    )
    refused(service.http.put(path, json={"learner": text[:-9]}), 422, "learner:")
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
        service.http.post(path, content=table, headers={"Content-Type": "text/csv"}).json()[
            "learned"
        ]
        == 1
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


def test_others_go_on_while_a_backup_is_hashed(
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


def test_a_503_does_not_say_where_the_database_is(
    postgres: str, caplog: pytest.LogCaptureFixture
) -> None:
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
            sent: Any = {"json": {}} if method == "POST" else {}
            answer = service.http.request(method, path, **sent)
            assert answer.status_code in (500, 503), (path, answer.text)
            for secret in (
                "clerk",
                "hunter2",
                "127.0.0.1",
                "ledger",
                "port",
                "psycopg",
                "Operational",
            ):
                assert secret not in answer.text, (path, answer.text)
        assert "127.0.0.1" in caplog.text, "the operator sees it"
        assert "hunter2" not in caplog.text
        store._url = right


SIZE = 32_000_000  # more than sockets take for a client that does not read


def spool_in(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    spool = folder / "spool"
    spool.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(spool))
    return spool


@pytest.fixture
def spool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of exports, each of which is large."""

    def write(decisions: Any, path: Path, kind: str) -> int:
        path.write_bytes(bytes(SIZE))
        return 1

    monkeypatch.setattr(export, "write", write)
    return spool_in(tmp_path, monkeypatch)


@contextmanager
def asking(service: Service, key: dict[str, str]) -> Iterator[socket.socket]:
    """A client that asks for a log and reads the start of it."""
    lines = [
        "GET /v1/experiments/one/log HTTP/1.1",
        "Host: localhost",
        f"Authorization: {key['Authorization']}",
    ]
    with service.line() as client:
        # With a much smaller one, what the system still has would trickle for minutes.
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 16)
        client.sendall("\r\n".join([*lines, "", ""]).encode())
        assert client.recv(16).startswith(b"HTTP/1.1 200")
        yield client


def status(service: Service, key: dict[str, str]) -> int:
    with service.http.stream("GET", "/v1/experiments/one/log", headers=key) as answer:
        read = sum(map(len, answer.iter_raw()))
        assert answer.status_code != 200 or read == SIZE
        return answer.status_code


def keys(service: Service, *tenants: str) -> list[dict[str, str]]:
    found = [service.key("admin", tenant) for tenant in tenants]
    for key in found:
        service.create("one", key)
    return found


def test_a_client_that_does_not_read_holds_its_share_of_the_disk(
    tmp_path: Path, spool: Path
) -> None:
    with served(tmp_path, open_to_all=False, limits=Limits(spool=3 * SIZE + 1)) as service:
        one, two = keys(service, "shop", "bank")
        with asking(service, one):
            assert len(list(spool.iterdir())) == 1
            assert status(service, one) == 429, "it would have more than is left for others"
            assert status(service, two) == 200
            wait_for(lambda: len(list(spool.iterdir())) == 1)
        wait_for(lambda: not list(spool.iterdir()))  # the client is gone
        assert status(service, one) == 200


def test_a_client_that_does_not_read_is_cut_off_after_a_while(tmp_path: Path, spool: Path) -> None:
    limits = Limits(spool=2 * SIZE, export_seconds=0.3)
    with served(tmp_path, open_to_all=False, limits=limits) as service:
        [one] = keys(service, "shop")
        with asking(service, one) as client:
            wait_for(lambda: not list(spool.iterdir()))
            read = 0
            while part := client.recv(1 << 20):
                read += len(part)
            assert read < SIZE, "and knows that it has not read all"
        with asking(service, one):
            pass
        wait_for(lambda: not list(spool.iterdir()))


def test_an_export_ends_when_it_becomes_too_large(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spool = spool_in(tmp_path, monkeypatch)
    sizes, logged = list[int](), export.logged

    def noted(*arguments: Any, **options: Any) -> Iterator[Any]:
        for each in logged(*arguments, **options):
            sizes.append(sum(file.stat().st_size for file in spool.rglob("*") if file.is_file()))
            yield each

    monkeypatch.setattr(export, "logged", noted)
    monkeypatch.setattr(export, "_AT_ONCE", 50)
    monkeypatch.setattr("decoupled_serve.service.http.routes.logs.COUNTED_EVERY", 50)
    with served(tmp_path, limits=Limits(spool=60_000)) as service:
        service.create("one")
        service.decide("one", count=1000)
        for format in ("csv", "parquet"):  # noqa: A001
            sizes.clear()
            answer = service.http.get("/v1/experiments/one/log", params={"format": format})
            assert (answer.status_code, answer.headers["retry-after"]) == (429, "10")
            assert 10_000 < sizes[-1] < 60_000
            assert len(sizes) < 1000, "it was ended early"
        assert list(spool.iterdir()) == []
        service.create("small")
        service.decide("small", count=10)
        assert service.http.get("/v1/experiments/small/log").status_code == 200
