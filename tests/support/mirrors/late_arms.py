"""Equal arms behind a real mirror, one of which gives its bad answers late: how often is a verdict wrong?

    python tests/support/mirrors/late_arms.py [RUNS] [REQUESTS] [SECONDS] [SLOW ARM] [CLIENT'S PATIENCE] [SLOTS]

Half of the answers of each arm are bad, at random. Those of the slow arm come so many seconds later; the other answers
are at once. So the first losses of the slow arm are all good, and a verdict that takes them as they come is wrong.
"""

import asyncio
import random
import subprocess
import sys
import tempfile
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


def verdict_of(
    folder: Path,
    requests: int,
    seconds: float,
    slow: str = "next",
    patience: float = 60.0,
    slots: int = 500,
) -> tuple[bool, Any]:
    """Whether the verdict is wrong after so many requests, and what the mirror counted."""
    from decoupled_serve.mirror.backend import Embedded
    from decoupled_serve.mirror.config_file import read_config
    from decoupled_serve.service.service import open_service
    from support.mirrors.running import UpstreamProcess, mirror, write_config

    arms = {}
    try:
        for name in ("stable", "next"):
            command = [sys.executable, __file__, "arm", str(seconds if name == slow else 0.0)]
            process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
            assert process.stdout is not None
            arms[name] = UpstreamProcess(
                name, f"http://127.0.0.1:{int(process.stdout.readline())}", process
            )
        lines = f'[mirror]\nshare = 1.0\nconcurrency = {slots}\n[guardrails]\nincumbent = "stable"\n'
        file = write_config(folder, arms, lines)
        backend = Embedded(open_service(folder / "store.db"), read_config(file))
        with mirror(file, backend) as running:
            asyncio.run(load(int(running.url.rpartition(":")[2]), requests, patience))
            counts = running.settled()
            known = asyncio.run(backend.known())
    finally:
        for arm in arms.values():
            arm.kill()
            if arm.process.stdout is not None:
                arm.process.stdout.close()
    return bool(known.decided or known.released), counts | {"text": known.text}


def main(runs: int, *options: Any) -> None:
    """Print how often it was wrong, and what was counted."""
    wrong = 0
    for _ in range(runs):
        with tempfile.TemporaryDirectory() as folder:
            found, counts = verdict_of(Path(folder), *options)
        wrong += found
        names = ("copied", "reused", "not_mirrored", "dropped")
        print(found, counts["text"], {name: counts[name] for name in names})
    print(f"{wrong} of {runs} verdicts were wrong")


if __name__ == "__main__":
    if sys.argv[1:2] == ["arm"]:
        asyncio.run(serve(float(sys.argv[2])))
    else:
        sys.path.insert(0, str(Path(__file__).parents[2]))
        defaults = ["20", "2000", "0.5", "next", "60", "500"]
        given = sys.argv[1:] + defaults[len(sys.argv) - 1 :]
        main(*(kind(each) for kind, each in zip((int, int, float, str, float, int), given, strict=True)))
