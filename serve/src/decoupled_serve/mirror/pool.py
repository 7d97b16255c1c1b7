"""Pools the connections to one arm: one for each request on its way, and those that wait for the next."""

import asyncio
import ssl
from collections import deque

from .arm_connection import ArmConnection

# Many servers close an idle connection after 5 s; a request must not be sent into one that is closing.
IDLE_SECONDS = 4.0


class Pool:
    """Hands out connections, the one used last first. Taking one takes as long however many there are.

    Args:
        address: the host and port of the arm.
        trust: the certificates to trust; None without TLS.
        option: an option of every socket; None for none.
    """

    def __init__(
        self,
        address: tuple[str, int],
        trust: ssl.SSLContext | None,
        option: tuple[int, int, int] | None = None,
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
        connection = await ArmConnection.open(*self._address, self._trust, seconds)
        if self._option is not None:
            connection.set_option(self._option)
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
