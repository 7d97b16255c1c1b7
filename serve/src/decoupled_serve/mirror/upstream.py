"""Sends requests and copies to an arm, and tracks which arms are up."""

import asyncio
import json
import logging
import socket
import ssl
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any
from urllib.parse import urlsplit

import h11

from .arm_connection import ArmConnection, Pool
from .arm_connection import BrokenOff as BrokenOff
from .bodies import Body, Content, Recording, json_object, with_fields
from .config import ArmConfig, CopyConfig
from .exchange import Answer, Request, Unreadable, expanded, readable
from .headers import Raw, as_bytes, as_text, for_arm
from .spending import stated_cost

CONNECT_SECONDS = 5.0
CHECK_EVERY, CHECK_SECONDS = 5.0, 2.0  # between two health checks of an arm, and for one
# A huge answer to a copy must not fill buffers that it takes milliseconds to receive and to throw away.
_SMALL_WINDOW = (socket.SOL_SOCKET, socket.SO_RCVBUF, 2**17)
_SAFE = frozenset(("GET", "HEAD", "OPTIONS"))
LENGTH = frozenset((b"content-length", b"transfer-encoding"))
_NOT_SHOWN = frozenset((b"set-cookie",))  # a credential that an arm hands out
_log = logging.getLogger("decoupled.mirror")


class NoAnswer(Exception):  # noqa: N818
    """An arm gave no answer. `status` is what a client is told."""

    def __init__(self, arm: str, problem: str, status: int = 502) -> None:
        super().__init__(f"arm {arm!r}: {problem}")
        self.problem, self.status = problem, status


class ArmUnreachable(NoAnswer):
    """Nothing was sent, because no connection could be made."""


class Opened:
    """An answer that has begun. Close it, whether it was read to its end or not."""

    def __init__(
        self, pool: Pool, connection: ArmConnection, head: h11.Response, seconds: float
    ) -> None:
        self._pool, self._connection, self._seconds = pool, connection, seconds
        self.status, self.headers = head.status_code, head.headers.raw_items()

    def parts(self) -> AsyncIterator[bytes]:
        """The body as it comes; `BrokenOff` or `TimeoutError` if its end does not come."""
        return self._connection.parts(self._seconds)

    def close(self) -> None:
        """Give the connection back."""
        self._pool.put(self._connection)


