"""What is acknowledged is there after anything that may happen, and everything else can be made again."""

import os
import signal
import subprocess
import sys
import textwrap
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest

import decoupled as dc
from decoupled.service.analysis.doctor import examine
from decoupled.service.commit_loop import Command
from decoupled.service.desk import Desk
from decoupled.service.errors import ReplayError, ServiceError, StoreError
from decoupled.service.experiment.records import Settings
from decoupled.service.store.sqlite import SqliteStore
from support.stores import Clock, quick_desk

PLAIN = Settings({"name": "FTPL"}, ("a", "b", "c"), deadline=50.0, expired_loss=0.5)


def traffic(desk: Desk, clock: Clock, rounds: int, name: str = "one") -> None:
    """Decisions of every kind, with feedback that comes late, out of order, or never."""
    made = []
    for turn in range(rounds):
        clock.now += 1.0
        made += desk.decide("me", name, count=1 + turn % 3).result()
        made += desk.decide("me", name, mode="explore", available=["a", "c"]).result()
        desk.decide("me", name, mode="exploit").result()
        for _ in range(2):
            decision = made.pop((turn * 7) % len(made))
            desk._do(lambda: None).result()
            answer = desk.feedback("me", decision.id, loss=(turn % 10) / 9)
            assert answer.exception() is None or turn > 40


@pytest.mark.parametrize("every", [1, 7, 10_000])
def test_a_desk_goes_on_where_it_stopped(file: str, tmp_path: Path, every: int) -> None:
    """Closed cleanly, or cut off at any row: the next desk draws what one that never stopped would draw."""
    clock, twin_clock = Clock(), Clock()
    desk = quick_desk(file, clock=clock, snapshot_every=every)
    twin = quick_desk(str(tmp_path / "twin.db"), clock=twin_clock)
    for each in (desk, twin):
        each.put_experiment("me", "one", PLAIN, seed=7).result()
    for part in range(4):
        traffic(desk, clock, 12)
        traffic(twin, twin_clock, 12)
        if part % 2:
            desk.close()
        else:
            desk._writer.close()  # no snapshot is written
            desk._room.store.close()
        desk = quick_desk(file, clock=clock, snapshot_every=every)
        assert desk.state("me", "one").result() == twin.state("me", "one").result()
    assert all(check.good for check in examine(file, now=clock) if check.name not in ("disk", "clock"))
    desk.close()
    twin.close()


def test_every_policy_is_replayed_bit_for_bit(file: str) -> None:
    names = sorted(set(dc.Policy.known()) - {"Forgetting", "AvnerExp3"})
    policies: list[dict[str, Any]] = [
        {"name": name}
        for name in names
        if type(dc.Policy.known()[name]()).__module__.startswith("decoupled.")
    ]
    policies += [
        {"name": "Forgetting", "policy": {"name": "Exp3"}, "discount": 0.99},
        {"name": "AvnerExp3", "horizon": 100},
        {"name": "FTPL", "estimator": "centred"},
    ]
    desk = quick_desk(file, snapshot_every=25)
    for place, policy in enumerate(policies):
        desk.put_experiment("me", str(place), Settings(policy, ("a", "b", "c")), seed=place).result()
        made = [each for _ in range(20) for each in desk.decide("me", str(place), count=2).result()]
        for turn, each in enumerate(made[::-1]):
            desk.feedback("me", each.id, loss=turn % 3 / 2).result()
        made = desk.decide("me", str(place), count=10, available=["b", "c"]).result()
        desk.feedback("me", made[3].id, loss=0.25).result()
    desk._writer.close()
    desk._room.store.close()
    findings = [check for check in examine(file) if check.name != "disk"]
    assert [check for check in findings if not check.good] == []
    assert len(findings) == 5 + 2 * len(policies)


class Failing(SqliteStore):
    """A store whose next commits fail: before they happen, or after."""

    failing = ""

    def end(self) -> None:
        if self.failing == "before":
            raise StoreError("disk full")
        super().end()
        if self.failing == "after":
            raise StoreError("the answer was lost")


