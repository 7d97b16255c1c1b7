"""Measures what the proxy of `decoupled mirror` adds to a request, beside a plain proxy of the same libraries.

Every server is a process of its own. One client sends requests to two of them in turn, a few at a time, so that a
noisy machine affects both equally.
"""

import asyncio
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import numpy as np

from decoupled.base import Floats

from .pieces import measure_pieces
from .service import connected, server
from .timing import Rate, Ratio, Reading

AT_ONCE = 20  # requests to one side before it is the other's turn
TURNS = 10  # of each side, in a repetition
WARM_UP = 100
COPIES = {"ok": "answers", "hang": "hangs", "huge": "sends 64 MiB", "broken": "breaks off"}


def measure(repetitions: int = 15) -> Iterator[Ratio | Rate | Reading]:
    """Every line of this group."""
    yield from measure_pieces(repetitions)
    with ExitStack() as servers:
        start = servers.enter_context
        upstreams = {
            kind: start(server("decoupled_lab.bench.plain_proxy", "upstream", kind))[0]
            for kind in COPIES
        }
        address = f"http://127.0.0.1:{upstreams['ok']}"
        plain, _ = start(server("decoupled_lab.bench.plain_proxy", "proxy", address))
        without = start(mirror(upstreams["ok"], upstreams["ok"], share=0.0))
        mirroring = start(mirror(upstreams["ok"], upstreams["ok"]))
        yield from compared(
            "plain proxy", plain, "decoupled mirror, 5 % mirrored", mirroring, repetitions
        )
        yield from compared(
            "nothing mirrored", without, "nothing mirrored, again", without, repetitions
        )
        for kind, told in COPIES.items():
            with mirror(upstreams["ok"], upstreams[kind]) as port:
                rival = f"5 % mirrored, the copy {told}"
                yield from compared("nothing mirrored", without, rival, port, repetitions)


def compared(
    name: str, port: int, rival: str, rival_port: int, repetitions: int
) -> Iterator[Ratio]:
    """The median time of a request, and its 99th percentile, on two sides."""
    times, rival_times = asyncio.run(_timed(port, rival_port, repetitions))
    groups = [np.array_split(each, max(1, min(5, repetitions))) for each in (times, rival_times)]
    for quantile, told in ((0.5, "median"), (0.99, "99th percentile")):
        ours, theirs = (float(np.quantile(each, quantile)) for each in (times, rival_times))
        ratios = [
            float(np.quantile(right, quantile) / np.quantile(left, quantile))
            for left, right in zip(*groups, strict=True)
        ]
        middle = float(np.median(ratios))  # within its range, as the ratio of the whole need not be
        yield Ratio(f"{name}, {told}", ours, rival, theirs, middle, min(ratios), max(ratios))


async def _timed(port: int, rival_port: int, repetitions: int) -> tuple[Floats, Floats]:
    """Seconds of each request, of both sides."""
    sides = [await connected(each) for each in (port, rival_port)]
    times: list[list[float]] = [[], []]
    for side in sides:
        for _ in range(WARM_UP):
            await side.ask("GET", "/answer")
    for _ in range(repetitions * TURNS):
        for side, taken in zip(sides, times, strict=True):
            for _ in range(AT_ONCE):
                start = time.perf_counter()
                await side.ask("GET", "/answer", expected=200)
                taken.append(time.perf_counter() - start)
    for side in sides:
        side.close()
    return np.array(times[0]), np.array(times[1])


@contextmanager
def mirror(served: int, copied: int, share: float = 0.1) -> Iterator[int]:
    """`decoupled mirror` with an upstream that serves everything and another that only gets copies.

    The policy explores evenly, so half of what is mirrored goes to each. The answer that was served stands for a copy to
    the first, so a share of 0.1 sends copies of 5 % of the requests.
    """
    arms = "".join(
        f'[[arm]]\nname = "{name}"\nurl = "http://127.0.0.1:{port}"\n'
        for name, port in (("served", served), ("copied", copied))
    )
    copies = f'[mirror]\nshare = {share}\nheaders = {{ X-Mirrored = "1" }}\n'
    rules = '[experiment]\npolicy = "FollowTheLeader"\n[guardrails]\npinned = "served"\n'
    with tempfile.TemporaryDirectory() as folder:
        config = Path(folder) / "mirror.toml"
        config.write_text(
            f'listen = "127.0.0.1:0"\nconsole = false\ndrain = 1\n{copies}{rules}{arms}'
        )
        with server("decoupled", "mirror", str(config)) as (port, _):
            yield port
