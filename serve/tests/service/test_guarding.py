"""Guardrails, budgets and preferences in the service: logged, replayed, shared by replicas, never exceeded."""

import json
import random
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from fractions import Fraction
from itertools import accumulate
from pathlib import Path
from typing import Any

import pytest

import decoupled as dc
from decoupled.client.errors import Conflict, Invalid
from decoupled_serve.service.analysis.doctor import examine
from decoupled_serve.service.experiment.records import DecisionRecord, Feedback, Settings
from decoupled_serve.service.service import DecisionService
from decoupled_serve.service.store.sqlite import SqliteStore
from support.stores import Opened, both_stores, faults, quick_service, started
from support.waiting import Clock

ARMS = ("a", "b", "c")
PLAIN = Settings({"name": "FTPL"}, ARMS)


def decide(service: DecisionService, **wanted: Any) -> list[DecisionRecord]:
    return service.decisions.decide("me", "one", **wanted).result()


def change(service: DecisionService, **changes: Any) -> Any:
    return service.experiments.change_guardrails("me", "one", changes).result()


def test_a_service_serves_what_a_guarded_learner_serves(opened: Opened) -> None:
    service, rules = opened(), dc.Guardrails(floors={"a": 0.3}, holdout=0.3, control="c")
    service.experiments.put(
        "me", "one", Settings({"name": "FTPL"}, ARMS, guardrails=rules), seed=7
    ).result()
    learner = dc.Learner(dc.FTPL(), ARMS, 7, guardrails=rules)
    guards = set()
    for turn in range(40):
        if turn == 20:
            change(service, pinned="b")
            learner.guardrails = rules.updated(pinned="b")
        [made], twin = decide(service), learner.decide()
        assert (made.exploit, made.explore, made.propensity, made.weight) == twin[2:]
        assert (made.drawn, made.guard, made.limited_by) == (twin.drawn, twin.guard, None)
        service.decisions.feedback("me", made.id, loss=0.25).result()
        learner.observe(twin, 0.25)
        [used], alone = decide(service, mode="exploit"), learner.exploit()
        assert (used.exploit, used.drawn, used.guard) == alone[:3]
        guards |= {made.guard, used.guard}
        assert service.decisions.get("me", made.id).result().guard == made.guard
    assert guards == {None, "floor", "holdout", "pinned"}
    state = service.experiments.state("me", "one").result()
    assert state.exploitation == (0.0, 1.0, 0.0)
    assert state.estimates == tuple(learner.estimates())


@both_stores
@pytest.mark.parametrize("drift", [True, False])
def test_cheapest_arm_and_frozen_keys_replay_to_the_bit(
    opened: Opened, address: str, drift: bool
) -> None:
    """Whatever is asked in between: a verdict takes in evidence that a log does not tell of."""
    given: Any = {
        "cheapest_within": 0.4,
        "prices": {"a": 1.0, "b": 2.0, "c": 3.0},
        "switch_margin": 0.05,
    }
    rules = dc.Guardrails(risk=0.5, drift=drift, **given)
    service, losses = opened(snapshot_every=90), {"a": 0.1, "b": 0.0, "c": 0.9}
    settings = Settings({"name": "Exp3"}, ARMS, guardrails=rules, log_keys="off", patience=2)
    service.experiments.put("me", "one", settings, seed=7).result()
    learner, guards = dc.Exp3().start(ARMS, 7), set()
    learner.watch(patience=2)
    learner.guardrails = rules
    for turn in range(240):
        key = f"key-{turn % 5}"
        [made, *_], [twin, *_] = (
            decide(service, count=1 + turn % 3, key=key),
            learner.decide(1 + turn % 3, key=key),
        )
        assert (made.exploit, made.explore, made.propensity) == twin[2:5]
        assert (made.drawn, made.guard) == (twin.drawn, twin.guard)
        assert (
            decide(service, mode="exploit", key=key)[0].exploit == learner.exploit(key=key).exploit
        )
        service.decisions.feedback("me", made.id, loss=losses[str(made.explore)]).result()
        learner.observe(twin, losses[str(twin.explore)])
        if turn % 7 == 0:
            service.verdicts.get("me", "one").result()
            service.experiments.state("me", "one").result()
        guards.add((made.guard, made.exploit))
    assert guards >= {("frozen", "b"), ("cheapest", "a")}
    change(service, prices={"a": 3.0, "b": 2.0, "c": 1.0})
    assert decide(service)[0].exploit == "b"
    service.close()
    assert faults(address) == []
    again = opened()
    assert decide(again)[0].guard == "cheapest"
    assert change(again, cheapest_within=None).guardrails == dc.Guardrails(
        risk=0.5, drift=drift, switch_margin=0.05
    )


