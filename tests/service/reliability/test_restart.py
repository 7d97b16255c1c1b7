"""A service that was killed on a large store is back soon."""

import json
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from decoupled.service.decision_service import DecisionService
from decoupled.service.experiment.records import MOST_DECISIONS, DecisionRecord, Feedback, Settings
from decoupled.service.store.sqlite import SqliteStore
from support.reliability.serving import Server
from support.reliability.sizes import SIZES

AT_ONCE = MOST_DECISIONS
SMALL = 5_000  # decisions
LIMIT = 3.0  # seconds, from the start of the process until it is ready


def remember(store: Path, decisions: int, waiting: int) -> None:
    """A store with so many decisions, all settled but the last; as a service that was killed leaves it."""
    service = DecisionService(SqliteStore(store, synchronous="OFF"))
    service.experiments.put("local", "one", Settings({"name": "FTPL"}, ("a", "b", "c")), seed=7).result()
    made: list[DecisionRecord] = []
    for _ in range(decisions // AT_ONCE):
        made += service.decisions.decide("local", "one", count=AT_ONCE).result()
        due, made = made[: max(0, len(made) - waiting)], made[max(0, len(made) - waiting) :]
        settle(service, due)
    service._commits.close()  # no snapshot is written
    service._session.store.close()


def settle(service: DecisionService, due: Sequence[DecisionRecord]) -> None:
    for start in range(0, len(due), AT_ONCE):
        items = [
            Feedback(each.id, 0.25 + 0.5 * (each.explore == "b")) for each in due[start : start + AT_ONCE]
        ]
        service.decisions.feedback_many("local", items).result()


def restarted(store: Path, decisions: int) -> tuple[float, float]:
    """Seconds from the start of a service until it is ready, and until it has decided; then it is killed again."""
    server = Server(store, store.with_suffix(".log"))
    begun = time.monotonic()
    server.start()
    try:
        ready = server.await_ready() - begun
        status, content = server.ask("POST", "/v1/experiments/one/decisions")
        assert status == 201, content
        decided = time.monotonic() - begun
        state = json.loads(server.ask("GET", "/v1/experiments/one/state")[1])
        assert state["decisions"] > decisions
        return ready, decided
    finally:
        server.kill()


@pytest.mark.parametrize("waiting", [1_000, 100_000] if SIZES.long else [1_000])
def test_a_restart_does_not_take_longer_the_more_it_remembers(waiting: int, tmp_path: Path) -> None:
    remember(tmp_path / "small.db", SMALL, 0)
    begun = time.monotonic()
    remember(tmp_path / "large.db", SIZES.remembered, waiting)
    size = (tmp_path / "large.db").stat().st_size / 2**20
    print(f"{SIZES.remembered:,} decisions made in {time.monotonic() - begun:.0f} s, {size:.0f} MiB")
    restarted(tmp_path / "small.db", SMALL)  # what is not compiled yet is compiled now
    times = 3 if SIZES.long else 1  # the lowest counts, which noise only raises
    small = min(restarted(tmp_path / "small.db", SMALL)[1] for _ in range(times))
    large = [restarted(tmp_path / "large.db", SIZES.remembered) for _ in range(times)]
    ready, decided = min(each[0] for each in large), min(each[1] for each in large)
    print(
        f"{waiting:,} waiting: ready after {ready:.2f} s, decided after {decided:.2f} s; a small store {small:.2f} s"
    )
    if SIZES.long:
        assert ready < LIMIT
    # On a busy machine only the difference says something: both start the same program.
    assert decided - small < (2.0 if waiting <= 1_000 else 6.0)
