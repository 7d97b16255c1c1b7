"""Keys of decisions: the same key is served the same arm, and what the log holds of it."""

import csv
import json
from collections import Counter
from pathlib import Path
from typing import Any

import httpx
import pytest

import decoupled as dc
from decoupled.client.service_errors import Conflict, Invalid
from decoupled_serve.service.analysis.doctor import examine
from decoupled_serve.service.experiment.records import Settings
from decoupled_serve.service.service import DecisionService
from decoupled_serve.service.store.postgres import PostgresStore
from support.http_service import Service, served
from support.statistics import chi_square_p
from support.stores import both_stores, quick_service

UNSAFE = ("disk", "durability")  # of stores for tests
ARMS = tuple("abcdefgh")
SETTINGS = Settings({"name": "FTPL"}, ARMS)
KEYS = [f"visitor-{number}-zebra" for number in range(12)]
BAD: tuple[Any, ...] = ("", "a" * 1025, "é" * 513, True, 0.5, ["a"], {})


def arms_of(service: DecisionService, name: str = "one", **options: Any) -> list[Any]:
    """The arm of each key."""
    return [service.decisions.decide("me", name, key=key, **options).result()[0].exploit for key in KEYS]


def learn(service: DecisionService, rounds: int = 6) -> None:
    """Some feedback, so that keys do not depend on the seed alone."""
    for turn in range(rounds):
        [made] = service.decisions.decide("me", "one", key=KEYS[turn % 3]).result()
        service.decisions.feedback("me", made.id, loss=turn / rounds).result()


def unfound(address: str) -> list[str]:
    return [each.finding for each in examine(address) if not each.good and each.name not in UNSAFE]


@both_stores
def test_a_key_keeps_its_arm_in_every_mode_and_after_a_restart(address: str) -> None:
    service = quick_service(address, snapshot_every=7)
    service.experiments.put("me", "one", SETTINGS, seed=7).result()
    learn(service)
    first = arms_of(service)
    assert len(set(first)) > 2
    assert arms_of(service) == arms_of(service, mode="exploit") == first
    [*several] = service.decisions.decide("me", "one", key=KEYS[0], count=5).result()
    assert {each.exploit for each in several} == {first[0]}
    service.close()
    again = quick_service(address)
    assert arms_of(again) == first
    again.close()
    assert unfound(address) == []


def test_the_service_is_the_learner_of_the_library(file: str) -> None:
    service = quick_service(file)
    service.experiments.put("me", "one", SETTINGS, seed=7).result()
    learner = dc.FTPL().start(ARMS, seed=7)
    for turn in range(20):
        key = KEYS[turn % 4] if turn % 3 else None
        [made] = service.decisions.decide("me", "one", key=key).result()
        twin = learner.decide(key=key)
        assert (made.exploit, made.explore, made.propensity, made.weight) == twin[2:]
        service.decisions.feedback("me", made.id, loss=turn / 20).result()
        learner.observe(twin, turn / 20)
    assert arms_of(service) == [learner.exploit(key=key).exploit for key in KEYS]
    assert service.decisions.decide("me", "one", key=17).result()[0].exploit == (
        learner.decide(key="17").exploit
    )
    text = service.experiments.learner("me", "one").result()
    assert arms_of(service) == [dc.Learner.from_json(text).exploit(key=key).exploit for key in KEYS]
    saved = Settings(SETTINGS.policy, ARMS, loss_range=(0.0, 1.0))
    service.experiments.put("me", "moved", saved, learner=text).result()
    assert arms_of(service, "moved") == arms_of(service)
    service.close()


def test_keys_have_the_law_of_fresh_draws(file: str) -> None:
    """A false alarm once in 10**6 seeds."""
    service = quick_service(file)
    service.experiments.put("me", "one", SETTINGS, seed=11).result()
    learn(service, 30)
    law = service.experiments.state("me", "one").result().exploitation
    asked = [service.decisions.decide("me", "one", key=number, mode="exploit") for number in range(2_000)]
    counts = Counter(each.result()[0].exploit for each in asked)
    service.close()
    assert chi_square_p([counts[arm] for arm in ARMS], law) > 1e-6


