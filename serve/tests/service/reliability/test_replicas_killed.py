"""Two replicas on one PostgreSQL, killed and paused in turn under load, are as one; a replay that is killed goes on."""

import json
import random
import signal
import threading
import time
from contextlib import suppress
from pathlib import Path

import httpx

import decoupled as dc
from decoupled_serve.service.analysis.doctor import examine
from support.reliability.audit import audit, last_states
from support.reliability.clients import EXPERIMENTS
from support.reliability.ledger import Ledger
from support.reliability.serving import Server, serving
from support.reliability.sizes import SIZES
from support.reliability.traffic import Traffic

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
    print(
        f"{kills} kills, {pauses} pauses; {ledger.told()}; {found.laws:,} propensities computed again"
    )
    assert found.faults == []
    assert found.decisions == len(ledger.decided) >= SIZES.replica_decisions
    assert found.losses == len(ledger.applied)
    assert found.laws > 0


RECORDS = 4_000
NDJSON = {"Content-Type": "application/x-ndjson"}


def test_a_replay_that_was_killed_goes_on_and_counts_every_record_once(tmp_path: Path) -> None:
    chance = random.Random(7)
    records = [(chance.choice("ab"), 0.5, chance.random()) for _ in range(RECORDS)]
    log = "\n".join(
        json.dumps(dict(zip(("explore", "propensity", "loss"), each, strict=True)))
        for each in records
    ).encode()
    policy, store = dc.FTPL(), tmp_path / "store.db"
    with serving(store, tmp_path / "server.log") as server:
        url = f"http://127.0.0.1:{server.port}/v1/experiments/x"
        server.create("x", {"policy": policy.to_dict(), "arms": ["a", "b"], "seed": 7})

        def send() -> None:
            with suppress(httpx.TransportError):  # the service is killed
                httpx.post(
                    f"{url}/replay", content=log, headers=NDJSON, timeout=120.0, verify=False
                )

        sender = threading.Thread(target=send)
        sender.start()
        while json.loads(server.ask("GET", "/v1/experiments/x")[1])["state_version"] < 2:
            assert sender.is_alive(), "it must be killed in the middle"
        server.kill()
        sender.join()
        server.start()
        server.await_ready()
        found = httpx.post(
            f"{url}/replay", content=log, headers=NDJSON, timeout=120.0, verify=False
        ).json()
        assert 0 < found["already"] < RECORDS
        assert found["already"] + found["learned"] == RECORDS
        learner = policy.start(["a", "b"], seed=7)
        learner.replay(records)
        state = json.loads(server.ask("GET", "/v1/experiments/x/state")[1])
        assert state["estimates"] == learner.estimates().tolist(), "bit for bit"
        assert state["round"] == RECORDS + 1
    assert [each.finding for each in examine(store) if not each.good and each.name != "disk"] == []
