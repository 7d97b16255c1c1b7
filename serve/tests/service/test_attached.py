"""What is attached to a decision: tags, a baseline, a context, advice, a key. What it may be, where it is kept, what it changes."""

import csv
import json
import math
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

import decoupled as dc
from decoupled.client import Conflict, Invalid
from decoupled_serve.service.experiment.records import Settings
from decoupled_serve.service.service import DecisionService
from decoupled_serve.service.store.backup import restore
from support.http_service import Service, served
from support.statistics import chi_square_p
from support.stores import both_stores, faults, killed, quick_service, started
from support.waiting import Clock

ARMS = ("small", "large", 3)
FIELDS: Any = {"subject": "text", "tokens": "number", "beta": "boolean"}
SETTINGS = Settings({"name": "FTPL"}, ARMS, loss_range=(0.0, 10.0), context=FIELDS)
CONTEXT = {"tokens": 312, "subject": "law zebra", "beta": True}
ALL: Any = {
    "tags": {"device": "phone", "country": "de"},
    "baseline": {"small": 2, "3": 7.40625},
    "context": CONTEXT,
}
LADDER = dc.ContextualLadder(
    segments=("subject",), numbers=("tokens",), advisers=("router", "rules")
)
SUBJECTS = ("law", "art", "zebra", None)
MANY = Settings({"name": "FTPL"}, tuple("abcdefgh"))
KEYS = [f"visitor-{number}-zebra" for number in range(12)]


def drawn(made: Any) -> tuple[Any, ...]:
    return made.exploit, made.explore, made.propensity, made.weight


def one(service: DecisionService, name: str = "one", **options: Any) -> Any:
    return service.decisions.decide("me", name, **options).result()[0]


def feedback(service: DecisionService, made: Any, loss: float) -> None:
    service.decisions.feedback("me", made.id, loss=loss).result()


@both_stores
@pytest.mark.parametrize("log", ["plain", "hashed"])
def test_it_is_kept_with_any_policy_and_changes_no_draw(
    address: str, log: Any, tmp_path: Path
) -> None:
    settings = Settings(SETTINGS.policy, ARMS, SETTINGS.loss_range, context=FIELDS, log_context=log)
    service = started(address, settings, snapshot_every=5)
    service.experiments.put(
        "me", "plain", Settings(SETTINGS.policy, ARMS, (0.0, 10.0)), seed=7
    ).result()
    made = []
    for turn in range(4):
        made.append(one(service, **ALL, idempotency_key=f"{turn}"))
        twin = one(service, "plain")
        assert drawn(made[-1]) == drawn(twin)
        assert (twin.tags, twin.baseline, twin.context) == ({}, None, None)
        for each in (made[-1], twin):
            feedback(service, each, 2.5 * turn)
    first = made[0]
    assert (first.tags, first.baseline) == (ALL["tags"], {"small": 2.0, "3": 7.40625})
    assert list(first.context) == sorted(FIELDS)
    assert (first.context["tokens"], first.context["beta"]) == (312.0, True)
    subject = first.context["subject"]
    assert subject == "law zebra" if log == "plain" else len(subject) == 32
    assert one(service, context={"tokens": None}).context is None
    page = service.listing.decisions("me", "one").result().items
    assert [each.context for each in page] == [None, *[first.context] * 4]
    for kind in ("csv", "parquet"):
        assert service.logs.export("me", "one", tmp_path / f"log.{kind}", kind).result() == 5
    with (tmp_path / "log.csv").open() as lines:
        rows = list(csv.DictReader(lines))
    parquet = pq.read_table(tmp_path / "log.parquet").to_pylist()
    for name in ("tags", "baseline", "context"):
        assert [row[name] for row in rows] == [row[name] or "" for row in parquet]
        assert json.loads(rows[0][name]) == getattr(first, name)
        assert rows[-1][name] == ""
    service.logs.backup(tmp_path / "backup.db").result()
    service.close()
    restore(tmp_path / "backup.db", tmp_path / "again.db")
    for place in (address, str(tmp_path / "again.db")):
        again = quick_service(place)
        found = again.decisions.get("me", first.id).result()
        assert (found.tags, found.baseline, found.context) == (
            first.tags,
            first.baseline,
            first.context,
        )
        reader = again._session.store.reader()
        assert not any("phone" in text or "7.40625" in text for _, text in reader.snapshots(1))
        reader.close()
        again.close()
        assert faults(place) == []
    raw = b"".join(path.read_bytes() for path in tmp_path.glob("*.db*"))
    assert (b"zebra" in raw) == (log == "plain")


