"""The number of arms: at most 10,000, and what becomes of experiments with more that earlier releases took."""

import threading
from collections.abc import Callable
from typing import Any

import pytest

import decoupled as dc
from decoupled.client import Invalid, ServiceError
from decoupled_serve.service.api import experiments
from decoupled_serve.service.experiment.live import LiveExperiment
from decoupled_serve.service.experiment.records import MOST_ARMS, Settings
from decoupled_serve.service.experiment.snapshots import prepared
from decoupled_serve.service.memory import session as sessions
from decoupled_serve.service.memory.session import Reference
from decoupled_serve.service.service import DecisionService
from support.http_service import Service
from support.stores import Opened, faults, quick_service

ARMS = 20_000
POLICY = dc.FTPL(ranking="strata")


def with_many_arms(service: DecisionService) -> DecisionService:
    """An experiment as earlier releases stored it."""
    settings = Settings(POLICY.to_dict(), range(ARMS), deadline=50.0)
    about = Reference("name", "me", "large")
    service._commits.run(experiments._put, about, alone=True, settings=settings, seed=7).result()
    return service


def play(service: DecisionService, rounds: int, learner: dc.Learner) -> None:
    """Rounds in which a learner of the library must draw the same."""
    for turn in range(rounds):
        decisions = service.decisions.decide("me", "large", count=2).result()
        for made, twin in zip(decisions, [learner.decide() for _ in decisions], strict=True):
            assert (made.exploit, made.explore, made.weight) == (twin.exploit, twin.explore, twin.weight)
        loss = turn % 7 / 6
        service.decisions.feedback("me", decisions[0].id, loss=loss).result()
        learner.observe(learner.pending[-2], loss)


@pytest.mark.parametrize("every", [10, 10_000])
def test_an_earlier_large_experiment_goes_on_bit_for_bit(opened: Opened, file: str, every: int) -> None:
    learner = POLICY.start(ARMS, seed=7)
    service = with_many_arms(opened(snapshot_every=every))
    play(service, 20, learner)
    service.close()
    service = opened(snapshot_every=every)
    play(service, 10, learner)
    assert service.experiments.get("me", "large").result().arms == range(ARMS)
    assert len(service.logs.read("me", "large").result()) == 60
    service.close()
    assert faults(file) == []


def test_what_takes_long_happens_in_the_background(file: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Restoring it and making its snapshots, while the commit loop serves others."""
    threads: dict[str, set[str]] = {"restored": set(), "saved": set()}
    begun, prepare = LiveExperiment.__init__, prepared

    def noted(self: LiveExperiment, row: Any) -> None:
        threads["restored"].add(threading.current_thread().name)
        begun(self, row)

    def noting(running: LiveExperiment) -> Callable[[], str]:
        text = prepare(running)

        def made() -> str:
            threads["saved"].add(threading.current_thread().name)
            return text()

        return made

    monkeypatch.setattr(LiveExperiment, "__init__", noted)
    monkeypatch.setattr(sessions, "prepared", noting)
    service = with_many_arms(quick_service(file, snapshot_every=10))
    store = service._session.store
    kept: list[Any] = []
    while not kept:
        [made] = service.decisions.decide("me", "large").result()
        service.decisions.feedback("me", made.id, loss=0.5).result()
        kept = service._commits.submit(lambda session: store.run("SELECT seq FROM snapshots")).result()
    for names in threads.values():
        assert {name.startswith("decoupled-loads") for name in names} == {True}


def test_what_a_large_experiment_cannot_do_is_refused(file: str) -> None:
    service = with_many_arms(quick_service(file))
    put, change = service.experiments, service.experiments.change_guardrails
    refused: list[Callable[[], Any]] = [
        lambda: service.decisions.decide("me", "large", available=[1, 2]),
        lambda: put.state("me", "large"),
        lambda: put.add_arms("me", "large", ["x"]),
        lambda: change("me", "large", {"down": [1]}),
        lambda: change("me", "large", {"incumbent": 1}),
        lambda: service.verdicts.get("me", "large"),
        lambda: service.logs.history("me", "large"),
        lambda: service.logs.evaluate("me", "large"),
    ]
    for ask in refused:
        error = ask().exception()
        assert isinstance(error, ServiceError), error
        assert (error.status, f"more than {MOST_ARMS:,} arms" in str(error)) == (409, True)
    change("me", "large", {"pinned": 7}).result()
    assert [each.exploit for each in service.decisions.decide("me", "large", count=3).result()] == [7, 7, 7]


def test_no_new_experiment_has_more(file: str, service: Service) -> None:
    direct, arms = quick_service(file), tuple(range(MOST_ARMS + 1))
    with pytest.raises(Invalid, match="must not exceed 10,000"):
        direct.experiments.put("me", "many", Settings({"name": "FTPL"}, arms)).result()
    direct.experiments.put("me", "some", Settings({"name": "FTPL"}, arms[:3])).result()
    with pytest.raises(Invalid, match="must not exceed 10,000"):
        direct.experiments.add_arms("me", "some", arms[3:]).result()
    wrong: tuple[Any, ...] = (1, MOST_ARMS + 1, True, 3.5, "3", None, [str(arm) for arm in arms])
    for given in wrong:
        answer = service.http.put("/v1/experiments/other", json={"arms": given})
        assert (answer.status_code, answer.json()["detail"][:6]) == (422, "arms: ")
    service.create("small", policy={"name": "Ladder"}, arms=3)
    assert service.http.get("/v1/experiments/small").json()["arms"] == [0, 1, 2]
    assert service.decide("small", available=[2])["explore"] == 2