def test_a_commit_that_fails_acknowledges_nothing(file: str) -> None:
    store = Failing(file, synchronous="OFF")
    desk = Desk(store)
    twin = dc.FTPL().start(["a", "b", "c"], seed=7)
    desk.put_experiment("me", "one", PLAIN, seed=7).result()
    [first] = desk.decide("me", "one").result()
    assert (first.exploit, first.explore) == twin.decide()[2:4]
    store.failing = "before"
    lost: list[Future[Any]] = [
        desk.decide("me", "one"),
        desk.feedback("me", first.id, loss=0.5),
        desk.decide("me", "one", key="k"),
    ]
    for each in lost:
        assert isinstance(each.exception(), StoreError)
    assert not desk.ready()
    store.failing = ""
    assert desk.get_decision("me", first.id).result().status == "pending"
    assert not desk.ready(), "that it can be read says nothing about writing"
    desk._do(desk._sweep).result()
    assert desk.ready()
    state = desk.state("me", "one").result()
    assert (state.decisions, state.pending, state.applied) == (1, 1, 0)
    [second] = desk.decide("me", "one", key="k").result()
    assert (second.exploit, second.explore) == twin.decide()[2:4]
    desk.close()


def test_a_commit_whose_answer_is_lost_is_found_by_its_key(file: str) -> None:
    store = Failing(file, synchronous="OFF")
    desk = Desk(store)
    desk.put_experiment("me", "one", PLAIN, seed=7).result()
    store.failing = "after"
    assert isinstance(desk.decide("me", "one", key="k").exception(), StoreError)
    store.failing = ""
    [found] = desk.decide("me", "one", key="k").result()
    assert found.id.endswith("-1")
    assert desk.state("me", "one").result().decisions == 1
    desk.close()


def test_an_unforeseen_error_fails_alone(file: str) -> None:
    """One command that fails in its middle takes nothing down: the others run again without it."""
    desk = quick_desk(file)
    desk.put_experiment("me", "one", PLAIN, seed=7).result()
    [made] = desk.decide("me", "one").result()

    def poison() -> None:
        desk._room.get(("name", "me", "one")).draw("both", None, 0.0)
        raise ZeroDivisionError("in the middle")

    futures: list[Future[Any]] = [Future() for _ in range(3)]
    works = [lambda: 1, poison, lambda: desk._room.get(("name", "me", "one")).head]
    batch = [
        Command(work, (("name", "me", "one"),), future) for work, future in zip(works, futures, strict=True)
    ]
    desk._do(lambda: None).result()
    desk._do(lambda: None, alone=True).result()
    for command in batch:
        desk._writer._queue.put(command)
    assert futures[0].result() == 1
    assert isinstance(futures[1].exception(), ServiceError)
    assert futures[2].result() == 1
    assert desk.feedback("me", made.id, loss=0.5).result().status == "applied"
    desk.close()
    assert all(check.good for check in examine(file) if check.name != "disk")


def test_a_full_disk_is_a_refusal(file: str) -> None:
    store = SqliteStore(file)
    desk = Desk(store)
    desk.put_experiment("me", "one", PLAIN, seed=7).result()
    store.connection.pragma("max_page_count", int(store.connection.pragma("page_count")) + 20)
    made = []
    asked = [desk.decide("me", "one", count=10)]
    while asked[-1].exception() is None:
        made += asked[-1].result()
        asked.append(desk.decide("me", "one", count=10))
    assert isinstance(asked[-1].exception(), StoreError)
    assert "FullError" in str(asked[-1].exception())
    store.connection.pragma("max_page_count", 1_000_000)
    assert desk.state("me", "one").result().decisions == len(made)
    assert desk.get_decision("me", made[-1].id).result() == made[-1]
    desk.close()


def test_commands_share_a_commit(file: str) -> None:
    desk = quick_desk(file)
    desk.put_experiment("me", "one", PLAIN, seed=7).result()
    before = desk.counters()["commits"]
    answers = [desk.decide("me", "one") for _ in range(500)]
    assert len({answer.result()[0].id for answer in answers}) == 500
    assert desk.counters()["commits"] - before < 250
    desk.close()


def test_a_damaged_snapshot_is_passed_over(file: str) -> None:
    desk = quick_desk(file)
    desk.put_experiment("me", "one", PLAIN, seed=7).result()
    for _ in range(2):
        desk.decide("me", "one", count=9).result()
        desk.close()
        desk = quick_desk(file)
    state = desk.state("me", "one").result()
    desk.close()
    store = SqliteStore(file)
    store.run("UPDATE snapshots SET content = replace(content, 'head', 'haed') WHERE seq = 18")
    desk = Desk(store)
    assert desk.state("me", "one").result() == state
    desk.close()


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE decided SET explore = (explore + 1) % 3 WHERE seq = 3",
        "UPDATE decided SET weight = weight * (1 + 1e-15) WHERE seq = 3",
        "UPDATE settled SET loss = 0.25 WHERE decision = 1",
        "DELETE FROM decided WHERE seq = 3",
        "UPDATE settled SET decision = 6 WHERE decision = 1",
        "UPDATE experiments SET head = head - 1 WHERE name = 'one'",
    ],
)
def test_a_damaged_log_is_loud(file: str, damage: str) -> None:
    desk = quick_desk(file)
    desk.put_experiment("me", "one", PLAIN, seed=7).result()
    desk.put_experiment("me", "two", PLAIN, seed=7).result()
    first, *_ = desk.decide("me", "one", count=6).result()
    desk.feedback("me", first.id, loss=0.75).result()
    desk.decide("me", "one", count=2).result()
    desk._writer.close()
    desk._room.store.run(damage)
    desk._room.store.close()
    assert [check.name for check in examine(file) if not check.good and check.name != "disk"]
    desk = quick_desk(file)
    asked, other = desk.decide("me", "one"), desk.decide("me", "two")
    assert isinstance(asked.exception(), ReplayError)
    assert len(other.result()) == 1
    desk.close()


