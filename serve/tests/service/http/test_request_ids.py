"""A request has one id: in its answer, in its errors, in every line of the log, in the audit trail, in the client."""

import json
import logging
import re
from collections.abc import Iterator
from io import StringIO
from pathlib import Path

import pytest

from decoupled.client import Client, Retries
from decoupled.client.errors import NotFound, ServiceError, StoreError, Undelivered
from decoupled_serve.service.http.admission import Limits
from support.http_service import Service, served
from support.stores import full_disk
from support.waiting import wait_for

SERVED = {"limits": Limits(headers=4_096, headers_seconds=0.3)}
TRACE = "0af7651916cd43dd8448eb211c80319c"


@pytest.fixture(scope="module", autouse=True)
def _log_requests() -> Iterator[None]:
    log = logging.getLogger("decoupled.access")
    before = log.level
    log.setLevel(logging.INFO)  # before the service is made, which looks once
    yield
    log.setLevel(before)


def prepare(service: Service) -> None:
    service.create("models")


def objects(lines: StringIO, logger: str = "", count: int = 0) -> list[dict[str, object]]:
    """The lines of a logger, or of all, once there are that many: a request is logged after its answer is sent."""
    found: list[dict[str, object]] = []

    def enough() -> bool:
        every = [json.loads(line) for line in lines.getvalue().splitlines()]
        # The request by which the service was seen to be up may be logged late.
        found[:] = [
            each
            for each in every
            if logger in ("", each["logger"]) and each.get("path") != "/healthz"
        ]
        return len(found) >= count

    wait_for(enough, "lines of the log")
    return found


PATHS = [
    ("POST", "/v1/experiments/models/decisions", 201),
    ("POST", "/v1/experiments/nobody/decisions", 404),
    ("PUT", "/v1/decisions/none-1/feedback", 422),
    ("GET", "/v1/experiments/models", 200),
    ("GET", "/v1/experiments/models/log?format=csv", 200),
    ("GET", "/v1/nowhere", 404),
    ("POST", "/v1/experiments/models", 405),
    ("GET", "/v1/experiments?limit=0", 422),
    ("GET", "/healthz", 200),
    ("GET", "/", 200),
]


@pytest.mark.parametrize(("method", "path", "status"), PATHS)
def test_answers_have_the_sent_or_a_new_id(
    service: Service, method: str, path: str, status: int
) -> None:
    kept = service.http.request(method, path, headers={"X-Request-Id": "checkout:7/a"})
    made = service.http.request(method, path)
    assert kept.status_code == made.status_code == status
    assert kept.headers.get_list("x-request-id") == ["checkout:7/a"]
    assert re.fullmatch(r"[0-9a-f]{12}-[0-9a-f]+", made.headers["x-request-id"])
    if status >= 400:
        assert made.json()["request_id"] == made.headers["x-request-id"]


@pytest.mark.parametrize("sent", ["", "two words", "a" * 129, "<script>", "-dash", "é"])
def test_an_id_that_is_not_sane_is_replaced(service: Service, sent: str) -> None:
    answer = service.http.get("/healthz", headers={b"X-Request-Id": sent.encode()})
    assert answer.status_code == 200
    assert re.fullmatch(r"[0-9a-f]{12}-[0-9a-f]+", answer.headers["x-request-id"])


