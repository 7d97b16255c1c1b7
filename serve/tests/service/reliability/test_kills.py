"""The service is killed at random moments under load, again and again; nothing acknowledged is lost or doubled."""

import random
import time
from pathlib import Path

import pytest

from support.reliability.audit import audit, last_states
from support.reliability.clients import EXPERIMENTS
from support.reliability.ledger import Ledger
from support.reliability.serving import Server
from support.reliability.sizes import SIZES
from support.reliability.traffic import Traffic


@pytest.mark.parametrize("seed", range(SIZES.stores))
def test_nothing_acknowledged_is_lost_or_doubled_by_kills(seed: int, tmp_path: Path) -> None:
    store, chance = tmp_path / "store.db", random.Random(seed)
    server = Server(store, tmp_path / "server.log")
    server.start()
    server.await_ready()
    for name, settings in EXPERIMENTS.items():
        server.create(name, settings)
    traffic = Traffic([server.port], tmp_path / "journals", processes=2, seed=seed, timeout=60.0)
    kills = early = 0
    try:
        while kills < SIZES.kills or traffic.look() < SIZES.acknowledged:
            if kills and chance.random() < 0.1:
                time.sleep(chance.uniform(0.0, 3.0))  # while it starts, or replays
                early += 1
            else:
                _await_answers(server, traffic)
                time.sleep(chance.uniform(0.0, 0.5))
            server.check_alive()
            server.kill()
            kills += 1
            server.start()
            if kills % 25 == 0:
                print(f"store {seed}: {kills} kills, {traffic.acknowledged:,} acknowledged")
        traffic.finish()
        server.await_ready()
        # The state as the service has it in memory, then the snapshot that it leaves when it is asked to end.
        states = last_states(server)
        assert server.end() == 0
    finally:
        traffic.stop()
        server.kill()
    ledger = Ledger().read(tmp_path / "journals")
    found = audit(store, ledger, states)
    print(f"store {seed}: {kills} kills ({early} while it started); {ledger.told()}")
    print(f"store {seed}: {found.by_hand} snapshots equal the replay bit for bit")
    assert found.faults == []
    assert server.troubles() == []
    assert found.by_hand >= len(EXPERIMENTS)
    assert found.decisions == len(ledger.decided)
    assert found.losses == len(ledger.applied)
    assert ledger.acknowledged >= SIZES.acknowledged
    assert ledger.contrary
    assert ledger.repeated


def _await_answers(server: Server, traffic: Traffic) -> None:
    server.await_ready()
    traffic.await_more()
