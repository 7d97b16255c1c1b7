"""Several replicas on one PostgreSQL: each decision is a draw from the state it names, each loss applied once."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

import decoupled as dc
from decoupled.client.errors import StoreError
from decoupled_serve.service.analysis.doctor import examine
from decoupled_serve.service.experiment.records import Decided, Settled
from decoupled_serve.service.memory.session import Reference, Session
from decoupled_serve.service.store.postgres import PostgresStore
from support.stores import FTPL, full_disk, quick_service, started
from support.waiting import Clock


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
                answers = [service.decisions.feedback("me", each.id, loss=0.5) for service in services]
                assert len({answer.result() for answer in answers}) == 1

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(client, range(4)))
    for service in services:
        state = service.experiments.state("me", "one").result()
        assert (state.decisions, state.applied, state.round) == (160, 160, 161)
        service.close()
    _recompute(postgres)
    assert [check for check in examine(postgres) if not check.good and check.name != "durability"] == []


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


def test_a_paused_replica_does_not_block_the_other(
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
