"""The service: what it promises about decisions, feedback, keys, deadlines and batches."""

from dataclasses import replace
from typing import Any

import pytest

import decoupled as dc
from decoupled.client.errors import Conflict, Invalid, NotFound
from decoupled_serve.service.experiment.records import MOST_ARMS, Settings
from decoupled_serve.service.experiment.settings import as_text, checked, differences
from support.http_service import Service
from support.stores import FTPL, Opened, both_stores
from support.waiting import Clock


def test_creating_the_same_experiment_again_changes_nothing(opened: Opened) -> None:
    service = opened()
    first, _ = service.experiments.put("me", "one", FTPL).result()
    again, created = service.experiments.put(
        "me", "one", Settings({"name": "FTPL", "alpha": 3}, ("a", "b", "c"))
    ).result()
    assert (again, created) == (first, False)
    with pytest.raises(
        Conflict, match=r"other settings \(policy is 'FTPL', and you sent 'Exp3'\); "
    ):
        service.experiments.put("me", "one", Settings({"name": "Exp3"}, ("a", "b", "c"))).result()
    with pytest.raises(Conflict, match=r"other settings \(seed is another one\); ") as caught:
        service.experiments.put("me", "one", FTPL, seed=first.seed + 1).result()
    assert str(first.seed) not in str(caught.value)


OTHER_SETTINGS: list[tuple[dict[str, Any], list[str]]] = [
    ({}, []),
    ({"arms": ("b", "a")}, ["arms is ['a', 'b'], and you sent ['b', 'a']"]),
    ({"deadline": 61.0}, ["deadline_seconds is 60.0, and you sent 61.0"]),
    (
        {"deadline": None, "drift": False},
        ["deadline_seconds is 60.0, and you sent none", "drift is True, and you sent False"],
    ),
    (
        {"policy": {"name": "FTPL", "alpha": 2.5}},
        ["policy is 'FTPL', and you sent 'FTPL(alpha=2.5)'"],
    ),
    ({"policy": dc.Ladder().to_dict()}, ["policy is 'FTPL', and you sent 'Ladder'"]),
    ({"guardrails": dc.Guardrails(pinned="a")}, ["guardrails.pinned is not set, and you sent 'a'"]),
    ({"imported": "5e1f"}, ["it began with another saved learner, or with none"]),
]


@pytest.mark.parametrize(("changes", "expected"), OTHER_SETTINGS)
def test_a_refusal_names_the_settings_that_differ(
    changes: dict[str, Any], expected: list[str]
) -> None:
    there = checked(Settings({"name": "FTPL"}, ("a", "b"), deadline=60.0))
    assert differences(as_text(there), checked(replace(there, **changes))) == expected


CONTEXTUAL = dc.ContextualLadder(segments=("subject",)).to_dict()
STATIONARY = dc.Guardrails(incumbent="a", drift=False)
WRONG_SETTINGS = [
    (Settings({"name": "Nobody"}, ("a", "b")), "is not a known policy"),
    (Settings({"name": "FTPL"}, ("a",)), "at least two"),
    (Settings({"name": "FTPL"}, ("a", "a")), "twice"),
    (Settings({"name": "FTPL"}, ("a", "b"), (1.0, 0.0)), "loss_range"),
    (Settings({"name": "FTPL"}, ("a", "b"), deadline=0.0), "deadline"),
    (Settings({"name": "FTPL"}, ("a", "b"), deadline=1.0, expired_loss=2.0), "expired_loss"),
    (Settings({"name": "FTPL"}, ("a", "b"), expired_loss=1.0), "needs a deadline"),
    (Settings({"name": "FTPL"}, ("a", "b"), risk=0.0), "risk"),
    (Settings({"name": "FTPL"}, ("a", "b"), risk=1.0), "risk"),
    (Settings({"name": "FTPL"}, ("a", "b"), drift=1), "drift"),  # type: ignore[arg-type]
    (
        Settings(CONTEXTUAL, ("a", "b"), drift=False),
        "drift = False: .* looks at contexts; leave it out for true",
    ),
    (
        Settings({"name": "FTPL"}, ("a", "b"), feedback="preference", drift=False),
        "drift = False: .* depends on",
    ),
    (
        Settings({"name": "FTPL"}, ("a", "b"), feedback="preference", guardrails=STATIONARY),
        "use drift=True",
    ),
    (Settings(CONTEXTUAL, ("a", "b"), guardrails=STATIONARY), "use drift=True"),
]


def test_wrong_settings_and_requests_are_refused_and_change_nothing(opened: Opened) -> None:
    service = opened()
    for settings, message in WRONG_SETTINGS:
        with pytest.raises(Invalid, match=message):
            service.experiments.put("me", "one", settings).result()
    with pytest.raises(NotFound):
        service.experiments.get("me", "one").result()
    service.experiments.put("me", "one", FTPL).result()
    for wrong in WRONG_QUESTIONS:
        with pytest.raises(Invalid):
            service.decisions.decide("me", "one", **wrong).result()  # type: ignore[arg-type]
    assert service.experiments.state("me", "one").result().decisions == 0
    service.experiments.put("me", "standard", Settings({"name": "UCB1"}, ("a", "b"))).result()
    for mode in ("exploit", "explore"):
        with pytest.raises(Invalid, match="standard game"):
            service.decisions.decide("me", "standard", mode=mode).result()
    [made] = service.decisions.decide("me", "standard").result()
    assert made.exploit == made.explore


