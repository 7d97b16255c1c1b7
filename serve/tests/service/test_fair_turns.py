"""Experiments take turns: a batch makes way for others, and is still answered as a whole, once, and for ever."""

import threading
from collections.abc import Callable
from contextlib import closing
from typing import Any

import pytest

from decoupled.client.errors import Conflict, StoreError
from decoupled_serve.service.commits.loop import SLICE, Command
from decoupled_serve.service.commits.replies import Reply
from decoupled_serve.service.experiment.live import LiveExperiment
from decoupled_serve.service.experiment.records import DecisionRecord, Feedback, Settings
from decoupled_serve.service.memory.session import Session
from decoupled_serve.service.service import DecisionService
from support.stores import quick_service

PLAIN = Settings({"name": "FTPL"}, ("a", "b", "c"))
COUNT = 1000


@pytest.fixture
def service(file: str) -> DecisionService:
    service = quick_service(file)
    for name in ("noisy", "calm", "late"):
        service.experiments.put("me", name, PLAIN, seed=7).result()
    return service


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


def held(service: DecisionService) -> Callable[[], None]:
    """Stops the thread that runs commands until the function is called that this returns."""
    begun, go_on = threading.Event(), threading.Event()

    def hold(session: Session) -> None:
        begun.set()
        assert go_on.wait(60)

    service._commits.submit(hold)
    assert begun.wait(60)
    return go_on.set


def test_a_batch_makes_way_for_what_comes_while_it_runs(service: DecisionService, served: Served) -> None:
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


def test_batches_that_wait_are_not_before_what_comes_after_them(
    service: DecisionService, served: Served
) -> None:
    release = held(service)
    batches = [service.decisions.decide("me", "noisy", count=COUNT) for _ in range(8)]
    single = service.decisions.decide("me", "calm")
    release()
    assert single.result()
    assert served.order.index("calm") <= SLICE
    assert [len(each.result()) for each in batches] == [COUNT] * 8


def test_a_batch_among_batches_is_one_transaction(
    service: DecisionService, transactions: Callable[[DecisionService], list[str]]
) -> None:
    committed = transactions(service)
    release = held(service)
    batches = [service.decisions.decide("me", name, count=COUNT) for name in ("noisy", "calm")]
    release()
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
            "me", "noisy", count=100, idempotency_key="k", available=iter(["a", "c"]), tags={"x": "1"}
        ).result()

    made = ask()
    assert served.order.index("calm") == SLICE
    assert ask() == made
    assert {each.tags["x"] for each in made} == {"1"}
    assert {each.explore for each in made} <= {"a", "c"}
    with pytest.raises(Conflict, match="was used for another request"):
        service.decisions.decide("me", "noisy", count=99, idempotency_key="k").result()


def test_a_batch_that_was_interrupted_is_completed_by_the_same_key(
    file: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As after a crash: some slices are on disk, and their client got no answer."""
    with closing(quick_service(file)) as service:
        for name in ("noisy", "calm"):
            service.experiments.put("me", name, PLAIN, seed=7).result()
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
    service = quick_service(file)
    for name in ("noisy", "calm"):
        service.experiments.put("me", name, PLAIN, seed=7).result()
    release = held(service)
    batch = service.decisions.decide("me", "noisy", count=COUNT)
    single = service.decisions.decide("me", "calm")
    closing_thread = threading.Thread(target=service.close)
    closing_thread.start()
    release()
    closing_thread.join(60)
    assert len(batch.result(60)) == COUNT
    assert len(single.result(60)) == 1
