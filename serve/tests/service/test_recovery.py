"""Whatever was acknowledged survives any failure and is made again from the store, also by several replicas on one PostgreSQL."""

import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import decoupled as dc
from decoupled.client.errors import ReplayError, ServiceError, StoreError
from decoupled.learner import seeds
from decoupled_serve.service.analysis import doctor
from decoupled_serve.service.analysis.doctor import examine
from decoupled_serve.service.commits.replies import Reply
from decoupled_serve.service.experiment.records import Decided, Settings, Settled
from decoupled_serve.service.memory.session import Reference, Session
from decoupled_serve.service.service import DecisionService
from decoupled_serve.service.store import schema
from decoupled_serve.service.store import store as tables
from decoupled_serve.service.store.postgres import PostgresStore
from decoupled_serve.service.store.sqlite import SqliteStore
from support.stores import FTPL, faults, full_disk, killed, quick_service, started
from support.waiting import Clock

PLAIN = Settings({"name": "FTPL"}, ("a", "b", "c"), deadline=50.0, expired_loss=0.5)


def traffic(service: DecisionService, clock: Clock, rounds: int, name: str = "one") -> None:
    """Decisions of every kind, with feedback that comes late, out of order, or never."""
    made = []
    for turn in range(rounds):
        clock.now += 1.0
        made += service.decisions.decide("me", name, count=1 + turn % 3).result()
        made += service.decisions.decide("me", name, mode="explore", available=["a", "c"]).result()
        service.decisions.decide("me", name, mode="exploit").result()
        for _ in range(2):
            decision = made.pop((turn * 7) % len(made))
            service._commits.submit(lambda session: None).result()
            answer = service.decisions.feedback("me", decision.id, loss=(turn % 10) / 9)
            assert answer.exception() is None or turn > 40


@pytest.mark.parametrize("every", [1, 7, 10_000])
def test_a_service_continues_where_it_stopped(file: str, tmp_path: Path, every: int) -> None:
    """Closed cleanly, or cut off at any row: the next service draws what one that never stopped would draw."""
    clock, twin_clock = Clock(), Clock()
    service = quick_service(file, clock=clock, snapshot_every=every)
    twin = quick_service(str(tmp_path / "twin.db"), clock=twin_clock)
    for each in (service, twin):
        each.experiments.put("me", "one", PLAIN, seed=7).result()
    for part in range(4):
        traffic(service, clock, 12)
        traffic(twin, twin_clock, 12)
        if part % 2:
            service.close()
        else:
            service._commits.close()  # no snapshot is written
            service._session.store.close()
        service = quick_service(file, clock=clock, snapshot_every=every)
        assert (
            service.experiments.state("me", "one").result()
            == twin.experiments.state("me", "one").result()
        )
    assert faults(file, now=clock) == []