def test_replicas_serve_a_key_alike(postgres: str) -> None:
    one, two = DecisionService(PostgresStore(postgres)), DecisionService(PostgresStore(postgres))
    one.experiments.put("me", "one", SETTINGS).result()
    learn(one)
    first = arms_of(one)
    assert arms_of(two) == first
    learn(two)
    assert arms_of(one) == arms_of(two)
    for service in (one, two):
        service.close()
    assert unfound(postgres) == []


@both_stores
@pytest.mark.parametrize("log_keys", ["hashed", "plain", "off"])
def test_the_log_holds_what_the_experiment_says(address: str, log_keys: Any, tmp_path: Path) -> None:
    service = quick_service(address, snapshot_every=5)
    settings = Settings({"name": "FTPL"}, ARMS, log_keys=log_keys)
    service.experiments.put("me", "one", settings, seed=7).result()
    learn(service)
    made = [
        service.decisions.decide("me", "one", key=key, idempotency_key=f"request {place}").result()[0]
        for place, key in enumerate([*KEYS, KEYS[0]])
    ]
    service.decisions.decide("me", "one").result()
    logged = [each.key for each in made]
    page = service.listing.decisions("me", "one", limit=14).result().items
    assert [each.key for each in page] == [None, *reversed(logged)]
    assert service.decisions.get("me", made[0].id).result().key == logged[0]
    service.logs.export("me", "one", tmp_path / "log.csv", "csv").result()
    with (tmp_path / "log.csv").open() as lines:
        exported = [line["key"] for line in csv.DictReader(lines)][-14:]
    assert exported == [each or "" for each in (*logged, None)]
    before = service.experiments.state("me", "one").result()
    texts = _everything(service)
    service.close()
    again = quick_service(address)
    assert again.experiments.state("me", "one").result() == before
    again.close()
    if log_keys == "plain":
        assert logged == [*KEYS, KEYS[0]]
    elif log_keys == "off":
        assert logged == [None] * 13
    else:
        assert logged[0] == logged[-1]
        assert len({*logged}) == 12
        assert all(each is not None and len(each) == 32 for each in logged)
    assert ("zebra" in texts) == (log_keys == "plain")
    if not address.startswith("postgresql"):
        raw = b"".join(path.read_bytes() for path in Path(address).parent.glob("store.db*"))
        assert (b"zebra" in raw) == (log_keys == "plain")
    assert unfound(address) == []


def _everything(service: DecisionService) -> str:
    """Every row of every table, as text."""
    reader = service._session.store.reader()
    try:
        tables = ("experiments", "decided", "settled", "changed", "snapshots", "request_keys", "audit")
        return "".join(repr(reader.run(f"SELECT * FROM {table}")) for table in tables)
    finally:
        reader.close()


def test_hashes_differ_between_experiments_of_the_same_seed(file: str) -> None:
    service = quick_service(file)
    found = []
    for name in ("one", "two"):
        service.experiments.put("me", name, SETTINGS, seed=7).result()
        found.append(service.decisions.decide("me", name, key=KEYS[0]).result()[0])
    service.close()
    assert found[0].exploit == found[1].exploit
    assert found[0].key != found[1].key


def test_guardrails_and_budgets_hold_for_keys_and_are_replayed(file: str) -> None:
    rails, budget = dc.Guardrails(holdout=0.4, floors={"a": 0.3}), dc.Budget(rate=(6, 1e6))
    service = quick_service(file, snapshot_every=1000)
    settings = Settings({"name": "FTPL"}, ARMS, guardrails=rails, budget=budget)
    service.experiments.put("me", "one", settings, seed=7).result()
    learn(service)
    first = [service.decisions.decide("me", "one", key=key).result()[0] for key in KEYS]
    assert {each.limited_by for each in first} == {"rate"}
    assert {each.guard for each in first} == {"holdout", "floor", None}
    before = service.experiments.state("me", "one").result()
    service.close()
    again = quick_service(file)
    assert again.experiments.state("me", "one").result() == before
    assert arms_of(again) == [each.exploit for each in first]
    again.close()
    assert unfound(file) == []


