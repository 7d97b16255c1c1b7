"""Servers in processes of their own, and connections to them that are as lean as they can be."""

import asyncio
import json
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from decoupled.policies import Policy

_LENGTH = re.compile(rb"content-length: (\d+)", re.IGNORECASE)


@contextmanager
def server(*arguments: str) -> Iterator[tuple[int, "subprocess.Popen[str]"]]:
    """A module of Python that serves, and prints its port; it is asked to end when the block ends."""
    command = [sys.executable, "-m", *arguments]
    quiet = subprocess.DEVNULL  # a mirror logs every copy that fails
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=quiet, text=True) as process:
        try:
            found = re.search(r":(\d+)\s*$", process.stdout.readline() if process.stdout else "")
            if found is None:
                raise ChildProcessError(f"{' '.join(command)}: did not start; run it to see why")
            yield int(found[1]), process
        finally:
            process.terminate()
            with suppress(subprocess.TimeoutExpired):
                process.wait(30)
            process.kill()


@contextmanager
def running_service(store: Path, *options: str) -> Iterator[tuple[int, "subprocess.Popen[str]"]]:
    """A service on a free port of the loopback."""
    with server("decoupled", "serve", "--store", str(store), "--port", "0", *options) as found:
        yield found


class Connection(asyncio.Protocol):
    """One keep-alive connection that sends a request and waits for its answer."""

    def __init__(self) -> None:
        self._transport: asyncio.Transport | None = None
        self._buffer = b""
        self._answer: asyncio.Future[tuple[int, bytes]] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        """Gather an answer until it is whole."""
        self._buffer += data
        end = self._buffer.find(b"\r\n\r\n")
        if end < 0:
            return
        found = _LENGTH.search(self._buffer, 0, end)
        size = end + 4 + (int(found[1]) if found else 0)
        if len(self._buffer) >= size and self._answer is not None and not self._answer.done():
            whole, self._buffer = self._buffer, self._buffer[size:]
            self._answer.set_result((int(whole[9:12]), whole[end + 4 : size]))

    def connection_lost(self, error: Exception | None) -> None:
        """Tell whoever waits."""
        if self._answer is not None and not self._answer.done():
            self._answer.set_exception(ConnectionError("the service hung up"))

    def close(self) -> None:
        """Hang up."""
        if self._transport is not None:
            self._transport.close()

    async def ask(self, method: str, path: str, body: bytes = b"", key: str = "") -> tuple[int, bytes]:
        """Send a request; the status and body of its answer."""
        assert self._transport is not None
        head = f"{method} {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n"
        if key:
            head += f"Idempotency-Key: {key}\r\n"
        self._answer = asyncio.get_running_loop().create_future()
        self._transport.write(head.encode() + b"\r\n" + body)
        return await self._answer


async def connected(port: int) -> Connection:
    """A connection to a server on this machine."""
    loop = asyncio.get_running_loop()
    return (await loop.create_connection(Connection, "127.0.0.1", port))[1]


async def create(connection: Connection, name: str, policy: Policy, arms: int | Sequence[str]) -> None:
    """Create an experiment, and wait until its policy is compiled."""
    settings = json.dumps({"policy": policy.to_dict(), "arms": arms}).encode()
    status, answer = 202, b""
    while status == 202:  # created, and its policy is being compiled
        status, answer = await connection.ask("PUT", f"/v1/experiments/{name}", settings)
    if status not in (200, 201):
        raise ConnectionError(f"the experiment was not created: {answer!r}")