def test_another_process_replays_to_the_same_state(
    file: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ids of a learner depend on a secret of its process; what an experiment saves does not."""
    clock = Clock()
    service = started(file, PLAIN, clock=clock, snapshot_every=7)
    traffic(service, clock, 12)
    service.close()
    monkeypatch.setattr(seeds, "_SALT", b"of another process")
    assert faults(file, now=clock) == []


def test_every_policy_is_replayed_bit_for_bit(file: str) -> None:
    names = sorted(set(dc.Policy.homes) & set(dc.Policy.known()) - {"Forgetting", "AvnerExp3"})
    policies: list[dict[str, Any]] = [{"name": name} for name in names]
    policies += [
        {"name": "Forgetting", "policy": {"name": "Exp3"}, "discount": 0.99},
        {"name": "AvnerExp3", "horizon": 100},
        {"name": "CentredFTPL", "ranking": "sorting"},
    ]
    service = quick_service(file, snapshot_every=25)
    for place, policy in enumerate(policies):
        service.experiments.put(
            "me", str(place), Settings(policy, ("a", "b", "c")), seed=place
        ).result()
        made = [
            each
            for _ in range(20)
            for each in service.decisions.decide("me", str(place), count=2).result()
        ]
        for turn, each in enumerate(made[::-1]):
            service.decisions.feedback("me", each.id, loss=turn % 3 / 2).result()
        made = service.decisions.decide("me", str(place), count=10, available=["b", "c"]).result()
        service.decisions.feedback("me", made[3].id, loss=0.25).result()
    killed(service)
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


def test_a_commit_that_fails_acknowledges_nothing_and_a_lost_answer_is_found_by_its_key(
    file: str,
) -> None:
    store = Failing(file, synchronous="OFF")
    service = DecisionService(store)
    twin = dc.FTPL().start(["a", "b", "c"], seed=7)
    service.experiments.put("me", "one", PLAIN, seed=7).result()
    [first] = service.decisions.decide("me", "one").result()
    assert (first.exploit, first.explore) == twin.decide()[2:4]
    store.failing = "before"
    lost: list[Reply[Any]] = [
        service.decisions.decide("me", "one"),
        service.decisions.feedback("me", first.id, loss=0.5),
        service.decisions.decide("me", "one", idempotency_key="k"),
    ]
    for each in lost:
        assert isinstance(each.exception(), StoreError)
    assert not service.ready()
    store.failing = ""
    assert service.decisions.get("me", first.id).result().status == "pending"
    assert not service.ready(), "that it can be read says nothing about writing"
    service._commits.submit(service._housekeeping).result()
    assert service.ready()
    state = service.experiments.state("me", "one").result()
    assert (state.decisions, state.pending, state.applied) == (1, 1, 0)
    [second] = service.decisions.decide("me", "one", idempotency_key="k").result()
    assert (second.exploit, second.explore) == twin.decide()[2:4]
    store.failing = "after"  # what was committed, and whose answer was lost, is found by its key
    assert isinstance(
        service.decisions.decide("me", "one", idempotency_key="l").exception(), StoreError
    )
    store.failing = ""
    [found] = service.decisions.decide("me", "one", idempotency_key="l").result()
    assert found.id.endswith("-3")
    assert service.experiments.state("me", "one").result().decisions == 3
    service.close()


def test_an_unexpected_error_fails_only_its_own_command(file: str) -> None:
    """One command that fails in its middle takes nothing down: the others run again without it."""
    service = started(file, PLAIN)
    [made] = service.decisions.decide("me", "one").result()

    about = Reference("name", "me", "one")

    def one(session: Session) -> int:
        return 1

    def poison(session: Session) -> int:
        session.get(about).draw("both", None, 0.0)
        raise ZeroDivisionError("in the middle")

    def head(session: Session) -> int:
        return session.get(about).head

    service._commits.submit(lambda session: None).result()
    service._commits.submit(lambda session: None, alone=True).result()
    replies: list[Reply[int]] = [service._commits.submit(run, about) for run in (one, poison, head)]
    assert replies[0].result() == 1
    assert isinstance(replies[1].exception(), ServiceError)
    assert replies[2].result() == 1
    assert service.decisions.feedback("me", made.id, loss=0.5).result().status == "applied"
    service.close()
    assert faults(file) == []


def test_a_full_disk_refuses_writes(file: str) -> None:
    store = SqliteStore(file)
    service = DecisionService(store)
    service.experiments.put("me", "one", PLAIN, seed=7).result()
    store.connection.pragma("max_page_count", int(store.connection.pragma("page_count")) + 20)
    made = []
    asked = [service.decisions.decide("me", "one", count=10)]
    while asked[-1].exception() is None:
        made += asked[-1].result()
        asked.append(service.decisions.decide("me", "one", count=10))
    assert isinstance(asked[-1].exception(), StoreError)
    assert "FullError" in str(asked[-1].exception())
    store.connection.pragma("max_page_count", 1_000_000)
    assert service.experiments.state("me", "one").result().decisions == len(made)
    assert service.decisions.get("me", made[-1].id).result() == made[-1]
    service.close()


def test_a_damaged_snapshot_is_skipped(file: str) -> None:
    service = started(file, PLAIN)
    for _ in range(2):
        service.decisions.decide("me", "one", count=9).result()
        service.close()
        service = quick_service(file)
    state = service.experiments.state("me", "one").result()
    service.close()
    store = SqliteStore(file)
    store.run("UPDATE snapshots SET content = replace(content, 'head', 'haed') WHERE seq = 18")
    service = DecisionService(store)
    assert service.experiments.state("me", "one").result() == state


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
def test_a_damaged_log_raises_an_error(file: str, damage: str) -> None:
    service = started(file, PLAIN)
    service.experiments.put("me", "two", PLAIN, seed=7).result()
    first, *_ = service.decisions.decide("me", "one", count=6).result()
    service.decisions.feedback("me", first.id, loss=0.75).result()
    service.decisions.decide("me", "one", count=2).result()
    service._commits.close()
    service._session.store.run(damage)
    service._session.store.close()
    assert [check.name for check in examine(file) if not check.good and check.name != "disk"]
    service = quick_service(file)
    asked, other = service.decisions.decide("me", "one"), service.decisions.decide("me", "two")
    assert isinstance(asked.exception(), ReplayError)
    assert len(other.result()) == 1


def test_migrations_run_once_whole_or_not(
    file: str, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a made-up one, on a store that has decisions."""

    def known(migrations: tuple[tuple[str, ...], ...]) -> None:
        for module in (schema, tables, doctor):
            monkeypatch.setattr(module, "MIGRATIONS", migrations)

    service = started(file, PLAIN, clock=clock)
    service.decisions.decide("me", "one", count=6).result()
    state = service.experiments.state("me", "one").result()
    service.close()
    more = (
        *schema.MIGRATIONS,
        ("ALTER TABLE experiments ADD COLUMN colour TEXT", "CREATE TABLE t (x {integer})"),
    )
    known(more)
    [bad] = [check for check in examine(file) if not check.good and check.name != "disk"]
    assert (bad.name, bad.finding.partition(";")[0]) == (
        "schema",
        f"version {len(more) - 1} of {len(more)}",
    )
    service = quick_service(file, clock=clock)
    assert service.experiments.state("me", "one").result() == state
    ran = service._session.store.run("SELECT version FROM schema_migrations ORDER BY 1")
    assert ran == [(version,) for version in range(1, len(more) + 1)]
    service.close()
    assert faults(file) == []
    known((*more, ("CREATE TABLE u (x {integer})", "CREATE TABLE t (x {integer})")))
    with pytest.raises(StoreError, match="already exists"):
        quick_service(file)
    monkeypatch.undo()
    store = SqliteStore(file)
    assert store.run("SELECT name FROM sqlite_schema WHERE name = 'u'") == []
    with pytest.raises(
        StoreError, match=f"version {len(more)} and this release knows {len(more) - 1}"
    ):
        store.migrate(0.0)
    store.close()


def test_replicas_take_turns_as_one_learner(postgres: str) -> None:
    services = [quick_service(postgres) for _ in range(3)]
    services[0].experiments.put("me", "one", FTPL, seed=7).result()
    learner = dc.FTPL().start(["a", "b", "c"], seed=7)
    for turn in range(30):
        [made] = services[turn % 3].decisions.decide("me", "one").result()
        twin = learner.decide()
        assert (made.exploit, made.explore, made.propensity, made.weight) == twin[2:]
        services[(turn // 2) % 3].decisions.feedback("me", made.id, loss=0.25 * (turn % 5)).result()
        learner.observe(twin, 0.25 * (turn % 5))
    assert len({service.experiments.state("me", "one").result() for service in services}) == 1


def test_a_replica_whose_commit_failed_starts_from_the_store(postgres: str) -> None:
    """What it drew and could not keep is forgotten, also where the others have come as far meanwhile."""
    first, second = started(postgres), quick_service(postgres)
    [made] = first.decisions.decide("me", "one").result()
    with full_disk(first):
        assert isinstance(first.decisions.feedback("me", made.id, loss=1.0).exception(), StoreError)
    second.decisions.feedback("me", made.id, loss=0.25).result()
    learner = dc.FTPL().start(["a", "b", "c"], seed=7)
    learner.observe(learner.decide(), 0.25)
    assert first.experiments.state("me", "one").result().estimates == tuple(learner.estimates())


def test_replicas_at_once_apply_each_loss_once(postgres: str) -> None:
    """Two replicas, each feedback sent to both: one applies it, the other finds it applied."""
    services = [quick_service(postgres, snapshot_every=100) for _ in range(2)]
    for service in services:  # together: one creates, one finds it created
        service.experiments.put("me", "one", FTPL, seed=7).result()

    def client(place: int) -> None:
        for turn in range(20):
            made = (
                services[place % 2]
                .decisions.decide("me", "one", count=2, idempotency_key=f"{place}-{turn}")
                .result()
            )
            assert (
                services[1 - place % 2]
                .decisions.decide("me", "one", count=2, idempotency_key=f"{place}-{turn}")
                .result()
                == made
            )
            for each in made:
                answers = [
                    service.decisions.feedback("me", each.id, loss=0.5) for service in services
                ]
                assert len({answer.result() for answer in answers}) == 1

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(client, range(4)))
    for service in services:
        state = service.experiments.state("me", "one").result()
        assert (state.decisions, state.applied, state.round) == (160, 160, 161)
        service.close()
    _recompute(postgres)
    assert [
        check for check in examine(postgres) if not check.good and check.name != "durability"
    ] == []


def _recompute(address: str) -> None:
    """Every propensity returned is that of a learner that has seen the rows before it, no more and no less."""
    whole = PostgresStore(address)
    store = whole.reader()
    [row] = store.every_experiment()
    learner = dc.FTPL().start(["a", "b", "c"], seed=7)
    made = {}
    for each in store.rows_since(row.id, 0):
        if isinstance(each, Decided):
            assert each.explore is not None
            assert each.propensity == learner.exploration_probabilities()[each.explore]
            made[each.seq] = learner.decide()
        elif isinstance(each, Settled):
            learner.observe(made.pop(each.decision), each.loss)
    store.close()
    whole.close()


def test_a_paused_replica_blocks_none(
    postgres: str, monkeypatch: pytest.MonkeyPatch, clock: Clock
) -> None:
    """It stops inside a transaction: the server ends it, the others go on, and it says so when it wakes."""
    from decoupled_serve.service.store import postgres as postgres_store

    monkeypatch.setattr(postgres_store, "PATIENCE", "300ms")
    one, two = quick_service(postgres), quick_service(postgres)
    one.experiments.put("me", "one", FTPL, seed=7).result()
    begun, asleep = threading.Event(), threading.Event()

    def sleep(session: Session) -> None:
        begun.set()
        asleep.wait(20.0)

    sleeper = one._commits.submit(sleep, Reference("name", "me", "one"))
    assert begun.wait(20.0)
    answer = two.decisions.decide("me", "one")
    while answer.exception() is not None:  # it may itself be tired of waiting, as a client may
        answer = two.decisions.decide("me", "one")
    asleep.set()
    assert isinstance(sleeper.exception(), StoreError)
    assert one.experiments.state("me", "one").result().decisions == 1
