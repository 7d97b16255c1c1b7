"""Export, evaluation, retention and backup of a log, and its verdicts by segment."""

import csv
import math
import time
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

import decoupled as dc
from decoupled.client.errors import Conflict, Invalid, NotFound, StoreError
from decoupled.inference import share_of_segment as share
from decoupled.inference.sequences import Sequences
from decoupled.inference.verdicts import verdict
from decoupled_serve.service.analysis import history
from decoupled_serve.service.analysis.doctor import examine
from decoupled_serve.service.analysis.export import COLUMNS, TIMES
from decoupled_serve.service.analysis.history import SegmentsRecord
from decoupled_serve.service.experiment.records import Feedback, Settings
from decoupled_serve.service.service import DecisionService
from decoupled_serve.service.store.backup import restore
from support.stores import Opened, both_stores, quick_service
from support.waiting import Clock

ARMS = ("a", "b", "c")


def run(
    service: DecisionService,
    policy: dict[str, Any],
    rounds: int,
    means: tuple[float, ...] = (0.2, 0.5, 0.8),
) -> None:
    service.experiments.put("me", "one", Settings(policy, ARMS), seed=7).result()
    noise = np.random.default_rng(1)
    for _ in range(rounds // 50):
        made = service.decisions.decide("me", "one", count=50).result()
        losses = [float(noise.random() < means[ARMS.index(str(each.explore))]) for each in made]
        service.decisions.feedback_many(
            "me", [Feedback(each.id, loss) for each, loss in zip(made, losses, strict=True)]
        ).result()


def test_exported_propensities_are_the_true_law(opened: Opened, tmp_path: Path) -> None:
    """Of a policy that knows only an estimate of 1 / p: what is exported is what a learner at that row says."""
    service = opened()
    run(service, {"name": "CoupledFTPL"}, 100)
    service.decisions.decide("me", "one", available=["a", "c"], count=3).result()
    rows = service.logs.read("me", "one").result()
    assert all(row.propensity is not None for row in rows)
    learner, made = dc.CoupledFTPL().start(ARMS, seed=7), dict[str, dc.Decision]()
    settled = {row.settled_seq: row for row in rows if row.settled_seq is not None}
    for seq in range(1, rows[-1].seq + 1):
        if seq in settled:
            learner.observe(made[settled[seq].id], settled[seq].loss)
            continue
        [row] = [each for each in rows if each.seq == seq]
        law = learner.exploration_probabilities(available=row.available)
        assert row.propensity == law[ARMS.index(str(row.explore))]
        made[row.id] = learner.decide(available=row.available)
        assert (row.explore, row.weight) == (made[row.id].explore, made[row.id].weight)
    assert (
        service.logs.export("me", "one", tmp_path / "log.csv", "csv").result() == len(rows) == 103
    )
    assert service.logs.export("me", "one", tmp_path / "log.parquet").result() == 103
    table = pq.read_table(tmp_path / "log.parquet").to_pylist()
    kinds = {each.name: str(each.type) for each in pq.read_schema(tmp_path / "log.parquet")}
    assert kinds == COLUMNS
    with (tmp_path / "log.csv").open(newline="") as file:
        lines = list(csv.DictReader(file))
    for row, line, parquet in zip(rows, lines, table, strict=True):
        assert float(line["propensity"]) == parquet["propensity"] == row.propensity
        assert line["explore"] == parquet["explore"] == row.explore
        assert parquet["loss"] == row.loss
        for name in TIMES:
            seconds, moment = getattr(row, name), parquet[name]
            assert line[name] == ("" if seconds is None else f"{moment:%Y-%m-%dT%H:%M:%S.%f}Z")
            assert (moment is None) == (seconds is None)
            assert moment is None or (
                moment.utcoffset() == timedelta(0) and moment.timestamp() == seconds
            )
        assert line["loss"] == ("" if row.loss is None else str(row.loss))
    assert table[-1]["available"] == lines[-1]["available"] == '["a", "c"]'
    assert service.logs.read("me", "one", after=rows[9].seq, limit=5).result() == rows[10:15]
    with pytest.raises(Invalid, match="format"):
        service.logs.export("me", "one", tmp_path / "log.xls", "xls").result()


def test_evaluation_finds_the_means(file: str) -> None:
    """The intervals hold the truth; false alarm below 5 %, were the seed drawn afresh, and they hold for this one."""
    service = quick_service(file)
    run(service, {"name": "FollowTheLeader"}, 4000)
    found = service.logs.evaluate("me", "one").result()
    assert (found.decisions, found.observed, found.remark, found.level) == (4000, 4000, None, 0.95)
    for each, mean in zip(found.arms, (0.2, 0.5, 0.8), strict=True):
        assert each.value is not None
        assert each.value.low < mean < each.value.high
        assert each.value.high - each.value.low < 0.2
        assert abs(each.value.estimate - mean) < 0.05
    rows = service.logs.read("me", "one").result()
    suffered = np.mean([(0.2, 0.5, 0.8)[ARMS.index(str(row.exploit))] for row in rows])
    assert found.exploited is not None
    assert found.exploited.low < suffered < found.exploited.high
    regret = service.experiments.state("me", "one").result().regret
    assert regret is not None
    assert regret.low < 4000 * (suffered - 0.2) < regret.high
    assert regret.high - regret.low < 400


def test_evaluation_agrees_with_what_the_experiment_shows_or_compares_nothing(file: str) -> None:
    service = quick_service(file)
    run(service, {"name": "FTPL"}, 100)
    found, shown = (
        service.logs.evaluate("me", "one").result(),
        service.verdicts.get("me", "one").result(),
    )
    assert [each.value for each in found.arms] == [each.loss for each in shown.arms]
    assert [each.observed for each in found.arms] == [each.observed for each in shown.arms]
    assert found.exploited == found.drawn
    assert found.exploited is not None
    assert shown.exploited is not None
    # The experiment knows the law of each round, and its log has propensities only, so that the
    # ends differ.
    assert found.exploited.estimate == pytest.approx(shown.exploited.estimate)
    assert found.exploited.low < shown.exploited.high
    assert shown.exploited.low < found.exploited.high
    service = quick_service(f"{file}-of-another-policy")
    run(service, {"name": "UCB1"}, 100)
    found = service.logs.evaluate("me", "one").result()
    assert {each.value for each in found.arms} == {None}
    assert "no chance to be explored" in str(found.remark)
    losses = [row.loss for row in service.logs.read("me", "one").result()]
    assert found.exploited is not None
    assert found.exploited.estimate == pytest.approx(np.mean(losses))  # type: ignore[arg-type]
    # The first 50 decisions were made before anything was seen, with every arm alike.
    assert service.verdicts.get("me", "one").result().compared == 50


def test_decisions_count_in_their_order(file: str) -> None:
    """One that is pending holds up the losses of later ones, for as long as the experiment is patient."""
    service = quick_service(file)
    service.experiments.put(
        "me", "one", Settings({"name": "FTPL"}, ARMS, patience=5), seed=7
    ).result()
    held, *rest = service.decisions.decide("me", "one", count=5).result()
    for each in rest:
        service.decisions.feedback("me", each.id, loss=0.5).result()
    assert service.logs.evaluate("me", "one").result().observed == 0
    service.decisions.decide("me", "one", mode="exploit", count=3).result()
    assert service.logs.evaluate("me", "one").result().observed == 0
    service.decisions.decide("me", "one").result()
    assert service.logs.evaluate("me", "one").result().observed == 4
    service.decisions.feedback("me", held.id, loss=0.5).result()
    assert service.logs.evaluate("me", "one").result().observed == 4, (
        "what was given up stays left out"
    )
    assert service.verdicts.get("me", "one").result().observed == 4


def test_an_evaluation_counts_the_loss_declared_for_expiry(
    file: str, clock: Clock, tmp_path: Path
) -> None:
    """As the learner does. Arm "a" answers well or not at all, and without this it would look the best."""
    service = quick_service(file, clock=clock)
    settings = Settings({"name": "FTPL"}, ARMS, deadline=10.0, expired_loss=1.0)
    service.experiments.put("me", "one", settings, seed=7).result()
    for turn in range(6):
        made = service.decisions.decide("me", "one", count=50).result()
        answered = [each for each in made if each.explore != "a" or turn % 3 == 0]
        losses = [Feedback(each.id, 0.1 if each.explore == "a" else 0.5) for each in answered]
        service.decisions.feedback_many("me", losses).result()
        clock.now += 20.0
    service.decisions.decide("me", "one").result()
    found = service.logs.evaluate("me", "one").result()
    assert found.observed == 300
    values = {each.arm: each.value for each in found.arms}
    assert values["a"] is not None
    assert values["b"] is not None
    assert values["a"].estimate > 0.6 > values["b"].estimate
    service.logs.export("me", "one", tmp_path / "log.csv", "csv").result()
    offline = dc.evaluate(tmp_path / "log.csv")
    assert offline.observed == 300
    explored = [row for row in service.logs.read("me", "one").result() if row.explore == "a"]
    seen = [1.0 if row.loss is None else row.loss for row in explored if row.status != "pending"]
    assert values["a"].estimate == pytest.approx(np.mean(seen))
    # One is the mean over the looks at the arm, and the other weighs them.
    assert offline.arms[0].self_normalised == pytest.approx(values["a"].estimate, abs=0.01)


@both_stores
def test_retention_keeps_what_replays(opened: Opened, address: str, clock: Clock) -> None:
    service = opened(snapshot_every=30)
    service.experiments.put("me", "one", Settings({"name": "FTPL"}, ARMS), seed=7).result()
    kept = service.decisions.decide("me", "one").result()
    old = service.decisions.decide("me", "one", count=20, idempotency_key="old").result()
    service.decisions.feedback_many("me", [Feedback(each.id, 0.5) for each in old]).result()
    clock.now += 100.0
    new = service.decisions.decide("me", "one", count=20, idempotency_key="new").result()
    before = service.experiments.state("me", "one").result()
    assert service.logs.retention("me", "one", clock.now - 50.0).result() == 40
    assert service.logs.retention("me", "one", clock.now - 50.0).result() == 0
    assert service.experiments.state("me", "one").result() == before
    with pytest.raises(NotFound):
        service.decisions.get("me", old[0].id).result()
    assert service.decisions.get("me", kept[0].id).result().status == "pending"
    assert service.decisions.decide("me", "one", count=20, idempotency_key="new").result() == new
    assert service.decisions.decide("me", "one", idempotency_key="old").result()[0].id not in {
        each.id for each in old
    }
    ids = [row.id for row in service.logs.read("me", "one").result()]
    assert ids[:3] == [kept[0].id, new[0].id, new[1].id]
    service.decisions.feedback("me", kept[0].id, loss=0.25).result()
    state = service.experiments.state("me", "one").result()
    service.close()
    assert opened().experiments.state("me", "one").result() == state
    names = ("disk", "clock", "durability")
    assert [
        check for check in examine(address, now=clock) if not check.good and check.name not in names
    ] == []


@both_stores
def test_backups_continue(
    opened: Opened, address: str, postgres: str, clock: Clock, tmp_path: Path
) -> None:
    service = opened()
    run(service, {"name": "FTPL"}, 100)
    service.decisions.decide("me", "one", count=7, idempotency_key="k").result()
    assert service.logs.backup(tmp_path / "backup").result() == 1
    state = service.experiments.state("me", "one").result()
    following = service.decisions.decide("me", "one", count=5).result()
    service.close()
    targets = [str(tmp_path / "restored.db")]
    if address != postgres:
        targets.append(postgres)  # from one database to the other
    for target in targets:
        assert restore(tmp_path / "backup", target) == 1
        with pytest.raises(Conflict, match="empty"):
            restore(tmp_path / "backup", target)
        other = quick_service(target, clock=clock)
        assert other.experiments.state("me", "one").result() == state
        assert other.decisions.decide("me", "one", count=5).result() == following
        assert other.experiments.put("me", "two", Settings({"name": "FTPL"}, ARMS)).result()[1]
        other.close()
    with pytest.raises(StoreError, match="does not exist"):
        restore(tmp_path / "none", tmp_path / "x.db")
    assert [each.name for each in tmp_path.iterdir() if each.name.startswith(".")] == []


SEGMENTED_ARMS = ("small", "large")
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
            given.append(
                Feedback(
                    each.id, float(noise.random() < means[SEGMENTED_ARMS.index(str(each.explore))])
                )
            )
        service.decisions.feedback_many("me", given).result()


def started(file: str, clock: Any = time.time) -> DecisionService:
    service = quick_service(file, clock=clock)
    service.experiments.put(
        "me", "one", Settings({"name": "FTPL"}, SEGMENTED_ARMS, context=FIELDS), seed=7
    ).result()
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
    assert [by_value[(name,)].risk for name in MEANS] == [
        0.05 * share(place) for place in (1, 2, 3)
    ]
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
    assert service._session.in_memory()[0].learner.inference.sequences.pairs_arms
    law = next(each for each in asked(service, "subject").segments if each.values == ("law",))
    twin = Sequences(2, 0.05 * share(1))
    for row in service.logs.read("me", "one").result():
        if row.context is not None and row.context.get("subject") == "law":
            explore, chance = SEGMENTED_ARMS.index(str(row.explore)), row.propensity
            assert chance is not None
            exact = [chance, 1.0 - chance] if explore == 0 else [1.0 - chance, chance]
            twin.update(
                explore,
                1.0 / chance,
                row.loss or 0.0,
                SEGMENTED_ARMS.index(str(row.exploit)),
                law=exact,
            )
    assert law.verdict.to_dict() == verdict(twin, SEGMENTED_ARMS).to_dict()
    for each, interval in zip(law.arms, twin.arms(), strict=True):
        assert np.allclose(each.loss, interval)
    service.experiments.put("me", "bare", Settings({"name": "FTPL"}, SEGMENTED_ARMS)).result()
    for name, by, words in (
        ("one", ["subjet"], "did you mean 'subject'"),
        ("one", ["tokens"], "is a number"),
        ("bare", [], "has no field to tell segments by"),
    ):
        with pytest.raises(Invalid, match=words):
            asked(service, *by, name=name)


def test_chances_weigh_the_rounds_of_a_segment_only_if_all_its_requests_have_the_same(
    file: str,
) -> None:
    service = quick_service(file)
    policy = dc.ContextualLadder(segments=("subject",)).to_dict()
    settings = Settings(policy, ("small", "large"), context={"country": "text"})
    service.experiments.put("me", "one", settings, seed=7).result()
    for number in range(40):
        context = {"subject": ("law", "art")[number % 2], "country": "ch"}
        [made] = service.decisions.decide("me", "one", context=context).result()
        service.decisions.feedback("me", made.id, loss=0.5).result()

    def bases(*by: str) -> set[str]:
        return {each.verdict.basis for each in asked(service, *by).segments}

    assert bases("subject") == {"paired"}
    assert bases("country", "subject") == {"paired"}
    assert bases("country") == {"running"}, "its requests are of two segments of the policy"


def test_beyond_the_limit_segments_share_one(file: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(history, "most_segments", lambda arms: 2)
    service = started(file)
    play(service, 3)
    service.decisions.decide("me", "one", context={"subject": "history"}).result()
    found = asked(service, "subject")
    assert {each.values for each in found.segments} == {("law",), ("art",), None}
    assert {each.name: each.decisions for each in found.segments} == {
        "law": 3,
        "art": 3,
        "all others": 4,
    }
    assert math.isclose(
        sum(each.risk for each in found.segments), 0.05 * sum(map(share, (1, 2, 3)))
    )


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
    assert [(each.values, each.observed) for each in asked(service, "subject").segments] == [
        (("art",), 1)
    ]


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
            SEGMENTED_ARMS.index(str(each.explore)), 1.0 / each.propensity, 1.0 if each == first[0] else 0.5,
            SEGMENTED_ARMS.index(str(each.exploit)), law=[0.5, 0.5],
        )  # fmt: skip
    assert tuple(each.loss for each in law.arms) == tuple(twin.arms())
