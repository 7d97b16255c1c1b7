"""Two replicas on one PostgreSQL, killed and paused in turn under load: as one service that was never hurt."""

import random
import signal
import time
from pathlib import Path

from support.reliability.audit import audit, last_states
from support.reliability.clients import EXPERIMENTS
from support.reliability.ledger import Ledger
from support.reliability.serving import Server
from support.reliability.sizes import SIZES
from support.reliability.traffic import Traffic
from support.stores import postgres, server

__all__ = ["postgres", "server"]

# One pause in ten outlasts the patience of the store: PostgreSQL ends the transaction that holds a lock.
_LONG_PAUSE = 11.5


def test_replicas_killed_and_paused_in_turn_are_as_one(postgres: str, tmp_path: Path) -> None:
    chance = random.Random(5)
    replicas = [Server(postgres, tmp_path / f"replica{place}.log") for place in range(2)]
    for each in replicas:
        each.start()
    kills = pauses = 0
    traffic: Traffic | None = None
    try:
        for each in replicas:
            each.await_ready()
        for name, settings in EXPERIMENTS.items():
            replicas[0].create(name, settings)
        ports = [each.port for each in replicas]
        traffic = Traffic(
            ports, tmp_path / "journals", processes=2 if SIZES.long else 1, seed=5, timeout=4.0
        )
        turn = 0
        while turn < SIZES.replica_rounds or traffic.decided < SIZES.replica_decisions:
            chosen = replicas[turn // 2 % 2]
            traffic.await_more(20)
            time.sleep(chance.uniform(0.0, 1.0))
            if turn % 2 == 0:
                chosen.kill()
                kills += 1
                chosen.start()
                chosen.await_ready()
            else:
                chosen.signal(signal.SIGSTOP)
                long = SIZES.long and chance.random() < 0.1
                time.sleep(_LONG_PAUSE if long else chance.uniform(0.1, 1.5))
                chosen.signal(signal.SIGCONT)
                pauses += 1
            for each in replicas:
                each.check_alive()
            turn += 1
            if turn % 10 == 0:
                print(f"{turn} kills and pauses, {traffic.decided:,} decisions")
        traffic.finish()
        states = []
        for each in replicas:
            each.await_ready()
            states.append(last_states(each))
        for each in replicas:
            assert each.end() == 0
    finally:
        if traffic is not None:
            traffic.stop()
        for each in replicas:
            each.kill()
    assert states[0] == states[1]
    ledger = Ledger().read(tmp_path / "journals")
    # These tests' server does not flush, for speed: the doctor must say so, and only that.
    found = audit(postgres, ledger, states[0], laws=True, unless=("durability",))
    print(f"{kills} kills, {pauses} pauses; {ledger.told()}; {found.laws:,} propensities computed again")
    assert found.faults == []
    assert found.decisions == len(ledger.decided) >= SIZES.replica_decisions
    assert found.losses == len(ledger.applied)
    assert found.laws > 0
