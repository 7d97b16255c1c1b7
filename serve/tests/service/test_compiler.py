"""A policy that is new to the machine: clients are told that they wait, and nothing else waits."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from decoupled.client import Client, Retries, Undelivered
from decoupled.client.errors import Compiling, NotCompiled
from decoupled.policies import UCB1
from decoupled_serve.service.experiment.records import Settings
from decoupled_serve.service.memory import compiler as compiling
from decoupled_serve.service.service import DecisionService
from support.held_compiler import Held
from support.http_service import served
from support.stores import quick_service
from support.waiting import wait_for

SLOW: dict[str, Any] = {"name": "FTPL"}
QUICK: dict[str, Any] = {"name": "FollowTheLeader"}
ARMS = ("a", "b", "c")
HASTY = Retries(first=0.001, most=0.01)


@pytest.fixture
def held() -> Iterator[Held]:
    compiler = Held()
    yield compiler
    compiler.let_go()


def put(
    service: DecisionService, name: str, policy: dict[str, Any], arms: tuple[str, ...] = ARMS
) -> Any:
    return service.experiments.put("local", name, Settings(policy, arms), seed=7)


def test_a_new_experiment_is_durable_at_once_and_does_not_delay_others(
    file: str, held: Held
) -> None:
    service = quick_service(file, compiler=held)
    put(service, "other", QUICK).result(60)
    service.patience = 0.0
    assert service.decisions.decide("local", "other").result(60)
    slow, created = put(service, "slow", SLOW).result(60)
    assert (slow.status, created) == ("compiling", True)
    assert service.experiments.get("local", "slow").result(60).status == "compiling"
    listed = service.listing.experiments("local").result(60).items
    assert [each.status for each in listed] == ["ready", "compiling"]
    with pytest.raises(Compiling, match=r"experiment 'slow'.*FTPL.*ask again"):
        service.decisions.decide("local", "slow").result(60)
    with pytest.raises(Compiling):
        service.experiments.state("local", "slow").result(60)
    with pytest.raises(Compiling):
        service.logs.retention("local", "slow", 1.0).result(60)
    assert service.decisions.decide("local", "other").result(60)
    assert put(service, "slow", SLOW).result(60)[1] is False
    with closing(quick_service(file)) as twin:  # as after a crash: what was acknowledged is there
        assert twin.experiments.get("local", "slow").result(60).seed == 7
    service.patience = None
    waiting = [
        service.decisions.decide("local", "slow", idempotency_key="once"),
        service.decisions.decide("local", "slow", idempotency_key="once"),
    ]
    export = service.logs.read("local", "slow")
    held.let_go()
    first, second = (each.result(60) for each in waiting)
    assert first == second
    assert len(export.result(60)) <= 1
    assert service.experiments.get("local", "slow").result(60).status == "ready"
    assert service.experiments.archive("local", "slow").result(60).status == "archived"


def test_an_experiment_whose_compilation_was_cut_off_works_after_a_restart(
    file: str, held: Held
) -> None:
    service = quick_service(file, compiler=held)
    created = put(service, "slow", SLOW)
    assert held.begun.wait(60)
    refused = service.decisions.decide("local", "slow")
    service.close()
    assert created.result(60)[0].status == "compiling"
    with pytest.raises(Compiling):
        refused.result(60)
    held.let_go()
    with closing(quick_service(file, compiler=Held())) as again:
        again._compiler.let_go()  # type: ignore[attr-defined]
        assert again.decisions.decide("local", "slow").result(60)[0].id.endswith("-1")


def test_a_restart_compiles_stored_policies_before_offered_ones(file: str) -> None:
    with closing(quick_service(file, compiler=(before := Held()))) as service:
        before.let_go()
        for name, policy in (("one", QUICK), ("two", SLOW), ("zero", {"name": "Exp3"})):
            put(service, name, policy).result(60)
        service._commits.submit(
            lambda session: session.store.run(
                "UPDATE experiments SET archived_at = 1 WHERE name = 'zero'"
            ),
            alone=True,
        ).result()
    held = Held()
    with closing(quick_service(file, compiler=held)) as service:
        service.compile_stored([UCB1()])
        assert service.stored_to_compile() > 0
        assert held.begun.wait(60)
        wait_for(
            lambda: service.stored_to_compile() == 1
        )  # the other is done, and may not be counted yet
        service.patience = 0.0
        assert (
            put(service, "asked", {"name": "ThompsonSampling"}).result(60)[0].status == "compiling"
        )
        service.patience = None
        held.let_go()
        put(service, "last", {"name": "TopTwo"}).result(60)
        assert service.stored_to_compile() == 0
        put(service, "archived", {"name": "Exp3"}).result(60)
        put(service, "offered", {"name": "UCB1"}).result(60)
    assert held.order[:3] == ["FollowTheLeader", "FTPL", "ThompsonSampling"]
    assert sorted(held.order[3:]) == ["Exp3", "TopTwo", "UCB1"], "each is compiled once"


def test_a_policy_that_does_not_compile_is_retried(
    file: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = Held(TypeError("no such type\nand much more"))
    broken.let_go()
    with closing(quick_service(file, compiler=broken)) as service:
        found, _ = put(service, "broken", SLOW).result(60)
        assert found.status == "failed"
        assert "FTPL(alpha=3.0, c=2.0, ranking='auto') does not compile" in found.problem
        assert "TypeError: no such type)" in found.problem
        with pytest.raises(NotCompiled, match=r"experiment 'broken'.*no such type"):
            service.decisions.decide("local", "broken").result(60)
        put(service, "other", QUICK).result(60)
        assert [each.status for each in service.listing.experiments("local").result(60).items] == [
            "failed",
            "ready",
        ]
        assert service.logs.read("local", "broken").result(60) == []
        broken.error = None
        monkeypatch.setattr(compiling, "AGAIN", -1.0)
        assert service.decisions.decide("local", "broken").result(60)


def test_an_unknown_policy_does_not_affect_other_experiments(file: str) -> None:
    with closing(quick_service(file)) as service:
        put(service, "known", QUICK).result(60)
        put(service, "unknown", QUICK).result(60)
        service._commits.submit(
            lambda session: session.store.run(
                "UPDATE experiments SET settings = replace(settings, 'FollowTheLeader', 'Mine') "
                "WHERE name = 'unknown'"
            ),
            alone=True,
        ).result()
    with closing(quick_service(file)) as service:
        service.compile_stored()
        both = [service.decisions.decide("local", name) for name in ("known", "unknown")]
        assert both[0].result(60)
        with pytest.raises(NotCompiled, match="Mine"):
            both[1].result(60)
        listed = service.listing.experiments("local").result(60).items
        assert [each.status for each in listed] == ["ready", "failed"]


def test_more_arms_may_need_another_form_of_the_policy(file: str) -> None:
    growing = {"name": "FTPL", "ranking": "auto"}
    held = Held()
    held.let_go()
    with closing(quick_service(file, compiler=held, patience=0.0)) as service:
        service.patience = None
        put(service, "grows", growing).result(60)
        service.patience = 0.0
        held.released.clear()
        with pytest.raises(Compiling):
            service.experiments.add_arms(
                "local", "grows", [f"new {i}" for i in range(2000)]
            ).result(60)
        assert service.decisions.decide("local", "grows").result(60)
        assert service.experiments.add_arms("local", "grows", ["d"]).result(60).arms == (*ARMS, "d")
        held.let_go()
        service.patience = None
        grown = service.experiments.add_arms(
            "local", "grows", [f"new {i}" for i in range(2000)]
        ).result(60)
        assert len(grown.arms) == 2004


def test_over_http(tmp_path: Path, held: Held) -> None:
    slow: dict[str, Any] = {"policy": SLOW, "arms": list(ARMS)}
    with served(tmp_path, compiler=held, patience=0.0) as service:
        service.create("other", policy=QUICK)
        answer = service.http.put("/v1/experiments/slow", json=slow)
        assert (answer.status_code, answer.headers["retry-after"]) == (202, "1")
        assert (answer.json()["status"], answer.json()["problem"]) == ("compiling", None)
        refused = service.http.post("/v1/experiments/slow/decisions")
        assert (refused.status_code, refused.headers["retry-after"]) == (503, "1")
        assert (refused.json()["title"], refused.json()["type"]) == (
            "Compiling",
            "urn:decoupled:compiling",
        )
        assert service.http.get("/readyz").status_code == 200, "it takes no replica out of service"
        assert service.decide("other")["status"] == "pending"
        held.error = TypeError("no such type")
        held.let_go()
        with (
            Client(service.url, retries=HASTY) as client,
            pytest.raises(NotCompiled, match="no such type"),
        ):
            client.create("slow", **slow)
        failed = service.http.post("/v1/experiments/slow/decisions")
        assert (failed.status_code, failed.json()["title"]) == (500, "Compilation failed")
        assert service.http.get("/readyz").status_code == 200


def test_a_batch_of_feedback_waits_only_for_policies_it_needs(tmp_path: Path) -> None:
    with served(tmp_path) as service:
        service.create("slow", policy=SLOW)
        service.create("other", policy=QUICK)
        ids = [service.decide(name)["id"] for name in ("slow", "other")]
    held = Held()
    with served(tmp_path, compiler=held, patience=0.0) as service:
        service.direct.compile_stored()
        assert service.http.get("/healthz").status_code == 200
        ready = service.http.get("/readyz")
        assert (ready.status_code, ready.json()["title"]) == (503, "Compiling")
        assert held.begun.wait(60), "the other is ready by then"
        items = [{"decision": each, "loss": 0.5} for each in ids]
        sent = service.http.post("/v1/feedback", json={"items": items}).json()["results"]
        assert [each["status"] for each in sent] == [503, 200], sent
        assert sent[0]["problem"]["title"] == "Compiling"
        reasons: list[str] = []

        def let_go(reason: str) -> None:
            reasons.append(reason)
            held.let_go()

        once = Retries(attempts=1)
        with Client(service.url, retries=once, outbox=tmp_path / "outbox", notify=let_go) as client:
            assert client.feedback(ids[0], loss=0.5) is None, "with an outbox nobody waits"
            assert client.flush().left == 1
            results = client.feedback_many([Undelivered(each, 0.5) for each in ids])
            assert [getattr(each, "status", each) for each in results] == ["applied", "applied"]
            assert len(reasons) == 1
            assert client.flush().left == 0
        assert service.http.get("/readyz").status_code == 200