class Upstream:
    """An arm that can be asked. Copies have connections of their own, so they never make a client wait."""

    def __init__(
        self, arm: ArmConfig, copies: CopyConfig, trust: ssl.SSLContext | None = None
    ) -> None:
        parts = urlsplit(arm.url)
        self.config, self.name = arm, arm.name
        secure = parts.scheme == "https"
        self.host, self.port = parts.hostname or "", parts.port or (443 if secure else 80)
        self._netloc, self._prefix = parts.netloc.encode(), parts.path.rstrip("/").encode()
        self._own, self._marks = as_bytes(arm.headers.items()), as_bytes(copies.headers.items())
        passed = {name.lower() for name in arm.pass_credentials}
        self.withheld = frozenset(name.encode() for name in copies.all_credentials() - passed)
        # A client must not pass for a copy, unless the mark also stands for a dry run of the client's own.
        marks = {name for name, _ in self._marks} - {(copies.dry_run_header or "").lower().encode()}
        self._dropped = self.withheld | marks
        self._served = Pool((self.host, self.port), trust if secure else None)
        self._copies = Pool((self.host, self.port), trust if secure else None, _SMALL_WINDOW)
        self._seconds = arm.timeout
        self._limit, self._copy_seconds = copies.answer_limit, copies.timeout
        self._warned = False

    def body(self, content: Mapping[str, Any]) -> bytes:
        """A JSON body with the fields that this arm sets."""
        return json.dumps(with_fields(content, self.config.fields)).encode()

    def headers(
        self, headers: Raw, client: str | None, scheme: str, *, copy: bool = False
    ) -> list[tuple[bytes, bytes]]:
        """The headers of a client's request as this arm gets them; those of a copy lack what `copy` adds."""
        host = self._netloc
        if self.config.preserve_host:
            host = next((value for name, value in headers if name == b"host"), host)
        own = () if copy else self._own
        found = for_arm(
            headers, host=host, own=own, dropped=self._dropped, client=client, scheme=scheme
        )
        return [each for each in found if each[0] not in LENGTH] if copy else found

    async def serve(self, method: str, target: bytes, headers: Raw, body: Body) -> Opened:
        """Ask for a client. The body of the answer is still to be read, and the answer to be closed."""
        return await self._asked(self._served, method, target, headers, body, self._seconds)

    async def copy(self, request: Request) -> Answer:
        """Ask once more with a copy that nobody waits for. Every failure is an answer without a status."""
        content, recording = request.body, Recording(self._limit)
        if self.config.fields and (parsed := json_object(content)) is not None:
            content = self.body(parsed)
        body = Content(content)
        added = [*self._own, *self._marks]
        replaced = {name for name, _ in added}
        headers = [each for each in as_bytes(request.headers) if each[0] not in replaced] + added
        if content or request.method not in _SAFE:
            headers.append((b"content-length", str(len(content)).encode()))
        target = request.target.encode("latin-1")
        start, seconds = time.perf_counter(), min(self._seconds, self._copy_seconds)
        response: Opened | None = None
        first: float | None = None
        problem: str | None = None
        was_sent = True
        try:
            async with asyncio.timeout(self._copy_seconds):
                response = await self._asked(
                    self._copies, request.method, target, headers, body, seconds
                )
                first = time.perf_counter()
                await _record(response, recording)
        except TimeoutError:
            problem = f"no whole answer within {self._copy_seconds:g} s"
        except NoAnswer as error:
            problem = error.problem
            was_sent = not isinstance(error, ArmUnreachable)
        except BrokenOff as error:
            problem = f"the answer broke off ({error})"
        sent = body.sent or start
        return self.answer(response, recording, sent, first, problem, was_sent=was_sent)

    def answer(
        self,
        response: Opened | None,
        recording: Recording,
        sent: float,
        first: float | None,
        problem: str | None = None,
        last: float | None = None,
        was_sent: bool = True,
    ) -> Answer:
        """What was recorded of an answer. `sent`, `first` and `last` are times: of the request's end, of bytes that came."""
        cost = self.config.unstated if was_sent else 0.0
        return Answer(
            self.name,
            None if response is None else response.status,
            () if response is None else as_text(response.headers, _NOT_SHOWN),
            recording.body,
            recording.size,
            None if first is None else max(0.0, first - sent),
            max(0.0, (last or time.perf_counter()) - sent),
            cost,
            problem is None and recording.whole,
            problem,
        )

    def read(self, answer: Answer, *, is_seen: bool) -> Answer:
        """The answer with what it says that it cost. Reading it may take a while.

        `is_seen` is whether somebody looks at its body. `Unreadable` if what is needed of it cannot be read, or if it says
        something that is no price: its call then counts as the dearest.
        """
        config = self.config
        dearest = config.dearest if config.states_cost else None
        try:
            in_header = (
                config.cost_header is not None and answer.header(config.cost_header) is not None
            )
            if is_seen or (config.prices and not in_header):
                readable(answer, self._limit)
            if not config.states_cost:
                return answer
            stated = stated_cost(expanded(answer, self._limit), config.cost_header, config.prices)
        except Exception as error:
            raise Unreadable.of(error, dearest) from error
        if stated is not None:
            return replace(answer, cost=stated)
        if not self._warned and answer.status is not None and answer.status < 300:
            self._warned = True
            told = "arm %r: an answer does not state its cost, and counts as cost = %g; this is said once"
            _log.warning(told, self.name, config.unstated)
        return answer

    async def healthy(self, seconds: float) -> bool:
        """Whether the arm answers its health check; without one, whether it can be connected to."""
        try:
            async with asyncio.timeout(seconds):
                if self.config.health is None:
                    _, writer = await asyncio.open_connection(self.host, self.port)
                    writer.close()
                    return True
                headers = [(b"host", self._netloc), *self._own]
                target = self.config.health.encode()
                response = await self._asked(
                    self._copies, "GET", target, headers, Content(), seconds
                )
                response.close()
                return 200 <= response.status < 300
        except (TimeoutError, OSError, NoAnswer):
            return False

    async def close(self) -> None:
        """Close all connections."""
        self._served.close()
        self._copies.close()

    async def _asked(
        self, pool: Pool, method: str, target: bytes, headers: Raw, body: Body, seconds: float
    ) -> Opened:
        try:
            head = h11.Request(method=method, target=self._prefix + target, headers=list(headers))
        except h11.LocalProtocolError as error:
            raise NoAnswer(self.name, f"the request cannot be passed on ({error})", 400) from None
        if (connection := pool.idle()) is not None:
            try:
                return await self._sent(pool, connection, head, body, seconds)
            except NoAnswer as error:
                # The arm may have closed an idle connection at this moment. A safe request can be asked again.
                repeatable = method in _SAFE and isinstance(body, Content) and not body.kept
                if not repeatable or error.status == 504:
                    raise
        try:
            connection = await pool.new(min(seconds, CONNECT_SECONDS))
        except (OSError, TimeoutError) as error:
            raise ArmUnreachable(
                self.name, f"cannot be connected to ({type(error).__name__})"
            ) from None
        return await self._sent(pool, connection, head, body, seconds)

    async def _sent(
        self, pool: Pool, connection: ArmConnection, head: h11.Request, body: Body, seconds: float
    ) -> Opened:
        try:
            try:
                await connection.send(head, body, seconds)
                return Opened(pool, connection, await connection.head(seconds), seconds)
            except BaseException:
                connection.close()
                raise
        except TimeoutError:
            raise NoAnswer(self.name, f"did not answer within {seconds:g} s", 504) from None
        except BrokenOff as error:
            raise NoAnswer(self.name, f"gave no valid answer ({error})") from None
        except h11.LocalProtocolError as error:
            raise NoAnswer(self.name, f"the request cannot be passed on ({error})", 400) from None


