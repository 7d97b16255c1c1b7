"""Messages for invalid requests: their shape and places, and no values that validation refused."""

import re
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from decoupled_serve.service.http.admission import Limits
from support.http_service import FTPL, Service, openapi_document, served

DOCUMENT = openapi_document()
JUNK: list[Any] = [
    None, True, 0, -1, 1.5, 10**400, 2**70, "", "x", "b\n", "x" * 300, "2026-01-01", "nan",
    [], ["a"], [1, 0], ["a", "a"], ["a", None, 1.5], [True, 3], ["x"] * 10_001, [3], [{}], {}, {"name": "x"},
]  # fmt: skip
QUERIES = ["", "x", "nan", "-1", "0", "1.5", "9" * 30, "9" * 5_000, "a b", "\u00e9"]
# A good body for each operation that takes one: one field of it is spoilt at a time.
GOOD: dict[tuple[str, str], dict[str, Any]] = {
    ("put", "/v1/experiments/{name}"): {
        **FTPL, "loss_range": [0, 1], "deadline_seconds": 60, "expired_loss": 1, "seed": 7, "learner": None,
    },
    ("post", "/v1/experiments/{name}/arms"): {"arms": ["red"]},
    ("patch", "/v1/experiments/{name}/guardrails"): {
        "pinned": "red", "floors": {"red": 0.1}, "holdout": 0.1, "control": "red", "incumbent": "red", "risk": 0.1, "drift": False,
        "down": ["blue"],
    },
    ("put", "/v1/experiments/{name}/down"): {"arms": ["blue"]},
    ("put", "/v1/experiments/{name}/budget"): {
        "share": 0.5, "rate": [5, 60], "cost": {"red": 0.1}, "total": 5, "allowance": [1, 60],
    },
    ("post", "/v1/experiments/{name}/arms/retire"): {"arms": ["nobody"]},
    ("post", "/v1/experiments/{name}/decisions"): {
        "mode": "both", "count": 1, "available": ["red"], "tags": {"country": "de"}, "baseline": {"red": 0.5},
    },
    ("post", "/v1/experiments/{name}/replay"): {},
    ("post", "/v1/experiments/{name}/retention"): {"before": "2001-01-01T00:00:00Z"},
    ("put", "/v1/decisions/{id}/feedback"): {"loss": 0.5, "reward": 0.5, "preference": "tie", "arm": "red"},
    ("post", "/v1/feedback"): {"items": [{"decision": "none-1", "loss": 0.5, "arm": "red"}]},
    ("post", "/ofrep/v1/evaluate/flags/{key}"): {"context": {"targetingKey": "user-4711"}},
    ("post", "/ofrep/v1/evaluate/flags"): {"context": {"targetingKey": "user-4711"}},
}  # fmt: skip


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with served(tmp_path_factory.mktemp("messages"), limits=Limits(rate=0.0)) as running:
        running.create("known")
        yield running


def check(answer: httpx.Response) -> None:
    """An error has the shape of all errors, and lists what is wrong by place."""
    assert answer.status_code < 500, answer.text
    if answer.is_error:
        problem = answer.json()
        assert answer.headers["content-type"] == "application/problem+json"
        assert {"type", "title", "status", "detail", "request_id"} <= problem.keys()
        for each in problem.get("errors", ()):
            assert each["field"]
            assert each["message"].startswith(f"{each['field']}: ")


def spoilt(good: dict[str, Any]) -> Iterator[Any]:
    """A body with each field replaced, left out or added, and what is no object at all."""
    yield from JUNK
    yield good | {"lose": 1}
    for field, value in good.items():
        yield {name: each for name, each in good.items() if name != field}
        yield from (good | {field: junk} for junk in JUNK)
        if isinstance(value, list) and isinstance(value[0], dict):
            yield from (good | {field: [*value, each]} for each in spoilt(value[0]))


def test_every_error_has_the_same_shape(service: Service) -> None:
    bodies = set[tuple[str, str]]()
    for path, operations in DOCUMENT["paths"].items():
        for method, operation in operations.items():
            address = path.replace("{name}", "known").replace("{id}", "none-1").replace("{key}", "known")
            if "requestBody" in operation:
                bodies.add((method, path))
                check(service.http.request(method, address))
                for body in spoilt(GOOD[method, path]):
                    check(service.http.request(method, address, json=body))
            for each in operation.get("parameters", ()):
                for value in QUERIES if each["in"] == "query" else ():
                    check(service.http.get(address, params={each["name"]: value}))
            if "{" in path and "requestBody" not in operation:
                check(service.http.request(method, re.sub(r"\{\w+\}", "%20%C3%A9", path)))
    assert bodies == set(GOOD), "every operation that takes a body is tried"