@both_stores
def test_changes_are_logged_kept_and_replayed(opened: Opened, address: str) -> None:
    service = opened(snapshot_every=7)
    service.experiments.put("me", "one", PLAIN, seed=7).result()
    change(service, floors={"a": 0.5}, down=["b"])
    service.experiments.set_budget("me", "one", {"share": 0.5, "rate": [3, 1.0]}).result()
    decide(service, count=5)
    assert change(service, pinned="c").guardrails == dc.Guardrails("c", {"a": 0.5}, down=("b",))
    before = service.experiments.get("me", "one").result()
    made = decide(service, count=5, idempotency_key="k")
    assert change(service, pinned="c") == before
    service.close()
    again = opened()
    assert again.experiments.get("me", "one").result() == before
    assert again.listing.experiments("me").result().items == [before]
    assert decide(again, count=5, idempotency_key="k") == made
    assert {each.exploit for each in decide(again, count=5)} == {"c"}
    again.experiments.put(
        "me", "one", PLAIN, seed=7
    ).result()  # a client that creates it at every start
    assert again.experiments.get("me", "one").result() == before
    again.close()
    assert faults(address) == []


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"pinned": "z"}, "pinned = 'z': is not an arm"),
    ({"floors": {"a": 0.7, "b": 0.7}}, "sum to 1.4"),
    ({"floors": {"z": 0.7}}, "floors = 'z': is not an arm"),
    ({"cheapest_within": 0.1, "prices": {"a": 1, "b": 1}}, "has no price of the arm 'c'"),
    ({"switch_margin": 1.5}, "switch_margin = 1.5: must be below 1"),
    ({"down": ["a", "b", "c"]}, "must not name every arm"),
]


def test_wrong_guardrails_and_budgets_are_refused_and_change_nothing(
    opened: Opened, clock: Clock
) -> None:
    service = opened()
    service.experiments.put("me", "one", PLAIN, seed=7).result()
    before = change(service, floors={"a": 0.2})
    for changes, message in WRONG:
        with pytest.raises(Invalid, match=message):
            change(service, **changes)
    budgets: list[tuple[dict[str, Any], str]] = [
        ({"total": 3}, "needs a cost"), ({"cost": {"z": 1}, "total": 3}, "cost = 'z'"),
    ]  # fmt: skip
    for limits, message in budgets:
        with pytest.raises(Invalid, match=message):
            service.experiments.set_budget("me", "one", limits).result()
    with pytest.raises(Invalid, match="named by the guardrail 'floors'"):
        service.experiments.retire_arms("me", "one", ["a"]).result()
    assert service.experiments.get("me", "one").result() == before
    labelled = replace(PLAIN, labels=dc.Labels())
    service.experiments.put("me", "labelled", labelled, seed=7).result()
    before = service.experiments.get("me", "labelled").result()
    with pytest.raises(Invalid, match="switch_margin: is a difference of losses"):
        service.experiments.change_guardrails("me", "labelled", {"switch_margin": 0.1}).result()
    assert service.experiments.get("me", "labelled").result() == before
    both = replace(labelled, guardrails=dc.Guardrails(switch_margin=0.1))
    with pytest.raises(Invalid, match="switch_margin: is a difference of losses"):
        service.experiments.put("me", "refused", both).result()
    coupled = Settings({"name": "UCB1"}, ARMS)
    for rules in ({"guardrails": dc.Guardrails(pinned="a")}, {"budget": dc.Budget(share=0.1)}):
        with pytest.raises(Invalid, match="standard game"):
            service.experiments.put("me", "two", replace(coupled, **rules)).result()
    # Numbers as arms are found by their digits.
    service.experiments.put(
        "me", "numbers", Settings({"name": "FTPL"}, (1, "1", 2)), seed=7
    ).result()
    given = {"floors": {"1": 0.1, "2": 0.2}}
    changed = service.experiments.change_guardrails("me", "numbers", given).result()
    assert changed.guardrails.floors == {"1": 0.1, 2: 0.2}
    limited = service.experiments.set_budget(
        "me", "numbers", {"cost": {"2": 1}, "total": 1}
    ).result()
    assert limited.budget.cost == {2: 1}
    service.experiments.set_budget("me", "one", {"rate": [2, 60.0], "cost": 1, "total": 3}).result()
    modes: Any = ("both", "explore", "both", "explore")
    made = [each for mode in modes for each in decide(service, mode=mode)]
    assert [(each.mode, each.limited_by) for each in made] == [
        ("both", None), ("explore", None), ("exploit", "rate"), ("exploit", "rate"),
    ]  # fmt: skip
    assert [each.status for each in made] == ["pending", "pending", "unobserved", "unobserved"]
    assert made[3].exploit is not None
    clock.now += 60.0
    state = service.experiments.state("me", "one").result()
    assert dict(state.budget_used) == {"rate": 0, "total": 2.0, "above": 0}
    assert [each.limited_by for each in decide(service, count=3)] == [None, "total", "total"]
    service.experiments.set_budget("me", "one", {}).result()
    assert [each.limited_by for each in decide(service, count=3)] == [None, None, None]
    logged = service.logs.read("me", "one").result()
    assert [each.limited_by for each in logged[:5]] == [None, None, "rate", "rate", None]
    with pytest.raises(Conflict, match="takes no feedback"):
        service.decisions.feedback("me", made[2].id, loss=0.5).result()


