"""The time of the service: that of the machine, but times in a log never go back."""

from contextlib import closing
from itertools import count

import pytest

from decoupled.client.errors import Gone
from decoupled_serve.service.analysis.doctor import examine
from decoupled_serve.service.experiment.records import Decided, DecisionRecord, Settings
from decoupled_serve.service.service import DecisionService
from support.stores import both_stores, quick_service, started
from support.waiting import Clock

DAY = 86_400.0
SHORT = Settings({"name": "FTPL"}, ("a", "b"), deadline=60.0)


def decide(service: DecisionService) -> DecisionRecord:
    [made] = service.decisions.decide("me", "one").result()
    return made


def feedback(service: DecisionService, decision: DecisionRecord) -> str:
    return service.decisions.feedback("me", decision.id, loss=0.5).result().status


def use(service: DecisionService) -> None:
    """Write a row of every kind."""
    feedback(service, decide(service))
    decide(service)
    service.experiments.set_budget("me", "one", {"share": 1.0}).result()


def times(service: DecisionService) -> list[float]:
    """The times of a log, in the order of its rows."""
    with closing(service._session.store.reader()) as reader:
        rows = reader.rows_since(1, 0)
        return [row.made_at if isinstance(row, Decided) else row.at for row in rows]


@both_stores
@pytest.mark.parametrize("restart", [False, True])
def test_times_never_go_back_and_the_log_replays(address: str, clock: Clock, restart: bool) -> None:
    """The clock is set back, while the service runs or between two starts, and then forward again."""
    service = started(address, SHORT, clock=clock)
    for step in (30.0, -DAY, 10.0, DAY, 100.0):
        clock.now += step
        if restart:
            service.close()
            service = quick_service(address, clock=clock)
        use(service)
        assert service.health().snapshot_age >= 0.0
    found = times(service)
    assert found == sorted(found)
    assert found[0] == 1_000_030.0
    assert found[-1] == clock.now
    service.close()
    checks = {check.name: check.good for check in examine(address, now=clock)}
    assert checks["log of 'one'"]
    assert checks["replay of 'one'"]


def test_replicas_with_different_clocks_write_one_order_of_times(
    postgres: str, clock: Clock
) -> None:
    replicas = [
        quick_service(postgres, clock=clock),
        quick_service(postgres, clock=lambda: clock.now + 50.0),
    ]
    replicas[0].experiments.put("me", "one", SHORT, seed=7).result()
    for turn in range(8):
        clock.now += 20.0
        use(replicas[turn % 2])
    found = times(replicas[0])
    assert found == sorted(found)
    assert len(set(found)) > 4


def test_what_expires_before_a_draw_is_not_logged_with_a_later_time(file: str) -> None:
    """With a clock that moves on whenever it is read."""
    ticks = count(1_000_000.0, 25.0)
    service = quick_service(file, clock=lambda: next(ticks))
    service.experiments.put("me", "one", SHORT, seed=7).result()
    for _ in range(10):
        decide(service)
    found = times(service)
    assert service.counters()["expired"] > 3
    assert found == sorted(found)


def test_a_clock_behind_holds_deadlines(
    file: str, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    def keep_house(service: DecisionService) -> int:
        service._commits.submit(service._housekeeping, alone=True).result()
        return service.counters()["expired"]

    with closing(quick_service(file, clock=lambda: clock.now + DAY)) as service:
        service.experiments.put("me", "one", SHORT, seed=7).result()
        old = decide(service)
    with closing(quick_service(file, clock=clock)) as service:
        new = decide(service)
        assert new.made_at == old.made_at
        assert "86400 s ahead of the clock" in caplog.text
        clock.now += 100.0
        assert keep_house(service) == 0
        clock.now += DAY
        assert keep_house(service) == 2
        with pytest.raises(Gone):
            feedback(service, new)
        assert decide(service).made_at == clock.now
