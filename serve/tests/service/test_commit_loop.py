"""Replies for threads and event loops, commits that many share, and what a closed service still does."""

import asyncio
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import apsw
import pytest

from decoupled.client.errors import NotFound, StoreError
from decoupled_serve.service.commits.replies import Reply, deliver
from decoupled_serve.service.experiment.records import DecisionRecord, Settings
from decoupled_serve.service.memory.session import Reference, Session
from decoupled_serve.service.service import DecisionService, open_service
from support.stores import quick_service
from support.wire import on_loop

T = TypeVar("T")
PLAIN = Settings({"name": "FTPL"}, ("a", "b", "c"))
ABOUT = Reference("name", "me", "one")


async def value_of(reply: Reply[T]) -> T:
    return await reply


def deliver_later(*outcomes: tuple[Reply[int], int | None, BaseException | None]) -> threading.Thread:
    thread = threading.Thread(target=deliver, args=(outcomes,))
    thread.start()
    return thread


def test_a_reply_reaches_threads_and_an_event_loop() -> None:
    reply: Reply[int] = Reply()
    found: list[int] = []
    threads = [threading.Thread(target=lambda: found.append(reply.result(60))) for _ in range(3)]
    for thread in threads:
        thread.start()

    async def wait() -> list[int]:
        waiting = asyncio.gather(*(value_of(reply) for _ in range(2)))
        await asyncio.sleep(0)
        deliver_later((reply, 7, None))
        return await waiting

    assert asyncio.run(wait()) == [7, 7]
    for thread in threads:
        thread.join()
    assert found == [7, 7, 7]
    assert reply.done()
    assert asyncio.run(value_of(reply)) == 7, "a reply that arrived before is still there"


def test_a_reply_raises_its_error() -> None:
    reply: Reply[int] = Reply()
    with pytest.raises(TimeoutError):
        reply.result(0.0)
    deliver([(reply, None, NotFound("no such thing"))])
    assert isinstance(reply.exception(), NotFound)
    with pytest.raises(NotFound):
        reply.result()
    with pytest.raises(NotFound):
        asyncio.run(value_of(reply))


def test_a_client_that_is_gone_does_not_matter() -> None:
    gone, there, closed = Reply[int](), Reply[int](), Reply[int]()

    async def leave() -> None:  # and its event loop is closed
        task = asyncio.ensure_future(value_of(closed))
        await asyncio.sleep(0)
        task.cancel()

    asyncio.run(leave())

    async def wait() -> int:
        task, other = asyncio.ensure_future(value_of(gone)), asyncio.ensure_future(value_of(there))
        await asyncio.sleep(0)
        task.cancel()
        deliver_later((gone, 1, None), (closed, 2, None), (there, 3, None))
        return await other

    assert asyncio.run(wait()) == 3
    assert gone.result() == 1, "what was done stands"


def test_a_result_can_be_waited_for_inside_an_event_loop(tmp_path: Path) -> None:
    """As in a notebook, whose cells run on an event loop."""
    service = open_service(tmp_path / "store.db")

    async def cell() -> list[object]:
        return [
            *service.listing.experiments("me").result(60).items,
            *(await service.listing.experiments("me")).items,
        ]

    assert asyncio.run(cell()) == []
    service.close()


def made(address: str, **options: Any) -> DecisionService:
    service = quick_service(address, **options)
    service.experiments.put("me", "one", PLAIN, seed=7).result()
    return service


@on_loop
async def test_what_arrives_during_a_commit_is_one_transaction(
    address: str, transactions: Callable[[DecisionService], list[str]]
) -> None:
    service = made(address)
    committed = transactions(service)
    begun, go_on = threading.Event(), threading.Event()

    def slow(session: Session) -> None:
        begun.set()
        go_on.wait(60)

    decisions = service.decisions
    held = service._commits.submit(slow, ABOUT)
    assert begun.wait(60)
    replies: list[Reply[Any]] = [decisions.decide("me", "one") for _ in range(20)]
    go_on.set()
    found = await asyncio.gather(*map(value_of, replies))
    await held
    assert len({each.id for [each] in found}) == 20
    assert len(committed) == 2
    with pytest.raises(NotFound):
        await decisions.decide("me", "two")


@on_loop
async def test_a_store_that_is_locked_does_not_hold_up_the_loop(file: str) -> None:
    service = made(file)
    other = apsw.Connection(file)
    too_late = threading.Event()

    def release() -> None:
        too_late.set()
        other.execute("ROLLBACK")

    await service.decisions.decide("me", "one")
    other.execute("BEGIN IMMEDIATE")
    rescue = threading.Timer(5.0, release)  # in case that the loop is held up
    rescue.start()
    reply = service.decisions.decide("me", "one")
    for _ in range(100):  # the loop goes on
        await asyncio.sleep(0)
    assert not too_late.is_set()
    assert not reply.done()
    rescue.cancel()
    other.execute("ROLLBACK")
    assert len(await reply) == 1
    other.close()


def test_closing_finishes_the_commit_under_way(file: str) -> None:
    service = made(file)

    async def main() -> Reply[list[DecisionRecord]]:
        await service.decisions.decide("me", "one")
        return service.decisions.decide("me", "one")  # and the loop is closed meanwhile

    reply = asyncio.run(main())
    service.close()
    assert len(reply.result(0.0)) == 1
    again = quick_service(file)
    assert again.experiments.state("me", "one").result().decisions == 2


@on_loop
async def test_a_service_that_is_closed_says_so(file: str) -> None:
    service = made(file)
    await service.decisions.decide("me", "one")
    waiting = service.decisions.decide("me", "one")
    service.close()
    assert len(await waiting) == 1, "what was submitted before is done"
    with pytest.raises(StoreError, match="closed"):
        service.decisions.decide("me", "one")
