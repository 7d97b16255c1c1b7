"""Saved learners and logs that move into an experiment, and back: what is learned, what is refused, and what a crash leaves."""

import json
import random
from pathlib import Path
from typing import Any

import pytest

import decoupled as dc
from decoupled.client.errors import Conflict, Invalid, ServiceError
from decoupled_serve.service.api import replaying
from decoupled_serve.service.experiment.records import DecisionRecord, Settings
from decoupled_serve.service.service import DecisionService
from support.stores import both_stores, faults, quick_service

ARMS = ("a", "b", 3)
SETTINGS = Settings(dc.Ladder().to_dict(), ARMS, loss_range=(0.0, 10.0))


def rows(count: int = 40) -> list[dict[str, Any]]:
    """A log of another system, which explored uniformly at random."""
    noise = random.Random(7)
    return [
        {"explore": noise.choice(["a", "b", "3"]), "propensity": 1 / 3, "loss": 10 * noise.random()}
        for _ in range(count)
    ]


def written(folder: Path, content: list[dict[str, Any]]) -> Path:
    path = folder / "log.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in content))
    return path


def started(address: str, settings: Settings = SETTINGS, **options: Any) -> DecisionService:
    service = quick_service(address, **options)
    service.experiments.put("local", "x", settings, seed=7).result()
    return service


def twin() -> dc.Learner:
    return dc.Ladder().start(list(ARMS), seed=7, loss_range=(0, 10))


def records(content: list[dict[str, Any]]) -> list[tuple[Any, float, float]]:
    return [
        (3 if r["explore"] == "3" else r["explore"], r["propensity"], r["loss"]) for r in content
    ]


def replay(service: DecisionService, path: Path, kind: Any = "jsonl", **options: Any) -> Any:
    return service.replaying.replay("local", "x", path, kind, **options).result()


def estimates(service: DecisionService) -> list[float]:
    return list(service.experiments.state("local", "x").result().estimates)


