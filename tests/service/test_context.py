"""Contexts of decisions: what they may be, where they are kept, and what learns by them."""

import csv
import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from decoupled.service.analysis.doctor import examine
from decoupled.service.errors import Conflict, Invalid
from decoupled.service.experiment.records import Settings
from decoupled.service.store.backup import restore
from support.http_service import Service, served
from support.stores import both_stores, quick_service

UNSAFE = ("disk", "durability")  # of stores for tests
ARMS = ("small", "large", 3)
FIELDS: Any = {"subject": "text", "tokens": "number", "beta": "boolean"}
SETTINGS = Settings({"name": "FTPL"}, ARMS, context=FIELDS)
CONTEXT = {"tokens": 312, "subject": "law zebra", "beta": True}
BAD: tuple[tuple[Any, str], ...] = (
    ({"subject": "x" * 201}, "context.subject: must be a string of at most 200 printable characters"),
    ({"subject": "zebra\0"}, "context.subject: must be a string"),
    ({"subject": True}, "context.subject: must be a string"),
    ({"subject": ["zebra"]}, "context.subject: must be a string"),
    ({"tokens": "312"}, "context.tokens: must be a finite number"),
    ({"tokens": True}, "context.tokens: must be a finite number"),
    ({"beta": 1}, "context.beta: must be true or false"),
    ({"topic": "law"}, "context.topic: is not a field of this experiment"),
)


def unfound(address: str) -> list[str]:
    return [each.finding for each in examine(address) if not each.good and each.name not in UNSAFE]


@both_stores
@pytest.mark.parametrize("log", ["plain", "hashed"])
def test_a_context_is_kept_with_any_policy_and_changes_no_draw(
    address: str, log: Any, tmp_path: Path
) -> None:
    service = quick_service(address, snapshot_every=5)
    settings = Settings({"name": "FTPL"}, ARMS, context=FIELDS, log_context=log)
    service.experiments.put("me", "one", settings, seed=7).result()
    service.experiments.put("me", "plain", Settings({"name": "FTPL"}, ARMS), seed=7).result()
    made = []
    for turn in range(4):
        made += service.decisions.decide("me", "one", context=CONTEXT, idempotency_key=f"{turn}").result()
        [twin] = service.decisions.decide("me", "plain").result()
        assert (made[-1].exploit, made[-1].explore, made[-1].propensity) == (
            *(twin.exploit, twin.explore, twin.propensity),
        )
        for each in (made[-1], twin):
            service.decisions.feedback("me", each.id, loss=turn / 4).result()
    kept = made[0].context
    assert kept is not None
    assert list(kept) == sorted(FIELDS)
    assert (kept["tokens"], kept["beta"]) == (312.0, True)
    assert kept["subject"] == "law zebra" if log == "plain" else len(kept["subject"]) == 32
    assert {json.dumps(each.context) for each in made} == {json.dumps(kept)}
    with pytest.raises(Conflict, match="another request"):
        service.decisions.decide("me", "one", context={"subject": "art"}, idempotency_key="0").result()
    [nothing] = service.decisions.decide("me", "one", context={"tokens": None}).result()
    assert nothing.context is None
    page = service.listing.decisions("me", "one").result().items
    assert [each.context for each in page] == [None, *[kept] * 4]
    for kind in ("csv", "parquet"):
        assert service.logs.export("me", "one", tmp_path / f"log.{kind}", kind).result() == 5
    with (tmp_path / "log.csv").open() as lines:
        texts = [line["context"] for line in csv.DictReader(lines)]
    assert texts == [each["context"] or "" for each in pq.read_table(tmp_path / "log.parquet").to_pylist()]
    assert [json.loads(each or "null") for each in texts] == [*[kept] * 4, None]
    service.logs.backup(tmp_path / "backup.db").result()
    service.close()
    for place in (address, str(tmp_path / "again.db")):
        if place != address:
            restore(tmp_path / "backup.db", place)
        again = quick_service(place)
        assert again.decisions.get("me", made[0].id).result().context == kept
        again.close()
        assert unfound(place) == []
    raw = b"".join(path.read_bytes() for path in tmp_path.glob("*.db*"))
    assert (b"zebra" in raw) == (log == "plain")


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with served(tmp_path_factory.mktemp("context")) as running:
        running.create("one", arms=list(ARMS), context=FIELDS, seed=7)
        running.create("open", arms=list(ARMS), context={"subject": "text"}, unknown_context="ignore")
        running.create("none")
        yield running