def test_an_incumbent_by_segment_is_refused_however_it_comes_and_changes_nothing(
    opened: Opened,
) -> None:
    service = opened()
    contextual = Settings({"name": "ContextualLadder", "segments": ["kind"]}, ARMS)
    service.experiments.put("me", "one", contextual, seed=7).result()
    before = service.experiments.get("me", "one").result()
    message = "by_segment = True: is for learners in a program; .*; leave it out"
    with pytest.raises(Invalid, match=message):
        change(service, incumbent="a", by_segment=True)
    assert service.experiments.get("me", "one").result() == before
    rules = dc.Guardrails(incumbent="a", by_segment=True)
    with pytest.raises(Invalid, match=message):
        service.experiments.put("me", "two", replace(contextual, guardrails=rules)).result()


def test_arms_that_are_down_are_not_chosen_and_a_retired_one_is_forgotten(opened: Opened) -> None:
    service = opened()
    service.experiments.put("me", "one", Settings({"name": "FTPL"}, (*ARMS, "d")), seed=7).result()
    change(service, down=["b", "d"])
    made = decide(service, count=30)
    assert {arm for each in made for arm in (each.exploit, each.explore)} == {"a", "c"}
    assert {each.exploit for each in decide(service, available=["a", "b"], count=5)} == {"a"}
    with pytest.raises(Conflict, match="every arm of this decision is down"):
        decide(service, available=["b"])
    service.experiments.retire_arms("me", "one", ["d"]).result()
    assert service.experiments.get("me", "one").result().guardrails == dc.Guardrails(down=["b"])
    assert service.listing.experiments("me").result().items[0].guardrails == dc.Guardrails(
        down=["b"]
    )
    change(service, down=[])
    assert {each.explore for each in decide(service, count=30)} == {"a", "b", "c"}
    assert service.logs.read("me", "one").result()[0].available == ("a", "c")


