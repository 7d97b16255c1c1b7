"""Equal arms behind a real mirror, one of which gives its bad answers late: how often is a verdict wrong?

Half of the answers of each arm are bad, at random. The slow arm holds a bad answer until it has got a number of newer
requests; it gives the others at once. So the first losses of the slow arm are all good, and a verdict that takes them as
they come is wrong. Nothing is late by the clock, so a busy machine changes nothing.
"""

import asyncio
import random
import subprocess
import sys
import urllib.request
from collections import Counter, deque
from contextlib import suppress
from pathlib import Path
from typing import Any

CLIENTS = 16
NEWER = 200
"""The slow arm gives a bad answer when it has got so many newer requests."""


class Arm:
    """An upstream whose answers are bad at random, and which may hold them."""

    def __init__(self, seed: int, is_slow: bool) -> None:
        self._chance, self._is_slow = random.Random(seed), is_slow
        self._requests = 0
        self._held: deque[tuple[int, asyncio.Event]] = deque()

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer the requests of a connection."""
        with suppress(ConnectionError, asyncio.IncompleteReadError):
            while request := await reader.readuntil(b"\r\n\r\n"):
                if request.startswith(b"GET /release "):
                    self._is_slow = False
                    self._release(self._requests)
                    is_bad = False
                else:
                    is_bad = await self._next()
                writer.write(
                    b"HTTP/1.1 %d OK\r\nContent-Length: 0\r\n\r\n" % (500 if is_bad else 200)
                )
                await writer.drain()
        writer.close()

    async def _next(self) -> bool:
        """Whether the next answer is bad, once it may be given."""
        self._requests += 1
        self._release(self._requests - NEWER)
        is_bad = self._chance.random() < 0.5
        if is_bad and self._is_slow:
            may_go = asyncio.Event()
            self._held.append((self._requests, may_go))
            await may_go.wait()
        return is_bad

    def _release(self, last: int) -> None:
        """Let the answers go that are held since this request or before."""
        while self._held and self._held[0][0] <= last:
            self._held.popleft()[1].set()


async def serve(seed: int, is_slow: bool) -> None:
    """Serve until the process ends."""
    server = await asyncio.start_server(Arm(seed, is_slow).answer, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


async def load(port: int, requests: int, patience: float) -> None:
    """Send the requests. A client leaves if it has no answer after so many seconds."""
    numbers = iter(range(requests))

    async def client() -> None:
        for _ in numbers:
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
            with suppress(TimeoutError, ConnectionError):
                async with asyncio.timeout(patience):
                    await reader.read()
            writer.close()

    await asyncio.gather(*(client() for _ in range(CLIENTS)))


def copies_of(status: dict[str, Any]) -> int:
    """How many requests were copied, counting those whose served answer stands for a copy."""
    counts: dict[str, int] = Counter(status["copied"]) + Counter(status["reused"])
    return sum(counts.values())


def verdict_of(
    folder: Path, requests: int, copies: int, slow: str, patience: float, seed: int
) -> tuple[bool, Any]:
    """Whether the verdict is wrong after so many requests and copies, and what the mirror counted."""
    from support.mirrors.running import Start, UpstreamProcess

    arms = {}
    try:
        for place, name in enumerate(("stable", "next")):
            kind = "slow" if name == slow else "prompt"
            command = [sys.executable, __file__, str(2 * seed + place), kind]
            process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
            assert process.stdout is not None
            arms[name] = UpstreamProcess(
                name, f"http://127.0.0.1:{int(process.stdout.readline())}", process
            )
        lines = (
            "[mirror]\nshare = 1.0\nconcurrency = 500\ntimeout = 300\n"
            f'[experiment]\nseed = {seed}\n[guardrails]\nincumbent = "stable"\n'
        )
        with Start(arms, folder).embedded(lines) as running:
            port = int(running.url.rpartition(":")[2])
            asyncio.run(load(port, requests, patience))
            while copies_of(running.status()) < copies:  # a busy machine copies fewer requests
                asyncio.run(load(port, requests // 4, patience))
            for arm in arms.values():
                urllib.request.urlopen(f"{arm.url}/release").close()
            counts = running.settled()
            known = asyncio.run(running.backend.known())
    finally:
        for arm in arms.values():
            arm.kill()
            if arm.process.stdout is not None:
                arm.process.stdout.close()
    return bool(known.decided or known.released), counts | {"text": known.text}


if __name__ == "__main__":
    asyncio.run(serve(int(sys.argv[1]), sys.argv[2] == "slow"))
