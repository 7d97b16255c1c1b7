"""Connections to one arm, and the pool of them. h11 does the framing: what ends a body, what may be reused, what is not HTTP."""

import asyncio
import re
import ssl
from collections import deque
from collections.abc import AsyncIterable, AsyncIterator
from typing import TypeAlias

import h11

# Bytes of an answer that wait in this process; beyond them the arm waits, because its client reads slowly.
MOST_UNREAD = 2**16
# As in the proxy's own server; h11 would take no more than 16 KiB.
LARGEST_HEAD = 2**16
# Many servers close an idle connection after 5 s; a request must not be sent into one that is closing.
IDLE_SECONDS = 4.0
# Bytes that no header may contain (RFC 9110, 5.5). h11 lets most of them pass.
_CONTROL = re.compile(rb"[\x00-\x08\x0a-\x1f\x7f]")
# Pieces of an answer that are passed on before others have their turn; each takes about 50 us.
PIECES_A_TURN = 32
_SocketOption: TypeAlias = tuple[int, int, int]
_Event: TypeAlias = "h11.Event | type[h11.NEED_DATA] | type[h11.PAUSED]"


class BrokenOff(Exception):  # noqa: N818
    """The connection ended, or what came is not HTTP."""


class ArmConnection(asyncio.BufferedProtocol):
    """Asks one request after another. Whoever holds it reads the whole answer, or closes it."""

    def __init__(self) -> None:
        self._http = h11.Connection(h11.CLIENT, LARGEST_HEAD)
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport = None  # type: ignore[assignment]
        self._buffer: bytearray | None = None  # none while the connection is idle
        self._unread = 0
        self._paused = False
        self._writable = asyncio.Event()
        self._writable.set()
        self._waiting: asyncio.Future[None] | None = None
        self._lost: str | None = None
        self._last = False  # whether the connection ends with this answer
        self.idle_since = 0.0

    # What the event loop calls

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Note the transport."""
        self._transport = transport

    def get_buffer(self, sizehint: int) -> bytearray:
        """The memory that the next read fills. Without it, the event loop would read 256 KiB at a time."""
        if self._buffer is None:
            self._buffer = bytearray(MOST_UNREAD)
        return self._buffer

    def buffer_updated(self, size: int) -> None:
        """Keep what came, and let the arm wait if it is much. What nobody asked for ends the connection."""
        if self._http.our_state is h11.IDLE or self._buffer is None:
            self._lose("sent what nobody asked for")
            return
        self._http.receive_data(bytes(memoryview(self._buffer)[:size]))
        self._unread += size
        if self._unread >= MOST_UNREAD and not self._paused:
            self._paused = True
            self._transport.pause_reading()
        self._wake()

    def eof_received(self) -> None:
        """The arm has closed its side; some answers end like that."""
        if self._lost is None:
            self._http.receive_data(b"")
            self._lost = "closed the connection"
        self._wake()

    def connection_lost(self, error: Exception | None) -> None:
        """The connection is gone."""
        if self._lost is None:
            self.eof_received() if error is None else self._lose(f"lost ({type(error).__name__})")
        self._writable.set()
        self._wake()

    def pause_writing(self) -> None:
        """The arm reads slowly."""
        self._writable.clear()

    def resume_writing(self) -> None:
        """It has read."""
        self._writable.set()

    # What the holder calls

    @property
    def reusable(self) -> bool:
        """Whether another request can be asked."""
        return self._lost is None and self._http.our_state is h11.IDLE

    async def send(self, head: h11.Request, body: AsyncIterable[bytes], seconds: float) -> None:
        """Send a request; `TimeoutError` if the arm takes no byte of it for so long.

        An arm may answer and close before it has the whole body, so what cannot be written is not an error.
        """
        self._write(head)
        async for part in body:
            self._write(h11.Data(data=part))
            if not self._writable.is_set():
                async with asyncio.timeout(seconds):
                    await self._writable.wait()
        self._write(h11.EndOfMessage())

    async def head(self, seconds: float) -> h11.Response:
        """The head of the answer; `TimeoutError` if nothing comes for so long."""
        while True:
            event = await self._event(seconds)
            if isinstance(event, h11.Response):
                _check(event)
                # What declares its length twice may be read in two ways, so nothing follows it (RFC 9112, 6.3).
                names = {name for name, _ in event.headers}
                self._last = {b"content-length", b"transfer-encoding"} <= names
                return event
            if not isinstance(event, h11.InformationalResponse) or event.status_code == 101:
                raise BrokenOff(self._lost or "answered something else than was asked")

    async def parts(self, seconds: float) -> AsyncIterator[bytes]:
        """The body of the answer as it comes; `TimeoutError` if nothing comes for so long.

        After a number of pieces others have their turn, also if more have come already: an arm that sends a byte at a
        time must not hold up everybody else.
        """
        pieces = 0
        while isinstance(event := await self._event(seconds), h11.Data):
            yield bytes(event.data)
            pieces += 1
            if pieces % PIECES_A_TURN == 0:
                await asyncio.sleep(0)
        if not isinstance(event, h11.EndOfMessage):
            raise BrokenOff("did not finish its answer")
        http = self._http
        done = http.our_state is h11.DONE and http.their_state is h11.DONE
        if done and not self._last and http.trailing_data == (b"", False):
            http.start_next_cycle()
            self._resume()
            self._buffer = None

    def close(self) -> None:
        """Hang up."""
        self._lost = self._lost or "closed here"
        self._transport.abort()

    def _write(self, event: h11.Event) -> None:
        data = self._http.send(event)
        if data and self._lost is None:
            self._transport.write(data)

    async def _event(self, seconds: float) -> _Event:
        while True:
            try:
                event = self._http.next_event()
            except h11.RemoteProtocolError as error:
                raise BrokenOff(self._lost or str(error)) from None
            if event is not h11.NEED_DATA:
                return event
            if self._lost is not None:
                raise BrokenOff(self._lost)
            self._resume()
            self._waiting = self._loop.create_future()
            try:
                async with asyncio.timeout(seconds):
                    await self._waiting
            finally:
                self._waiting = None

    def _resume(self) -> None:
        self._unread = 0
        if self._paused:
            self._paused = False
            if self._lost is None:
                self._transport.resume_reading()

    def _wake(self) -> None:
        if self._waiting is not None and not self._waiting.done():
            self._waiting.set_result(None)

    def _lose(self, reason: str) -> None:
        self._lost = reason
        self._transport.abort()


def _check(head: h11.Response) -> None:
    """Refuse the head of an answer that cannot be passed on. The only place where heads are checked beyond h11."""
    if head.status_code > 599:
        raise BrokenOff(f"answered with the status {head.status_code}, which HTTP does not have")
    for name, value in head.headers:
        if _CONTROL.search(value):
            raise BrokenOff(f"sent a control character in the header {name.decode('latin-1')}")


class Pool:
    """Hands out connections to an address, the one used last first; `trust` is None without TLS, `option` one of every socket."""

    def __init__(
        self,
        address: tuple[str, int],
        trust: ssl.SSLContext | None,
        option: _SocketOption | None = None,
    ) -> None:
        self._address, self._trust, self._option = address, trust, option
        self._idle: deque[ArmConnection] = deque()
        self._loop = asyncio.get_running_loop()

    def idle(self) -> ArmConnection | None:
        """A connection that was used before and can be used again; None if there is none."""
        self._drop_old()
        while self._idle:
            connection = self._idle.pop()
            if connection.reusable:
                return connection
        return None

    async def new(self, seconds: float) -> ArmConnection:
        """A new connection; `OSError` or `TimeoutError` if there can be none."""
        async with asyncio.timeout(seconds):
            connecting = self._loop.create_connection(
                ArmConnection, *self._address, ssl=self._trust
            )
            transport, connection = await connecting
        if self._option is not None:
            transport.get_extra_info("socket").setsockopt(*self._option)
        return connection

    def put(self, connection: ArmConnection) -> None:
        """Keep a connection for the next request, or close it if it cannot be used again."""
        if not connection.reusable:
            connection.close()
            return
        connection.idle_since = self._loop.time()
        self._idle.append(connection)
        self._drop_old()

    def close(self) -> None:
        """Close those that are idle."""
        while self._idle:
            self._idle.pop().close()

    def _drop_old(self) -> None:
        oldest = self._loop.time() - IDLE_SECONDS
        while self._idle and self._idle[0].idle_since < oldest:
            self._idle.popleft().close()
