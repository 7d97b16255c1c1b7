"""Equal arms behind a real mirror, one of which gives its bad answers late: how often is a verdict wrong?

Half of the answers of each arm are bad, at random. Those of the slow arm come so many seconds later; the other answers
are at once. So the first losses of the slow arm are all good, and a verdict that takes them as they come is wrong.
"""

import asyncio
import random
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

CLIENTS = 16


async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, seconds: float) -> None:
    with suppress(ConnectionError, asyncio.IncompleteReadError):
        while await reader.readuntil(b"\r\n\r\n"):
            bad = random.random() < 0.5
            if bad:
                await asyncio.sleep(seconds)
            writer.write(b"HTTP/1.1 %d OK\r\nContent-Length: 0\r\n\r\n" % (500 if bad else 200))
            await writer.drain()
    writer.close()


async def serve(seconds: float) -> None:
    server = await asyncio.start_server(
        lambda reader, writer: answer(reader, writer, seconds), "127.0.0.1", 0
    )
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


async def load(port: int, requests: int, patience: float) -> None:
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


def verdict_of(folder: Path, requests: int, seconds: float, slow: str, patience: float) -> tuple[bool, Any]:
    """Whether the verdict is wrong after so many requests, and what the mirror counted."""
    from support.mirrors.running import Start, UpstreamProcess

    arms = {}
    try:
        for name in ("stable", "next"):
            command = [sys.executable, __file__, str(seconds if name == slow else 0.0)]
            process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
            assert process.stdout is not None
            arms[name] = UpstreamProcess(
                name, f"http://127.0.0.1:{int(process.stdout.readline())}", process
            )
        lines = '[mirror]\nshare = 1.0\nconcurrency = 500\n[guardrails]\nincumbent = "stable"\n'
        with Start(arms, folder).embedded(lines) as running:
            asyncio.run(load(int(running.url.rpartition(":")[2]), requests, patience))
            counts = running.settled()
            known = asyncio.run(running.backend.known())
    finally:
        for arm in arms.values():
            arm.kill()
            if arm.process.stdout is not None:
                arm.process.stdout.close()
    return bool(known.decided or known.released), counts | {"text": known.text}


if __name__ == "__main__":
    asyncio.run(serve(float(sys.argv[1])))