def test_the_same_idempotency_key_compares_what_is_attached(file: str) -> None:
    service, asked = started(file, SETTINGS), {**ALL, "key": "zebra", "idempotency_key": "k"}
    first = one(service, **asked)
    assert one(service, **asked | {"baseline": {"small": 2.0, "3": 7.40625}}) == first
    parts: Any = {
        "tags": {"a": "b"},
        "baseline": {"small": 2},
        "context": {"subject": "art"},
        "key": "other",
    }
    for other in (
        {"idempotency_key": "k"},
        *(asked | {name: each} for name, each in parts.items()),
    ):
        with pytest.raises(Conflict, match="another request") as caught:
            one(service, **other)
        assert "zebra" not in str(caught.value)


# Each is refused by the service, and over HTTP; no message shows what may be a user's.
REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"tags": {"country": 49}}, "tags.country"),
    ({"tags": {"": "x"}}, "tags"),
    ({"tags": {"a:b": "x"}}, "tags"),
    ({"tags": {"a": "line\nbreak"}}, "tags.a"),
    ({"tags": {"a": "x" * 201}}, "tags.a"),
    ({"tags": {str(n): "x" for n in range(17)}}, "tags"),
    ({"baseline": {"blue": 1}}, "'blue' is not an arm"),
    ({"baseline": {"small": 10.5}}, "baseline.small = 10.5"),
    ({"baseline": 0.5}, "baseline"),
    (
        {"context": {"subject": "x" * 201}},
        "context.subject: must be a string of at most 200 printable",
    ),
    ({"context": {"subject": "zebra\0"}}, "context.subject: must be a string"),
    ({"context": {"subject": ["zebra"]}}, "context.subject: must be a string"),
    ({"context": {"tokens": "312"}}, "context.tokens: must be a number from"),
    ({"context": {"tokens": 10**400}}, "context.tokens: must be a number from"),
    ({"context": {"beta": 1}}, "context.beta: must be true or false"),
    ({"context": {"topic": "law"}}, "context.topic: is not a field of this experiment"),
    ({"context": ["law"]}, "context"),
    ({"advice": {"router": "small"}}, "advice: the policy of this experiment takes none"),
    ({"key": ""}, "key: "),
    ({"key": "a" * 1025}, "key: "),
    ({"key": "é" * 513}, "key: "),
    ({"key": True}, "key: "),
    ({"key": ["zebra"]}, "key: "),
    ({"key": "zebra", "mode": "explore"}, "key: mode 'explore' serves no arm"),
]


def test_what_is_refused_changes_nothing_by_any_door(file: str, service: Service) -> None:
    direct = started(file, SETTINGS)
    before = direct.experiments.state("me", "one").result()
    there = service.http.get("/v1/experiments/one/state").json()
    only_here: list[tuple[dict[str, Any], str]] = [
        ({"context": {"tokens": math.nan}}, "context"), ({"context": {7: "a"}}, "context"),
        ({"context": {"subject": "\ud800"}}, "context"), ({"key": "\ud800"}, "key: "), ({"key": 10**5000}, "key: "),
        ({"baseline": [1, 2]}, "3 arms, and has 2"), ({"baseline": {"small": math.nan}}, "baseline.small = nan"),
    ]  # fmt: skip
    for options, words in (*REFUSED, *only_here):
        with pytest.raises(Invalid) as caught:
            one(direct, **options)
        assert words in str(caught.value)
        assert "zebra" not in str(caught.value)
    for options, words in REFUSED:
        answer = service.http.post("/v1/experiments/one/decisions", json=options)
        assert (answer.status_code, words in answer.json()["detail"]) == (422, True), answer.text
        assert not [each for each in ("zebra", "xxx", "aaa", "éé") if each in answer.text]
        if set(options) == {"context"}:
            asked = {"context": json.dumps(options["context"])}
            answer = service.http.get("/v1/experiments/one/state", params=asked)
            assert (answer.status_code, words in answer.json()["detail"]) == (422, True), (
                answer.text
            )
    assert direct.experiments.state("me", "one").result() == before
    assert service.http.get("/v1/experiments/one/state").json() == there
    for given, words in (
        ({"context": {f"f{i}": "text" for i in range(65)}}, "context"),
        ({"context": {"a b": "text"}}, "context"),
        ({"context": {"a": "int"}}, "context"),
        ({"log_keys": "hash"}, "log_keys"),
        ({"log_context": "off"}, "log_context"),
        ({"unknown_context": "no"}, "unknown_context"),
    ):
        settings = Settings({"name": "FTPL"}, ARMS, **given)
        with pytest.raises(Invalid, match=words):
            direct.experiments.put("me", "bad", settings).result()
        answer = service.http.put("/v1/experiments/bad", json={"arms": ["a", "b"], **given})
        assert (answer.status_code, words in answer.text) == (422, True), answer.text