@both_stores
def test_it_learns_as_a_learner_does(
    address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(replaying, "AT_ONCE", 7)
    service, learner, content = started(address, snapshot_every=2), twin(), rows()
    found = replay(service, written(tmp_path, content))
    learner.replay(records(content))
    assert (found.rows, found.learned, found.already, found.left_out) == (40, 40, 0, 0)
    assert estimates(service) == learner.estimates().tolist()
    assert found.state_version == service.experiments.get("local", "x").result().state_version == 6
    [made], same = service.decisions.decide("local", "x").result(), learner.decide()
    assert (made.exploit, made.explore, made.propensity) == (
        same.exploit,
        same.explore,
        same.propensity,
    )
    changes = service.audit.read("local", action="log.replay").result()
    assert [each.new["before"] for each in changes] == [35, 28, 21, 14, 7, 0], "newest first"
    again = replay(service, written(tmp_path, content))
    assert (again.learned, again.already) == (0, 40), "a log counts once"
    service.close()
    later = quick_service(address)
    assert replay(later, written(tmp_path, content)).learned == 0, "after a restart, too"
    assert estimates(later) == learner.estimates().tolist()
    later.close()
    assert faults(address) == []


def test_an_interrupted_replay_resumes(
    file: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(replaying, "AT_ONCE", 7)
    service, learner, content = started(file), twin(), rows()
    path = written(tmp_path, content)
    learn, calls = replaying._learn, []

    def crash(*arguments: Any, **more: Any) -> int:
        calls.append(1)
        if len(calls) == 4:
            raise RuntimeError("killed")
        return learn(*arguments, **more)

    monkeypatch.setattr(replaying, "_learn", crash)
    with pytest.raises(ServiceError, match="killed"):
        replay(service, path)
    service.close()
    monkeypatch.setattr(replaying, "_learn", learn)
    again = quick_service(file)
    found = replay(again, path)
    assert (found.already, found.learned) == (21, 19)
    learner.replay(records(content))
    assert estimates(again) == learner.estimates().tolist(), "every record once, in order"


def test_rows_are_replayed_in_the_order_of_decisions(file: str, tmp_path: Path) -> None:
    """In the order in which losses came, evidence would be wrong if delays depend on the arm."""
    service, learner, log = started(file), twin(), rows()
    learner.watch()
    learner.replay(records(log))
    late = [{**row, "seq": place, "settled_seq": 100 - place} for place, row in enumerate(log)]
    replay(service, written(tmp_path, late[::-1]))
    assert estimates(service) == learner.estimates().tolist()
    found = service.verdicts.get("local", "x").result()
    assert tuple(each.loss for each in found.arms) == tuple(learner.inference.intervals().values())


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_an_export_can_be_replayed(file: str, tmp_path: Path, kind: str) -> None:
    service = started(file)
    noise = random.Random(3)
    learner = twin()
    for n in range(30):
        [made] = service.decisions.decide(
            "local", "x", mode="exploit" if n % 5 == 4 else "both"
        ).result()
        if n % 5 < 3:
            service.decisions.feedback("local", made.id, loss=10 * noise.random()).result()
    path = tmp_path / f"log.{kind}"
    service.logs.export("local", "x", path, kind).result()
    service.experiments.put("local", "y", SETTINGS, seed=7).result()
    found = service.replaying.replay("local", "y", path, kind).result()  # type: ignore[arg-type]
    assert (found.rows, found.learned) == (30, 18)
    logged = [row for row in service.logs.read("local", "x").result() if row.status == "applied"]
    learner.replay([(row.explore, row.propensity, row.loss) for row in logged])
    assert (
        list(service.experiments.state("local", "y").result().estimates)
        == learner.estimates().tolist()
    )


def test_a_bad_log_changes_nothing_and_warnings_say_what_may_be_claimed(
    file: str, tmp_path: Path
) -> None:
    service = started(file)
    changes: list[tuple[dict[str, Any], str]] = [
        ({"propensity": None}, "40 of 40 rows with a loss have no propensity"),
        ({"propensity": 1.0}, "none of the 40 rows with a loss could explore every arm"),
        ({"propensity": 1.5}, "log[0].propensity = 1.5"),
        ({"loss": 11.0}, "log[0].loss = 11.0"),
        ({"loss": None}, "40 rows and no loss"),
        ({"explore": "c"}, "log[0].explore = 'c'"),
        ({"loss": "high"}, "log[0].loss = 'high'"),
    ]
    for change, words in changes:
        with pytest.raises(Invalid) as caught:
            replay(service, written(tmp_path, [{**row, **change} for row in rows()]))
        assert words in str(caught.value)
    for kind in ("csv", "jsonl", "parquet"):
        path = tmp_path / f"log.{kind}"
        path.write_bytes(b"\x89PNG\r\n\xff\xfe\x00")
        with pytest.raises(Invalid, match="log"):
            replay(service, path, kind)
    assert service.experiments.get("local", "x").result().state_version == 0
    content = [{**row, "explore": "a"} for row in rows(200)]
    found = replay(service, written(tmp_path, [*content, {**content[0], "available": '["a"]'}]))
    text = " ".join(found.warnings)
    assert "hold only if the propensities are those" in text
    assert "Nothing is known about 'b', 3" in text
    assert "The weights of 'a' average 3.00 instead of 1" in text
    assert "1 rows with a loss could not explore every arm" in text
    assert found.left_out == 1


def test_a_log_without_chance_needs_a_word(file: str, tmp_path: Path) -> None:
    means = Settings(dc.UCB1().to_dict(), ARMS, loss_range=(0.0, 10.0))
    service, learner = started(file, means), dc.UCB1().start(list(ARMS), seed=7, loss_range=(0, 10))
    content = [
        {"explore": row["explore"], "propensity": None, "loss": row["loss"]} for row in rows()
    ]
    path = written(tmp_path, content)
    with pytest.raises(Invalid, match="unrandomised=true"):
        replay(service, path)
    found = replay(service, path, unrandomised=True)
    assert found.learned == 40
    assert "no interval is claimed" in found.warnings[0]
    learner.replay([(arm, 1.0, loss) for arm, _, loss in records(content)])
    assert estimates(service) == learner.estimates().tolist()


def test_archived_experiments_and_preferences_are_refused(file: str, tmp_path: Path) -> None:
    service = quick_service(file)
    path = written(tmp_path, rows())
    preferring = Settings(SETTINGS.policy, ARMS, feedback="preference")
    service.experiments.put("local", "x", preferring).result()
    with pytest.raises(Invalid, match="preferences"):
        replay(service, path)
    service.experiments.archive("local", "x").result()
    with pytest.raises(Conflict, match="archived"):
        replay(service, path)


ARMS_OF_LEARNERS = ("a", "b", 3)


def trained(
    policy: Any = None, rounds: int = 30, watched: bool = False, **options: Any
) -> dc.Learner:
    """A learner that has seen something, with decisions that await feedback."""
    learner: dc.Learner = (policy or dc.Ladder()).start(list(ARMS_OF_LEARNERS), seed=7, **options)
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
    assert service.experiments.state("local", "x").result().estimates == tuple(
        learner.estimates().tolist()
    )


@pytest.mark.parametrize("policy", [dc.Ladder(), dc.FTPL(), dc.TsallisINF(), dc.UCB1()])
def test_an_experiment_goes_on_bit_for_bit_and_so_does_the_way_back(file: str, policy: Any) -> None:
    learner = trained(policy)
    text = learner.to_json()
    service = quick_service(file, snapshot_every=20)
    made, created = service.experiments.put(
        "local", "x", settings_of(learner), learner=text
    ).result()
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
        [one], two, three = (
            again.decisions.decide("local", "x").result(),
            learner.decide(),
            back.decide(),
        )
        assert same(one, two)
        assert same(one, three)
    again.decisions.feedback("local", waiting.id, loss=0.5).result()
    learner.observe(twin, loss=0.5)
    assert again.experiments.state("local", "x").result().estimates == tuple(
        learner.estimates().tolist()
    )
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
