"""Measures how long answers in pieces of a byte hold up a mirror; an arm that gives such answers is at hand.

    python -m decoupled_lab.bench.pieces 1000000

prints the port of an arm that answers with so many pieces.
"""

import asyncio
import json
import subprocess
import sys
from collections.abc import Iterator

from .service import server
from .timing import Rate, Reading

COUNT = 1_000_000  # pieces, of a byte each
LONGEST_MS = 5.0  # for which others may have to wait
_HEAD = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n"


def measure_pieces(repetitions: int, count: int = COUNT) -> Iterator[Rate | Reading]:
    """What it takes to receive so many pieces, and to read as many as an answer of a model."""
    size = f"{count / 1e6:g} MB in pieces of a byte"
    times = range(min(repetitions, 3))
    with server("decoupled_lab.bench.pieces", str(count)) as (port, _):
        received = [_measured("received", str(port), str(count)) for _ in times]
    read = [_measured("read", str(count)) for _ in times]
    for name, found in (("received as a copy", received), ("read as a tool call", read)):
        longest = 1e3 * min(each["longest"] for each in found)
        piece = 1e6 * min(each["processor"] for each in found) / count
        yield Reading(f"{size}, {name}: longest hold", longest, "ms", LONGEST_MS)
        yield Rate(f"{size}, {name}: work for a piece", piece, "us")


def _measured(*words: str) -> dict[str, float]:
    command = [sys.executable, "-m", "decoupled_serve.mirror.holding", *words]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    found: dict[str, float] = json.loads(done.stdout)
    return found


async def _serve(count: int) -> None:
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