def test_the_same_request_must_have_the_same_key(file: str) -> None:
    service = quick_service(file)
    service.experiments.put("me", "one", SETTINGS, seed=7).result()
    ask = service.decisions.decide
    first = ask("me", "one", key=KEYS[0], idempotency_key="k").result()
    assert ask("me", "one", key=KEYS[0], idempotency_key="k").result() == first
    for other in (KEYS[1], None):
        with pytest.raises(Conflict, match="another request") as caught:
            ask("me", "one", key=other, idempotency_key="k").result()
        assert "zebra" not in str(caught.value)
    service.close()


def test_a_bad_key_changes_nothing(file: str) -> None:
    service = quick_service(file)
    service.experiments.put("me", "one", SETTINGS, seed=7).result()
    before = service.experiments.state("me", "one").result()
    for key in (*BAD, "\ud800", 10**5000):
        for mode in ("both", "exploit"):
            with pytest.raises(Invalid, match=r"^key: .* must (have|be) "):
                service.decisions.decide("me", "one", key=key, mode=mode).result()
    assert service.experiments.state("me", "one").result() == before
    service.close()


def test_what_cannot_be_kept_is_refused(file: str) -> None:
    service = quick_service(file)
    service.experiments.put("me", "coupled", Settings({"name": "CoupledTsallisINF"}, ARMS)).result()
    service.experiments.put("me", "plain", Settings({"name": "FTPL"}, ARMS, log_keys="plain")).result()
    for name, key, mode, words in (
        ("coupled", "zebra", "both", "key: CoupledTsallisINF plays the standard game"),
        ("plain", "zebra", "explore", "key: mode 'explore' serves no arm"),
        ("plain", "zebra\0", "both", "key: has a NUL character"),
    ):
        with pytest.raises(Invalid, match=words) as caught:
            service.decisions.decide("me", name, key=key, mode=mode).result()  # type: ignore[arg-type]
        assert "zebra" not in str(caught.value)
    unknown: Any = "hash"
    with pytest.raises(Invalid, match="log_keys = 'hash': must be 'hashed', 'plain' or 'off'"):
        service.experiments.put("me", "x", Settings({"name": "FTPL"}, ARMS, log_keys=unknown)).result()
    service.close()


# Over HTTP


def post(service: Service, body: dict[str, Any], name: str = "one") -> httpx.Response:
    content = json.dumps(body)
    headers = {"Content-Type": "application/json"}
    return service.http.post(f"/v1/experiments/{name}/decisions", content=content, headers=headers)


def test_over_http(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("DEBUG")
    with served(tmp_path) as service:
        service.create("one", arms=list(ARMS), seed=7)
        service.create("coupled", policy={"name": "CoupledTsallisINF"})
        first = [service.decide("one", key=key) for key in KEYS]
        assert [service.decide("one", key=key)["exploit"] for key in KEYS] == (
            [each["exploit"] for each in first]
        )
        listed = service.decide("one", key=KEYS[0], count=3)["decisions"]
        assert {(each["exploit"], each["key"]) for each in listed} == {
            (first[0]["exploit"], first[0]["key"])
        }
        assert service.decide("one", key=17)["exploit"] == service.decide("one", key="17.0"[:2])["exploit"]
        before = service.http.get("/v1/experiments/one/state").json()
        for key in BAD:
            answer = post(service, {"key": key})
            assert answer.status_code == 422, answer.text
            assert answer.json()["errors"][0]["field"] == "key"
            assert answer.json()["detail"].startswith("key: ")
            assert "aaa" not in answer.text
            assert "éé" not in answer.text
        assert post(service, {"key": "zebra\ud800"}).status_code == 400, "no JSON text at all"
        refused = post(service, {"key": "zebra"}, "coupled")
        assert (refused.status_code, "standard game" in refused.text) == (422, True)
        assert "zebra" not in refused.text
        assert service.http.get("/v1/experiments/one/state").json() == before
        metrics = service.http.get("/metrics").text
        assert service.http.get("/v1/experiments/one").json()["log_keys"] == "hashed"
    with served(tmp_path) as service:
        assert [service.decide("one", key=key)["exploit"] for key in KEYS] == (
            [each["exploit"] for each in first]
        )
    assert "zebra" not in metrics + caplog.text
    raw = b"".join(path.read_bytes() for path in tmp_path.glob("store.db*"))
    assert b"zebra" not in raw
