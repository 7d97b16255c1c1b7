"""Experiments with very many arms decide like any other, and hold up nobody."""

import threading
from collections.abc import Callable
from typing import Any

import pytest

import decoupled as dc
from decoupled.client.errors import ServiceError
from decoupled_serve.service.experiment.live import LiveExperiment
from decoupled_serve.service.experiment.numbered_arms import MOST_NAMED, MOST_NUMBERED, numbered
from decoupled_serve.service.experiment.records import Settings
from decoupled_serve.service.experiment.snapshots import prepared
from decoupled_serve.service.memory import session as sessions
from decoupled_serve.service.service import DecisionService
from support.http_service import Service
from support.stores import Clock, Opened, started

ARMS = 20_000
RECOMMENDED = dc.Ladder()
LARGE = Settings(RECOMMENDED.to_dict(), numbered(ARMS), deadline=50.0)


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
def test_a_large_experiment_draws_what_a_learner_draws_also_after_a_restart(
    opened: Opened, every: int
) -> None:
    learner = RECOMMENDED.start(ARMS, seed=7)
    service = opened(snapshot_every=every)
    service.experiments.put("me", "large", LARGE, seed=7).result()
    play(service, 20, learner)
    state = service.experiments.state("me", "large").result()
    assert (state.decisions, state.applied, state.pending) == (40, 20, 20)
    assert len(state.arms) == len(state.estimates) == len(state.plays_exploit) <= 40
    assert sum(state.plays_exploit) == 40
    assert state.plays_exploit == tuple(sorted(state.plays_exploit, reverse=True))
    assert state.exploitation == state.exploration == ()
    service.close()
    service = opened(snapshot_every=every)
    assert service.experiments.state("me", "large").result() == state
    play(service, 10, learner)
    found = service.experiments.get("me", "large").result()
    assert found.arms == range(ARMS)
    logged = service.logs.read("me", "large").result()
    assert [each.explore for each in logged][:2] == [
        each.explore for each in RECOMMENDED.start(ARMS, seed=7).decide(2)
    ]


def test_what_takes_long_happens_in_the_background(
    file: str, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Restoring it and making its snapshots, while the commit loop serves others."""
    threads: dict[str, set[str]] = {"restored": set(), "saved": set()}
    begun, prepare = LiveExperiment.__init__, prepared

    def noted(self: LiveExperiment, row: Any) -> None:
        if row.name == "large":
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
    service = started(file, LARGE, name="large", clock=clock, snapshot_every=10)
    store = service._session.store
    kept: list[Any] = []
    while not kept:
        [made] = service.decisions.decide("me", "large").result()
        service.decisions.feedback("me", made.id, loss=0.5).result()
        kept = service._commits.submit(lambda session: store.run("SELECT seq FROM snapshots")).result()
    assert {name.startswith("decoupled-loads") for name in threads["saved"]} == {True}
    assert {name.startswith("decoupled-loads") for name in threads["restored"]} == {True}


def test_what_a_large_experiment_cannot_do_is_refused(file: str) -> None:
    service = started(file, LARGE, name="large")
    before = service.decisions.decide("me", "large").result()[0]
    experiments = service.experiments
    refused: list[Callable[[], Any]] = [
        lambda: service.decisions.decide("me", "large", available=[1, 2]),
        lambda: experiments.add_arms("me", "large", ["x"]),
        lambda: experiments.retire_arms("me", "large", [1]),
        lambda: experiments.change_guardrails("me", "large", {"down": [1]}),
        lambda: experiments.change_guardrails("me", "large", {"incumbent": 1}),
        lambda: experiments.set_budget("me", "large", {"cost": {1: 2.0}, "total": 7.0}),
        lambda: service.verdicts.get("me", "large"),
        lambda: service.logs.history("me", "large"),
        lambda: service.logs.evaluate("me", "large"),
    ]
    for ask in refused:
        error = ask().exception()
        assert isinstance(error, ServiceError), error
        assert f"more than {MOST_NAMED:,} arms" in str(error)
        assert error.status in (409, 422)
    slow = Settings({"name": "Exp3"}, numbered(ARMS))
    assert "use Ladder()" in str(experiments.put("me", "slow", slow).exception())
    many = Settings(RECOMMENDED.to_dict(), range(MOST_NUMBERED + 1))
    assert f"must not exceed {MOST_NUMBERED:,}" in str(experiments.put("me", "many", many).exception())
    assert "the arms are 0 to 19,999" in str(
        experiments.change_guardrails("me", "large", {"pinned": ARMS}).exception()
    )
    experiments.change_guardrails("me", "large", {"pinned": 7}).result()
    experiments.set_budget("me", "large", {"cost": 1.0, "total": 2.0}).result()
    after = service.decisions.decide("me", "large", count=3).result()
    assert [each.exploit for each in after] == [7, 7, 7]
    assert [each.limited_by for each in after] == [None, None, "total"]
    assert before.id.endswith("-1")


def test_arms_can_be_given_by_their_number(service: Service) -> None:
    policy = {"name": "Ladder"}
    service.create("large", policy=policy, arms=ARMS)
    assert service.http.get("/v1/experiments/large").json()["arms"] == ARMS
    assert service.decide("large")["explore"] in range(ARMS)
    service.create("small", policy=policy, arms=3)
    assert service.http.get("/v1/experiments/small").json()["arms"] == [0, 1, 2]
    assert service.decide("small", available=[2])["explore"] == 2
    again = service.http.put("/v1/experiments/small", json={"policy": policy, "arms": [0, 1, 2]})
    assert again.status_code == 200, "the same experiment, with its arms spelled out"
