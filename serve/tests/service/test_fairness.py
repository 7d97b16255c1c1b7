"""Nobody waits long for others: threads take turns, batches make way, logs are read and snapshots made in the background."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import decoupled as dc
from decoupled.client.errors import Conflict, StoreError
from decoupled.learner import portable
from decoupled.learner.policy_state import PolicyState
from decoupled_serve.fair_threads import FairThreads, pause, resting
from decoupled_serve.service.analysis import export
from decoupled_serve.service.commits.loop import SLICE
from decoupled_serve.service.commits.queue import Command
from decoupled_serve.service.commits.replies import Reply
from decoupled_serve.service.experiment.live import LiveExperiment
from decoupled_serve.service.experiment.records import DecisionRecord, Feedback, Settings
from decoupled_serve.service.memory import session as sessions
from decoupled_serve.service.service import DecisionService
from decoupled_serve.service.store.store import Store
from support.stores import FTPL, both_stores, held, quick_service

LONG = 60.0  # seconds after which something waits for ever


def until(event: threading.Event) -> None:
    end = time.monotonic() + LONG
    while not event.is_set():
        assert time.monotonic() < end
        pause()


@pytest.mark.parametrize("lanes", [1, 7, 15])
def test_short_work_is_done_while_long_work_goes_on(lanes: int) -> None:
    threads, done, ended = FairThreads("test"), threading.Event(), list[int]()

    def long(lane: int) -> None:
        until(done)
        ended.append(lane)

    for lane in range(lanes):
        threads.start(partial(long, lane), lane)
    for _ in range(3):  # and nobody gets in twice
        threads.start(lambda: until(done), 0)
    threads.start(done.set, "short")
    assert done.wait(LONG)
    threads.close()
    assert sorted(ended) == list(range(lanes))


def test_one_works_at_a_time_and_a_lane_is_in_order() -> None:
    threads, inside, order = FairThreads("test"), list[int](), list[tuple[int, int]]()

    def work(lane: int, number: int) -> None:
        for _ in range(50):
            inside.append(lane)
            time.sleep(0.0001)
            assert inside.pop() == lane
            assert not inside
            pause()
        order.append((lane, number))

    for number in range(3):
        for lane in range(20):  # more than there are threads
            threads.start(partial(work, lane, number), lane)
    threads.close()
    assert len(order) == 60, "what was started is finished"
    for lane in range(20):
        assert [number for each, number in order if each == lane] == [0, 1, 2]
    with pytest.raises(RuntimeError):
        threads.start(lambda: None, "late")


def test_work_that_waits_or_fails_holds_up_nobody() -> None:
    threads, done, again = FairThreads("test"), threading.Event(), threading.Event()

    def waits() -> None:
        with resting():
            assert done.wait(LONG)
        again.set()

    def fails() -> None:
        raise ValueError("as it may")

    threads.start(waits, "one")
    threads.start(fails, "two")
    threads.start(done.set, "two")
    assert again.wait(LONG)
    threads.close()
    pause()
    with resting():
        pause()


COUNT = 1000


def three(file: str) -> DecisionService:
    service = quick_service(file)
    for name in ("noisy", "calm", "late"):
        service.experiments.put("me", name, FTPL, seed=7).result()
    return service


@pytest.fixture
def service(file: str) -> DecisionService:
    return three(file)


class Served:
    """Notes for which experiment each answer is made, in their order; calls a function at the first."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.order: list[str] = []
        self.meanwhile: Callable[[], object] = lambda: None
        record = LiveExperiment.record

        def noted(running: LiveExperiment, *arguments: Any, **options: Any) -> DecisionRecord:
            self.order.append(running.name)
            if len(self.order) == 1:
                self.meanwhile()
            return record(running, *arguments, **options)

        monkeypatch.setattr(LiveExperiment, "record", noted)


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch) -> Served:
    return Served(monkeypatch)


def test_a_batch_makes_way_for_what_comes_while_it_runs(
    service: DecisionService, served: Served
) -> None:
    replies: list[Reply[Any]] = []
    served.meanwhile = lambda: replies.append(service.decisions.decide("me", "calm"))
    made = service.decisions.decide("me", "noisy", count=COUNT).result()
    assert len({each.id for each in made}) == COUNT
    calm = replies.pop().result()
    assert served.order.index("calm") == SLICE, "after one slice, not after the batch"

    served.order.clear()
    served.meanwhile = lambda: replies.append(service.decisions.decide("me", "late"))
    items = [Feedback(each.id, loss=0.5) for each in (*made, *calm)]
    assert len(service.decisions.feedback_many("me", items).result()) == COUNT + 1
    assert replies[0].result()
    assert served.order.index("late") == SLICE
    assert service.counters()["observed"] == COUNT + 1