def test_over_http(service: Service) -> None:
    found = service.http.get("/v1/experiments/one").json()
    assert (found["context"], found["unknown_context"], found["log_context"]) == (FIELDS, "refuse", "plain")
    made = service.decide("one", context=CONTEXT)
    assert made["context"] == {"subject": "law zebra", "tokens": 312.0, "beta": True}
    assert service.http.get(f"/v1/decisions/{made['id']}").json() == made
    assert service.decide("one", context={"subject": 7})["context"] == {"subject": "7"}
    assert service.decide("one", context={"subject": None})["context"] is None
    assert service.decide("open", context={"topic": "zebra", "subject": "law"})["context"] == (
        {"subject": "law"}
    )
    before = service.http.get("/v1/experiments/one/state").json()
    for context, rule in BAD:
        answer = service.http.post("/v1/experiments/one/decisions", json={"context": context})
        assert (answer.status_code, rule in answer.json()["detail"]) == (422, True), answer.text
        assert "zebra" not in answer.text
        assert "xxx" not in answer.text
    for body, words in (
        ({"context": ["law"]}, "context"),
        ({"advice": {"router": "small"}}, "advice: the policy of this experiment takes none"),
        ({"advice": {"router": {"small": "much"}}}, "must be an arm, or an object of probabilities"),
    ):
        answer = service.http.post("/v1/experiments/one/decisions", json=body)
        assert (answer.status_code, words in answer.json()["detail"]) == (422, True), answer.text
    assert "declares no fields" in (
        service.http.post("/v1/experiments/none/decisions", json={"context": {"a": 1}}).text
    )
    assert service.http.get("/v1/experiments/one/state").json() == before
    for given, words in (
        ({"context": {"a": "int"}}, "context.a"),
        ({"context": {"../a": "text"}}, "the name of a field must be"),
        ({"log_context": "off"}, "log_context"),
        ({"unknown_context": "no"}, "unknown_context"),
    ):
        answer = service.http.put("/v1/experiments/bad", json={"arms": ["a", "b"], **given})
        assert (answer.status_code, words in answer.text) == (422, True), answer.text


def test_flags_are_evaluated_in_their_context(service: Service) -> None:
    flags = "/ofrep/v1/evaluate/flags"
    context = {"targetingKey": "user", "subject": "law", "plan": {"deep": [1]}}
    flag = service.http.post(f"{flags}/one", json={"context": context}).json()
    made = service.http.get(f"/v1/decisions/{flag['metadata']['decision']}").json()
    assert made["context"] == {"subject": "law"}
    wrong = service.http.post(f"{flags}/one", json={"context": {"tokens": "many"}})
    assert (wrong.status_code, wrong.json()["errorCode"]) == (400, "INVALID_CONTEXT")
    seen = {"If-None-Match": service.http.post(flags, json={"context": context}).headers["ETag"]}
    for change, status in (({}, 304), ({"plan": "free"}, 304), ({"subject": "art"}, 200)):
        body = {"context": {**context, **change}}
        assert service.http.post(flags, json=body, headers=seen).status_code == status


def test_what_no_context_may_be(file: str) -> None:
    service = quick_service(file)
    service.experiments.put("me", "one", SETTINGS, seed=7).result()
    before = service.experiments.state("me", "one").result()
    for context in ("law", {"tokens": math.nan}, {"tokens": 10**400}, {"subject": "\ud800"}, {7: "a"}):
        with pytest.raises(Invalid, match=r"^context"):
            service.decisions.decide("me", "one", context=context).result()  # type: ignore[arg-type]
    assert service.experiments.state("me", "one").result() == before
    for fields in ({f"f{i}": "text" for i in range(65)}, {"a b": "text"}, ["a"]):
        with pytest.raises(Invalid, match=r"^context"):
            service.experiments.put("me", "x", Settings({"name": "FTPL"}, ARMS, context=fields)).result()  # type: ignore[arg-type]
    service.close()