@pytest.mark.parametrize(
    ("settings", "fields"),
    [
        ({"arms": ["shh"]}, ["arms"]),
        ({"arms": ["shh", None]}, ["arms.1"]),
        ({"arms": "shh"}, ["arms"]),
        ({"arms": 1}, ["arms"]),
        ({"lossrange": "shh"}, ["lossrange"]),
        ({"loss_range": ["shh", 1]}, ["loss_range.0"]),
        ({"loss_range": [1, 0]}, ["loss_range"]),
        ({"deadline_seconds": 0, "seed": "shh"}, ["deadline_seconds", "seed"]),
        ({"policy": "shh"}, ["policy"]),
        ({"guardrails": {"floors": {"red": "shh"}, "down": [["shh"]]}}, ["guardrails.floors.red", "guardrails.down.0"]),
        ({"budget": {"rate": [5, "shh"], "cost": {"red": "shh"}}}, ["budget.rate.1", "budget.cost"]),
    ],
)  # fmt: skip
def test_an_error_names_the_place_and_not_the_value(
    service: Service, settings: dict[str, Any], fields: list[str]
) -> None:
    answer = service.http.put("/v1/experiments/wrong", json={**FTPL, **settings})
    assert answer.status_code == 422
    assert [each["field"] for each in answer.json()["errors"]] == fields
    assert "shh" not in answer.text


def test_an_error_in_a_decision_or_a_query_names_the_place_and_not_the_value(service: Service) -> None:
    sent = {"key": [4711], "tags": {"a b": "4711\n"}, "count": "4711", "advice": {"router": [4711]}}
    decided = service.http.post("/v1/experiments/known/decisions", json=sent)
    listed = service.http.get("/v1/experiments", params={"limit": "4711x"})
    no_body = service.http.put("/v1/experiments/known")
    fields = [[each["field"] for each in answer.json()["errors"]] for answer in (decided, listed, no_body)]
    assert fields == [["count", "key", "tags.a b.[key]", "tags.a b", "advice.router"], ["limit"], ["body"]]
    assert "4711" not in decided.text + listed.text


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"policy": {}}, "policy = {}: must be an object with the name of a policy; for example"),
        ({"policy": {"name": "FTLP"}}, "policy.name = 'FTLP': is not a known policy; did you mean 'FTPL'?"),
        ({"policy": {"name": "FTPL", "alpha": 1}}, "policy.alpha = 1: must be a finite number above 1"),
        ({"policy": {"name": "FTPL", "alhpa": 2}}, "policy.alhpa = 2: is not a parameter of FTPL; did you"),
        (
            {"policy": {"name": "Forgetting", "policy": {"name": "FTPL", "alpha": 1}}},
            "policy.policy.alpha = 1: must be a finite number above 1",
        ),
        (
            {"policy": {"name": "Forgetting", "policy": {"name": "Forgetting"}}},
            'must be a policy that does not forget already; for example {"name": "FTPL"}',
        ),
    ],
)  # fmt: skip
def test_a_message_about_a_policy_names_the_place_the_value_the_rule_and_the_remedy(
    service: Service, settings: dict[str, Any], message: str
) -> None:
    answer = service.http.put("/v1/experiments/wrong", json={**FTPL, **settings})
    assert answer.status_code == 422
    assert message in answer.json()["detail"]


def test_no_message_over_http_has_a_remedy_of_python(service: Service) -> None:
    if service.http.get("/v1/experiments/standard").status_code == 404:
        service.create("standard", policy={"name": "UCB1"})
    decision = service.decide("known")["id"]
    asked = [
        ("PUT", f"/v1/decisions/{decision}/feedback", {"loss": 7}),
        ("PUT", f"/v1/decisions/{decision}/feedback", {"reward": -7}),
        ("PUT", f"/v1/decisions/{decision}/feedback", {}),
        ("PUT", f"/v1/decisions/{decision}/feedback", {"loss": 0.1, "reward": 0.9}),
        ("POST", "/v1/experiments/standard/decisions", {"mode": "exploit"}),
        ("POST", "/v1/experiments/known/arms/retire", {"arms": ["red", "green"]}),
        ("POST", "/v1/experiments/known/arms/retire", {"arms": ["puce"]}),
        ("PUT", "/v1/experiments/x", {**FTPL, "policy": {}}),
        ("PUT", "/v1/experiments/x", {**FTPL, "policy": {"name": "Forgetting", "policy": 1}}),
        ("PUT", "/v1/experiments/x", {**FTPL, "loss_range": [0, 0]}),
        ("PUT", "/v1/experiments/x", {**FTPL, "expired_loss": 1}),
    ]
    for method, path, body in asked:
        answer = service.http.request(method, path, json=body)
        check(answer)
        assert answer.status_code == 422, answer.text
        detail = answer.json()["detail"]
        assert not re.search(r"\bstart\(|\bdc\.|to_dict|decide\(\)|learner|None|names =", detail), detail
    loss = service.http.request(*asked[0][:2], json=asked[0][2]).json()["detail"]
    assert loss.endswith("send one in that range, or create an experiment with another loss_range")


def test_many_errors_are_listed_and_no_id_is_cut(service: Service) -> None:
    ids = [f"{n:02d}{'0123456789abcdef' * 12}-12345" for n in range(30)]
    items = [{"decision": each, "loss": 0.5, each: 1} for each in ids]
    answer = service.http.post("/v1/feedback", json={"items": items})
    problem = answer.json()
    assert (answer.status_code, len(problem["errors"])) == (422, 20)
    assert all(problem["errors"][n]["field"] == f"items.{n}.{each}" for n, each in enumerate(ids[:20]))
    whole = re.findall(r"[0-9a-f]{194}-12345", problem["detail"])
    assert whole == ids[: len(whole)]
    assert len(re.findall("[0-9a-f]{20,}", problem["detail"])) == len(whole), "no part of an id"
    assert problem["detail"].endswith(f"and {20 - len(whole)} more, in errors")