def test_waiting_batches_are_not_before_what_comes_later(
    service: DecisionService, served: Served
) -> None:
    with held(service):
        batches = [service.decisions.decide("me", "noisy", count=COUNT) for _ in range(8)]
        single = service.decisions.decide("me", "calm")
    assert single.result()
    assert served.order.index("calm") <= SLICE
    assert [len(each.result()) for each in batches] == [COUNT] * 8


def test_a_batch_among_batches_is_one_transaction(
    service: DecisionService, transactions: Callable[[DecisionService], list[str]]
) -> None:
    committed = transactions(service)
    with held(service):
        batches = [service.decisions.decide("me", name, count=COUNT) for name in ("noisy", "calm")]
    assert [len(each.result()) for each in batches] == [COUNT] * 2
    assert committed == ["commit"]
    committed.clear()
    made = service.decisions.decide("me", "noisy", count=COUNT, idempotency_key="k").result()
    assert committed == ["commit"]
    service.decisions.feedback_many("me", [Feedback(each.id, loss=0.5) for each in made]).result()
    assert committed == ["commit"] * 2


def test_a_batch_that_made_way_is_the_same_again(service: DecisionService, served: Served) -> None:
    served.meanwhile = lambda: service.decisions.decide("me", "calm")

    def ask() -> list[DecisionRecord]:
        return service.decisions.decide(
            "me",
            "noisy",
            count=100,
            idempotency_key="k",
            available=iter(["a", "c"]),
            tags={"x": "1"},
        ).result()

    made = ask()
    assert served.order.index("calm") == SLICE
    assert ask() == made
    assert {each.tags["x"] for each in made} == {"1"}
    assert {each.explore for each in made} <= {"a", "c"}
    with pytest.raises(Conflict, match="was used for another request"):
        service.decisions.decide("me", "noisy", count=99, idempotency_key="k").result()


