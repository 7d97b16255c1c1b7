"""Many experiments in one store: the memory of the service depends on how many it keeps there, not on how many there are."""

import json
from pathlib import Path

import pytest

from support.memory import memory_of
from support.reliability.asking import Asking
from support.reliability.serving import Server, serving
from support.reliability.sizes import SIZES

EXPERIMENTS = 10_000
KEPT = EXPERIMENTS // 20
DEADLINE = 5.0  # seconds, so that decisions expire during the test
SETTINGS = {
    "policy": {"name": "FTPL"},
    "arms": [f"arm-{place}" for place in range(8)],
    "deadline_seconds": DEADLINE,
}
GROWTH = 25.0  # MiB, of what does not depend on the number of experiments: SQLite's cache, the allocator's waste


def use(server: Server, first: int, last: int, *, create: bool) -> None:
    """Two decisions of each experiment, of which one gets its feedback."""
    with Asking(server.port) as asking:
        for place in range(first, last):
            if create:
                status = 202
                while status == 202:
                    status, answer = asking.ask("PUT", f"/v1/experiments/e{place}", SETTINGS)
                assert status in (200, 201), answer
            status, answer = asking.ask("POST", f"/v1/experiments/e{place}/decisions", {"count": 2})
            assert status == 201, answer
            decision = json.loads(answer)["decisions"][0]["id"]
            status, answer = asking.ask("PUT", f"/v1/decisions/{decision}/feedback", {"loss": 0.5})
            assert status == 200, answer


def metric(server: Server, name: str) -> float:
    lines = server.ask("GET", "/metrics")[1].decode().splitlines()
    return float(next(line for line in lines if line.startswith(name)).split()[1])


@pytest.mark.skipif(not SIZES.long, reason="test_memory.py has the short form: make reliability")
def test_memory_is_flat_over_many_experiments(tmp_path: Path) -> None:
    count = EXPERIMENTS
    options = ("--experiments-in-memory", str(KEPT))
    with serving(tmp_path / "store.db", tmp_path / "service.log", further=options) as server:
        use(server, 0, count // 5, create=True)
        before = memory_of(server.pid)
        use(server, count // 5, count, create=True)
        after = memory_of(server.pid)
        use(server, 0, count, create=False)
        again = memory_of(server.pid)
        print(
            f"{count:,} experiments, {KEPT:,} in memory: {before:.0f} MiB after a fifth of them, {after:.0f} after all, "
            f"{again:.0f} after all were used again"
        )
        assert metric(server, "decoupled_decisions_experiments") <= KEPT
        assert metric(server, "decoupled_decisions_made_total") == 4 * count
        assert metric(server, "decoupled_decisions_observed_total") == 2 * count
        assert max(after, again) - before < GROWTH
        while metric(server, "decoupled_decisions_expired_total") < 2 * count:
            server.check_alive()  # every deadline passes, though hardly any of the experiments is in memory
        assert metric(server, "decoupled_decisions_experiments") <= KEPT
        print(f"all {2 * count:,} deadlines have passed: {memory_of(server.pid):.0f} MiB")
        assert server.troubles() == []
