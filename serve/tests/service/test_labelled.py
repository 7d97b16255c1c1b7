"""Labels in the service: judged and labelled exactly once, late, missing or overdue, and replayed bit for bit."""

import json
import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import decoupled as dc
from decoupled.client.errors import Conflict, Gone, Invalid, ServiceError
from decoupled_serve.service.experiment.records import DecisionRecord, Feedback, Settings
from decoupled_serve.service.http.models.watched import verdict_out
from decoupled_serve.service.service import DecisionService
from decoupled_serve.service.store.sqlite import SqliteStore
from support.http_service import served
from support.stores import both_stores, faults, killed, quick_service, started
from support.waiting import Clock

RULES = dc.Labels(share=0.5, first=3, deadline=20, missing=0.25)
LABELLED = Settings(dc.Ladder().to_dict(), ("a", "b"), (0.0, 10.0), labels=RULES)
ALL = replace(LABELLED, labels=replace(RULES, share=1.0, deadline=2))
NONE = replace(LABELLED, labels=replace(RULES, share=0.001, first=0))


def decided(service: DecisionService, **options: Any) -> DecisionRecord:
    return service.decisions.decide("me", "one", **options).result()[0]


def given(service: DecisionService, made: DecisionRecord, **what: Any) -> DecisionRecord:
    return service.decisions.feedback("me", made.id, **what).result()


def labelled(service: DecisionService, made: DecisionRecord, **what: Any) -> DecisionRecord:
    return service.decisions.label("me", made.id, **what).result()


@both_stores
def test_it_is_a_learner_with_labels_and_a_restart_changes_nothing(
    address: str, clock: Clock
) -> None:
    """Judged; labelled at once, late, too late or never; never judged; the service closed, killed and replayed."""
    settings = replace(LABELLED, deadline=30.0, expired_loss=5.0)
    service = started(address, settings, clock=clock, snapshot_every=37)
    twin = dc.Ladder().start(["a", "b"], seed=7, loss_range=(0, 10), labels=RULES)
    twin.watch(expired_loss=5.0)
    luck = random.Random(5)
    waiting: list[tuple[DecisionRecord, dc.Decision]] = []
    for number in range(300):
        mirrored, made = twin.decide(), decided(service)
        assert mirrored.label_request is not None
        assert (made.exploit, made.explore, made.propensity) == (
            mirrored[2],
            mirrored[3],
            mirrored[4],
        )
        assert (made.label, made.label_probability) == mirrored.label_request[:2]
        if number % 50 == 49:  # nobody judges it
            clock.now += 31.0
            service.experiments.state("me", "one").result()
            for overdue in twin.overdue:
                twin.forget(overdue)
            twin.expire(mirrored, 5.0)
            continue
        judged, label = luck.uniform(0, 10), luck.uniform(0, 10)
        what: dict[str, Any] = {"judged": judged, "position": luck.choice([None, -1.0, 1.0])}
        if made.label and number % 3 == 0:
            what["loss"] = label
        twin.observe(mirrored, **what)
        after = given(service, made, **what)
        assert (after.judged, after.position) == (what["judged"], what["position"])
        assert after.status == ("pending" if made.label and number % 3 else "applied")
        if after.status == "pending":
            waiting.append((made, mirrored))
        if len(waiting) > 5:
            late, its_twin = waiting.pop(luck.randrange(6))
            if its_twin in twin.pending:
                assert labelled(service, late, loss=label).loss == label
                twin.observe(its_twin, loss=label)
        if number in (100, 200):
            service.close() if number == 100 else killed(service)
            service = quick_service(address, clock=clock, snapshot_every=37)
    assert service.experiments.state("me", "one").result().estimates == tuple(twin.estimates())
    queue = service.decisions.awaiting_labels("me", "one").result()
    assert (queue.used, queue.missing, queue.awaiting, queue.lam) == twin.labels
    assert queue.missing > 5
    assert len(queue.decisions) == queue.awaiting > 3
    found = service.verdicts.get("me", "one").result()
    ours, theirs = found.verdict, twin.inference.verdict()
    assert (
        str(ours.remark).split(", for at most")[1] == str(theirs.remark).split(", for at most")[1]
    )
    assert ours.waiting_for == queue.decisions[0].id
    assert ours == replace(theirs, waiting_for=ours.waiting_for, remark=ours.remark)
    assert found.judge_report == twin.inference.judge()
    assert {each.arm: each.loss for each in found.arms} == twin.inference.intervals()
    assert faults(address, clock) == []