async def _record(response: Opened, recording: Recording) -> None:
    """Read an answer up to the limit, and hang up there."""
    try:
        async for part in response.parts():
            recording.add(part)
            if not recording.whole:
                return
    finally:
        response.close()


def trust_of(arms: Sequence[ArmConfig]) -> ssl.SSLContext | None:
    """The certificates to trust, as `SSL_CERT_FILE` sets them; None if no arm uses TLS."""
    if not any(arm.url.startswith("https://") for arm in arms):
        return None
    import httpx  # loading certificates takes a while

    return httpx.create_ssl_context()


class ArmHealth:
    """The arms that are up. `changed` is called with their names, None for all, when that changes.

    If every arm is down, all count as up: a client is better served by an error of an arm than by one of the proxy.
    """

    def __init__(
        self, arms: Sequence[Upstream], changed: Callable[[list[str] | None], None]
    ) -> None:
        self._arms, self._changed = arms, changed
        self._down: set[str] = set()
        self._tasks: list[asyncio.Task[None]] = []

    def up(self, name: str) -> bool:
        """Whether an arm is up."""
        return name not in self._down

    def failed(self, name: str) -> None:
        """Note that an arm could not be connected to."""
        self._note(name, up=False)

    async def start(self) -> None:
        """Check every arm that has a health check, then go on in the background."""
        await asyncio.gather(
            *(self._check(arm) for arm in self._arms if arm.config.health is not None)
        )
        self._tasks = [asyncio.create_task(self._watch(arm)) for arm in self._arms]

    async def stop(self) -> None:
        """End the checks."""
        for task in self._tasks:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task

    async def _watch(self, arm: Upstream) -> None:
        while True:
            await asyncio.sleep(CHECK_EVERY)
            if arm.config.health is not None or arm.name in self._down:
                await self._check(arm)

    async def _check(self, arm: Upstream) -> None:
        self._note(arm.name, up=await arm.healthy(CHECK_SECONDS))

    def _note(self, name: str, *, up: bool) -> None:
        if up == self.up(name):
            return
        self._down ^= {name}
        _log.log(
            logging.INFO if up else logging.WARNING, "arm %r: is %s", name, "up" if up else "down"
        )
        names = [arm.name for arm in self._arms if self.up(arm.name)]
        self._changed(names if self._down and names else None)
