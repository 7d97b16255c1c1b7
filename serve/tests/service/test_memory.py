"""Experiments leave memory when they are not used, and come back as they were."""

import gc
import threading
from typing import Any

import pytest

import decoupled as dc
from decoupled_serve.service.api import decisions
from decoupled_serve.service.experiment.live import LiveExperiment
from decoupled_serve.service.experiment.records import DEFAULT_WAIT, DecisionRecord, Settings
from decoupled_serve.service.memory import loader, session
from decoupled_serve.service.service import DecisionService
from support.stores import Opened, both_stores, killed, quick_service, started
from support.waiting import Clock

RECOMMENDED = dc.Ladder().to_dict()
PLAIN = Settings({"name": "FTPL"}, ("a", "b", "c"), deadline=50.0, expired_loss=0.5)
FEW = 4  # experiments in memory


def objects() -> int:
    """How many experiments there are in this process, whoever keeps them."""
    gc.collect()
    return sum(issubclass(type(each), LiveExperiment) for each in gc.get_objects())


def housekeep(service: DecisionService) -> bool:
    return bool(service._commits.submit(service._housekeeping).result())


def play(service: DecisionService, clock: Clock, names: list[str], rounds: int) -> list[Any]:
    """Traffic of every kind over many experiments in turn, and what came of it."""
    seen: list[Any] = []
    waiting: list[DecisionRecord] = []
    for turn in range(rounds):
        for place, name in enumerate(names):
            clock.now += 0.1
            made = service.decisions.decide(
                "me", name, count=1 + turn % 2, idempotency_key=f"{name}-{turn}"
            ).result()
            waiting += made[:1]
            seen += [each[1:5] for each in map(_drawn, made)]
            if turn % 3 == 2:
                made = service.decisions.decide(
                    "me", name, idempotency_key=f"{name}-{turn - 1}", count=2 - turn % 2
                ).result()
                seen += [_drawn(each) for each in made]
            if turn > 0:
                old = waiting.pop(0)
                told = service.decisions.feedback("me", old.id, loss=(turn + place) % 5 / 4)
                seen.append(type(told.exception()).__name__)
    for name in names:
        state = service.experiments.state("me", name).result()
        seen += [state, service.verdicts.get("me", name).result()]
    return seen


def _drawn(record: DecisionRecord) -> tuple[Any, ...]:
    """A decision without its id, which has a random part."""
    return (
        record.id.rpartition("-")[2], record.exploit, record.explore, record.propensity, record.weight,
        record.status, record.state_version,
    )  # fmt: skip


def test_memory_does_not_grow_with_the_number_of_experiments(file: str, clock: Clock) -> None:
    before = objects()
    service = quick_service(file, clock=clock, experiments_in_memory=FEW)
    for place in range(40):
        service.experiments.put("me", str(place), PLAIN, seed=place).result()
        [made] = service.decisions.decide("me", str(place)).result()
        assert service.decisions.feedback("me", made.id, loss=0.5).result().status == "applied"
    assert service.counters()["experiments"] == FEW
    assert objects() - before <= FEW
    assert service.counters()["decisions"] == service.counters()["observed"] == 40, (
        "it stays counted"
    )