@pytest.mark.parametrize("position", [None, -0.5])
def test_the_same_is_answered_again_and_another_value_is_refused(
    file: str, position: float | None
) -> None:
    service = started(file, ALL)
    made, at_once = decided(service), decided(service)
    say: dict[str, Any] = {"judged": 2.0, "position": position}
    waiting = given(service, made, **say)
    assert (waiting.status, waiting.judged, waiting.loss) == ("pending", 2.0, None)
    assert given(service, made, **say) == waiting
    with pytest.raises(Conflict, match="was judged 2"):
        given(service, made, judged=3.0, position=position)
    applied = labelled(service, made, reward=1.0)
    assert (applied.status, applied.judged, applied.loss) == ("applied", 2.0, 9.0)
    assert labelled(service, made, loss=9.0) == applied == given(service, made, loss=9.0)
    assert given(service, made, **say) == applied == given(service, made, **say, loss=9.0)
    for what in ({"loss": 8.0}, {**say, "loss": 8.0}, {"judged": 2.5}):
        with pytest.raises(Conflict):
            given(service, made, **what)
    both = given(service, at_once, **say, loss=4.0)
    assert both == given(service, at_once, **say, loss=4.0) == labelled(service, at_once, loss=4.0)
    assert service.experiments.state("me", "one").result().applied == 2
    assert faults(file) == []


def test_what_cannot_be_is_refused_and_changes_nothing(file: str) -> None:
    service = started(file, ALL)
    service.experiments.put("me", "two", NONE).result()
    service.experiments.put("me", "plain", replace(LABELLED, labels=None)).result()
    wants, none, plain = (
        service.decisions.decide("me", name).result()[0] for name in ("one", "two", "plain")
    )
    served_only = decided(service, mode="exploit")
    cases: list[tuple[DecisionRecord, dict[str, Any], type[ServiceError], str]] = [
        (wants, {"loss": 1.0}, Conflict, "was not judged"),
        (wants, {"position": 1.0}, Invalid, "position = 1.0: is about a judgement"),
        (wants, {"judged": 11.0}, Invalid, "judged = 11.0: must lie in"),
        (wants, {"judged": 1.0, "loss": 11.0}, Invalid, "loss = 11.0: must lie in"),
        (wants, {"judged": 1.0, "position": 2.0}, Invalid, "position = 2.0"),
        (wants, {"judged": "tie"}, Invalid, "judged = 'tie': this experiment takes the loss"),
        (none, {"judged": 1.0, "loss": 1.0}, Conflict, "wants no label"),
        (plain, {"judged": 1.0}, Invalid, "judged: this experiment has no labels"),
        (plain, {"loss": 1.0, "position": 1.0}, Invalid, "position: this experiment has no labels"),
        (served_only, {"judged": 1.0}, Conflict, "takes no feedback"),
    ]
    for made, what, kind, message in cases:
        with pytest.raises(kind, match=message):
            given(service, made, **what)
    with pytest.raises(Invalid, match="label: this experiment has no labels"):
        labelled(service, plain, loss=1.0)
    with pytest.raises(Invalid, match="labels: this experiment has no labels"):
        service.decisions.awaiting_labels("me", "plain").result()
    items = [Feedback(made.id, **what) for made, what, _, _ in cases]
    results = service.decisions.feedback_many("me", items).result()
    assert [type(each) for each in results] == [kind for _, _, kind, _ in cases]
    assert service.decisions.get("me", wants.id).result() == wants
    assert given(service, none, judged=1.0).status == "applied"
    with pytest.raises(Conflict, match="wants no label"):
        labelled(service, none, loss=1.0)


def test_deadlines_of_judgements_and_of_labels(file: str, clock: Clock) -> None:
    """Seconds are for the judgement; a judged decision awaits its label for a number of newer decisions."""
    service = started(file, replace(ALL, deadline=60.0), clock=clock, max_pending=3)
    unjudged, judged = decided(service), decided(service)
    given(service, judged, judged=2.0)
    clock.now += 61.0
    with pytest.raises(Gone):
        given(service, unjudged, judged=2.0)
    assert service.decisions.get("me", judged.id).result().status == "pending"
    newer = [decided(service) for _ in range(2)]
    with pytest.raises(Gone):
        labelled(service, judged, loss=1.0)
    missing = service.decisions.get("me", judged.id).result()
    assert (missing.status, missing.loss, missing.judged) == ("expired", 2.5, 2.0)
    assert given(service, judged, judged=2.0) == missing  # what the judge said was learned
    given(service, newer[0], judged=1.0)
    service.decisions.forget("me", newer[0].id).result()
    queue = service.decisions.awaiting_labels("me", "one").result()
    assert (queue.used, queue.missing, queue.awaiting) == (0, 2, 0)
    state = service.experiments.state("me", "one").result()
    assert (state.expired, state.late, state.pending) == (3, 2, 1)
    service.experiments.put("me", "two", replace(ALL, labels=replace(RULES, share=1.0))).result()
    [first] = service.decisions.decide("me", "two").result()
    given(service, first, judged=1.0)
    rest = service.decisions.decide("me", "two", count=3).result()  # there is room for three
    statuses = [service.decisions.get("me", each.id).result().status for each in (first, *rest)]
    assert statuses == ["expired", "pending", "pending", "pending"]
    assert faults(file, clock) == []