def test_replicas_share_one_budget(postgres: str) -> None:
    """Two replicas decide and pay at once, in 200 runs, eight of them at once: after every row of a log, real prices and what is
    set aside are within the budget of both replicas together."""
    services = [quick_service(postgres, snapshot_every=20) for _ in range(2)]
    declared, limiting = (
        {"a": Fraction(1, 8), "b": Fraction(1, 4), "c": Fraction(1, 2)},
        set[str | None](),
    )

    def attack(run: int) -> Fraction:
        name, paid = f"run-{run}", dict[str, float]()
        limit: dict[str, Any] = {"allowance": (1.5, 1e9)} if run % 2 else {"total": 1.5}
        budget = dc.Budget(
            share=0.5, cost={arm: float(each) for arm, each in declared.items()}, **limit
        )
        settings = Settings({"name": "FTPL"}, ARMS, budget=budget)
        services[0].experiments.put("me", name, settings, seed=run).result()

        def client(place: int) -> None:
            service, chance = services[place], random.Random(2 * run + place)
            for _ in range(4):
                for made in service.decisions.decide("me", name, count=4).result():
                    if made.explore is not None and chance.random() < 0.6:
                        paid[made.id] = chance.random() * float(declared[str(made.explore)])
                        service.decisions.feedback(
                            "me", made.id, loss=0.5, cost=paid[made.id]
                        ).result()

        with ThreadPoolExecutor(2) as both:
            list(both.map(client, range(2)))
        events, logged = list[tuple[int, Fraction]](), services[1].logs.read("me", name).result()
        for each in logged:
            if each.explore is not None:
                events.append((each.seq, declared[str(each.explore)]))
                if each.settled_seq is not None:
                    real = Fraction(str(paid[each.id])) - declared[str(each.explore)]
                    events.append((each.settled_seq, real))
        sums = list(accumulate(change for _, change in sorted(events)))
        explored = sum(each.explore is not None for each in logged) / len(logged)
        used = [dict(each.experiments.state("me", name).result().budget_used) for each in services]
        assert used == [{"share": explored, next(iter(limit)): float(sums[-1]), "above": 0}] * 2
        limiting.update(each.limited_by for each in logged)
        return max(sums)

    with ThreadPoolExecutor(8) as pool:
        highest = list(pool.map(attack, range(200)))
    assert max(highest) <= Fraction(3, 2)
    assert sorted(highest)[100] > 1, "most attacks reached the budget"
    assert limiting == {None, "share", "total", "allowance"}


@both_stores
def test_real_costs_are_charged_once_logged_and_replayed(opened: Opened, address: str) -> None:
    service = opened(snapshot_every=5)
    labels = dc.Labels(share=0.5, first=2)
    settings = Settings({"name": "FTPL"}, ARMS, budget=dc.Budget(cost=1, total=100), labels=labels)
    service.experiments.put("me", "one", settings, seed=7).result()
    feedback, made = service.decisions.feedback, decide(service, count=4)
    feedback("me", made[0].id, judged=0.5, cost=0.25).result()  # its label comes later
    with pytest.raises(Conflict, match="has the cost"):
        feedback("me", made[0].id, judged=0.5, cost=0.5).result()
    service.decisions.label("me", made[0].id, loss=1.0).result()
    feedback("me", made[1].id, judged=0.5, loss=0.5, cost=2.5).result()
    feedback("me", made[1].id, judged=0.5, loss=0.5, cost=2.5).result()
    with pytest.raises(Conflict, match="has the cost"):
        feedback("me", made[1].id, judged=0.5, loss=0.5, cost=1).result()
    with pytest.raises(Invalid, match="cost = -1"):
        feedback("me", made[2].id, judged=0.5, cost=-1).result()
    service.decisions.forget("me", made[2].id).result()  # costs what was declared
    used = service.experiments.state("me", "one").result().budget_used
    assert dict(used) == {"total": 0.25 + 2.5 + 1 + 1, "above": 1}
    service.close()
    again = opened()
    assert again.experiments.state("me", "one").result().budget_used == used
    again.close()
    assert faults(address) == []


def observed(service: DecisionService, better: str, count: int) -> int:
    """How many of so many decisions explore, where one arm is better than the others."""
    explored = 0
    for _ in range(count):
        [made] = decide(service)
        if made.explore is not None:
            explored += 1
            loss = 0.1 if made.explore == better else 0.9
            service.decisions.feedback("me", made.id, loss=loss).result()
    return explored


@both_stores
def test_exploring_falls_when_it_is_decided_and_returns_on_an_alarm(
    opened: Opened, address: str
) -> None:
    service = opened(snapshot_every=70)
    budget = dc.Budget(decided_share=0.25, alarm_every=200)
    service.experiments.put(
        "me", "one", Settings({"name": "Ladder"}, ARMS, budget=budget), seed=7
    ).result()
    assert observed(service, "a", 120) > 100 - 60
    used = dict(service.experiments.state("me", "one").result().budget_used)
    assert (used["decided"], used["alarms"]) == (1, 0)
    service.close()
    service = opened(snapshot_every=70)
    assert 5 < observed(service, "a", 100) < 60  # 25 are expected; 4 standard deviations are 17
    while not service.experiments.state("me", "one").result().budget_used[-1][1]:
        observed(service, "b", 20)  # until an alarm
    assert service.experiments.state("me", "one").result().budget_used[-1] == ("alarms", 1)
    before = service.experiments.state("me", "one").result()
    service.close()
    service = opened()
    assert service.experiments.state("me", "one").result() == before
    service.close()
    assert faults(address) == []


