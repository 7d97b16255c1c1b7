"""Several replicas on one PostgreSQL: each decision is a draw from the state it names, each loss applied once."""

import os
import signal
import subprocess
import sys
import textwrap
import threading

import pytest

import decoupled as dc
from decoupled.service.analysis.doctor import examine
from decoupled.service.desk import Desk
from decoupled.service.errors import StoreError
from decoupled.service.experiment.records import Settings
from decoupled.service.experiment.rows import Decided, Settled
from decoupled.service.store.postgres import PostgresStore
from support.stores import Clock

PLAIN = Settings({"name": "FTPL"}, ("a", "b", "c"))


def test_replicas_take_turns_as_one_learner(postgres: str) -> None:
    desks = [Desk(PostgresStore(postgres)) for _ in range(3)]
    desks[0].put_experiment("me", "one", PLAIN, seed=7).result()
    learner = dc.FTPL().start(["a", "b", "c"], seed=7)
    for turn in range(30):
        [made] = desks[turn % 3].decide("me", "one").result()
        twin = learner.decide()
        assert (made.exploit, made.explore, made.propensity, made.weight) == twin[2:]
        desks[(turn // 2) % 3].feedback("me", made.id, loss=0.25 * (turn % 5)).result()
        learner.observe(twin, 0.25 * (turn % 5))
    assert len({desk.state("me", "one").result() for desk in desks}) == 1
    for desk in desks:
        desk.close()


def test_a_replica_whose_commit_failed_starts_from_the_store(postgres: str) -> None:
    """What it drew and could not keep is forgotten, also where the others have come as far meanwhile."""
    one, two = Desk(PostgresStore(postgres)), Desk(PostgresStore(postgres))
    one.put_experiment("me", "one", PLAIN, seed=7).result()
    [first] = one.decide("me", "one").result()
    store = one._room.store
    end = store.end

    def fail() -> None:
        raise StoreError("the connection broke")

    store.end = fail  # type: ignore[method-assign]
    assert isinstance(one.feedback("me", first.id, loss=1.0).exception(), StoreError)
    store.end = end  # type: ignore[method-assign]
    two.feedback("me", first.id, loss=0.25).result()
    learner = dc.FTPL().start(["a", "b", "c"], seed=7)
    learner.observe(learner.decide(), 0.25)
    assert one.state("me", "one").result().estimates == tuple(learner.estimates())
    one.close()
    two.close()


def test_replicas_at_once_apply_each_loss_once(postgres: str) -> None:
    """Two replicas, each feedback sent to both: one applies it, the other finds it applied."""
    desks = [Desk(PostgresStore(postgres), snapshot_every=100) for _ in range(2)]
    for desk in desks:  # together: one creates, one finds it created
        desk.put_experiment("me", "one", PLAIN, seed=7).result()
    errors: list[BaseException] = []

    def client(place: int) -> None:
        try:
            for turn in range(20):
                made = desks[place % 2].decide("me", "one", count=2, key=f"{place}-{turn}").result()
                assert (
                    desks[1 - place % 2].decide("me", "one", count=2, key=f"{place}-{turn}").result()
                    == made
                )
                for each in made:
                    answers = [desk.feedback("me", each.id, loss=0.5) for desk in desks]
                    assert len({answer.result() for answer in answers}) == 1
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=client, args=(place,)) for place in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    for desk in desks:
        state = desk.state("me", "one").result()
        assert (state.decisions, state.applied, state.round) == (160, 160, 161)
        desk.close()
    _recompute(postgres)
    assert [check for check in examine(postgres) if not check.good and check.name != "durability"] == []


def _recompute(address: str) -> None:
    """Every propensity returned is that of a learner that has seen the rows before it, no more and no less."""
    whole = PostgresStore(address)
    store = whole.reader()
    [row] = store.experiments(None)
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


WORKER = """
    import sys
    from decoupled.service.desk import open_desk
    from decoupled.service.experiment.records import Settings
    desk = open_desk(sys.argv[1])
    while True:
        made = desk.decide("me", "one", count=3).result()
        for decision in made:
            print("d", decision.id, decision.explore, flush=True)
        for decision in made[:2]:
            print("f", desk.feedback("me", decision.id, loss=0.5).result().id, flush=True)
"""


def test_a_replica_killed_leaves_the_other_whole(postgres: str) -> None:
    desk = Desk(PostgresStore(postgres))
    desk.put_experiment("me", "one", PLAIN, seed=7).result()
    command = [sys.executable, "-c", textwrap.dedent(WORKER), postgres]
    lines: list[str] = []
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for _ in range(30):
            lines.append(process.stdout.readline())
            [made] = desk.decide("me", "one").result()
            desk.feedback("me", made.id, loss=0.25).result()
        os.kill(process.pid, signal.SIGKILL)
        lines += process.stdout
    for kind, name, *_ in (line.split() for line in lines if line.endswith("\n")):
        assert (
            desk.get_decision("me", name).result().status == ("applied" if kind == "f" else "pending")
            or kind == "d"
        )
    desk.close()
    _recompute(postgres)
    assert [check for check in examine(postgres) if not check.good and check.name != "durability"] == []


def test_a_paused_replica_holds_nobody_up(
    postgres: str, monkeypatch: pytest.MonkeyPatch, clock: Clock
) -> None:
    """It stops inside a transaction: the server ends it, the others go on, and it says so when it wakes."""
    from decoupled.service.store import postgres as postgres_store

    monkeypatch.setattr(postgres_store, "PATIENCE", "300ms")
    one, two = Desk(PostgresStore(postgres)), Desk(PostgresStore(postgres))
    one.put_experiment("me", "one", PLAIN, seed=7).result()
    begun, asleep = threading.Event(), threading.Event()
    sleeper = one._do(lambda: begun.set() or asleep.wait(20.0), ("name", "me", "one"))  # type: ignore[func-returns-value]
    assert begun.wait(20.0)
    answer = two.decide("me", "one")
    while answer.exception() is not None:  # it may itself be tired of waiting, as a client may
        answer = two.decide("me", "one")
    asleep.set()
    assert isinstance(sleeper.exception(), StoreError)
    assert one.state("me", "one").result().decisions == 1
    one.close()
    two.close()