def test_preferences_are_judged_and_labelled(file: str) -> None:
    service = started(file, replace(ALL, feedback="preference"))
    made = decided(service)
    assert given(service, made, judged="explore").judged == 0.0
    assert labelled(service, made, preference="tie").loss == 5.0
    for what in ({"judged": 1.0}, {"judged": "tie", "loss": 1.0}):
        with pytest.raises(Invalid, match="this experiment takes preferences"):
            given(service, decided(service), **what)
    with pytest.raises(Invalid, match="no two arms"):
        given(service, decided(service, mode="explore"), judged="tie")


def test_retention_keeps_what_judged_a_pending_decision(file: str, clock: Clock) -> None:
    service = started(file, ALL, clock=clock)
    made = decided(service)
    given(service, made, judged=2.0)
    clock.now += 10.0
    assert service.logs.retention("me", "one", clock.now).result() == 0  # both rows are needed
    [row] = service.listing.decisions("me", "one").result().items
    assert (row.id, row.judged, row.status) == (made.id, 2.0, "pending")
    service.close()
    service = quick_service(file, clock=clock)
    assert labelled(service, made, loss=1.0).status == "applied"
    assert faults(file, clock) == []


def test_a_store_from_before_labels_goes_on(file: str) -> None:
    service = started(file, replace(LABELLED, labels=None), snapshot_every=5)
    for made in service.decisions.decide("me", "one", count=8).result()[:6]:
        given(service, made, loss=2.0)
    state = service.experiments.state("me", "one").result()
    service.close()
    store = SqliteStore(file)
    store.begin()
    added = {
        "decided": ("label", "label_probability", "share"),
        "settled": ("judged", "position", "cost"),
    }
    for table, columns in added.items():
        for column in columns:
            store.run(f"ALTER TABLE {table} DROP COLUMN {column}")
    store.run("DROP TABLE judged")
    store.run("DELETE FROM schema_migrations WHERE version = 2")
    store.run("UPDATE experiments SET settings = json_remove(settings, '$.labels')")
    store.end()
    store.close()
    service = quick_service(file)
    assert service.experiments.state("me", "one").result() == state
    assert decided(service).label is False
    assert not service.experiments.put(
        "me", "one", replace(LABELLED, labels=None), seed=7
    ).result()[1]
    assert faults(file) == []


def test_a_saved_learner_brings_its_labels(file: str) -> None:
    learner = dc.Ladder().start(["a", "b"], seed=7, labels=dc.Labels(share=0.25))
    learner.watch()
    learner.observe(learner.decide(), judged=0.5, loss=1.0)
    with served(Path(file).parent) as service:
        made = service.http.put("/v1/experiments/one", json={"learner": learner.to_json()}).json()
        assert (made["labels"]["share"], made["patience"]) == (0.25, 10_000)
        assert service.http.get("/v1/experiments/one/labels").json()["used"] == 1
        answer = service.http.put(
            "/v1/experiments/two", json={"learner": learner.to_json(), "labels": {"share": 0.5}}
        )
        assert "labels: comes with the learner" in answer.text


# What is said of a judge who favours the worse arm: "b" loses more often, and the judge likes it


