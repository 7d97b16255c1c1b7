"""Measures how long answers in pieces of a byte hold up the event loop of a mirror, and how much work they are."""

import asyncio
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from typing import Any

from decoupled_serve.mirror.arm_connection import PIECES_A_TURN
from decoupled_serve.mirror.chat import said
from decoupled_serve.mirror.config import ArmConfig, CopyConfig
from decoupled_serve.mirror.exchange import Request
from decoupled_serve.mirror.server import server_settings
from decoupled_serve.mirror.upstream import Upstream
from decoupled_serve.service.http.server import SWITCH_INTERVAL

from .service import server
from .timing import Rate, Reading

COUNT = 1_000_000  # pieces, of a byte each
LONGEST_MS = 5.0  # for which others may have to wait
_BEAT = 0.001  # seconds between two looks at the clock
_HEAD = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n"
_CALL = b'data: {"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"arguments":"a"}}]}}]}\n\n'
Held = tuple[
    float, float
]  # the longest that the loop was held, in ms, and the processor time of it all, in s


def measure_pieces(repetitions: int, count: int = COUNT) -> Iterator[Rate | Reading]:
    """What it takes to receive so many pieces, and to read as many as an answer of a model."""
    times = range(min(repetitions, 3))
    with server("decoupled_lab.bench.pieces", str(count)) as (port, _):
        received = [_held(_received, port, count) for _ in times]
    body = _CALL * count
    read = [_held(_read, body, count) for _ in times]
    for name, found in (("received as a copy", received), ("read as a tool call", read)):
        told = f"{count / 1e6:g} MB in pieces of a byte, {name}"
        longest, seconds = (min(column) for column in zip(*found, strict=True))
        yield Reading(f"{told}: longest hold of the loop", longest, "ms", LONGEST_MS)
        yield Rate(f"{told}: processor time of a piece", 1e6 * seconds / count, "us")
    yield Rate("pieces that are passed on before others have a turn", PIECES_A_TURN, "pieces")


def _held(work: Callable[..., Awaitable[None]], *arguments: Any) -> Held:
    """Do some work on an event loop like that of a mirror, beside a clock."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(SWITCH_INTERVAL)
    try:
        with asyncio.Runner(loop_factory=server_settings(None, 1, 1.0).get_loop_factory()) as runner:
            return runner.run(_timed(work, *arguments))
    finally:
        sys.setswitchinterval(before)


async def _timed(work: Callable[..., Awaitable[None]], *arguments: Any) -> Held:
    async with _clock() as longest:
        start = time.process_time()
        await work(*arguments)
        seconds = time.process_time() - start
    return 1e3 * max(longest), seconds


@asynccontextmanager
async def _clock() -> AsyncIterator[list[float]]:
    """The longest time, in seconds, by which a beat of the loop came late, because this process was at work.

    It may also come late because the machine is at work for others: that takes no processor time of this process.
    """
    longest = [0.0]

    async def beat() -> None:
        while True:
            start = time.perf_counter()
            worked = time.process_time()
            await asyncio.sleep(_BEAT)
            late = time.perf_counter() - start - _BEAT
            longest[0] = max(longest[0], min(late, time.process_time() - worked))

    beating = asyncio.create_task(beat())
    try:
        await asyncio.sleep(10 * _BEAT)
        yield longest
    finally:
        beating.cancel()


async def _received(port: int, count: int) -> None:
    arm = Upstream(
        ArmConfig(name="pieces", url=f"http://127.0.0.1:{port}", timeout=600.0),
        CopyConfig(timeout=600.0, answer_limit=count),
    )
    answer = await arm.copy(Request("GET", "/", (("host", "a"),)))
    await arm.close()
    assert len(answer.body) == count, answer.problem


async def _read(body: bytes, count: int) -> None:
    text = await asyncio.to_thread(said, body)
    assert len(text) > count


async def _serve(count: int) -> None:
    """An arm that answers with so many pieces of a byte."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(_HEAD)
        for first in range(0, count, 10_000):
            writer.write(b"1\r\na\r\n" * min(10_000, count - first))
            await writer.drain()
        writer.write(b"0\r\n\r\n")
        await writer.drain()
        writer.close()

    serving = await asyncio.start_server(answer, "127.0.0.1", 0)
    print(f"Serving on http://127.0.0.1:{serving.sockets[0].getsockname()[1]}", flush=True)
    await serving.serve_forever()


if __name__ == "__main__":
    asyncio.run(_serve(int(sys.argv[1])))