def test_an_experiment_has_at_most_10_000_arms(opened: Opened, service: Service) -> None:
    direct, arms = opened(), tuple(range(MOST_ARMS + 1))
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


@both_stores
def test_idempotency_keys_are_forgotten_after_a_time(opened: Opened, clock: Clock) -> None:
    service = opened(keep_keys=60.0)
    service.experiments.put("me", "one", FTPL, seed=7).result()
    before = service.decisions.decide("me", "one", idempotency_key="k").result()
    clock.now += 1000.0
    service._commits.submit(service._housekeeping, alone=True).result()
    assert service.decisions.decide("me", "one", idempotency_key="k").result() != before


def test_the_oldest_decisions_expire_beyond_max_pending(opened: Opened) -> None:
    service = opened(max_pending=3)
    service.experiments.put("me", "one", FTPL).result()
    made = service.decisions.decide("me", "one", count=5).result()
    statuses = [service.decisions.get("me", each.id).result().status for each in made]
    assert statuses == ["expired", "expired", "pending", "pending", "pending"]


MADE_UP = [
    "",
    "x",
    "-",
    "a-b",
    "a-0",
    "a-01",
    "a-" + "9" * 30,
    "a-\u0661",
    "x" * 10_000,
    "\0-1",
    "\ud800-1",
]


@both_stores
def test_made_up_ids_are_not_found(opened: Opened) -> None:
    service = opened()
    service.experiments.put("me", "one", FTPL).result()
    [made] = service.decisions.decide("me", "one").result()
    for made_up in [*MADE_UP, made.id[:-1] + "2", made.id + "0", "\0" + made.id]:
        with pytest.raises(NotFound):
            service.decisions.get("me", made_up).result()
        with pytest.raises(NotFound):
            service.decisions.feedback("me", made_up, loss=0.5).result()


WRONG_QUESTIONS: list[dict[str, object]] = [
    {"mode": "neither"}, {"count": 0}, {"count": True}, {"count": 1_001}, {"available": []}, {"available": ["z"]},
    {"available": "abc"}, {"available": [True]}, {"idempotency_key": ""}, {"idempotency_key": "x" * 256},
    {"idempotency_key": "\0"}, {"idempotency_key": "\ud800"},
]  # fmt: skip


@both_stores
def test_arms_are_added_and_retired(opened: Opened) -> None:
    service = opened(snapshot_every=3)
    service.experiments.put("me", "one", FTPL, seed=7).result()
    learner = dc.FTPL().start(["a", "b", "c"], seed=7)
    made, twins = service.decisions.decide("me", "one", count=5).result(), learner.decide(count=5)
    gone = twins[0].explore
    added: list[list[str | int]] = [["d", 5], ["d", 5], ["a", "d"]]
    for arms in added:  # again is no change
        assert service.experiments.add_arms("me", "one", arms).result().arms == (
            "a",
            "b",
            "c",
            "d",
            5,
        )
    learner.add_arms(["d", 5])
    for _ in range(2):
        experiment = service.experiments.retire_arms("me", "one", [gone, 5]).result()
    learner.retire_arms([gone, 5])
    assert experiment.retired == (gone, 5)
    assert service.experiments.add_arms("me", "one", [5]).result().retired == (gone,)
    learner.add_arms([5])
    for each, twin in zip(made, twins, strict=True):
        service.decisions.feedback("me", each.id, loss=0.75).result()
        learner.observe(twin, 0.75)
    state = service.experiments.state("me", "one").result()
    assert state.arms == learner.arms
    assert state.estimates == tuple(learner.estimates())
    left = next(arm for arm in ("a", "b") if arm != gone)
    following = service.decisions.decide("me", "one", count=9, available=[left, 5]).result()
    assert [each.explore for each in following] == [
        each.explore for each in learner.decide(count=9, available=[left, 5])
    ]
    wrongs: list[Any] = [[True], ["zz"], "none", 7, [left, left], [[left]], ["a", "b", "c", "d", 5]]
    for wrong in wrongs:
        with pytest.raises(Invalid):
            service.experiments.retire_arms("me", "one", wrong).result()
    with pytest.raises(Invalid):
        service.decisions.decide("me", "one", available=[gone]).result()
    state = service.experiments.state("me", "one").result()
    assert (
        service.experiments.get("me", "one").result()
        == service.listing.experiments("me").result().items[0]
    )
    service._commits.close()
    service._session.store.close()
    again = opened()
    assert again.experiments.state("me", "one").result() == state
    assert again.decisions.get("me", made[0].id).result().explore == gone
    assert [each.arm for each in again.logs.evaluate("me", "one").result().arms] == list(state.arms)
