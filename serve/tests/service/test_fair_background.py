"""What takes long for one tenant or one experiment does not hold up others: reading logs, and making snapshots."""

import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import decoupled as dc
from decoupled.learner import portable
from decoupled.learner.runner import Running
from decoupled_serve.service.analysis import export
from decoupled_serve.service.experiment.records import Settings
from decoupled_serve.service.memory import session as sessions
from decoupled_serve.service.service import DecisionService
from decoupled_serve.service.store.store import Store
from support.stores import both_stores, quick_service

PLAIN = Settings({"name": "FTPL"}, ("a", "b", "c"))
CONTEXTUAL = Settings(
    dc.ContextualLadder(segments=("subject",)).to_dict(), ("a", "b"), context={"subject": "text"}
)
LONG = 60
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
        service.experiments.put(tenant, "one", PLAIN, seed=7).result()
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
def test_others_are_served_while_a_snapshot_of_many_pending_decisions_is_made(
    file: str, pending: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    served, of_waiting = threading.Event(), portable._of_waiting

    def slowly(waiting: Any) -> dict[str, Any]:
        if len(waiting) >= pending:
            assert served.wait(LONG), "everybody waits for the snapshot"
        return of_waiting(waiting)

    with closing(quick_service(file, snapshot_every=pending)) as service:
        for name in ("many", "calm"):
            service.experiments.put("me", name, PLAIN, seed=7).result()
        monkeypatch.setattr(portable, "_of_waiting", slowly)
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
        monkeypatch.setattr(sessions.Session, "save", lambda *_: None)  # the next start reads this snapshot
    monkeypatch.undo()
    with closing(quick_service(file)) as service:
        assert service.experiments.state("me", "many").result() == state


def test_the_first_feedback_after_many_decisions_is_as_quick_as_any(
    file: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the evidence needs of each decision is computed as decisions are made, also when they are replayed."""
    laws, law = list[str](), Running.law

    def counted(running: Running, *asked: Any) -> Any:
        laws.append("law")
        return law(running, *asked)

    with closing(quick_service(file, snapshot_every=10**9)) as service:
        service.experiments.put("me", "one", CONTEXTUAL, seed=7).result()
        [first, *_] = [
            service.decisions.decide("me", "one", count=100, context={"subject": f"s{n}"}).result()[0]
            for n in range(6)
        ]
        monkeypatch.setattr(Running, "law", counted)
        service.decisions.feedback("me", first.id, loss=0.5).result()
        assert len(laws) < 200, "of 600 pending decisions"
        monkeypatch.undo()
        state = service.experiments.state("me", "one", {"subject": "s0"}).result()
        monkeypatch.setattr(sessions.Session, "save", lambda *_: None)
    monkeypatch.undo()
    with closing(quick_service(file)) as service:
        assert service.experiments.state("me", "one", {"subject": "s0"}).result() == state
