"""A service that was killed on a large store is back soon, and the first experiment on a machine without machine code waits."""

import json
import re
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from unittest.mock import patch

import apsw
import pytest

from decoupled.client import Client
from decoupled_serve.service.experiment.records import (
    MOST_DECISIONS,
    DecisionRecord,
    Feedback,
    Settings,
)
from decoupled_serve.service.service import DecisionService
from decoupled_serve.service.store.sqlite import SqliteStore
from support.command_line import run
from support.reliability.serving import serving
from support.reliability.sizes import SIZES

AT_ONCE = MOST_DECISIONS
EVERY = 1_000  # rows between two snapshots


def remember(store: Path, decisions: int, waiting: int) -> None:
    """A store with so many decisions, all settled but the last; as a service that was killed leaves it."""
    service = DecisionService(SqliteStore(store, synchronous="OFF"), snapshot_every=EVERY)
    service.experiments.put(
        "local", "one", Settings({"name": "FTPL"}, ("a", "b", "c")), seed=7
    ).result()
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
            Feedback(each.id, 0.25 + 0.5 * (each.explore == "b"))
            for each in due[start : start + AT_ONCE]
        ]
        service.decisions.feedback_many("local", items).result()


def work(store: Path, decisions: int) -> int:
    """Rows that a service reads of a store, from its start to its first decision, and hundreds of steps that take long."""
    done = 0

    def step() -> bool:
        nonlocal done
        done += 1
        return False  # go on

    def read(cursor: Any, row: Any) -> Any:
        step()
        return row

    def watch(connection: apsw.Connection) -> None:
        connection.row_trace = read
        connection.set_progress_handler(
            step, 100
        )  # of one row: reached where more of a table is looked at

    with patch.object(apsw, "connection_hooks", [watch]):
        service = DecisionService(SqliteStore(store, synchronous="OFF"), snapshot_every=EVERY)
        service.decisions.decide("local", "one").result()
    assert service.experiments.state("local", "one").result().decisions == decisions + 1
    service.close()
    return done


@pytest.mark.parametrize("waiting", [100, 100_000] if SIZES.long else [100])
def test_the_work_of_a_restart_does_not_grow_with_what_is_remembered(
    waiting: int, tmp_path: Path
) -> None:
    store = tmp_path / "store.db"
    remember(store, SIZES.remembered, waiting)
    found = work(store, SIZES.remembered)
    print(
        f"{SIZES.remembered:,} decisions, {waiting:,} waiting: {found:,} rows and hundreds of steps"
    )
    # The rows since the last snapshot, which is written less often the more is waiting; and some for the tables.
    assert found < EVERY + waiting + 500


@pytest.mark.skipif(not SIZES.long, reason="compiles for most of a minute: make reliability")
def test_the_first_experiment_on_a_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("DECOUPLED_NATIVE", "off")
    log = tmp_path / "service.log"
    with serving(tmp_path / "store.db", log) as server:
        url = f"http://127.0.0.1:{server.port}"
        with Client(url) as client:
            client.create("other", policy={"name": "FollowTheLeader"}, arms=["red", "blue"])
            created = threading.Event()
            meanwhile: list[str] = []

            def ask() -> None:
                while not created.wait(0.05):
                    meanwhile.append(client.decide("other").id)

            thread = threading.Thread(target=ask)
            thread.start()
            command = ["client", "create", "first", "red", "blue", "--url", url]
            result = run(*command)
            created.set()
            thread.join(20)
            assert result.exit_code == 0, result.output
            assert json.loads(result.stdout)["status"] == "ready"
            assert "compiling Ladder" in result.stderr
            assert len(meanwhile) > 10, "others went on"
            assert client.decide("first").explore in ("red", "blue")
        text = log.read_text()
        assert "compiling Ladder" in text
        assert re.search(r"Ladder.*is ready, compiled in \d+ s", text)
        assert server.end() == 0, "as it compiles what is on offer"
