"""Replies: one answer for threads and for event loops."""

import asyncio
import threading
from pathlib import Path

import pytest

from decoupled.service.commits.replies import Reply, deliver
from decoupled.service.errors import NotFound
from decoupled.service.service import open_service


async def value_of(reply: Reply[int]) -> int:
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
        return [*service.experiments.list("me").result(60), *await service.experiments.list("me")]

    assert asyncio.run(cell()) == []
    service.close()
