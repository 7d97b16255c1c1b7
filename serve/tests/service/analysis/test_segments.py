"""Verdicts by segment: what they say, that they hold together, and what they are computed from."""

import math
import time
from typing import Any

import numpy as np
import pytest

from decoupled.client.errors import Invalid
from decoupled.inference import share_of_segment as share
from decoupled.inference.sequences import Sequences
from decoupled.inference.verdicts import verdict
from decoupled_serve.service.analysis import history
from decoupled_serve.service.analysis.history import SegmentsRecord
from decoupled_serve.service.experiment.records import Feedback, Settings
from decoupled_serve.service.service import DecisionService
from support.stores import quick_service
from support.waiting import Clock

ARMS = ("small", "large")
FIELDS: Any = {"subject": "text", "beta": "boolean", "tokens": "number"}
MEANS = {"law": (0.95, 0.05), "art": (0.05, 0.95), None: (0.5, 0.5)}


def play(service: DecisionService, rounds: int, seed: int = 1, name: str = "one") -> None:
    """Decisions of three segments in turn, with losses of their own."""
    noise = np.random.default_rng(seed)
    for _ in range(rounds):
        made, given = [], []
        for subject in MEANS:
            context = {"tokens": 1.0} if subject is None else {"subject": subject}
            made += service.decisions.decide("me", name, context=context).result()
        for each, means in zip(made, MEANS.values(), strict=True):
            given.append(Feedback(each.id, float(noise.random() < means[ARMS.index(str(each.explore))])))
        service.decisions.feedback_many("me", given).result()


def started(file: str, clock: Any = time.time) -> DecisionService:
    service = quick_service(file, clock=clock)
    service.experiments.put("me", "one", Settings({"name": "FTPL"}, ARMS, context=FIELDS), seed=7).result()
    return service


def asked(service: DecisionService, *by: str, name: str = "one") -> SegmentsRecord:
    return service.logs.segments("me", name, by).result()


def test_each_segment_has_its_own_verdict_and_its_share_of_the_risk(file: str) -> None:
    """Wrong with a probability of 0.05 at most, and the seed is fixed."""
    service = started(file)
    assert asked(service).segments == ()
    play(service, 20)
    first = asked(service, "subject")
    play(service, 100)
    found = asked(service, "subject")
    assert asked(service).by == ("beta", "subject"), "all but numbers"
    assert found == service.logs.segments("me", "one", ["subject", "subject"]).result()
    assert "large is best for law" in found.text
    assert "small is best for art" in found.text
    assert found.text.endswith("1 is open")
    by_value = {each.values: each for each in found.segments}
    assert [by_value[(name,)].risk for name in MEANS] == [0.05 * share(place) for place in (1, 2, 3)]
    assert {each.observed for each in first.segments} == {20}
    assert {(each.observed, each.decisions) for each in found.segments} == {(120, 120)}
    law = {each.arm: each.loss for each in by_value[("law",)].arms}
    assert law["small"].estimate > 0.8 > 0.2 > law["large"].estimate
    assert sum(map(share, range(1, 10**5))) < 1.0
    before = found
    service.close()
    assert asked(quick_service(file), "subject") == before, "from the log alone"


def test_they_are_the_sequences_of_their_own_observations(file: str) -> None:
    service = started(file)
    play(service, 30)
    running = service._session.in_memory()[0]
    whole = running.learner.inference.sequences
    assert whole.pairs_arms
    law = next(each for each in asked(service, "subject").segments if each.values == ("law",))
    twin = Sequences(2, 0.05 * share(1))
    for row in service.logs.read("me", "one").result():
        if row.context is not None and row.context.get("subject") == "law":
            explore, chance = ARMS.index(str(row.explore)), row.propensity
            assert chance is not None
            exact = [chance, 1.0 - chance] if explore == 0 else [1.0 - chance, chance]
            twin.update(explore, 1.0 / chance, row.loss or 0.0, ARMS.index(str(row.exploit)), law=exact)
    assert law.verdict.to_dict() == verdict(twin, ARMS).to_dict()
    for each, interval in zip(law.arms, twin.arms(), strict=True):
        assert np.allclose(each.loss, interval)
    service.experiments.put("me", "bare", Settings({"name": "FTPL"}, ARMS)).result()
    for name, by, words in (
        ("one", ["subjet"], "did you mean 'subject'"),
        ("one", ["tokens"], "is a number"),
        ("bare", [], "has no field to tell segments by"),
    ):
        with pytest.raises(Invalid, match=words):
            asked(service, *by, name=name)


def test_beyond_the_limit_segments_share_one(file: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(history, "most_segments", lambda arms: 2)
    service = started(file)
    play(service, 3)
    service.decisions.decide("me", "one", context={"subject": "history"}).result()
    found = asked(service, "subject")
    assert {each.values for each in found.segments} == {("law",), ("art",), None}
    assert {each.name: each.decisions for each in found.segments} == {"law": 3, "art": 3, "all others": 4}
    assert math.isclose(sum(each.risk for each in found.segments), 0.05 * sum(map(share, (1, 2, 3))))


def test_arms_come_and_go_and_old_parts_of_the_log_are_dropped(file: str, clock: Clock) -> None:
    service = started(file, clock)
    play(service, 5)
    service.experiments.add_arms("me", "one", ["huge"]).result()
    service.experiments.retire_arms("me", "one", ["small"]).result()
    for each in asked(service, "subject").segments:
        assert [arm.arm for arm in each.arms] == ["large", "huge"]
    [waiting] = service.decisions.decide("me", "one", context={"subject": "law"}).result()
    clock.now += 100.0
    service.logs.retention("me", "one", clock.now - 50.0).result()
    service.decisions.feedback("me", waiting.id, loss=0.5).result()
    found = asked(service, "subject")
    assert found.since is not None
    assert found.segments == (), "which decisions were pending then may depend on their arms"
    [made] = service.decisions.decide("me", "one", context={"subject": "art"}).result()
    service.decisions.feedback("me", made.id, loss=0.5).result()
    assert [(each.values, each.observed) for each in asked(service, "subject").segments] == [(("art",), 1)]


def test_observations_are_added_in_the_order_of_decisions(file: str) -> None:
    """Within each segment, and however late they are."""
    service = started(file)
    first, second = (
        service.decisions.decide("me", "one", count=5, context={"subject": each}).result()
        for each in ("law", "art")
    )
    for each in [*second, *first[1:]]:
        service.decisions.feedback("me", each.id, loss=0.5).result()
    assert {each.observed for each in asked(service, "subject").segments} == {0}
    service.decisions.feedback("me", first[0].id, loss=1.0).result()
    found = {each.values: each for each in asked(service, "subject").segments}
    assert {each.observed for each in found.values()} == {5}
    law, twin = found[("law",)], Sequences(2, 0.05 * share(1))
    for each in first:
        assert each.propensity is not None
        twin.update(
            ARMS.index(str(each.explore)), 1.0 / each.propensity, 1.0 if each == first[0] else 0.5,
            ARMS.index(str(each.exploit)), law=[0.5, 0.5],
        )  # fmt: skip
    assert tuple(each.loss for each in law.arms) == tuple(twin.arms())
