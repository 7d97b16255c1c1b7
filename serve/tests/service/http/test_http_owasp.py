"""The OWASP API Security Top 10 of 2023, entry by entry."""

import hashlib
import hmac
import json
import logging
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from decoupled.client import Client, Retries
from decoupled.client.errors import ServiceError
from decoupled.errors import ParameterError
from decoupled_serve.service.http.admission import Limits, new_key
from decoupled_serve.service.http.server import Serving, check
from support.http_service import FTPL, Service, served

Headers = dict[str, str]


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Service]:
    (tmp_path / "backups").mkdir()
    with served(tmp_path, open_to_all=False, backups=tmp_path / "backups") as running:
        yield running


NAMES = {"{name}": "mine", "{id}": "none-1", "{key}": "mine"}


def operations(service: Service, headers: Headers) -> list[tuple[str, str]]:
    """Every operation of the document, as a method and a path."""
    paths = service.http.get("/v1/openapi.json", headers=headers).json()["paths"]
    found = []
    for path, methods in paths.items():
        for mark, name in NAMES.items():
            path = path.replace(mark, name)
        found += [(method.upper(), path) for method in methods]
    assert len(found) > 15
    return found


def test_api1_broken_object_level_authorization(service: Service) -> None:
    # Whatever belongs to another tenant is not there: 404, exactly as for what nobody has.
    mine, theirs = service.key("admin", "shop"), service.key("admin", "bank")
    service.create("mine", mine)
    decision = service.decide("mine", mine)["id"]
    service.create("theirs", theirs)
    asked = [
        ("GET", "/v1/experiments/mine", None),
        ("GET", "/v1/experiments/mine/state", None),
        ("GET", "/v1/experiments/mine/log", None),
        ("GET", "/v1/experiments/mine/evaluation", None),
        ("GET", "/v1/experiments/mine/verdict", None),
        ("POST", "/v1/experiments/mine/gate?arm=red", None),
        ("GET", "/v1/experiments/mine/history", None),
        ("POST", "/v1/experiments/mine/decisions", {}),
        ("POST", "/ofrep/v1/evaluate/flags/mine", {}),
        ("POST", "/v1/experiments/mine/archive", None),
        ("POST", "/v1/experiments/mine/retention", {"before": "2100-01-01T00:00:00Z"}),
        ("GET", f"/v1/decisions/{decision}", None),
        ("PUT", f"/v1/decisions/{decision}/feedback", {"loss": 0.5}),
        ("PUT", f"/v1/decisions/{decision}/feedback", {"loss": 0.5, "arm": "red"}),
    ]
    for method, path, body in asked:
        answer = service.http.request(method, path, json=body, headers=theirs)
        nobody = path.replace("mine", "nobody").replace(decision, "0123456789abcdef-1")
        known = service.http.request(method, nobody, json=body, headers=theirs)
        assert answer.status_code == known.status_code == 404, path
        assert set(answer.json()) == set(known.json())
    items = {"items": [{"decision": decision, "loss": 0.5}]}
    answer = service.http.post("/v1/feedback", json=items, headers=theirs)
    assert answer.json()["results"][0]["status"] == 404
    listed = service.http.get("/v1/experiments", headers=theirs).json()["experiments"]
    assert [each["name"] for each in listed] == ["theirs"]
    assert service.http.get(f"/v1/decisions/{decision}", headers=mine).json()["status"] == "pending"
    service.create("mine", theirs)  # one name, two tenants, two experiments


