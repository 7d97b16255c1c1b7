"""Contexts of decisions: what they may be, where they are kept, and what learns by them."""

import csv
import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

import decoupled as dc
from decoupled.client.service_errors import Conflict, Invalid
from decoupled_serve.service.analysis.doctor import examine
from decoupled_serve.service.experiment.records import Settings
from decoupled_serve.service.service import DecisionService
from decoupled_serve.service.store.backup import restore
from support.http_service import Service, served
from support.stores import Clock, both_stores, quick_service

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
    ({"tokens": "312"}, "context.tokens: must be a number from"),
    ({"tokens": True}, "context.tokens: must be a number from"),
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
    state = "/v1/experiments/one/state"
    assert service.http.get(state).json() == before
    assert service.http.get(state, params={"context": json.dumps(CONTEXT)}).json() == before
    bad = [(json.dumps(context), rule) for context, rule in BAD]
    for text, rule in (*bad, ("zebra", "context: must be a JSON object"), ('["zebra"]', "must be a JSON")):
        answer = service.http.get(state, params={"context": text})
        assert (answer.status_code, rule in answer.json()["detail"]) == (422, True), answer.text
        assert "zebra" not in answer.text
    for given, words in (
        ({"context": {"a": "int"}}, "context.a"),
        ({"context": {"../a": "text"}}, "the name of a field must be"),
        ({"log_context": "off"}, "log_context"),
        ({"unknown_context": "no"}, "unknown_context"),
    ):
        answer = service.http.put("/v1/experiments/bad", json={"arms": ["a", "b"], **given})
        assert (answer.status_code, words in answer.text) == (422, True), answer.text


def test_why_an_arm_was_drawn_and_the_law_of_a_context_are_said_where_asked_for(service: Service) -> None:
    service.create("why", policy=LADDER.to_dict(), arms=list(ARMS), seed=7)
    twin = LADDER.start(ARMS, seed=7)
    for turn in range(12):
        context = {"subject": SUBJECTS[turn % 4], "tokens": 10.0 * turn}
        made, same = service.decide("why", context=context, why=True), twin.decide(context=context)
        assert same.why is not None
        assert made["why"] == {**same.why._asdict(), "segment": list(same.why.segment)}
        if turn % 2:
            service.http.put(f"/v1/decisions/{made['id']}/feedback", json={"loss": turn / 12})
            twin.observe(same, turn / 12)
    known: tuple[Any, ...] = ({"subject": "art", "tokens": 5}, {"subject": "never seen"}, {}, None)
    for each in known:
        asked = {} if each is None else {"context": json.dumps(each)}
        state = service.http.get("/v1/experiments/why/state", params=asked).json()
        assert state["exploitation"] == twin.exploitation_probabilities(context=each).tolist()
        assert state["exploration"] == twin.exploration_probabilities(context=each).tolist()
    key = {"headers": {"Idempotency-Key": "again"}, "json": {"why": True}}
    answers = [service.http.post("/v1/experiments/why/decisions", **key).json() for _ in range(2)]  # type: ignore[arg-type]
    assert answers[0] == answers[1]
    assert answers[0]["why"]["segment"] == [None]
    assert "why" not in service.decide("why")
    assert [each["why"] for each in service.decide("why", why=True, count=2)["decisions"]] != [None, None]
    unknown = [service.decide("why", why=True, mode=mode)["why"] for mode in ("exploit", "explore")]
    assert [*unknown, service.decide("one", why=True)["why"]] == [None, None, None]
    service.http.put(f"/v1/decisions/{answers[0]['id']}/feedback", json={"loss": 0.5})
    assert service.http.post("/v1/experiments/why/decisions", **key).json()["why"] is None  # type: ignore[arg-type]


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


# A policy that learns by it

LADDER = dc.ContextualLadder(segments=("subject",), numbers=("tokens",), advisers=("router", "rules"))
SUBJECTS = ("law", "art", "zebra", None)


def learned(service: DecisionService, rounds: int, name: str = "one", first: int = 0) -> None:
    """Decisions of all kinds, with contexts, advice and keys, some of them late and some without feedback."""
    late = []
    for turn in range(first, first + rounds):
        context = {"subject": SUBJECTS[turn % 4], "tokens": None if turn % 5 == 0 else 100.0 * turn}
        options: dict[str, Any] = {"context": context, "key": f"user {turn % 3}" if turn % 2 else None}
        if turn % 3 == 0:
            options["advice"] = {"router": "large", "rules": {"small": 0.25, "3": 0.75}}
        if turn % 7 == 6:
            options["available"] = ["small", "large"]
        if turn % 6 == 5:
            service.decisions.decide("me", name, mode="exploit", **options).result()
        if turn % 6 == 4:
            options.pop("key"), options.pop("advice", None)
            late += service.decisions.decide("me", name, mode="explore", count=2, **options).result()
        [made] = service.decisions.decide("me", name, **options).result()
        if turn % 11:
            service.decisions.feedback("me", made.id, loss=(turn * 7 % 10) / 10).result()
        if late and turn % 5 == 4:
            service.decisions.feedback("me", late.pop(0).id, loss=0.5).result()
        service.experiments.state("me", name).result()