@both_stores
def test_it_comes_back_to_the_bit(
    address: str, tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same traffic over a service that keeps everything in memory gives the same answers."""
    monkeypatch.setattr(
        session, "_FEW_ROWS", 5
    )  # some are restored from a snapshot, some from the log
    clock, twin_clock = Clock(), Clock()
    service = quick_service(address, clock=clock, experiments_in_memory=2)
    twin = quick_service(str(tmp_path / "twin.db"), clock=twin_clock)
    policies: list[dict[str, Any]] = [
        {"name": "FTPL"},
        RECOMMENDED,
        {"name": "Exp3"},
        {"name": "TopTwo"},
    ]
    names = [str(place) for place in range(4)]
    for each in (service, twin):
        for place, name in enumerate(names):
            policy = policies[place % len(policies)]
            settings = Settings(policy, ("a", "b", "c"), deadline=1.0, expired_loss=0.5)
            each.experiments.put("me", name, settings, seed=place).result()
    assert play(service, clock, names, 7) == play(twin, twin_clock, names, 7)
    assert len(service._session.in_memory()) <= 2
    rows = service._session.store.reader()
    assert rows.run("SELECT count(*) FROM snapshots")[0][0] > 0
    assert rows.run("SELECT count(*) FROM settled WHERE kind = 'expired'")[0][0] > 0
    rows.close()


@both_stores
def test_deadlines_pass_for_experiments_that_are_not_in_memory(
    opened: Opened, clock: Clock
) -> None:
    """Those that left it, and those that a service which has just started never had."""
    service = opened(experiments_in_memory=2)
    made = 18
    for place in range(made):
        service.experiments.put("me", str(place), PLAIN, seed=place).result()
        service.decisions.decide("me", str(place), count=2).result()
    service.experiments.put("me", "other", Settings({"name": "FTPL"}, ("a", "b"))).result()
    service.decisions.decide("me", "other").result()
    service.close()
    service = opened(experiments_in_memory=2)
    store = service._session.store

    def expired() -> int:
        count = "SELECT count(*) FROM settled WHERE kind = 'expired'"
        return int(service._commits.submit(lambda session: store.run(count)).result()[0][0])

    housekeep(service)
    assert expired() == 0
    [late] = service.decisions.decide("me", "7").result()
    clock.now += PLAIN.deadline or 0.0
    clock.now -= 1.0
    service.decisions.decide("me", "3").result()
    clock.now += 1.0
    more, slices = True, 0
    while more:
        more, slices = housekeep(service), slices + 1
        assert len(service._session.in_memory()) <= 2
    assert expired() == 2 * made + 1
    assert slices >= made // decisions.AT_ONCE, (
        "they are looked at in parts, and commands run in between"
    )
    assert service.experiments.state("me", "7").result().pending == 0
    assert service.experiments.state("me", "3").result().pending == 1, "that one is not due yet"
    assert service.experiments.state("me", "other").result().pending == 1
    assert service.decisions.get("me", late.id).result().status == "expired"
    clock.now += 60.0
    while housekeep(service):
        pass
    assert service.experiments.state("me", "3").result().pending == 0

    def due() -> Any:
        names = "SELECT name FROM experiments WHERE next_expiry IS NOT NULL"
        return service._commits.submit(lambda session: store.run(names)).result()

    assert due() == [("other",)], "its evidence waits for an hour; nothing else is looked at again"
    clock.now += DEFAULT_WAIT
    while housekeep(service):
        pass
    assert due() == [], "nothing is looked at again before it can be due"
    assert service.experiments.state("me", "other").result().pending == 1, (
        "its feedback may still come"
    )


def held_restores(monkeypatch: pytest.MonkeyPatch) -> tuple[threading.Event, threading.Event]:
    """Restores of more than a few rows say that they begin, and wait until the second event is set."""
    begun, go, original = threading.Event(), threading.Event(), loader.restored

    def held_up(store: Any, row: Any) -> LiveExperiment:
        begun.set()
        go.wait()
        return original(store, row)

    monkeypatch.setattr(loader, "QUICK_ROWS", 20)
    monkeypatch.setattr(loader, "restored", held_up)
    return begun, go


@both_stores
def test_a_long_restore_holds_up_nobody_else(
    address: str, opened: Opened, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    service = quick_service(address, clock=clock)
    for name in ("large", "small"):
        service.experiments.put("me", name, PLAIN, seed=7).result()
    service.decisions.decide("me", "large", count=40).result()
    service.decisions.decide("me", "small", count=3).result()
    kept = service.experiments.state("me", "large").result()
    killed(service)

    _, go = held_restores(monkeypatch)
    service = opened(experiments_in_memory=1)
    waiting = [service.decisions.decide("me", "large") for _ in range(3)]
    state = service.experiments.state("me", "large")
    for _ in range(5):  # also pushes out what is restored and not yet used
        assert len(service.decisions.decide("me", "small").result()) == 1
    assert service.experiments.get("me", "large").result().name == "large", (
        "its settings are known at once"
    )
    assert not any(each.done() for each in waiting)
    assert not state.done()
    go.set()
    rows = [each.result()[0].id.rpartition("-")[2] for each in waiting]
    assert rows == ["41", "42", "43"], "in the order in which they were asked"
    assert state.result().decisions == 43
    assert kept.decisions == 40


def test_a_failed_restore_can_be_repeated(
    file: str, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    service = quick_service(file, clock=clock)
    for name in ("large", "small"):
        service.experiments.put("me", name, PLAIN, seed=7).result()
    service.decisions.decide("me", "large", count=40).result()
    service._commits.close()
    service._session.store.run("UPDATE decided SET explore = (explore + 1) % 3 WHERE seq = 30")
    service._session.store.close()
    monkeypatch.setattr(loader, "QUICK_ROWS", 20)
    service = quick_service(file, clock=clock)
    for _ in range(2):
        assert "row 30" in str(service.decisions.decide("me", "large").exception())
        assert len(service.decisions.decide("me", "small").result()) == 1
    store = service._session.store
    repair = "UPDATE decided SET explore = (explore + 2) % 3 WHERE seq = 30"
    service._commits.submit(lambda session: store.run(repair)).result()
    assert len(service.decisions.decide("me", "large").result()) == 1


def test_closing_during_a_restore_answers_who_waits(
    file: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    service = started(file, PLAIN, name="large")
    service.decisions.decide("me", "large", count=40).result()
    killed(service)
    begun, go = held_restores(monkeypatch)
    service = quick_service(file)
    waiting = service.decisions.decide("me", "large")
    begun.wait()
    closing = threading.Thread(target=service.close)
    closing.start()
    while not service._session.loader._closed:
        pass
    go.set()
    closing.join()
    assert "is closed" in str(waiting.exception())
