"""Experiments as feature flags: OFREP on the wire, and with OpenFeature's own Python provider."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest
from openfeature import api
from openfeature.contrib.provider.ofrep import OFREPProvider
from openfeature.evaluation_context import EvaluationContext
from openfeature.exception import ErrorCode
from openfeature.flag_evaluation import FlagEvaluationDetails, Reason

from decoupled_serve.service.http.admission import Limits
from support.held_compiler import Held
from support.http_service import FTPL, Service, served

FLAGS = "/ofrep/v1/evaluate/flags"
ARMS = ("red", "green", "blue")


SERVED = {"limits": Limits(rate=0.0)}


def prepare(service: Service) -> None:
    service.create("colour")
    service.create("size", arms=[10, 20, 30])


def evaluate(service: Service, key: str, **context: Any) -> httpx.Response:
    return service.http.post(f"{FLAGS}/{key}", json={"context": context})


def count(service: Service, name: str) -> int:
    return int(service.http.get(f"/v1/experiments/{name}/state").json()["decisions"])


def test_a_flag_is_the_arm_of_a_decision_that_exploits(service: Service) -> None:
    answer = evaluate(service, "colour", targetingKey="user-1", plan="free")
    flag = answer.json()
    assert answer.status_code == 200
    assert flag["key"] == "colour"
    assert flag["value"] == flag["variant"]
    assert flag["value"] in ARMS
    assert flag["reason"] == "SPLIT"
    made = service.http.get(f"/v1/decisions/{flag['metadata']['decision']}").json()
    assert (made["mode"], made["exploit"], made["explore"]) == ("exploit", flag["value"], None)
    assert made["status"] == "unobserved", "no feedback is waited for"
    for name in ("policy", "state_version"):
        assert made[name] == flag["metadata"][name]
    service.create("guarded")
    service.http.patch("/v1/experiments/guarded/guardrails", json={"pinned": "blue"})
    pinned = evaluate(service, "guarded").json()
    assert (pinned["value"], pinned["reason"], pinned["metadata"]["guard"]) == (
        "blue",
        "STATIC",
        "pinned",
    )
    assert pinned["metadata"]["drawn"] in ARMS
    number = evaluate(service, "size").json()
    assert (type(number["value"]), number["variant"]) == (int, str(number["value"]))


def test_the_targeting_key_is_the_key_of_the_decision(service: Service) -> None:
    service.create("sticky", arms=[f"arm-{i}" for i in range(50)])
    flags = [
        evaluate(service, "sticky", targetingKey="one user", plan=plan).json() for plan in "abc"
    ]
    assert len({flag["value"] for flag in flags}) == 1
    assert service.decide("sticky", key="one user")["exploit"] == flags[0]["value"]
    # Each of 20 users has another arm but for a chance of 1 in 50: all the same with the probability 50**-19.
    others = {
        evaluate(service, "sticky", targetingKey=f"user {i}").json()["value"] for i in range(20)
    }
    assert len(others) > 1
    listed = service.http.post(FLAGS, json={"context": {"targetingKey": "one user"}})
    [sticky] = [each for each in listed.json()["flags"] if each["key"] == "sticky"]
    assert sticky["value"] == flags[0]["value"]
    seen = {"If-None-Match": listed.headers["ETag"]}
    for user, status in (("one user", 304), ("another", 200)):
        body = {"context": {"targetingKey": user}}
        assert service.http.post(FLAGS, json=body, headers=seen).status_code == status
    long = evaluate(service, "sticky", targetingKey="x" * 1025)
    assert (long.status_code, long.json()["errorCode"]) == (400, "INVALID_CONTEXT")
    assert "xx" not in long.text


@pytest.mark.parametrize("context", [{}, {"targetingKey": ""}])
def test_without_a_targeting_key_evaluations_are_drawn(
    service: Service, context: dict[str, str]
) -> None:
    name = f"drawn-{len(context)}"
    service.create(name, arms=[f"arm-{i}" for i in range(50)])
    # Nothing is learned, so all 50 arms are equally likely: one arm in 20 draws has the probability 50**-19.
    assert len({evaluate(service, name, **context).json()["value"] for _ in range(20)}) > 1
    sent = {"Idempotency-Key": "once"}
    again = [service.http.post(f"{FLAGS}/{name}", headers=sent).json() for _ in range(3)]
    assert again[0] == again[1] == again[2]
    assert count(service, name) == 21


@pytest.mark.parametrize(
    ("content", "code", "words"),
    [
        (b"{", "PARSE_ERROR", "body: is not JSON"),
        (b"[]", "PARSE_ERROR", "body: Input should be a valid dictionary"),
        (b'{"context": 1}', "INVALID_CONTEXT", "context: Input should be a valid dictionary"),
        (b'{"context": null}', "INVALID_CONTEXT", "context: Input should be a valid dictionary"),
        (
            b'{"context": {"targetingKey": 7}}',
            "INVALID_CONTEXT",
            "context.targetingKey: must be a string",
        ),
    ],
)
def test_errors_have_codes_of_the_protocol(
    service: Service, content: bytes, code: str, words: str
) -> None:
    for path in (f"{FLAGS}/colour", FLAGS):
        answer = service.http.post(
            path, content=content, headers={"Content-Type": "application/json"}
        )
        found = answer.json()
        assert (answer.status_code, found["status"], found["errorCode"]) == (400, 400, code)
        assert found["errorDetails"] == found["detail"]
        assert words in found["errorDetails"]
        assert found.get("key") == ("colour" if path != FLAGS else None)


def test_unknown_and_archived_experiments_and_standard_policies(service: Service) -> None:
    for key in ("none", "colour/red", "%00", "%C3%A9", "x" * 300, ""):
        answer = service.http.post(f"{FLAGS}/{key}")
        assert (answer.status_code, answer.json()["errorCode"]) == (404, "FLAG_NOT_FOUND"), key
    service.create("ended")
    service.http.post("/v1/experiments/ended/archive")
    answer = evaluate(service, "ended")
    assert (answer.status_code, answer.json()["errorCode"]) == (400, "GENERAL")
    assert "is archived" in answer.json()["errorDetails"]
    service.create("standard", policy={"name": "UCB1"})
    answer = evaluate(service, "standard")
    assert (answer.status_code, answer.json()["errorCode"]) == (400, "GENERAL")
    assert "plays the standard game" in answer.json()["errorDetails"]


def test_a_bulk_evaluation_has_every_flag_and_draws_again_only_after_learning(
    tmp_path: Path,
) -> None:
    with served(tmp_path, open_to_all=False) as service:
        admin, other = service.key("admin", "shop"), service.key("admin", "bank")
        for name in ("b", "a", "ended"):
            service.create(name, admin)
        service.create("standard", admin, policy={"name": "UCB1"})
        service.create("theirs", other)
        service.http.post("/v1/experiments/ended/archive", headers=admin)

        def bulk(**headers: str) -> httpx.Response:
            return service.http.post(FLAGS, json={"context": {}}, headers=admin | headers)

        first = bulk()
        flags = {flag["key"]: flag for flag in first.json()["flags"]}
        assert list(flags) == ["a", "b", "standard"], "of this tenant, without what is archived"
        assert flags["a"]["value"] in ARMS
        assert flags["standard"]["errorCode"] == "GENERAL"
        tag = first.headers["ETag"]
        same = bulk(**{"If-None-Match": tag})
        assert (same.status_code, same.content, same.headers["ETag"]) == (304, b"", tag)
        state = service.http.get("/v1/experiments/a/state", headers=admin).json()
        assert state["decisions"] == 1, "304 draws nothing"

        made = service.http.post("/v1/experiments/a/decisions", headers=admin).json()
        assert bulk(**{"If-None-Match": tag}).status_code == 304, "a decision teaches nothing"
        service.http.put(f"/v1/decisions/{made['id']}/feedback", json={"loss": 1}, headers=admin)
        changed = bulk(**{"If-None-Match": f'W/"x", {tag}'})
        assert changed.status_code == 200
        pinned = service.http.patch(
            "/v1/experiments/b/guardrails", json={"pinned": "red"}, headers=admin
        ).status_code
        assert pinned == 200
        after = bulk(**{"If-None-Match": changed.headers["ETag"]})
        assert next(flag for flag in after.json()["flags"] if flag["key"] == "b")["value"] == "red"


def test_a_bulk_evaluation_is_limited(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with served(tmp_path, limits=Limits(rate=0.001, burst=12.0)) as service:
        for i in range(4):
            service.create(f"flag-{i}")
        monkeypatch.setattr("decoupled_serve.service.http.routes.ofrep.MOST_FLAGS", 3)
        answer = service.http.post(FLAGS)
        assert (answer.status_code, answer.json()["errorCode"]) == (400, "GENERAL")
        assert "evaluate flags one by one" in answer.json()["errorDetails"]
        monkeypatch.undo()
        assert len(service.http.post(FLAGS).json()["flags"]) == 4  # 12 tokens: 4 + 1 before, now 4
        refused = service.http.post(FLAGS)
        assert refused.status_code == 429, "each flag counts"
        assert int(refused.headers["Retry-After"]) >= 1


def test_a_policy_that_is_being_compiled_is_a_general_error(tmp_path: Path) -> None:
    held = Held()
    with served(tmp_path, patience=0.01, compiler=held) as service:
        answer = service.http.put("/v1/experiments/new", json=FTPL)
        assert answer.status_code == 202
        answer = evaluate(service, "new")
        assert (answer.status_code, answer.json()["errorCode"]) == (500, "GENERAL")
        assert "is compiling FTPL" in answer.json()["errorDetails"]
        assert answer.headers["Retry-After"] == "1"
        held.let_go()


@pytest.fixture
def flags() -> Iterator[None]:
    yield
    api.shutdown()
    api.clear_providers()


def resolved(
    url: str, key: str, default: str = "fallback", headers: dict[str, str] | None = None
) -> FlagEvaluationDetails[str]:
    api.set_provider_and_wait(OFREPProvider(url, headers_factory=lambda: headers or {}))
    context = EvaluationContext(targeting_key="user-1", attributes={"plan": "free"})
    return api.get_client().get_string_details(key, default, context)


@pytest.mark.usefixtures("flags")
def test_the_stock_python_provider_gets_arms(service: Service) -> None:
    found = resolved(service.url, "colour")
    assert found.error_code is None
    assert found.value in ARMS
    assert (found.variant, found.reason) == (found.value, Reason.SPLIT)
    assert str(found.flag_metadata["decision"]).count("-") == 1
    assert api.get_client().get_integer_value("size", 0) in (10, 20, 30)
    with ThreadPoolExecutor(4) as several:
        values = list(
            several.map(lambda _: api.get_client().get_string_value("colour", ""), range(12))
        )
    assert set(values) <= set(ARMS)


@pytest.mark.usefixtures("flags")
def test_the_stock_python_provider_understands_our_errors(service: Service, tmp_path: Path) -> None:
    missing = resolved(service.url, "nothing")
    assert (missing.value, missing.error_code) == ("fallback", ErrorCode.FLAG_NOT_FOUND)
    assert str(missing.error_message).startswith("experiment 'nothing': is not known; create the")
    wrong = resolved(service.url, "size")
    assert (wrong.value, wrong.error_code) == ("fallback", ErrorCode.TYPE_MISMATCH)
    with served(tmp_path, open_to_all=False, limits=Limits(rate=0.001, burst=3.0)) as closed:
        closed.create("colour", closed.key("admin"))
        assert resolved(closed.url, "colour").error_message == "unauthorized"
        assert (
            resolved(closed.url, "colour", headers=closed.key("read")).error_message == "forbidden"
        )
        key = closed.key("decide")
        found = [resolved(closed.url, "colour", headers=key) for _ in range(4)]
        assert [each.error_code for each in found[:3]] == [None] * 3
        assert (found[3].value, found[3].error_code) == ("fallback", ErrorCode.GENERAL)
        assert "Rate limited, retry after" in str(found[3].error_message)
