"""From the desk's thread to asyncio: all that one commit resolved wakes the event loop once."""

import asyncio
from collections.abc import Sequence
from concurrent.futures import Future
from typing import Any, TypeVar

from ..commit_loop import Outcome, resolve
from ..desk import Desk

T = TypeVar("T")


class Bridge:
    """Has a desk make its futures on the event loop that asks, and resolve those of a commit in one call.

    A thread without a loop that asks the same desk gets a future of `concurrent.futures`, as ever.
    """

    def __init__(self, desk: Desk) -> None:
        desk.future = _new_future
        desk.deliver = _deliver

    async def wait(self, future: "Future[T]") -> T:
        """The result of a future that the desk gave."""
        result: T = await future  # type: ignore[misc]
        return result


def _new_future() -> Any:
    try:
        return asyncio.get_running_loop().create_future()
    except RuntimeError:
        return Future()


def _deliver(outcomes: Sequence[Outcome]) -> None:
    for_loops: dict[asyncio.AbstractEventLoop, list[Outcome]] = {}
    for_threads: list[Outcome] = []
    for outcome in outcomes:
        if isinstance(outcome[0], Future):
            for_threads.append(outcome)
        else:
            for_loops.setdefault(outcome[0].get_loop(), []).append(outcome)
    resolve(for_threads)
    for loop, those in for_loops.items():
        if not loop.is_closed():  # else nobody waits any more; what was done stands
            loop.call_soon_threadsafe(_settle, those)


def _settle(outcomes: Sequence[Outcome]) -> None:
    for future, result, error in outcomes:
        if future.done():  # the client went away; what was done stands
            continue
        if error is None:
            future.set_result(result)
        else:
            future.set_exception(error)