def test_migrations_open_a_store_of_the_first_version(
    file: str, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The text of a store that version 1 wrote, with decisions that wait: it must open for ever."""
    store = SqliteStore(file)
    store.connection.execute((Path(__file__).parent / "version1.sql").read_text())
    store.close()
    desk = quick_desk(file, clock=clock)
    state = desk.state("local", "first").result()
    assert (state.decisions, state.pending, state.applied, state.expired) == (12, 6, 4, 0)
    assert desk.decide("local", "first", count=2, key="again").result()[0].id == "00c0ffee00c0ffee-1"
    desk.close()
    assert all(check.good for check in examine(file) if check.name != "disk")
    from decoupled.service.store import database, schema

    more = (
        *schema.MIGRATIONS,
        ("ALTER TABLE experiments ADD COLUMN colour TEXT", "CREATE TABLE t (x {integer})"),
    )
    for module in (schema, database):
        monkeypatch.setattr(module, "MIGRATIONS", more)
    desk = quick_desk(file, clock=clock)
    assert desk.state("local", "first").result() == state
    assert desk._room.store.run("SELECT version FROM schema_migrations ORDER BY 1") == [(1,), (2,)]
    desk.close()
    broken = (*more, ("CREATE TABLE u (x {integer})", "CREATE TABLE t (x {integer})"))
    for module in (schema, database):
        monkeypatch.setattr(module, "MIGRATIONS", broken)
    with pytest.raises(StoreError, match="already exists"):
        quick_desk(file)
    monkeypatch.undo()
    store = SqliteStore(file)
    assert store.run("SELECT name FROM sqlite_schema WHERE name = 'u'") == []
    with pytest.raises(StoreError, match="version 2 and this release knows 1"):
        store.migrate(0.0)
    store.close()


KILLED = """
    import sys
    from decoupled.service.desk import open_desk
    from decoupled.service.experiment.records import Settings
    desk = open_desk(sys.argv[1], snapshot_every=50)
    desk.put_experiment("me", "one", Settings({"name": "Exp3"}, ("a", "b", "c")), seed=7).result()
    while True:
        answers = [desk.decide("me", "one", key=None) for _ in range(7)]
        made = [answer.result()[0] for answer in answers]
        for decision in made:
            print("d", decision.id, decision.exploit, decision.explore, flush=True)
        for answer in [desk.feedback("me", decision.id, loss=0.5) for decision in made[:5]]:
            print("f", answer.result().id, flush=True)
"""


def test_kill_and_nothing_acknowledged_is_lost(file: str) -> None:
    """The short form: five SIGKILLs. What the process printed it had been told was done."""
    decided: dict[str, tuple[str, str]] = {}
    applied: set[str] = set()
    for turn in range(5):
        command = [sys.executable, "-c", textwrap.dedent(KILLED), file]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            lines = [process.stdout.readline() for _ in range(20 + 37 * turn)]
            os.kill(process.pid, signal.SIGKILL)
            for line in [*lines, *process.stdout]:
                kind, *rest = line.split()
                if kind == "d" and len(rest) == 3:
                    decided[rest[0]] = (rest[1], rest[2])
                elif kind == "f" and line.endswith("\n"):
                    applied.add(rest[0])
    desk = quick_desk(file)
    for name, arms in decided.items():
        found = desk.get_decision("me", name).result()
        assert (found.exploit, found.explore) == arms
    for name in applied:
        assert desk.get_decision("me", name).result().status == "applied"
    state = desk.state("me", "one").result()
    assert state.applied == state.round - 1 >= len(applied) > 0
    assert state.decisions >= len(decided) > 0
    desk.close()
    assert all(check.good for check in examine(file) if check.name != "disk")