def test_exports_and_evaluations_filter_by_tags(file: str, tmp_path: Path) -> None:
    service = started(file, SETTINGS)
    for n in range(8):
        tags = {"country": "de" if n % 2 else "fr", "n": str(n // 4)}
        feedback(service, one(service, tags=tags, baseline=[1, 2, 3]), n)
    wanted = {"country": "de", "n": "1"}
    assert service.logs.export("me", "one", tmp_path / "l.csv", "csv", tags=wanted).result() == 2
    rows = list(csv.DictReader((tmp_path / "l.csv").read_text(encoding="utf-8").splitlines()))
    assert [float(row["loss"]) for row in rows] == [5.0, 7.0]
    assert json.loads(rows[0]["baseline"]) == {"small": 1.0, "large": 2.0, "3": 3.0}
    found = service.logs.evaluate("me", "one", tags={"country": "fr"}).result()
    assert (found.decisions, found.observed) == (4, 4)


def prepare(service: Service) -> None:
    service.create("one", arms=list(ARMS), context=FIELDS, seed=7, loss_range=[0, 10])
    service.create("open", arms=list(ARMS), context={"subject": "text"}, unknown_context="ignore")


def test_a_context_over_http(service: Service) -> None:
    found = service.http.get("/v1/experiments/one").json()
    assert (found["context"], found["unknown_context"], found["log_context"]) == (
        FIELDS,
        "refuse",
        "plain",
    )
    made = service.decide("one", **ALL)
    assert made["context"] == {"subject": "law zebra", "tokens": 312.0, "beta": True}
    assert service.http.get(f"/v1/decisions/{made['id']}").json() == made
    assert service.decide("one", context={"subject": 7})["context"] == {"subject": "7"}
    known = service.decide("open", context={"topic": "zebra", "subject": "law"})
    assert known["context"] == {"subject": "law"}
    answer = service.http.get("/v1/experiments/one/state", params={"context": '["zebra"]'})
    assert (answer.status_code, "zebra" in answer.text) == (422, False)


def test_why_an_arm_was_drawn_and_the_law_of_a_context_are_said_where_asked_for(
    service: Service,
) -> None:
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
    key: Any = {"headers": {"Idempotency-Key": "again"}, "json": {"why": True}}
    answers = [service.http.post("/v1/experiments/why/decisions", **key).json() for _ in range(2)]
    assert answers[0] == answers[1]
    assert answers[0]["why"]["segment"] == [None]
    assert "why" not in service.decide("why")
    unknown = [service.decide("why", why=True, mode=mode)["why"] for mode in ("exploit", "explore")]
    assert [*unknown, service.decide("one", why=True)["why"]] == [None, None, None]
    service.http.put(f"/v1/decisions/{answers[0]['id']}/feedback", json={"loss": 0.5})
    assert service.http.post("/v1/experiments/why/decisions", **key).json()["why"] is None


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


def learned(service: DecisionService, rounds: int) -> None:
    """Decisions of all kinds, with contexts, advice and keys, some of them late and some without feedback."""
    late = []
    for turn in range(rounds):
        context = {"subject": SUBJECTS[turn % 4], "tokens": None if turn % 5 == 0 else 100.0 * turn}
        options: dict[str, Any] = {
            "context": context,
            "key": f"user {turn % 3}" if turn % 2 else None,
        }
        if turn % 3 == 0:
            options["advice"] = {"router": "large", "rules": {"small": 0.25, "3": 0.75}}
        if turn % 7 == 6:
            options["available"] = ["small", "large"]
        if turn % 6 == 5:
            one(service, mode="exploit", **options)
        if turn % 6 == 4:
            options.pop("key"), options.pop("advice", None)
            late += service.decisions.decide(
                "me", "one", mode="explore", count=2, **options
            ).result()
        made = one(service, **options)
        if turn % 11:
            feedback(service, made, (turn * 7 % 10) / 10)
        if late and turn % 5 == 4:
            feedback(service, late.pop(0), 0.5)
        service.experiments.state("me", "one").result()


@both_stores
def test_a_contextual_policy_is_recovered_and_replayed_bit_for_bit(
    address: str, clock: Clock
) -> None:
    settings = Settings(LADDER.to_dict(), ARMS, guardrails=dc.Guardrails(holdout=0.2))
    service = started(address, settings, snapshot_every=9, clock=clock)
    declared = service.experiments.get("me", "one").result().settings.context
    assert declared == {"subject": "text", "tokens": "number"}
    learned(service, 40)
    for tokens in (1e76, -1e76, 1e100, -1e100, 3, 1e-300):  # any number that is accepted survives
        feedback(service, one(service, context={"tokens": tokens}), 0.5)
        clock.now += 1.0
    kept = one(service, context={"tokens": 1e99})
    assert service.logs.retention("me", "one", clock.now - 3.0).result() > 0
    text = service.experiments.learner("me", "one").result()
    service.close()
    assert faults(address) == []
    again = quick_service(address, clock=clock)
    assert again.experiments.learner("me", "one").result() == text
    feedback(again, kept, 0.5)
    again.experiments.add_arms("me", "one", ["huge"]).result()
    again.experiments.retire_arms("me", "one", ["small"]).result()
    made = one(again, context={"subject": "law"}, advice={"router": "huge"})
    feedback(again, made, 0.1)
    assert made.advice == {"router": "huge"}
    again.close()
    assert faults(address) == []


def test_a_contextual_service_is_the_library_whatever_it_refused_before(
    file: str, tmp_path: Path
) -> None:
    service = started(file, Settings(LADDER.to_dict(), ARMS))
    before = service.experiments.state("me", "one").result()
    wrong: list[tuple[Any, str]] = [
        ({"ruter": "small"}, "did you mean 'router'"),
        ({"router": "tiny"}, "'tiny' is not an arm"),
        ({"router": {"small": 0.5}}, "must sum to 1"),
        ({"router": {"small": 2.0}}, "must be a probability"),
        (["router"], "must be an object"),
    ]
    for advice, words in wrong:
        with pytest.raises(Invalid, match=words):
            one(service, advice=advice)
    assert service.experiments.state("me", "one").result() == before
    fields: Any = {"tokens": "text"}
    with pytest.raises(Invalid, match=r"context.tokens = 'text': must be 'number' or 'boolean'"):
        service.experiments.put(
            "me", "x", Settings(LADDER.to_dict(), ARMS, context=fields)
        ).result()
    service.watch_experiments(1)
    learner = LADDER.start(ARMS, seed=7)
    for turn in range(30):
        context = {"subject": SUBJECTS[turn % 4], "tokens": 10.0 * turn}
        advice = {"router": "large"} if turn % 3 else None
        made = one(service, context=context, advice=advice)
        twin = learner.decide(context=context, advice=advice)
        assert drawn(made) == twin[2:]
        feedback(service, made, turn / 30)
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
        record = {
            "explore": arm,
            "propensity": float(row["propensity"]),
            "loss": float(row["loss"]),
        }
        other.replay([{**record, "context": json.loads(row["context"])}], unrandomised=True)
    assert (
        list(service.experiments.state("me", "two").result().estimates)
        == other.estimates().tolist()
    )
    text = service.experiments.learner("me", "two").result()
    service.experiments.put("me", "moved", Settings(LADDER.to_dict(), ARMS), learner=text).result()
    assert service.experiments.learner("me", "moved").result() == text
    assert {each.observed for each in service.logs.segments("me", "one").result().segments} == {
        7,
        8,
    }
    service.close()
    assert faults(file) == []


def arms_of(service: DecisionService, name: str = "one", **options: Any) -> list[Any]:
    return [one(service, name, key=key, **options).exploit for key in KEYS]


def learn(service: DecisionService, rounds: int = 6) -> None:
    """Some feedback, so that keys do not depend on the seed alone."""
    for turn in range(rounds):
        feedback(service, one(service, key=KEYS[turn % 3]), turn / rounds)


@both_stores
@pytest.mark.parametrize("log_keys", ["hashed", "plain", "off"])
def test_keys_keep_arms_and_the_log_holds_what_is_set(
    address: str, log_keys: Any, tmp_path: Path
) -> None:
    service = started(
        address, Settings(MANY.policy, MANY.arms, log_keys=log_keys), snapshot_every=5
    )
    learn(service)
    first = arms_of(service)
    assert len(set(first)) > 2
    assert arms_of(service, mode="exploit") == first
    several = service.decisions.decide("me", "one", key=KEYS[0], count=5).result()
    assert {each.exploit for each in several} == {first[0]}
    logged = [
        one(service, key=key, idempotency_key=f"{place}").key
        for place, key in enumerate([*KEYS, KEYS[0]])
    ]
    made = one(service)
    page = service.listing.decisions("me", "one", limit=14).result().items
    assert [each.key for each in page] == [None, *reversed(logged)]
    service.logs.export("me", "one", tmp_path / "log.csv", "csv").result()
    with (tmp_path / "log.csv").open() as lines:
        assert [row["key"] for row in csv.DictReader(lines)][-14:] == [
            key or "" for key in (*logged, None)
        ]
    if log_keys == "plain":
        assert logged == [*KEYS, KEYS[0]]
    elif log_keys == "off":
        assert logged == [None] * 13
    else:
        assert (logged[0], len({*logged}), {len(each) for each in logged}) == (logged[-1], 12, {32})
    reader = service._session.store.reader()
    tables = ("experiments", "decided", "settled", "changed", "snapshots", "request_keys", "audit")
    texts = "".join(repr(reader.run(f"SELECT * FROM {table}")) for table in tables)
    reader.close()
    service.close()
    raw = "".join(path.read_bytes().decode("latin-1") for path in tmp_path.glob("store.db*"))
    assert ("zebra" in texts + raw) == (log_keys == "plain")
    again = quick_service(address)
    assert again.decisions.get("me", made.id).result() == made
    assert arms_of(again) == first
    again.close()
    assert faults(address) == []


def test_a_service_with_keys_is_the_learner_of_the_library(file: str) -> None:
    service, learner = started(file, MANY), dc.FTPL().start(MANY.arms, seed=7)
    for turn in range(20):
        key = KEYS[turn % 4] if turn % 3 else None
        made, twin = one(service, key=key), learner.decide(key=key)
        assert drawn(made) == twin[2:]
        feedback(service, made, turn / 20)
        learner.observe(twin, turn / 20)
    assert arms_of(service) == [learner.exploit(key=key).exploit for key in KEYS]
    assert one(service, key=17).exploit == learner.decide(key="17").exploit
    text = service.experiments.learner("me", "one").result()
    service.experiments.put("me", "moved", MANY, learner=text).result()
    assert arms_of(service, "moved") == arms_of(service)
    service.experiments.put("me", "two", MANY, seed=7).result()
    service.experiments.put("me", "three", MANY, seed=7).result()
    pair = [one(service, name, key=KEYS[0]) for name in ("two", "three")]
    assert pair[0].exploit == pair[1].exploit
    assert pair[0].key != pair[1].key, "hashes differ between experiments"


def test_keys_have_the_law_of_fresh_draws_and_what_cannot_be_kept_is_refused(file: str) -> None:
    """A false alarm once in 10**6 seeds."""
    service = quick_service(file)
    service.experiments.put("me", "one", MANY, seed=11).result()
    learn(service, 30)
    law = service.experiments.state("me", "one").result().exploitation
    asked = [
        service.decisions.decide("me", "one", key=number, mode="exploit") for number in range(2_000)
    ]
    counts = Counter(each.result()[0].exploit for each in asked)
    assert chi_square_p([counts[arm] for arm in MANY.arms], law) > 1e-6
    service.experiments.put("me", "coupled", Settings({"name": "CoupledTsallisINF"}, ARMS)).result()
    service.experiments.put(
        "me", "plain", Settings({"name": "FTPL"}, ARMS, log_keys="plain")
    ).result()
    for name, key, words in (
        ("coupled", "zebra", "key: CoupledTsallisINF plays the standard game"),
        ("plain", "zebra\0", "key: has a NUL character"),
    ):
        with pytest.raises(Invalid, match=words) as caught:
            one(service, name, key=key)
        assert "zebra" not in str(caught.value)


def test_replicas_serve_a_key_alike(postgres: str) -> None:
    replicas = [started(postgres, MANY) for _ in range(2)]
    for service in replicas:
        learn(service)
        assert arms_of(replicas[0]) == arms_of(replicas[1])
    for service in replicas:
        service.close()
    assert faults(postgres) == []


def test_guardrails_and_budgets_hold_for_keys_and_are_replayed(file: str) -> None:
    rails, budget = dc.Guardrails(holdout=0.4, floors={"a": 0.3}), dc.Budget(rate=(6, 1e6))
    settings = Settings(MANY.policy, MANY.arms, guardrails=rails, budget=budget)
    service = started(file, settings, snapshot_every=1000)
    learn(service)
    first = [one(service, key=key) for key in KEYS]
    assert {each.limited_by for each in first} == {"rate"}
    assert {each.guard for each in first} == {"holdout", "floor", None}
    service.close()
    again = quick_service(file)
    assert arms_of(again) == [each.exploit for each in first]
    again.close()
    assert faults(file) == []


def test_no_key_is_shown_over_http(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("DEBUG")
    with served(tmp_path) as service:
        service.create("one", arms=list(MANY.arms), seed=7)
        first = [service.decide("one", key=key)["exploit"] for key in KEYS]
        assert [service.decide("one", key=key)["exploit"] for key in KEYS] == first
        assert (
            service.decide("one", key=17)["exploit"] == service.decide("one", key="17")["exploit"]
        )
        metrics = service.http.get("/metrics").text
    assert "zebra" not in metrics + caplog.text
    assert b"zebra" not in b"".join(path.read_bytes() for path in tmp_path.glob("store.db*"))


POLICY = dc.ContextualLadder(numbers=("tokens",), vectors=("prompt",), vector_numbers=3)


def test_a_service_logs_the_numbers_of_a_vector_and_replays_them(
    file: str, service: Service
) -> None:
    here = started(file, Settings(POLICY.to_dict(), ("small", "large"), (0.0, 1.0)))
    twin = POLICY.start(("small", "large"), here.experiments.get("me", "one").result().seed)
    for turn in range(30):
        given: dict[str, Any] = (
            {"tokens": turn, "prompt": f"zebra {turn % 3}" * 200} if turn % 4 else {"tokens": None}
        )
        [made] = here.decisions.decide("me", "one", context=given).result()
        expected = twin.decide(context=given)
        assert (made.exploit, made.explore, made.weight) == (
            expected.exploit,
            expected.explore,
            expected.weight,
        )
        here.decisions.feedback("me", made.id, loss=turn % 2).result()
        twin.observe(expected, loss=turn % 2)
    assert made.context == POLICY.spread("prompt", "zebra 2" * 200) | {"tokens": 29.0}
    told: Any = {"context": {"prompt": "zebra 1", "tokens": 3}}
    before = here.experiments.state("me", "one", **told).result()
    for wrong in ([0.1, 0.2], 7, {"a": 1}, True):
        with pytest.raises(Invalid, match=r"context.prompt: must be a string"):
            here.decisions.decide("me", "one", context={"prompt": wrong}).result()
    killed(here)
    again = quick_service(file)
    assert again.experiments.state("me", "one", **told).result() == before
    again.close()
    assert faults(file) == []
    policy = {
        "name": "ContextualLadder",
        "vectors": ["e"],
        "vector_length": 4_096,
        "vector_numbers": 2,
    }
    service.create("embedded", arms=["a", "b"], policy=policy)
    made_there = service.decide("embedded", context={"e": [1.0] * 4_096})
    assert made_there["context"] == dict(
        zip(("e.0", "e.1"), dc.project([1.0] * 4_096, 2), strict=True)
    )
    assert service.decide("embedded", context={"e.0": 0.5})["context"] == {"e.0": 0.5}
    answer = service.http.post("/v1/experiments/embedded/decisions", json={"context": {"e": [0.5]}})
    assert (answer.status_code, "has 1 numbers, and vector_length = 4096" in answer.text) == (
        422,
        True,
    )
    answer = service.http.put(
        "/v1/experiments/bad", json={"arms": ["a", "b"], "context": {"e": "vector"}}
    )
    assert (answer.status_code, "needs a policy that learns from it" in answer.text) == (422, True)
