"""Deleting archived experiments: when it is allowed, what is gone, and what a crash leaves."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from decoupled.client.errors import Conflict, Gone, NotFound
from decoupled_serve.service.api import experiments as deletion
from decoupled_serve.service.experiment.records import Settings
from decoupled_serve.service.service import DecisionService
from decoupled_serve.service.store.backup import restore
from support.stores import both_stores, faults, quick_service
from support.waiting import Clock

SETTINGS = Settings({"name": "FTPL"}, ("a", "b"))
TABLES = ("decided", "settled", "changed", "snapshots", "request_keys")


def filled(service: DecisionService, name: str = "old", decisions: int = 6) -> str:
    """An experiment with rows in every table; returns the id of its last decision."""
    service.experiments.put("local", name, SETTINGS, seed=7).result()
    made = [
        service.decisions.decide("local", name, idempotency_key=str(n)).result()[0].id
        for n in range(decisions)
    ]
    for each in made[:-1]:
        service.decisions.feedback("local", each, loss=0.5).result()
    service.experiments.archive("local", name).result()
    return made[-1]


def rows(service: DecisionService, experiment: int = 1) -> int:
    reader = service._session.store.reader()
    try:
        sql = "SELECT count(*) FROM {} WHERE experiment = ?"
        return sum(reader.run(sql.format(table), (experiment,))[0][0] for table in TABLES)
    finally:
        reader.close()


def erased(service: DecisionService) -> None:
    """Wait until the background has nothing left to do."""
    service.deletion._background.submit(lambda: None).result()


def test_only_archived_experiments_can_be_deleted_and_only_after_a_while(
    file: str, clock: Clock
) -> None:
    service = quick_service(file, clock=clock, delete_after=100.0)
    service.experiments.put("local", "new", SETTINGS).result()
    with pytest.raises(Conflict, match="archive it first"):
        service.deletion.delete("local", "new").result()
    service.experiments.archive("local", "new").result()
    clock.now += 99.0
    with pytest.raises(Conflict, match="1970-01-12T13:48:20"):
        service.deletion.delete("local", "new").result()
    assert service.experiments.get("local", "new").result().status == "archived"
    clock.now += 1.0
    assert service.deletion.delete("local", "new").result() == clock.now
    with pytest.raises(NotFound):
        service.deletion.delete("local", "new").result()
    with pytest.raises(NotFound):
        service.deletion.delete("shop", "new").result()


@both_stores
def test_deleting_frees_the_name(
    address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deletion, "AT_ONCE", 2)
    service = quick_service(address, delete_after=0.0, snapshot_every=3)
    last, other = filled(service), filled(service, "kept")
    before = rows(service, 2)
    assert rows(service) > 12
    service.deletion.delete("local", "old").result()
    with pytest.raises(Gone, match="deleted"):
        service.decisions.get("local", last).result()
    with pytest.raises(Gone, match="deleted"):
        service.decisions.feedback("local", last, loss=0.5).result()
    with pytest.raises(NotFound):  # another tenant does not learn that it existed
        service.decisions.get("shop", last).result()
    with pytest.raises(NotFound):
        service.decisions.decide("local", "old").result()
    assert [each.name for each in service.listing.experiments("local").result().items] == ["kept"]
    erased(service)
    assert [each.subject for each in service.audit.read(action="experiment.delete").result()] == [
        "old"
    ]
    assert (rows(service), rows(service, 2)) == (0, before)
    service.experiments.put("local", "old", SETTINGS, seed=8).result()
    [fresh] = service.decisions.decide("local", "old", idempotency_key="0").result()
    assert fresh.id.split("-")[0] != last.split("-")[0]
    assert service.decisions.get("local", other).result().status == "pending"
    service.logs.backup(tmp_path / "copy.db").result()
    service.close()
    assert restore(tmp_path / "copy.db", tmp_path / "again.db") == 2, "without the deleted one"
    for store in (address, tmp_path / "again.db"):
        assert faults(store) == []


def test_a_crash_leaves_the_rest_for_the_next_start(
    file: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deletion, "AT_ONCE", 2)
    service = quick_service(file, delete_after=0.0)
    filled(service)
    erase: Callable[..., int] = deletion._erase
    calls: list[int] = []

    def crash(session: Any) -> int:
        calls.append(1)
        if len(calls) == 3:
            raise RuntimeError("killed")
        return erase(session)

    monkeypatch.setattr(deletion, "_erase", crash)
    service.deletion.delete("local", "old").result()
    service.deletion._background.close()
    assert rows(service) > 0
    service.close()
    assert faults(file) == [], "while some is left"

    monkeypatch.setattr(deletion, "_erase", erase)
    again = quick_service(file)
    with pytest.raises(NotFound):
        again.experiments.get("local", "old").result()
    again.deletion.resume()
    erased(again)
    assert rows(again) == 0


def test_other_replicas_notice(postgres: str) -> None:
    one, two = (quick_service(postgres, delete_after=0.0) for _ in range(2))
    last = filled(one)
    assert two.decisions.get("local", last).result().status == "pending"
    assert two.experiments.get("local", "old").result().status == "archived"
    one.deletion.delete("local", "old").result()
    with pytest.raises(Gone):
        two.decisions.get("local", last).result()
    with pytest.raises(NotFound):
        two.experiments.get("local", "old").result()
    one.experiments.put("local", "old", SETTINGS, seed=8).result()
    assert two.experiments.get("local", "old").result().status == "ready", (
        "the new one of that name"
    )
    assert two.decisions.decide("local", "old").result()[0].experiment == "old"
