"""A service that was killed on a large store is back soon: it reads little of it."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any
from unittest.mock import patch

import apsw
import pytest

from decoupled_serve.service.experiment.records import MOST_DECISIONS, DecisionRecord, Feedback, Settings
from decoupled_serve.service.service import DecisionService
from decoupled_serve.service.store.sqlite import SqliteStore
from support.reliability.sizes import SIZES

AT_ONCE = MOST_DECISIONS
EVERY = 1_000  # rows between two snapshots


def remember(store: Path, decisions: int, waiting: int) -> None:
    """A store with so many decisions, all settled but the last; as a service that was killed leaves it."""
    service = DecisionService(SqliteStore(store, synchronous="OFF"), snapshot_every=EVERY)
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
        connection.set_progress_handler(step, 100)  # of one row: reached where more of a table is looked at

    with patch.object(apsw, "connection_hooks", [watch]):
        service = DecisionService(SqliteStore(store, synchronous="OFF"), snapshot_every=EVERY)
        service.decisions.decide("local", "one").result()
    assert service.experiments.state("local", "one").result().decisions == decisions + 1
    service.close()
    return done


@pytest.mark.parametrize("waiting", [100, 100_000] if SIZES.long else [100])
def test_the_work_of_a_restart_does_not_grow_with_what_is_remembered(waiting: int, tmp_path: Path) -> None:
    store = tmp_path / "store.db"
    remember(store, SIZES.remembered, waiting)
    found = work(store, SIZES.remembered)
    print(f"{SIZES.remembered:,} decisions, {waiting:,} waiting: {found:,} rows and hundreds of steps")
    # The rows since the last snapshot, which is written less often the more is waiting; and some for the tables.
    assert found < EVERY + waiting + 500
