"""Measures how long answers in pieces of a byte hold up the event loop of a mirror, and how much work they are.

    python -m decoupled_serve.mirror.holding received PORT COUNT
    python -m decoupled_serve.mirror.holding read COUNT

print the longest hold in seconds, and the processor time of it all, as JSON. The first receives that many pieces from an
arm at a port of this machine, as a copy; the second reads as many pieces of a tool call.
"""

import asyncio
import gc
import json
import sys
import time
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager

from ..service.http.server import SWITCH_INTERVAL
from .chat import said
from .config import ArmConfig, CopyConfig
from .exchange import Request
from .server import server_settings
from .upstream import Upstream

_BEAT = 0.001  # seconds between two looks at the clock
_PIECE = b'{"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"arguments":"a"}}]}}]}'


async def received(port: int, count: int) -> None:
    """Receive a copy's answer of so many bytes."""
    arm = Upstream(
        ArmConfig(name="pieces", url=f"http://127.0.0.1:{port}", timeout=600.0),
        CopyConfig(timeout=600.0, answer_limit=count),
    )
    answer = await arm.copy(Request("GET", "/", (("host", "a"),)))
    await arm.close()
    if len(answer.body) != count:
        raise ConnectionError(answer.problem)


async def read(body: bytes) -> None:
    """Read a streamed answer, as for a judge."""
    await asyncio.to_thread(said, body)


async def _timed(work: Coroutine[object, object, None]) -> dict[str, float]:
    async with _clock() as longest:
        start = time.process_time()
        await work
        seconds = time.process_time() - start
    return {"longest": longest[0], "processor": seconds}


@asynccontextmanager
async def _clock() -> AsyncIterator[list[float]]:
    """The longest time by which a beat of the loop came late, because this process was at work.

    It may also come late because the machine is at work for others: that takes no processor time
    of this process.
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


def main(kind: str, *numbers: str) -> None:
    """Measure on an event loop as a mirror sets it up."""
    if kind == "received":
        work = received(int(numbers[0]), int(numbers[1]))
    else:
        work = read(b"data: %s\n\n" % _PIECE * int(numbers[0]))
    gc.collect()
    gc.freeze()
    sys.setswitchinterval(SWITCH_INTERVAL)
    settings = server_settings(None, 1, 1.0)
    with asyncio.Runner(loop_factory=settings.get_loop_factory()) as runner:
        print(json.dumps(runner.run(_timed(work))))


if __name__ == "__main__":
    main(*sys.argv[1:])