def test_api2_broken_authentication(
    service: Service,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    compared: list[str] = []
    constant_time = hmac.compare_digest

    def noted(one: str, other: str) -> bool:
        compared.append(one)
        return constant_time(one, other)

    monkeypatch.setattr(hmac, "compare_digest", noted)
    caplog.set_level(logging.DEBUG, "decoupled")
    good = service.key("admin")
    key = good["Authorization"].removeprefix("Bearer ")
    for method, path in operations(service, good):
        answer = service.http.request(method, path)
        if path in ("/healthz", "/readyz"):
            assert answer.status_code == 200
            continue
        assert answer.status_code == 401, path
        assert answer.headers["www-authenticate"].startswith("Bearer")
    assert service.http.get("/v1/access", headers=good).status_code == 200
    assert compared, "digests are compared in constant time"
    for header in (
        "Bearer",
        f"Basic {key}",
        f"Bearer {key}x",
        f"Bearer {new_key()}",
        key,
        "Bearer \xff",
    ):
        sent = {"Authorization": header.encode("latin-1")}
        assert service.http.get("/v1/experiments", headers=sent).status_code == 401, header  # type: ignore[arg-type]
    assert service.http.get(f"/v1/experiments?key={key}").status_code == 401, (
        "a key in a query is no key"
    )
    stored = b"".join(file.read_bytes() for file in tmp_path.glob("store.db*"))
    assert key.encode() not in stored
    assert hashlib.sha256(key.encode()).hexdigest().encode() in stored
    assert key not in caplog.text
    service.direct.keys.revoke(hashlib.sha256(key.encode()).hexdigest()).result()
    assert service.http.get("/v1/experiments", headers=good).status_code == 401
    # 256 bits each: a collision among 1,000 would be a broken source of randomness.
    assert len({new_key() for _ in range(1_000)}) == 1_000
    assert len(new_key()) == len("dk_") + 43


def test_api2_guessing_is_slowed_and_locks_nobody_out(tmp_path: Path) -> None:
    with served(tmp_path, open_to_all=False, limits=Limits(bad_keys=0.01)) as service:
        keys = [{"Authorization": f"Bearer {new_key()}"} for _ in range(5)]
        wrong = [service.http.get("/v1/experiments", headers=key) for key in keys]
        assert [each.status_code for each in wrong] == [401, *[429] * 4]
        assert int(wrong[-1].headers["retry-after"]) >= 1
        for role in ("read", "decide", "admin"):  # never seen before, from the same address
            assert service.http.get("/v1/experiments", headers=service.key(role)).status_code == 200


def test_api3_broken_object_property_level_authorization(service: Service) -> None:
    # No field can be set that is not documented, and none is shown that is not.
    admin = service.key("admin", "shop")
    extra: dict[str, Any]
    for extra in (
        {"tenant": "bank"},
        {"created_at": 0},
        {"state_version": 9},
        {"archived_at": None},
    ):
        answer = service.http.put("/v1/experiments/mine", json={**FTPL, **extra}, headers=admin)
        assert answer.status_code == 422, extra
    service.create("mine", admin, seed=123_456_789)
    decision = service.decide("mine", admin)
    path = f"/v1/decisions/{decision['id']}/feedback"
    for extra in ({"status": "applied"}, {"explore": "red"}, {"propensity": 1.0}, {"weight": 1e9}):
        assert (
            service.http.put(path, json={"loss": 0.5, **extra}, headers=admin).status_code == 422
        ), extra
    shown = service.http.get("/v1/experiments/mine", headers=admin).text + json.dumps(decision)
    assert "tenant" not in shown
    assert "123456789" not in shown, "the seed tells the draws to come"
    assert "stream" not in shown


def test_api4_unrestricted_resource_consumption(tmp_path: Path) -> None:
    limits = Limits(body=10_000, rate=10.0, burst=20.0)  # test_attacks.py has those of time
    with served(tmp_path, open_to_all=False, limits=limits) as service:
        admin = service.key("admin")
        service.create("mine", admin)
        json_kind = {**admin, "Content-Type": "application/json"}
        chunked = iter([b'{"mode": "', *[b"x" * 1_000] * 20, b'"}'])  # no Content-Length to look at
        answer = service.http.post(
            "/v1/experiments/mine/decisions", content=chunked, headers=json_kind
        )
        assert answer.status_code == 413
        assert service.http.get("/v1/experiments?limit=1001", headers=admin).status_code == 422
        statuses = [service.http.get("/v1/experiments", headers=admin) for _ in range(30)]
        refused = [each for each in statuses if each.status_code == 429]
        assert refused
        assert int(refused[0].headers["retry-after"]) >= 1
        assert service.http.get("/healthz").status_code == 200


def test_api5_broken_function_level_authorization(service: Service) -> None:
    # What a role may do is what this table says, for every operation there is.
    admin = service.key("admin")
    keys = {role: service.key(role) for role in ("read", "decide")} | {"admin": admin}
    stranger = service.key("admin", "shop")
    may_decide = {
        ("POST", "/v1/experiments/mine/decisions"),
        ("PUT", "/v1/decisions/none-1/feedback"),
        ("PUT", "/v1/decisions/none-1/label"),
        ("POST", "/v1/feedback"),
        ("PUT", "/v1/decisions/none-1/pair"),
        ("PUT", "/v1/experiments/mine/down"),
        ("POST", "/v1/logs"),  # evaluations are feedback
        ("POST", "/ofrep/v1/evaluate/flags"),
        ("POST", "/ofrep/v1/evaluate/flags/mine"),
    }
    bodies = {
        "/v1/experiments/mine": FTPL,
        "/v1/feedback": {"items": [{"decision": "none-1", "loss": 0.5}]},
        "/v1/experiments/mine/arms": {"arms": ["mauve"]},
        "/v1/experiments/mine/arms/retire": {"arms": ["mauve"]},
        "/v1/experiments/mine/retention": {"before": "2000-01-01T00:00:00Z"},
        "/v1/experiments/mine/down": {"arms": []},
        "/v1/experiments/mine/guardrails": {"pinned": None},
        "/v1/experiments/mine/budget": {},
    }
    for method, path in operations(service, admin):
        body = bodies.get(path) if method != "GET" else None
        for role in ("read", "decide"):
            status = service.http.request(method, path, json=body, headers=keys[role]).status_code
            looks = method == "GET" and path not in ("/v1/audit", "/v1/experiments/mine/learner")
            looks = looks or path.endswith("/gate")  # POST changes nothing there
            allowed = looks or (role == "decide" and (method, path) in may_decide)
            assert (status != 403) == allowed, (role, method, path, status)
    for method, path in (("GET", "/metrics"), ("POST", "/v1/backups")):
        assert service.http.request(method, path, headers=stranger).status_code == 403, path
        assert service.http.request(method, path, headers=admin).status_code in (200, 201)


def test_api6_unrestricted_access_to_sensitive_business_flows(tmp_path: Path) -> None:
    # The flow worth abusing is feedback: whoever could repeat or flood it would steer what is served.
    with served(tmp_path, open_to_all=False, limits=Limits(rate=5.0, burst=50.0)) as service:
        admin = service.key("admin")
        service.create("mine", admin)
        decision = service.decide("mine", admin)
        path = f"/v1/decisions/{decision['id']}/feedback"
        for loss, status in ((0.5, 200), (0.5, 200), (0.6, 409)):
            assert service.http.put(path, json={"loss": loss}, headers=admin).status_code == status
        assert service.http.get("/v1/experiments/mine/state", headers=admin).json()["applied"] == 1
        # A batch is charged for what it holds, not as one request.
        many = {"items": [{"decision": f"none-{i}", "loss": 0.5} for i in range(1, 60)]}
        statuses = [
            service.http.post("/v1/feedback", json=many, headers=admin).status_code
            for _ in range(2)
        ]
        assert statuses[-1] == 429
        path = "/v1/experiments/mine/decisions"
        assert service.http.post(path, json={"count": 60}, headers=admin).status_code == 429


def test_api7_server_side_request_forgery(service: Service, tmp_path: Path) -> None:
    # The service calls nobody, and writes nowhere a caller can name.
    admin = service.key("admin")
    with socket.create_server(("127.0.0.1", 0)) as canary:
        url = f"http://127.0.0.1:{canary.getsockname()[1]}/"
        settings = {"policy": {"name": url}, "arms": [url, "b"]}
        assert (
            service.http.put("/v1/experiments/mine", json=settings, headers=admin).status_code
            == 422
        )
        service.create("mine", admin, arms=[url, "b"])
        headers = {**admin, "Idempotency-Key": url, "Referer": url, "X-Forwarded-Host": url}
        assert (
            service.http.post("/v1/experiments/mine/decisions", headers=headers).status_code == 201
        )
        answer = service.http.post(
            "/v1/backups", json={"path": str(tmp_path / "escaped")}, headers=headers
        )
        assert answer.status_code == 201
        assert not (tmp_path / "escaped").exists()
        assert (tmp_path / "backups" / answer.json()["file"]).exists()
        canary.setblocking(False)
        with pytest.raises(BlockingIOError):
            canary.accept()


def test_api8_misconfiguration(
    service: Service, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with pytest.raises(ParameterError, match="decoupled keys add"):
        check(Serving("store", host="0.0.0.0"), any_key=False)
    with pytest.raises(ParameterError, match="together"):
        check(Serving("store", tls_certificate=tmp_path / "c.pem"), any_key=True)
    absent = Serving("store", tls_certificate=tmp_path / "c.pem", tls_key=tmp_path / "k.pem")
    with pytest.raises(ParameterError, match="cannot be read"):
        check(absent, any_key=True)
    check(Serving("store", host="0.0.0.0"), any_key=True)
    assert "no TLS" in caplog.text
    admin = service.key("admin")
    for path in ("/v1/experiments", "/nowhere", "/healthz"):
        answer = service.http.get(path, headers=admin)
        assert "server" not in answer.headers
        assert "access-control-allow-origin" not in answer.headers
    for path in ("/.env", "/v1/../../etc/passwd", "/v1/experiments/..%2f..%2fetc"):
        assert service.http.get(path, headers=admin).status_code in (404, 422)


def test_api8_a_browser_cannot_be_made_to_use_a_service_without_keys(tmp_path: Path) -> None:
    with served(tmp_path, open_to_all=True) as service:
        service.create("mine")
        path = "/v1/experiments/mine/decisions"
        own = service.url.removeprefix("http://")
        for headers, status in (
            ({"Origin": "https://evil.example"}, 403),
            ({"Origin": "null"}, 403),
            ({"Host": "evil.example"}, 403),  # a name of someone's that leads to this machine
            ({"Content-Type": "text/plain"}, 415),  # what a form can send without being asked
            ({"Origin": f"http://{own}"}, 201),
            ({"Host": "localhost:1"}, 201),
        ):
            sent = {"Content-Type": "application/json", **headers}
            answer = service.http.post(path, content=b"{}", headers=sent)
            assert answer.status_code == status, headers


def test_api9_improper_inventory_management(service: Service) -> None:
    # What is served is what is documented, under a version or by a name that is listed here.
    document = service.http.get("/v1/openapi.json", headers=service.key("admin")).json()
    outside = {path for path in document["paths"] if not path.startswith(("/v1/", "/ofrep/v1/"))}
    assert outside == {"/healthz", "/readyz", "/metrics"}
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            assert operation["summary"], (method, path)
            assert {"401", "403", "429", "503"} <= set(operation["responses"]), (method, path)


def test_api10_unsafe_consumption_of_apis(tmp_path: Path) -> None:
    # The service consumes no API; its client does. It follows no redirect, so that no key goes elsewhere,
    # and takes no answer for more than it is.
    seen: list[httpx.Request] = []

    def answer(request: httpx.Request) -> httpx.Response:
        seen.append(request)
        if request.url.path.endswith("/state"):
            return httpx.Response(302, headers={"Location": "http://evil.example/"})
        if request.url.path.endswith("/decisions"):
            return httpx.Response(
                503, headers={"Retry-After": "99999999"}, text="<html>" + "x" * 10_000
            )
        return httpx.Response(200, text="<html>not JSON</html>")

    with Client("http://service.example", "dk_secret", retries=Retries(attempts=1)) as client:
        client._http = httpx.Client(
            base_url="http://service.example", transport=httpx.MockTransport(answer)
        )
        with pytest.raises(ServiceError):
            client.state("mine")
        with pytest.raises(ServiceError) as told:
            client.decide("mine")
        assert len(str(told.value)) < 500
        with pytest.raises(ServiceError):
            client.experiment("mine")
        assert {request.url.host for request in seen} == {"service.example"}
        assert "dk_secret" not in repr(client)
