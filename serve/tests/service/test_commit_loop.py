"""The commit loop: its queue, replies for threads and event loops, commits that many share, and what a closed service still does."""

import asyncio
import threading
from collections.abc import Callable
from typing import TypeVar

import apsw
import pytest

from decoupled.client.errors import NotFound, StoreError
from decoupled_serve.service.commits.queue import Command, CommandQueue
from decoupled_serve.service.commits.replies import Reply, deliver
from decoupled_serve.service.memory.session import Reference
from decoupled_serve.service.service import DecisionService
from support.stores import held, started
from support.wire import on_loop


def item(number: int, alone: bool = False, weight: int = 1, lane: str = "one") -> Command:
    """A command that says its number when it runs."""
    return Command(lambda _: number, (), Reply(), alone, weight=weight, lane=lane)


def numbers(taken: list[Command]) -> list[int]:
    return [each.run(None) for each in taken]  # type: ignore[arg-type]


def waiting(queue: CommandQueue, number: int) -> threading.Thread:
    thread = threading.Thread(target=queue.wait, args=(number, 60.0))
    thread.start()
    while queue._awaited != number:  # it is about to wait
        pass
    return thread


def test_a_wait_ends_with_the_item_that_completes_it_the_time_or_the_queue() -> None:
    queue = CommandQueue(32)
    thread = waiting(queue, 3)
    for number in range(2):
        assert queue.put(item(number))
        assert queue._awaited == 3
        assert thread.is_alive()
    queue.put(item(2))
    thread.join(60)
    assert not thread.is_alive()
    assert numbers(queue.take(10)) == [0, 1, 2]
    queue = CommandQueue(32)
    queue.wait(1, 0.001)
    queue.put(item(0))
    queue.wait(1, 60.0)
    queue.wait(2, -1.0)
    thread = waiting(queue, 2)
    queue.close()
    thread.join(60)
    assert not thread.is_alive()
    assert not queue.put(item(1))
    assert queue.closed
    queue.wait(2, 60.0)
    assert len(queue.take(10)) == 1, "what was put before is still taken"


def test_many_threads_put_and_none_is_lost_or_taken_twice() -> None:
    queue = CommandQueue(32)
    putting = [
        threading.Thread(target=lambda k=k: [queue.put(item(k * 1000 + i)) for i in range(1000)])
        for k in range(4)
    ]
    for thread in putting:
        thread.start()
    taken: list[int] = []
    while len(taken) < 4000:
        queue.wait(50, 0.0002)
        taken += numbers(queue.take(100))
    assert sorted(taken) == list(range(4000))
    for k in range(4):
        mine = [each for each in taken if each // 1000 == k]
        assert mine == sorted(mine), "the items of one thread stay in order"
    queue.wait(1, 0.001)
    assert queue._enough.locked(), "no call is left over"


def test_in_which_order_items_are_taken() -> None:
    queue = CommandQueue(32)
    for number, alone in enumerate((False, False, True, True, False)):
        queue.put(item(number, alone))
    assert [numbers(queue.take(10)) for _ in range(4)] == [[0, 1], [2], [3], [4]]
    queue = CommandQueue(32)
    for number in range(300):
        queue.put(item(number, weight=10, lane=str(number % 100)))
    taken = [numbers(queue.take(100)) for _ in range(30)]
    for k in range(0, 30, 10):
        assert sorted(number % 100 for each in taken[k : k + 10] for number in each) == list(
            range(100)
        )
    assert queue.take(100) == []
    queue = CommandQueue(32)
    for number in range(3):
        queue.put(item(number))
    [first] = queue.take(1)
    queue.close()
    queue.put_back(first)
    assert len(queue) == 3
    assert numbers(queue.take(10)) == [0, 1, 2]


def test_an_item_that_comes_as_the_time_ends_leaves_no_call_over() -> None:
    queue = CommandQueue(32)
    lock = queue._enough

    class Late:
        """A lock whose wait ends in vain, just before it is released."""

        release = lock.release

        def acquire(self, timeout: float = -1.0) -> bool:
            if timeout < 0.0:
                return lock.acquire()
            queue.put(item(0))
            return False

    queue._enough = Late()  # type: ignore[assignment]
    queue.wait(1, 0.001)
    assert lock.locked()


T = TypeVar("T")
ABOUT = Reference("name", "me", "one")


async def value_of(reply: Reply[T]) -> T:
    return await reply


def deliver_later(
    *outcomes: tuple[Reply[int], int | None, BaseException | None],
) -> threading.Thread:
    thread = threading.Thread(target=deliver, args=(outcomes,))
    thread.start()
    return thread


def test_a_reply_or_its_error_reaches_threads_and_an_event_loop() -> None:
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
    failed: Reply[int] = Reply()
    with pytest.raises(TimeoutError):
        failed.result(0.0)
    deliver([(failed, None, NotFound("no such thing"))])
    assert isinstance(failed.exception(), NotFound)
    with pytest.raises(NotFound):
        failed.result()
    with pytest.raises(NotFound):
        asyncio.run(value_of(failed))


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


@on_loop
async def test_what_arrives_during_a_commit_is_one_transaction(
    address: str, transactions: Callable[[DecisionService], list[str]]
) -> None:
    service = started(address)
    committed = transactions(service)
    with held(service):
        replies = [service.decisions.decide("me", "one") for _ in range(20)]
    found = await asyncio.gather(*map(value_of, replies))
    assert len({each.id for [each] in found}) == 20
    assert len(committed) == 1
    with pytest.raises(NotFound):
        await service.decisions.decide("me", "two")


@on_loop
async def test_a_store_that_is_locked_does_not_hold_up_the_loop(file: str) -> None:
    service = started(file)
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


@on_loop
async def test_a_service_that_is_closed_says_so(file: str) -> None:
    service = started(file)
    await service.decisions.decide("me", "one")
    waiting = service.decisions.decide("me", "one")
    service.close()
    assert len(await waiting) == 1, "what was submitted before is done"
    with pytest.raises(StoreError, match="closed"):
        service.decisions.decide("me", "one")
