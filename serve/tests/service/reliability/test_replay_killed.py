"""The service is killed while it learns from a log; then it goes on, and no record counts twice."""

import json
import random
import threading
from contextlib import suppress
from pathlib import Path

import httpx

import decoupled as dc
from decoupled_serve.service.analysis.doctor import examine
from support.reliability.serving import serving

RECORDS = 4_000
NDJSON = {"Content-Type": "application/x-ndjson"}


def test_a_replay_that_was_killed_goes_on_and_counts_every_record_once(tmp_path: Path) -> None:
    chance = random.Random(7)
    records = [(chance.choice("ab"), 0.5, chance.random()) for _ in range(RECORDS)]
    log = "\n".join(
        json.dumps(dict(zip(("explore", "propensity", "loss"), each, strict=True))) for each in records
    ).encode()
    policy, store = dc.FTPL(), tmp_path / "store.db"
    with serving(store, tmp_path / "server.log") as server:
        url = f"http://127.0.0.1:{server.port}/v1/experiments/x"
        server.create("x", {"policy": policy.to_dict(), "arms": ["a", "b"], "seed": 7})

        def send() -> None:
            with suppress(httpx.TransportError):  # the service is killed
                httpx.post(f"{url}/replay", content=log, headers=NDJSON, timeout=120.0, verify=False)

        sender = threading.Thread(target=send)
        sender.start()
        while json.loads(server.ask("GET", "/v1/experiments/x")[1])["state_version"] < 2:
            assert sender.is_alive(), "it must be killed in the middle"
        server.kill()
        sender.join()
        server.start()
        server.await_ready()
        found = httpx.post(f"{url}/replay", content=log, headers=NDJSON, timeout=120.0, verify=False).json()
        assert 0 < found["already"] < RECORDS
        assert found["already"] + found["learned"] == RECORDS
        learner = policy.start(["a", "b"], seed=7)
        learner.replay(records)
        state = json.loads(server.ask("GET", "/v1/experiments/x/state")[1])
        assert state["estimates"] == learner.estimates().tolist(), "bit for bit"
        assert state["round"] == RECORDS + 1
    assert [each.finding for each in examine(store) if not each.good and each.name != "disk"] == []
