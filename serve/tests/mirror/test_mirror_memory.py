"""The memory of a mirror stays flat, whatever becomes of its copies."""

import asyncio
from pathlib import Path

import httpx

from support.memory import memory_of
from support.mirrors.running import asking, commanded, upstreams, write_config
from support.reliability.sizes import SIZES
from support.waiting import wait_for

CLIENTS = 8
# Copies that are answered, that hang, break off or are cut; and a judge that fails for some of them.
TARGETS = ("/ok", "/ok?copy=die", "/ok?copy=bytes:200000", "/ok?copy=bytes:90000", "/ok?copy=hang")
LINES = """drain = 1
[mirror]
share = 0.5
queue = 50
answer_limit = 100000
timeout = 1.0
headers = { X-Mirrored = "1" }
[loss.judge]
python = "judge_of_memory:half"
attempts = 1
[experiment]
deadline_seconds = 5
policy = "FTPL"
"""
JUDGE = """
def half(request, served, mirrored):
    if len(mirrored.body) > 50000:
        raise ValueError("too long for me")
    return 0.5
"""


async def load(port: int, count: int) -> None:
    numbers = iter(range(count))

    async def client() -> None:
        async with httpx.AsyncClient(
            base_url=f"http://127.0.0.1:{port}", timeout=60.0
        ) as connection:
            for number in numbers:
                assert (await connection.get(TARGETS[number % len(TARGETS)])).status_code == 200

    await asyncio.gather(*(client() for _ in range(CLIENTS)))


def test_memory_stays_flat(tmp_path: Path) -> None:
    (tmp_path / "judge_of_memory.py").write_text(JUDGE)
    with upstreams("stable", "next") as arms:
        file = write_config(tmp_path, arms, LINES)
        with commanded(file) as (process, console, url):
            port = int(url.rpartition(":")[2])
            asyncio.run(load(port, SIZES.mirrored // 4))
            before = memory_of(process.pid)
            asyncio.run(load(port, SIZES.mirrored - SIZES.mirrored // 4))
            after = memory_of(process.pid)
            status = wait_for(
                lambda: (now := asking.get(f"{console}/mirror").json())["queue"] == 0 and now
            )
    print(
        f"{SIZES.mirrored:,} requests: {before:.1f} MiB after a quarter, {after:.1f} at the end; {status}"
    )
    # A mirror that kept the bodies of its copies would gain 100 kB for each of some hundred requests here.
    assert after - before < 15.0
    assert status["queue_bytes"] == 0
