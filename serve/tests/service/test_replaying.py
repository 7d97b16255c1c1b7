"""Replaying a log into an experiment: what is learned, what is refused, and what a crash leaves."""

import json
import random
from pathlib import Path
from typing import Any

import pytest

import decoupled as dc
from decoupled.client.errors import Conflict, Invalid, ServiceError
from decoupled_serve.service.api import replaying
from decoupled_serve.service.experiment.records import Settings
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
    return [(3 if r["explore"] == "3" else r["explore"], r["propensity"], r["loss"]) for r in content]


def replay(service: DecisionService, path: Path, kind: Any = "jsonl", **options: Any) -> Any:
    return service.replaying.replay("local", "x", path, kind, **options).result()


def estimates(service: DecisionService) -> list[float]:
    return list(service.experiments.state("local", "x").result().estimates)


@both_stores
def test_an_experiment_learns_what_a_learner_learns(
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
    assert (made.exploit, made.explore, made.propensity) == (same.exploit, same.explore, same.propensity)
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


def test_an_interrupted_replay_goes_on_where_it_stopped(
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
        [made] = service.decisions.decide("local", "x", mode="exploit" if n % 5 == 4 else "both").result()
        if n % 5 < 3:
            service.decisions.feedback("local", made.id, loss=10 * noise.random()).result()
    path = tmp_path / f"log.{kind}"
    service.logs.export("local", "x", path, kind).result()
    service.experiments.put("local", "y", SETTINGS, seed=7).result()
    found = service.replaying.replay("local", "y", path, kind).result()  # type: ignore[arg-type]
    assert (found.rows, found.learned) == (30, 18)
    logged = [row for row in service.logs.read("local", "x").result() if row.status == "applied"]
    learner.replay([(row.explore, row.propensity, row.loss) for row in logged])
    assert list(service.experiments.state("local", "y").result().estimates) == learner.estimates().tolist()


def test_a_log_that_cannot_be_learned_from_changes_nothing_and_warnings_say_what_may_be_claimed(
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
    content = [{"explore": row["explore"], "propensity": None, "loss": row["loss"]} for row in rows()]
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
