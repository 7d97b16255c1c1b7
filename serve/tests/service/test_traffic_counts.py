"""What the service counts for operators: what it did, and nothing twice."""

from typing import Any

import pytest

from decoupled.client.errors import Gone, ServiceError, StoreError
from decoupled_serve.service.commits.queue import Command
from decoupled_serve.service.experiment.records import Settings
from decoupled_serve.service.memory.traffic import OTHER, Counts
from decoupled_serve.service.service import DecisionService
from support.stores import Opened, full_disk
from support.waiting import Clock

ARMS = ("a", "b")


def create(service: DecisionService, name: str, **options: Any) -> None:
    service.experiments.put(
        "local", name, Settings({"name": "FTPL"}, ARMS, **options), seed=7
    ).result()


def counts(service: DecisionService, name: str) -> Counts:
    return service.health().experiments["local", name].counts


def test_counts_are_of_what_this_process_did_and_never_fall(opened: Opened, clock: Clock) -> None:
    first = opened()
    first.watch_experiments(5)
    create(first, "models", deadline=60.0)
    made = first.decisions.decide("local", "models", count=4).result()
    first.decisions.feedback("local", made[0].id, loss=0.25).result()
    first.decisions.feedback("local", made[1].id, loss=0.5).result()
    clock.now += 61.0
    with pytest.raises(Gone):
        first.decisions.feedback("local", made[2].id, loss=0.25).result()
    assert counts(first, "models")[:4] == (4, 2, 1, 1)
    assert counts(first, "models").loss == 0.75
    first.close()

    second = opened()  # it replays what the first did
    second.watch_experiments(5)
    second.decisions.decide("local", "models").result()
    assert counts(second, "models").decisions == second.counters()["decisions"] == 1
    second._session.abandon()  # nothing is left in memory, as after a failed write
    assert (counts(second, "models").decisions, second.counters()["decisions"]) == (1, 1)
    second.decisions.decide("local", "models").result()
    assert second.counters()["decisions"] == 2


def test_the_first_experiments_have_their_own_counts_and_the_rest_are_summed(
    opened: Opened,
) -> None:
    service = opened()
    service.watch_experiments(2)
    for name, count in (("one", 1), ("two", 2), ("three", 3), ("four", 4), ("one", 10)):
        create(service, name)
        service.decisions.decide("local", name, count=count).result()
    found = service.health().experiments
    assert {place: each.counts.decisions for place, each in found.items()} == {
        ("local", "one"): 11,
        ("local", "two"): 2,
        OTHER: 7,
    }
    assert {place: each.pending for place, each in found.items()} == {
        ("local", "one"): 11,
        ("local", "two"): 2,
        OTHER: 7,
    }
    assert found[OTHER].leader_share is None
    assert 0.5 <= (found["local", "one"].leader_share or 0.0) <= 1.0
    assert service.counters()["decisions"] == 20


def test_guardrails_and_budgets_are_counted_and_what_was_not_committed_is_not(
    opened: Opened,
) -> None:
    service = opened()
    service.watch_experiments(1)
    create(service, "models")
    service.experiments.change_guardrails("local", "models", {"pinned": "a"}).result()
    service.decisions.decide("local", "models", count=3).result()
    service.experiments.change_guardrails("local", "models", {"pinned": None}).result()
    service.experiments.set_budget("local", "models", {"rate": (3, 3600)}).result()
    service.decisions.decide("local", "models", count=5).result()
    assert (counts(service, "models").guarded, counts(service, "models").limited) == (3, 2)
    before = service.counters()["decisions"]
    with full_disk(service), pytest.raises(StoreError, match="full"):
        service.decisions.decide("local", "models").result()
    assert service.counters()["decisions"] == before


def test_housekeeping_is_not_observed(opened: Opened, monkeypatch: pytest.MonkeyPatch) -> None:
    service = opened()
    seen: list[tuple[int, float, ServiceError | None]] = []

    def observe(commands: list[Command], seconds: float, error: StoreError | None) -> None:
        seen.append((len(commands), seconds, error))

    service.observe_commits(observe)  # type: ignore[arg-type]
    create(service, "models")
    service.decisions.decide("local", "models", count=2).result()
    service._commits.submit(service._housekeeping, alone=True).result()
    service.decisions.decide("local", "models").result()
    service.close()
    assert [size for size, _, _ in seen] == [1, 1, 1]
    assert all(seconds > 0.0 and error is None for _, seconds, error in seen)


def test_snapshots_grow_old_until_one_is_written(opened: Opened, clock: Clock) -> None:
    service = opened(snapshot_every=10)
    create(service, "models")
    service.decisions.decide("local", "models", count=4).result()
    clock.now += 100.0
    health = service.health()
    assert (health.snapshot_age, health.snapshot_rows) == (100.0, 4)
    service.decisions.decide("local", "models", count=6).result()
    assert (service.health().snapshot_age, service.health().snapshot_rows) == (0.0, 0)
