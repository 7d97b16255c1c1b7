"""Answers in very many small pieces: work that grows with their bytes alone, and turns for everybody else."""

import asyncio
import signal
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Any

import pytest

from decoupled_serve import nested
from decoupled_serve.mirror import chat
from decoupled_serve.mirror.arm_connection import PIECES_A_TURN
from decoupled_serve.mirror.chat import said
from decoupled_serve.mirror.config import ArmConfig, CopyConfig
from decoupled_serve.mirror.exchange import Request
from decoupled_serve.mirror.upstream import Upstream
from support.mirrors.running import Start, asking, commanded, connected
from support.waiting import wait_for
from support.wire import on_loop

CALL = (
    b'data: {"choices":[{"delta":{"tool_calls":[{"index":%d,"function":{"arguments":"a"}}]}}]}\n\n'
)
TEXT = b'data: {"choices":[{"index":%d,"delta":{"content":"a"}}]}\n\n'


def steps_of(function: Callable[[], object]) -> int:
    """How many instructions of Python a call takes, in functions of any module."""
    steps = 0

    def traced(frame: FrameType, event: str, argument: Any) -> Any:
        nonlocal steps
        frame.f_trace_opcodes = True
        frame.f_trace_lines = False
        steps += event == "opcode"
        return traced

    before = sys.gettrace()
    sys.settrace(traced)
    try:
        function()
    finally:
        sys.settrace(before)
    return steps


@pytest.mark.parametrize("piece", [CALL, TEXT], ids=["calls", "messages"])
@pytest.mark.parametrize("are_many", [True, False], ids=["of many", "of one"])
def test_four_times_as_many_pieces_take_four_times_as_many_steps(
    piece: bytes, are_many: bool
) -> None:
    few, many = (
        b"".join(piece % (number * are_many) for number in range(count)) for count in (150, 600)
    )
    steps = steps_of(lambda: said(many))
    assert steps < 4.2 * steps_of(lambda: said(few))
    assert steps < 600 * 2_000


class Counted(str):
    """A text that counts the characters that are copied when it is joined to another."""

    __slots__ = ()
    copied = 0

    def __str__(self) -> str:
        return self

    def __add__(self, other: str) -> "Counted":
        return Counted.of(str.__add__(self, other))

    def __radd__(self, other: str) -> "Counted":
        return Counted.of(str.__add__(other, self))

    @staticmethod
    def of(text: str) -> "Counted":
        Counted.copied += len(text)
        return Counted(text)


def counted(content: Any) -> Any:
    if isinstance(content, dict):
        return {name: counted(value) for name, value in content.items()}
    if isinstance(content, list):
        return [counted(value) for value in content]
    return Counted(content) if isinstance(content, str) else content


@pytest.mark.parametrize("piece", [CALL, TEXT], ids=["calls", "messages"])
def test_each_character_is_copied_a_few_times_at_most(
    piece: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    parsed = nested.parsed
    monkeypatch.setattr(chat, "parsed", lambda body: counted(parsed(body)))
    monkeypatch.setattr(Counted, "copied", 0)
    assert said((piece % 0) * 3_000).count("a") >= 3_000
    assert Counted.copied <= 10 * 3_000


PIECE = b"1\r\na\r\n"
HEAD = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"


@on_loop
async def test_no_more_than_a_few_pieces_are_read_between_two_turns_of_others() -> None:
    """Pieces of a byte, of which thousands are in each read from the socket."""
    count = 30_000

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(HEAD + PIECE * count + b"0\r\n\r\n")
        with suppress(ConnectionError):
            await writer.drain()
        writer.close()

    turns = 0

    async def others() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    arm = Upstream(ArmConfig(name="a", url=url), CopyConfig())
    waiting = asyncio.create_task(others())
    found = await arm.copy(Request("GET", "/", (("host", "a"),)))
    waiting.cancel()
    await arm.close()
    server.close()
    assert (found.body, found.problem) == (b"a" * count, None)
    assert turns >= count / PIECES_A_TURN


@contextmanager
def endless_arm() -> Iterator[str]:
    """An arm that sends pieces of a byte until the other side hangs up."""

    def serve(connection: socket.socket) -> None:
        with connection, suppress(OSError):
            connection.recv(65_536)
            connection.sendall(HEAD)
            while True:
                connection.sendall(PIECE * 10_000)

    with socket.create_server(("127.0.0.1", 0)) as listener:

        def accept() -> None:
            with suppress(OSError):
                while True:
                    connection, _ = listener.accept()
                    threading.Thread(target=serve, args=(connection,), daemon=True).start()

        thread = threading.Thread(target=accept, daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            listener.shutdown(socket.SHUT_RDWR)
    thread.join(60)


def read_on(client: socket.socket) -> None:
    with suppress(OSError):
        while client.recv(65_536):
            pass


def test_sigterm_is_served_while_pieces_arrive(start: Start) -> None:
    """An arm sends pieces of a byte without end. The mirror notices the signal, and ends after its drain."""
    with endless_arm() as url:
        file = start.file("drain = 1\n[mirror]\nshare = 1.0\n")
        text = file.read_text()
        for arm in start.arms.values():
            text = text.replace(arm.url, url)
        file.write_text(text)
        with commanded(file) as (process, console, address), connected(address) as client:
            client.sendall(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
            received = 0
            while received < 100_000:
                received += len(client.recv(65_536))
            reading = threading.Thread(target=read_on, args=(client,), daemon=True)
            reading.start()
            assert asking.get(f"{console}/mirror").json()["in_flight"] == 1
            process.send_signal(signal.SIGTERM)
            log = file.with_suffix(".log")
            wait_for(lambda: "ending: open answers" in log.read_text(), "the signal to be served")
            assert process.wait(60) == 0
            reading.join(60)
