"""Experiments that start from a saved learner, and the way back."""

import random
from typing import Any

import pytest

import decoupled as dc
from decoupled.client.errors import Conflict, Invalid
from decoupled_serve.service.experiment.records import DecisionRecord, Settings
from decoupled_serve.service.service import DecisionService
from support.stores import both_stores, faults, quick_service

ARMS = ("a", "b", 3)


def trained(policy: Any = None, rounds: int = 30, watched: bool = False, **options: Any) -> dc.Learner:
    """A learner that has seen something, with decisions that await feedback."""
    learner: dc.Learner = (policy or dc.Ladder()).start(list(ARMS), seed=7, **options)
    if watched:
        learner.watch()
    noise = random.Random(7)
    for _ in range(rounds):
        learner.observe(learner.decide(), loss=noise.random())
    learner.decide(count=3)
    return learner


def settings_of(learner: dc.Learner, **more: Any) -> Settings:
    policy: Any = learner.policy
    return Settings(policy.to_dict(), learner.arms, learner.loss_range, **more)


def same(made: DecisionRecord, twin: dc.Decision) -> bool:
    return (made.exploit, made.explore, made.propensity, made.weight) == twin[2:]


def go_on(service: DecisionService, learner: dc.Learner, rounds: int = 25) -> None:
    """Both make the same decisions from here on, given the same losses."""
    noise = random.Random(8)
    for _ in range(rounds):
        [made] = service.decisions.decide("local", "x").result()
        twin = learner.decide()
        loss = noise.random()
        assert same(made, twin)
        service.decisions.feedback("local", made.id, loss=loss).result()
        learner.observe(twin, loss=loss)
    assert service.experiments.state("local", "x").result().estimates == tuple(learner.estimates().tolist())


@pytest.mark.parametrize("policy", [dc.Ladder(), dc.FTPL(), dc.TsallisINF(), dc.UCB1()])
def test_an_experiment_goes_on_bit_for_bit_and_so_does_the_way_back(file: str, policy: Any) -> None:
    learner = trained(policy)
    text = learner.to_json()
    service = quick_service(file, snapshot_every=20)
    made, created = service.experiments.put("local", "x", settings_of(learner), learner=text).result()
    assert (created, made.state_version) == (True, 0)
    go_on(service, learner)
    service.close()

    again = quick_service(file)
    go_on(again, learner)
    [waiting] = again.decisions.decide("local", "x").result()
    twin = learner.decide()
    back = dc.Learner.from_json(again.experiments.learner("local", "x").result())
    assert (back.pending, back.round) == ((), learner.round)
    for _ in range(10):
        [one], two, three = again.decisions.decide("local", "x").result(), learner.decide(), back.decide()
        assert same(one, two)
        assert same(one, three)
    again.decisions.feedback("local", waiting.id, loss=0.5).result()
    learner.observe(twin, loss=0.5)
    assert again.experiments.state("local", "x").result().estimates == tuple(learner.estimates().tolist())
    again.close()
    assert faults(file) == []


@both_stores
def test_arms_may_change_and_the_log_may_be_cut_afterwards(address: str) -> None:
    learner = trained()
    learner.retire_arms(["b"])
    service = quick_service(address)
    service.experiments.put("local", "x", settings_of(learner), learner=learner.to_json()).result()
    go_on(service, learner)
    service.experiments.add_arms("local", "x", ["b", "c"]).result()
    learner.add_arms(["b", "c"])
    service.experiments.retire_arms("local", "x", ["a"]).result()
    learner.retire_arms(["a"])
    go_on(service, learner)
    service.logs.retention("local", "x", service._session.clock() + 1.0).result()
    go_on(service, learner)
    service.close()
    again = quick_service(address)
    go_on(again, learner)
    again.close()
    assert faults(address) == []


def test_confidence_sequences_go_on_if_the_learner_kept_them(file: str) -> None:
    learner = trained(watched=True)
    service = quick_service(file)
    service.experiments.put("local", "x", settings_of(learner), learner=learner.to_json()).result()
    found = service.verdicts.get("local", "x").result()
    assert (found.observed, found.since) == (30, None)
    service.experiments.put(
        "local", "other", settings_of(learner, risk=0.01), learner=learner.to_json()
    ).result()
    fresh = service.verdicts.get("local", "other").result()
    assert (fresh.observed, fresh.risk) == (0, 0.01)
    assert fresh.since is not None, "it says from when on losses count"


def test_the_same_learner_again_changes_nothing_and_another_is_refused(file: str) -> None:
    learner = trained()
    service = quick_service(file)
    put, settings = service.experiments.put, settings_of(learner)
    text = learner.to_json()
    assert put("local", "x", settings, learner=text).result()[1]
    service.decisions.decide("local", "x").result()
    assert not put("local", "x", settings, learner=text).result()[1]
    learner.decide()
    for other in (learner.to_json(), None):
        with pytest.raises(Conflict, match="other settings"):
            put("local", "x", settings, learner=other).result()
    with pytest.raises(Invalid, match="learner: does not match its checksum"):
        put("local", "y", settings, learner=text.replace('"round":31', '"round":32')).result()
    assert [each.name for each in service.listing.experiments("local").result().items] == ["x"]
