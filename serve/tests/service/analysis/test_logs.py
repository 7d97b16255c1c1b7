"""Export, evaluation, retention and backup of a log."""

import csv
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

import decoupled as dc
from decoupled.client.errors import Conflict, Invalid, NotFound, StoreError
from decoupled_serve.service.analysis.doctor import examine
from decoupled_serve.service.analysis.export import COLUMNS, TIMES
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
    assert service.logs.export("me", "one", tmp_path / "log.csv", "csv").result() == len(rows) == 103
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
            assert moment is None or (moment.utcoffset() == timedelta(0) and moment.timestamp() == seconds)
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
    found, shown = service.logs.evaluate("me", "one").result(), service.verdicts.get("me", "one").result()
    assert [each.value for each in found.arms] == [each.loss for each in shown.arms]
    assert [each.observed for each in found.arms] == [each.observed for each in shown.arms]
    assert found.exploited == found.drawn == shown.exploited
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
    service.experiments.put("me", "one", Settings({"name": "FTPL"}, ARMS, patience=5), seed=7).result()
    held, *rest = service.decisions.decide("me", "one", count=5).result()
    for each in rest:
        service.decisions.feedback("me", each.id, loss=0.5).result()
    assert service.logs.evaluate("me", "one").result().observed == 0
    service.decisions.decide("me", "one", mode="exploit", count=3).result()
    assert service.logs.evaluate("me", "one").result().observed == 0
    service.decisions.decide("me", "one").result()
    assert service.logs.evaluate("me", "one").result().observed == 4
    service.decisions.feedback("me", held.id, loss=0.5).result()
    assert service.logs.evaluate("me", "one").result().observed == 5


def test_an_evaluation_counts_the_loss_that_was_declared_for_what_expires(
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
    assert offline.arms[0].self_normalised == pytest.approx(values["a"].estimate)


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
    assert [row.id for row in service.logs.read("me", "one").result()][:3] == [
        kept[0].id,
        new[0].id,
        new[1].id,
    ]
    service.decisions.feedback("me", kept[0].id, loss=0.25).result()
    state = service.experiments.state("me", "one").result()
    service.close()
    again = opened()
    assert again.experiments.state("me", "one").result() == state
    names = ("disk", "clock", "durability")
    assert [
        check for check in examine(address, now=clock) if not check.good and check.name not in names
    ] == []


@both_stores
def test_a_backup_continues_like_its_store(
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