def test_the_same_key_completes_an_interrupted_batch(
    file: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As after a crash: some slices are on disk, and their client got no answer."""
    with closing(three(file)) as service:
        commit, commits = service._commits._commit, list[int]()

        def fails_later(batch: list[Command], *rest: Any) -> None:
            if batch[0].about:
                commits.append(len(batch))
            if len(commits) == 3:
                monkeypatch.setattr(
                    service._session.store, "end", lambda: (_ for _ in ()).throw(StoreError("full"))
                )
            commit(batch, *rest)

        monkeypatch.setattr(service._commits, "_commit", fails_later)
        waits = lambda: True  # noqa: E731 - somebody always waits
        monkeypatch.setattr(service._session, "others_wait", waits)
        with pytest.raises(StoreError):
            service.decisions.decide("me", "noisy", count=COUNT, idempotency_key="k").result()
        monkeypatch.undo()
        assert service.counters()["decisions"] == 2 * SLICE
        made = service.decisions.decide("me", "noisy", count=COUNT, idempotency_key="k").result()
        assert service.counters()["decisions"] == COUNT, "the rest, and no more"
        assert [each.id for each in made[: 2 * SLICE]] == [
            f"{made[0].id.split('-')[0]}-{k}" for k in range(1, 65)
        ]
    with closing(quick_service(file)) as service:
        again = service.decisions.decide("me", "noisy", count=COUNT, idempotency_key="k").result()
        assert [each.id for each in again] == [each.id for each in made]


def test_what_is_queued_when_a_service_is_closed_is_finished(file: str) -> None:
    service = three(file)
    with held(service):
        batch = service.decisions.decide("me", "noisy", count=COUNT)
        single = service.decisions.decide("me", "calm")
        closing_thread = threading.Thread(target=service.close)
        closing_thread.start()
    closing_thread.join(60)
    assert len(batch.result(60)) == COUNT
    assert len(single.result(60)) == 1


CONTEXTUAL = Settings(
    dc.ContextualLadder(segments=("subject",)).to_dict(), ("a", "b"), context={"subject": "text"}
)
READS: dict[str, Callable[[DecisionService, str, Path], Any]] = {
    "read": lambda service, tenant, path: service.logs.read(tenant, "one"),
    "export": lambda service, tenant, path: service.logs.export(
        tenant, "one", path / f"{tenant}.csv", "csv"
    ),
    "evaluate": lambda service, tenant, path: service.logs.evaluate(tenant, "one"),
    "history": lambda service, tenant, path: service.logs.history(tenant, "one"),
}


@both_stores
@pytest.mark.parametrize("read", READS)
def test_a_tenant_reads_its_log_while_others_read_long_ones(
    address: str, read: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    service, answered = quick_service(address), threading.Event()
    tenants = [f"slow{number}" for number in range(5)]
    for tenant in (*tenants, "quick"):
        service.experiments.put(tenant, "one", FTPL, seed=7).result()
        service.decisions.decide(tenant, "one", count=20).result()
    quick = service._commits.submit(lambda session: session.store.named("quick", "one")).result()
    assert quick is not None
    mine = quick.id
    logged, rows_since = export.logged, Store.rows_since

    def for_long(store: Store, experiment: int) -> None:
        while experiment != mine and not answered.is_set():
            list(store.each("SELECT seq FROM decided WHERE experiment = ?", (experiment,)))

    def long_log(store: Store, row: Any, *more: Any, **options: Any) -> Iterator[Any]:
        for_long(store, row.id)
        yield from logged(store, row, *more, **options)

    def long_rows(store: Store, experiment: int, seq: int) -> Iterator[Any]:
        if threading.current_thread().name.startswith("decoupled-histories"):
            for_long(store, experiment)
        return rows_since(store, experiment, seq)

    monkeypatch.setattr(export, "logged", long_log)
    monkeypatch.setattr(Store, "rows_since", long_rows)
    slow = [READS[read](service, tenant, tmp_path) for tenant in (*tenants, *tenants)]
    assert READS[read](service, "quick", tmp_path).result(LONG)
    assert not any(each.done() for each in slow)
    answered.set()
    assert all(each.result(LONG) for each in slow)


@pytest.mark.parametrize("pending", [700, 2000])
def test_a_snapshot_holds_up_nobody(
    file: str, pending: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    served, of_waiting = threading.Event(), portable._columns_of_pending

    def slowly(waiting: Any) -> dict[str, Any]:
        if len(waiting) >= pending:
            assert served.wait(LONG), "everybody waits for the snapshot"
        return of_waiting(waiting)

    with closing(quick_service(file, snapshot_every=pending)) as service:
        for name in ("many", "calm"):
            service.experiments.put("me", name, FTPL, seed=7).result()
        monkeypatch.setattr(portable, "_columns_of_pending", slowly)
        made = service.decisions.decide("me", "many", count=1000).result()
        while len(made) < pending:
            made += service.decisions.decide("me", "many", count=1000).result()
        [first] = service.decisions.decide("me", "calm").result(LONG)
        # It is of the moment when it was due, whatever comes while it is made.
        service.decisions.feedback("me", made[0].id, loss=0.5).result(LONG)
        service.decisions.decide("me", "many").result(LONG)
        served.set()
        found: list[Any] = []
        while not found:
            service.decisions.feedback("me", first.id, loss=0.5).result()
            found = service._commits.submit(
                lambda session: session.store.run("SELECT seq FROM snapshots")
            ).result()
        assert found[0][0] <= len(made)
        state = service.experiments.state("me", "many").result()
        monkeypatch.setattr(
            sessions.Session, "save", lambda *_: None
        )  # the next start reads this snapshot
    monkeypatch.undo()
    with closing(quick_service(file)) as service:
        assert service.experiments.state("me", "many").result() == state


def test_first_feedback_after_many_decisions_is_quick(
    file: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the evidence needs of each decision is computed as decisions are made, also when they are replayed."""
    laws, law = list[str](), PolicyState.law

    def counted(running: PolicyState, *asked: Any) -> Any:
        laws.append("law")
        return law(running, *asked)

    with closing(quick_service(file, snapshot_every=10**9)) as service:
        service.experiments.put("me", "one", CONTEXTUAL, seed=7).result()
        [first, *_] = [
            service.decisions.decide("me", "one", count=100, context={"subject": f"s{n}"}).result()[
                0
            ]
            for n in range(6)
        ]
        monkeypatch.setattr(PolicyState, "law", counted)
        service.decisions.feedback("me", first.id, loss=0.5).result()
        assert len(laws) < 200, "of 600 pending decisions"
        monkeypatch.undo()
        state = service.experiments.state("me", "one", {"subject": "s0"}).result()
        monkeypatch.setattr(sessions.Session, "save", lambda *_: None)
    monkeypatch.undo()
    with closing(quick_service(file)) as service:
        assert service.experiments.state("me", "one", {"subject": "s0"}).result() == state