def test_every_line_of_a_request_has_its_id(service: Service, lines: StringIO) -> None:
    headers = {"X-Request-Id": "r-7", "traceparent": f"00-{TRACE}-b7ad6b7169203331-01"}

    with full_disk(service.direct):
        assert (
            service.http.post("/v1/experiments/models/decisions", headers=headers).status_code
            == 503
        )
    [access] = objects(lines, "decoupled.access", 1)
    found = objects(lines, "decoupled_serve.service.commits.loop")
    [commit] = [each for each in found if "requests" in each]  # and not of the housekeeping
    assert commit["requests"] == ["r-7"]
    assert "request_id" not in commit, "it is about all requests of the transaction"
    [fault] = objects(lines, "decoupled.service")
    for each in (fault, access):
        assert (each["request_id"], each["trace_id"]) == ("r-7", TRACE)
    assert (fault["level"], access["level"]) == ("error", "info")
    assert (access["method"], access["status"], access["experiment"]) == ("POST", 503, "models")
    assert access["path"] == "/v1/experiments/models/decisions"
    assert access["route"] == "/v1/experiments/{name}/decisions"
    assert isinstance(access["ms"], float)
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", str(access["time"]))


@pytest.mark.parametrize(
    "path", ["/v1/audit", "/v1/experiments/x/decisions"], ids=["framework", "quick"]
)
def test_an_error_of_the_service_itself_is_logged_and_not_shown(
    service: Service, lines: StringIO, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    def broken(*arguments: object, **options: object) -> None:
        raise ZeroDivisionError("a bug,\nin two lines")

    monkeypatch.setattr(service.direct.audit, "read", broken)
    monkeypatch.setattr(service.direct.decisions, "decide", broken)
    answer = service.http.request("GET" if path == "/v1/audit" else "POST", path)
    assert (answer.status_code, answer.headers["content-type"]) == (500, "application/problem+json")
    assert "bug" not in answer.text
    [fault] = objects(lines, "decoupled.service", 1)
    assert fault["request_id"] == answer.json()["request_id"]
    exception = fault["exception"]
    assert isinstance(exception, dict)
    assert (exception["type"], exception["message"]) == (
        "ZeroDivisionError",
        "a bug,\nin two lines",
    )
    assert "Traceback" in exception["stack"]


def test_a_key_is_named_and_never_shown(tmp_path: Path, lines: StringIO) -> None:
    with served(tmp_path, open_to_all=False) as service:
        key = service.key("admin")
        service.create("models", key)
        service.http.get("/v1/experiments", headers=key)
        service.http.post("/v1/experiments/models/decisions", headers=key)
        [made] = service.direct.keys.list().result()
        [created] = service.direct.audit.read(action="experiment.create").result()
    # Requests to the service of the other tests may be logged late.
    access = [
        one for one in objects(lines, "decoupled.access", 3) if one["caller"] != "address 127.0.0.1"
    ]
    assert {each["caller"] for each in access} == {f"key {made.id}"}
    assert {each["key_label"] for each in access} == {"test"}
    assert (created.caller, created.label) == (f"key {made.id}", "test")
    assert created.request in {each["request_id"] for each in access}
    assert key["Authorization"].removeprefix("Bearer ") not in lines.getvalue()


def test_a_client_raises_with_the_id_of_its_request(service: Service, lines: StringIO) -> None:
    with Client(service.url) as client:
        with pytest.raises(NotFound) as raised:
            client.state("nobody")
        [refused] = client.feedback_many([Undelivered("none-1", loss=0.5)])
    error = raised.value
    assert error.request_id is not None
    assert error.request_id in "".join(error.__notes__)
    assert isinstance(refused, ServiceError)
    logged = {each["request_id"]: each["path"] for each in objects(lines, "decoupled.access", 2)}
    assert logged[error.request_id] == "/v1/experiments/nobody/state"
    assert logged[refused.request_id] == "/v1/feedback"


def test_attempts_share_an_id(
    service: Service, lines: StringIO, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("decoupled.client.sync.time.sleep", lambda seconds: None)
    with Client(service.url, retries=Retries(attempts=3, first=0.0)) as client:
        with full_disk(service.direct), pytest.raises(StoreError) as raised:
            client.decide("models")
        client.decide("models")
    access = objects(lines, "decoupled.access", 4)
    found = [(each["status"], each["request_id"] == raised.value.request_id) for each in access]
    assert found == [(503, True)] * 3 + [(201, False)]
