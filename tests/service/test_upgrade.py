"""A store that version 0.1.0 wrote, with every kind of row: it is migrated, and goes on to the bit.

`version010.sql` is such a store, and `version010.json` has what 0.1.0 itself did next with a copy of it: its states, and its
next decisions.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import apsw
import pytest

from decoupled.service import loader, recovery
from decoupled.service.analysis.doctor import examine
from decoupled.service.decision_service import DecisionService
from decoupled.service.store.open import open_store
from decoupled.service.store.schema import MIGRATIONS, POSTGRES, RECORD, TABLES, statements
from decoupled.service.store.store import insertion
from support.stores import Clock, quick_service

HERE = Path(__file__).parent
EXPECTED: dict[str, Any] = json.loads((HERE / "version010.json").read_text())


@pytest.fixture
def written(address: str) -> str:
    """The store as 0.1.0 left it, in either database."""
    text = (HERE / "version010.sql").read_text()
    if not address.startswith("postgresql"):
        connection = apsw.Connection(address)
        connection.execute(text)
        connection.close()
        return address
    import psycopg

    source = apsw.Connection(":memory:")
    source.execute(text)
    with psycopg.connect(address, autocommit=True) as target:
        target.execute(RECORD.format(**POSTGRES._asdict()))
        for sql in statements(1, POSTGRES):
            target.execute(sql)
        known = {name for (name,) in source.execute("SELECT name FROM sqlite_master")}
        for table in ("schema_migrations", *(each for each in TABLES if each in known)):
            rows = source.execute(f"SELECT * FROM {table}").fetchall()
            columns = [row[1] for row in source.execute(f"PRAGMA table_info({table})")]
            into = insertion(table, columns).replace("?", "%s")
            with target.cursor() as cursor:
                cursor.executemany(into, rows)
        target.execute(
            "SELECT setval(pg_get_serial_sequence('experiments', 'id'), max(id)) FROM experiments"
        )
    source.close()
    return address


@pytest.fixture
def service(written: str, clock: Clock) -> Iterator[DecisionService]:
    clock.now = EXPECTED["now"]
    service = quick_service(written, clock=clock)
    yield service
    service.close()


def test_the_store_has_every_kind_of_row(written: str) -> None:
    """What the fixture must have, so that the others mean something."""
    store = open_store(written)
    found: dict[str, Any] = {
        "modes": {mode for (mode,) in store.run("SELECT DISTINCT mode FROM decided")},
        "settled": {
            (kind, loss, late)
            for kind, loss, late in store.run(
                "SELECT DISTINCT kind, loss IS NULL, late_at IS NULL FROM settled"
            )
        },
        "changed": {kind for (kind,) in store.run("SELECT DISTINCT kind FROM changed")},
        "bases": {base for (base,) in store.run("SELECT DISTINCT base FROM snapshots")},
        "available": len(store.run("SELECT 1 FROM decided WHERE available IS NOT NULL")) > 0,
        "keys": len(store.run("SELECT 1 FROM request_keys")) > 0,
        "revoked": {gone for (gone,) in store.run("SELECT DISTINCT revoked_at IS NULL FROM api_keys")},
        "version": store.version(),
    }
    store.close()
    assert found["modes"] == {"both", "exploit", "explore"}
    assert {kind for kind, _, _ in found["settled"]} == {"observed", "expired"}
    assert {("expired", 0, 1), ("expired", 1, 1)} <= found["settled"]
    assert any(late == 0 for _, _, late in found["settled"]), "feedback that came too late"
    assert found["changed"] == {"added", "retired", "archived"}
    assert found["bases"] == {0, 1}
    assert found["available"]
    assert found["keys"]
    assert found["revoked"] == {True, False}
    assert found["version"] == 1


def test_every_experiment_goes_on_to_the_bit(service: DecisionService) -> None:
    version = service._commits.submit(lambda session: session.store.version()).result()
    assert version == len(MIGRATIONS)
    for name, expected in EXPECTED["experiments"].items():
        tenant, short = name.split("/")
        state = service.experiments.state(tenant, short).result()
        found = {each: getattr(state, each) for each in expected["state"]}
        for each, value in expected["state"].items():
            assert json.loads(json.dumps(found[each])) == value, (name, each)
        if not expected["archived"]:
            made = service.decisions.decide(tenant, short, count=len(expected["next"])).result()
            drawn = [[each.exploit, each.explore, each.propensity, each.weight] for each in made]
            assert drawn == expected["next"], name
        else:
            assert "archived" in str(service.decisions.decide(tenant, short).exception())


def test_what_0_1_0_acknowledged_is_still_there(service: DecisionService) -> None:
    for tenant, name, key, count, ids in EXPECTED["keys"]:
        again = service.decisions.decide(tenant, name, count=count, key=key).result()
        assert [each.id for each in again] == ids
    for tenant, id_, status, loss in EXPECTED["decisions"]:
        found = service.decisions.get(tenant, id_).result()
        assert (found.status, found.loss) == (status, loss)
    keys = service.keys.list().result()
    assert [(each.digest, each.revoked_at is None) for each in keys] == [
        (digest, active) for digest, active in EXPECTED["api_keys"]
    ]


def test_the_whole_log_replays(service: DecisionService, written: str) -> None:
    for name in EXPECTED["experiments"]:
        tenant, short = name.split("/")
        service.experiments.state(tenant, short).result()  # its snapshot now has confidence sequences
        verdict = service.verdicts.get(tenant, short).result()
        assert (verdict.since is not None) == (short == "kept"), "retention has dropped a part of that log"
    service._commits.close()
    findings = [each for each in examine(written) if each.name not in ("disk", "clock", "durability")]
    assert [each for each in findings if not each.good] == []


def test_logs_are_replayed_in_the_background(
    written: str, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Snapshots of 0.1.0 have no confidence sequences. The first use of an experiment holds up no other."""
    monkeypatch.setattr(recovery, "QUICK_ROWS", 10)
    clock.now = EXPECTED["now"]
    loaded: list[str] = []
    original = loader.Loader._restored

    def noted(self: loader.Loader, row: Any) -> Any:
        loaded.append(row.name)
        return original(self, row)

    monkeypatch.setattr(loader.Loader, "_restored", noted)
    service = quick_service(written, clock=clock)
    assert service.experiments.state("local", "traffic").result().decisions > 10
    assert "traffic" in loaded
    service.close()