@both_stores
def test_a_contextual_policy_is_recovered_and_replayed_bit_for_bit(address: str, tmp_path: Path) -> None:
    service = quick_service(address, snapshot_every=9)
    settings = Settings(LADDER.to_dict(), ARMS, guardrails=dc.Guardrails(holdout=0.2))
    made, _ = service.experiments.put("me", "one", settings, seed=7).result()
    assert made.settings.context == {"subject": "text", "tokens": "number"}
    learned(service, 40)
    text = service.experiments.learner("me", "one").result()
    service.close()
    assert unfound(address) == []
    again = quick_service(address)
    assert again.experiments.learner("me", "one").result() == text
    again.experiments.add_arms("me", "one", ["huge"]).result()
    again.experiments.retire_arms("me", "one", ["small"]).result()
    [one] = again.decisions.decide(
        "me", "one", context={"subject": "law"}, advice={"router": "huge"}
    ).result()
    again.decisions.feedback("me", one.id, loss=0.1).result()
    assert one.advice == {"router": "huge"}
    again.logs.export("me", "one", tmp_path / "log.csv", "csv").result()
    again.close()
    assert unfound(address) == []


def test_the_service_is_the_learner_of_the_library(file: str, tmp_path: Path) -> None:
    service = quick_service(file)
    service.watch_experiments(1)
    service.experiments.put("me", "one", Settings(LADDER.to_dict(), ARMS), seed=7).result()
    learner = LADDER.start(ARMS, seed=7)
    for turn in range(30):
        context = {"subject": SUBJECTS[turn % 4], "tokens": 10.0 * turn}
        advice: Any = {"router": "large"} if turn % 3 else None
        [made] = service.decisions.decide("me", "one", context=context, advice=advice).result()
        twin = learner.decide(context=context, advice=advice)
        assert (made.exploit, made.explore, made.propensity, made.weight) == twin[2:]
        service.decisions.feedback("me", made.id, loss=turn / 30).result()
        learner.observe(twin, turn / 30)
    assert service.health().experiments["me", "one"].segments == len(SUBJECTS)
    service.logs.export("me", "one", tmp_path / "log.csv", "csv").result()
    with (tmp_path / "log.csv").open() as lines:
        rows = list(csv.DictReader(lines))
    service.experiments.put("me", "two", Settings(LADDER.to_dict(), ARMS), seed=3).result()
    assert service.replaying.replay("me", "two", tmp_path / "log.csv", "csv").result().learned == 30
    other = LADDER.start(ARMS, seed=3)
    for row in rows:
        arm: Any = 3 if row["explore"] == "3" else row["explore"]
        record = {"explore": arm, "propensity": float(row["propensity"]), "loss": float(row["loss"])}
        other.replay([{**record, "context": json.loads(row["context"])}], unrandomised=True)
    assert list(service.experiments.state("me", "two").result().estimates) == other.estimates().tolist()
    for subject in SUBJECTS:
        [made] = service.decisions.decide("me", "two", context={"subject": subject}).result()
        assert (made.exploit, made.propensity) == (other.decide(context={"subject": subject})[2::2][:2])
    text = service.experiments.learner("me", "two").result()
    service.experiments.put("me", "moved", Settings(LADDER.to_dict(), ARMS), learner=text).result()
    assert service.experiments.learner("me", "moved").result() == text
    assert service.logs.segments("me", "one").result().by == ("subject",)
    assert {each.observed for each in service.logs.segments("me", "one").result().segments} == {7, 8}
    service.close()
    assert unfound(file) == []


def test_what_a_contextual_policy_refuses(file: str) -> None:
    service = quick_service(file)
    service.experiments.put("me", "one", Settings(LADDER.to_dict(), ARMS), seed=7).result()
    before = service.experiments.state("me", "one").result()
    for advice, words in (
        ({"ruter": "small"}, "did you mean 'router'"),
        ({"router": "tiny"}, "'tiny' is not an arm"),
        ({"router": {"small": 0.5}}, "must sum to 1"),
        ({"router": {"small": 2.0}}, "must be a probability"),
        (["router"], "must be an object"),
    ):
        with pytest.raises(Invalid, match=words):
            service.decisions.decide("me", "one", advice=advice).result()  # type: ignore[arg-type]
    assert service.experiments.state("me", "one").result() == before
    fields: Any = {"tokens": "text"}
    with pytest.raises(Invalid, match=r"context.tokens = 'text': must be 'number' or 'boolean'"):
        service.experiments.put("me", "x", Settings(LADDER.to_dict(), ARMS, context=fields)).result()
    service.close()


@both_stores
def test_any_number_that_is_accepted_survives_retention_and_a_restart(address: str, clock: Clock) -> None:
    policy = dc.ContextualLadder(segments=("subject",), numbers=("tokens",)).to_dict()
    service = quick_service(address, snapshot_every=5, clock=clock)
    service.experiments.put("me", "one", Settings(policy, ARMS, context=FIELDS), seed=7).result()
    for tokens in (1e76, -1e76, 1e100, -1e100, 3, 1e-300) * 4:
        [made] = service.decisions.decide("me", "one", context={"tokens": tokens}).result()
        service.decisions.feedback("me", made.id, loss=0.5).result()
        clock.now += 1.0
    [kept] = service.decisions.decide("me", "one", context={"tokens": 1e99}).result()
    assert service.logs.retention("me", "one", clock.now - 3.0).result() > 0
    before = service.experiments.state("me", "one").result()
    service.close()
    again = quick_service(address, clock=clock)
    assert again.experiments.state("me", "one").result() == before
    again.decisions.feedback("me", kept.id, loss=0.5).result()
    again.decisions.decide("me", "one", context={"tokens": -1e88}).result()
    assert unfound(address) == []