def biased(service: DecisionService, rounds: int) -> None:
    luck = random.Random(1)
    for _ in range(rounds // 50):
        items = []
        for made in service.decisions.decide("me", "one", count=50).result():
            worse = made.explore == "b"
            label = float(luck.random() < (0.6 if worse else 0.2))
            judged = float(luck.random() < (0.1 if worse else 0.6))
            items.append(
                Feedback(
                    made.id,
                    10.0 * label if made.label else None,
                    judged=10.0 * judged,
                    position=1.0,
                )
            )
        service.decisions.feedback_many("me", items).result()


def test_verdicts_warn_of_the_judge_and_evaluations_are_of_labels(
    file: str, tmp_path: Path
) -> None:
    """False alarm: the intervals fail with 5 % for a random seed; this one is fixed. The judge's means are 6 and 1."""
    service = started(
        file, replace(LABELLED, patience=1_000)
    )  # a batch is longer than the deadline of labels
    biased(service, 2_000)
    found = service.verdicts.get("me", "one").result()
    assert (found.verdict.best, found.verdict.state) == ("a", "decided")
    assert "do not trust this judge" in str(found.verdict.warning)
    shown = json.loads(json.dumps(verdict_out(found)))
    assert shown["warning"] == found.verdict.warning
    assert shown["judge"].startswith("b is better than a")
    report = shown["judge_report"]
    assert report["bias"]["a"]["low"] > 0.0 > report["bias"]["b"]["high"]
    assert report["position_bias"]["estimate"] == 1.0
    value = service.logs.evaluate("me", "one").result()
    assert (value.observed, [each.arm for each in value.arms]) == (2_000, ["a", "b"])
    for kind in ("csv", "parquet"):
        log = tmp_path / f"log.{kind}"
        service.logs.export("me", "one", log, kind).result()
        judged = dc.evaluate(log, loss_range=(0, 10))
        for each, ours, truth in zip(judged.arms, value.arms, (2.0, 6.0), strict=True):
            assert ours.value is not None
            assert max(each.low, ours.value.low) < truth < min(each.high, ours.value.high)
            assert each.importance_weighted == pytest.approx(each.doubly_robust, abs=1.0)
    service.experiments.put("me", "two", replace(LABELLED, policy=dc.FTPL().to_dict())).result()
    learned = service.replaying.replay("me", "two", tmp_path / "log.csv", "csv").result()
    assert (learned.learned, learned.left_out) == (2_000, 0)
    other = service.decisions.awaiting_labels("me", "two").result()
    assert other.used == service.decisions.awaiting_labels("me", "one").result().used
    assert service.verdicts.get("me", "two").result().verdict.best == "a"
    service.experiments.put("me", "plain", replace(LABELLED, labels=None)).result()
    with pytest.raises(Invalid, match=r"judged = .* is what a judge said"):
        service.replaying.replay("me", "plain", tmp_path / "log.csv", "csv").result()
    assert faults(file) == []


def test_verdicts_by_segment_are_of_labels(file: str) -> None:
    service = started(file, replace(LABELLED, context={"kind": "text"}))
    biased(service, 1_500)
    [one] = service.logs.segments("me", "one").result().segments
    assert (one.values, one.verdict.best, one.verdict.state) == ((None,), "a", "decided")
    whole = {each.arm: each.loss for each in service.verdicts.get("me", "one").result().arms}
    for each in one.arms:
        assert each.loss.low <= whole[each.arm].low < whole[each.arm].high <= each.loss.high
        assert each.loss.estimate == pytest.approx(whole[each.arm].estimate)


def test_labels_over_http_and_in_metrics(tmp_path: Path) -> None:
    with served(tmp_path, metrics_experiments=5) as service:
        service.create("one", labels={"share": 1.0, "first": 5}, arms=["a", "b"])
        shown = service.http.get("/v1/experiments/one").json()
        assert shown["labels"] == {"share": 1.0, "first": 5, "deadline": 10_000, "missing": 0.5}
        ids = [each["id"] for each in service.decide("one", count=3)["decisions"]]
        for id_, body, status in [
            (ids[0], {"judged": 0.5}, 200), (ids[0], {"judged": 0.6}, 409), (ids[1], {"judged": 0.5, "loss": 1.0}, 200),
            (ids[2], {"loss": 0.5}, 409), (ids[2], {"judged": None}, 422), (ids[2], {"judged": "worse"}, 422),
            (ids[2], {"judged": 0.5, "loss": 0.5, "reward": 0.5}, 422), (ids[2], {"judged": True}, 200),
        ]:  # fmt: skip
            assert (
                service.http.put(f"/v1/decisions/{id_}/feedback", json=body).status_code == status
            ), body
        for id_, body, status in [
            (ids[0], {"loss": 1.0}, 200), (ids[0], {"loss": 1.0}, 200), (ids[0], {"loss": 0.5}, 409),
            (ids[2], {}, 422), (ids[2], {"judged": 1.0}, 422), ("none-1", {"loss": 1.0}, 404),
        ]:  # fmt: skip
            assert (
                service.http.put(f"/v1/decisions/{id_}/label", json=body).status_code == status
            ), body
        queue = service.http.get("/v1/experiments/one/labels?limit=1").json()
        assert ([each["id"] for each in queue["decisions"]], queue["awaiting"]) == ([ids[2]], 1)
        metrics = service.http.get("/metrics").text
        for name, value in (
            ("labels_total", 2.0),
            ("labels_missing_total", 0.0),
            ("labels_awaiting", 1.0),
        ):
            assert (
                f'decoupled_experiment_{name}{{experiment="one",tenant="local"}} {value}' in metrics
            )
        assert 'decoupled_experiment_judge_warning{experiment="one",tenant="local"} 0.0' in metrics
        for wrong in (
            {"share": 0},
            {"share": 0.1, "missing": 2},
            {"deadline": 0},
            {"rate": 1},
            0.1,
        ):
            answer = service.http.put(
                "/v1/experiments/no", json={"arms": ["a", "b"], "labels": wrong}
            )
            assert (answer.status_code, answer.json()["detail"][:6]) == (422, "labels"), wrong