def test_preferences_are_applied_as_losses_and_not_mixed_with_them(opened: Opened) -> None:
    service = opened()
    settings = Settings({"name": "FTPL"}, ARMS, loss_range=(0.0, 10.0), feedback="preference")
    service.experiments.put("me", "one", settings, seed=7).result()
    service.experiments.put("me", "two", PLAIN, seed=7).result()
    learner = dc.FTPL().start(ARMS, seed=7, loss_range=(0.0, 10.0))
    for preference, loss in (("explore", 0.0), ("tie", 5.0), ("exploit", 10.0)):
        [made], twin = decide(service), learner.decide()
        send = Feedback(made.id, preference=preference)  # type: ignore[arg-type]
        for _ in range(2):  # the second time it is applied already
            [applied] = service.decisions.feedback_many("me", [send]).result()
            assert isinstance(applied, DecisionRecord)
            assert (applied.status, applied.loss) == ("applied", loss)
        learner.observe(twin, preference=preference)  # type: ignore[arg-type]
    assert service.experiments.state("me", "one").result().estimates == tuple(learner.estimates())
    feedback = service.decisions.feedback
    [made] = decide(service)
    [tried] = decide(service, mode="explore")
    [other] = service.decisions.decide("me", "two").result()
    for wrong, message in [
        (feedback("me", made.id, loss=0.5), "this experiment takes preferences"),
        (feedback("me", made.id, preference="best"), "preference = 'best': must be"),  # type: ignore[arg-type]
        (feedback("me", tried.id, preference="tie"), "no two arms to compare"),
        (feedback("me", other.id, preference="tie"), "takes the loss of the explored arm"),
    ]:
        assert isinstance(error := wrong.exception(), Invalid)
        assert message in str(error)
    with pytest.raises(Invalid, match="needs two arms"):
        service.experiments.put(
            "me", "x", Settings({"name": "UCB1"}, ARMS, feedback="preference")
        ).result()


def test_the_evaluation_tells_what_was_served_from_what_was_drawn(
    opened: Opened, tmp_path: Path
) -> None:
    service, loss = opened(), {"a": 0.6, "b": 0.4, "c": 0.5}
    service.experiments.put("me", "one", PLAIN, seed=7).result()
    change(service, pinned="a")
    for _ in range(40):
        made = decide(service, count=10)
        service.decisions.feedback_many(
            "me", [Feedback(each.id, loss[str(each.explore)]) for each in made]
        ).result()
    found = service.logs.evaluate("me", "one").result()
    assert found.exploited is not None
    assert found.drawn is not None
    assert found.exploited.low < 0.6 < found.exploited.high
    assert found.drawn.low < 0.5 < found.exploited.estimate
    assert found.exploited.estimate - found.drawn.estimate > 0.1
    for kind in ("csv", "parquet"):
        service.logs.export("me", "one", tmp_path / f"log.{kind}", kind).result()
    header, first, *_ = (tmp_path / "log.csv").read_text().splitlines()
    values = dict(zip(header.split(","), first.split(","), strict=True))
    assert (values["exploit"], values["guard"], values["limited_by"]) == ("a", "pinned", "")
    assert values["drawn"] in ARMS


def test_a_log_whose_guard_was_altered_does_not_replay(file: str) -> None:
    service = started(file, PLAIN)
    service.experiments.set_budget("me", "one", {"share": 0.5}).result()
    change(service, pinned="a")
    decide(service, count=6)
    service.close()
    for damage in ("guard = NULL", "limited_by = 'rate'", "drawn = (drawn + 1) % 3", "share = 0.4"):
        store = SqliteStore(file)
        row = store.run("SELECT guard, limited_by, drawn, share FROM decided WHERE seq = 3")[0]
        store.run(f"UPDATE decided SET {damage} WHERE seq = 3")
        store.close()
        bad = [check.name for check in examine(file) if not check.good and check.name != "disk"]
        assert bad == ["replay of 'one'"], json.dumps([damage, row])
        store = SqliteStore(file)
        store.run(
            "UPDATE decided SET guard = ?, limited_by = ?, drawn = ?, share = ? WHERE seq = 3", row
        )
        store.close()
