"""The time of the service: jumps of the machine's clock do not move deadlines, and do not go unnoticed."""

from contextlib import closing
from itertools import pairwise

import pytest

from decoupled.service.errors import Gone
from decoupled.service.experiment.clock import PACE, SteadyClock
from decoupled.service.experiment.records import DecisionRecord, Settings
from decoupled.service.service import DecisionService
from support.stores import Clock, quick_service

DAY = 86_400.0
SHORT = Settings({"name": "FTPL"}, ("a", "b"), deadline=60.0)


class Machine:
    """A machine whose clock can be set, while real time goes on."""

    def __init__(self) -> None:
        self.wall, self.real = 1_000_000.0, 0.0
        self.clock = SteadyClock(lambda: self.wall, lambda: self.real)

    def passes(self, seconds: float, steps: int = 60) -> list[float]:
        """Real time, and the clock with it; returns what the service saw."""
        seen = []
        for _ in range(steps):
            self.wall += seconds / steps
            self.real += seconds / steps
            seen.append(self.clock())
        return seen


@pytest.fixture
def machine() -> Machine:
    return Machine()


@pytest.fixture
def service(file: str, machine: Machine) -> DecisionService:
    service = quick_service(file, clock=machine.clock)
    service.experiments.put("me", "one", SHORT, seed=7).result()
    return service


def decide(service: DecisionService) -> DecisionRecord:
    [made] = service.decisions.decide("me", "one").result()
    return made


def feedback(service: DecisionService, decision: DecisionRecord) -> str:
    return service.decisions.feedback("me", decision.id, loss=0.5).result().status


@pytest.mark.parametrize("jump", [DAY, -DAY])
def test_a_deadline_is_as_long_as_ever(service: DecisionService, machine: Machine, jump: float) -> None:
    before, kept = decide(service), decide(service)
    machine.passes(30.0)
    machine.wall += jump
    machine.passes(2.0)
    assert feedback(service, before) == "applied", "it has not passed"
    during, late = decide(service), decide(service)
    machine.wall -= jump
    machine.passes(20.0)
    assert feedback(service, during) == "applied"
    after, last = decide(service), decide(service)
    machine.passes(50.0)
    assert feedback(service, after) == "applied"
    machine.passes(60.0 * 2 * PACE + 10.0)
    for each in (kept, late, last):
        with pytest.raises(Gone):
            feedback(service, each)


def test_a_jump_is_logged_and_counted_once(machine: Machine, caplog: pytest.LogCaptureFixture) -> None:
    assert machine.passes(3600.0)[-1] == pytest.approx(machine.wall)
    assert machine.clock.jumps == 0
    machine.wall += DAY
    machine.passes(600.0)
    assert machine.clock.jumps == 1
    [line] = caplog.messages
    assert "jumped by +86400.0 s" in line
    machine.wall -= DAY
    machine.passes(600.0)
    assert machine.clock.jumps == 2
    assert len(caplog.messages) == 2


@pytest.mark.parametrize("jump", [60.0, -60.0])
def test_it_approaches_the_machine_and_never_goes_back(machine: Machine, jump: float) -> None:
    machine.wall += jump
    seen = [machine.clock(), *machine.passes(3600.0, 3600)]
    steps = [later - earlier for earlier, later in pairwise(seen)]
    assert 1.0 - PACE - 1e-6 <= min(steps) <= max(steps) <= 1.0 + PACE + 1e-6
    assert seen[-1] == pytest.approx(machine.wall, abs=0.01)


def test_a_clock_that_drifts_is_followed_without_a_word(
    machine: Machine, caplog: pytest.LogCaptureFixture
) -> None:
    for _ in range(1000):
        machine.passes(1.0, 1)
        machine.wall += 0.0005
    assert machine.clock() == pytest.approx(machine.wall, abs=0.01)
    assert machine.clock.jumps == 0
    assert caplog.messages == []


def test_a_log_from_a_clock_ahead_goes_on(
    file: str, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    """As after a restart, or from another replica: times never go back, and deadlines are no longer than a tenth more."""
    with closing(quick_service(file, clock=lambda: clock.now + DAY)) as service:
        service.experiments.put("me", "one", SHORT, seed=7).result()
        old = decide(service)
    with closing(quick_service(file, clock=clock)) as service:
        made = [decide(service) for _ in range(3)]
        assert "ahead of the clock" in caplog.text
        clock.now += 50.0
        assert feedback(service, made[0]) == "applied"
        clock.now += 10.0 / (1.0 - PACE) + 10.0
        for each in (old, made[1]):
            with pytest.raises(Gone):
                feedback(service, each)
        newer = decide(service)
        assert newer.made_at >= made[2].made_at
        clock.now += 2 * DAY / PACE
        assert decide(service).made_at == clock.now, "the clock has caught up"


def test_housekeeping_knows_the_time_of_a_log_that_is_ahead(file: str, clock: Clock) -> None:
    with closing(quick_service(file, clock=lambda: clock.now + DAY)) as service:
        service.experiments.put("me", "one", SHORT, seed=7).result()
        decide(service)
    with closing(quick_service(file, clock=clock)) as service:
        decide(service)
        clock.now += 100.0
        service._commits.submit(service._housekeeping, alone=True).result()
        assert service.counters()["expired"] == 2
