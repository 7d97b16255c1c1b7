"""One arm: its connections, and how a request and a copy are sent to it."""

import asyncio
import socket
import ssl
import time
from collections.abc import Sequence
from urllib.parse import urlsplit

import httpcore

from ..base.extras import skip_failing_imports
from .bodies import Content, Recording, Upload
from .config import ArmConfig, CopyConfig
from .exchange import Answer, Request
from .headers import Raw, as_bytes, as_text, for_arm

skip_failing_imports("sniffio")  # httpcore tries it several times in each request

CONNECT_SECONDS = 5.0
# Many servers close an idle connection after 5 s; a request must not be sent into one that is closing.
IDLE_SECONDS = 4.0
# A huge answer to a copy must not fill buffers that it takes milliseconds to receive and to throw away.
_SMALL_WINDOW = [(socket.SOL_SOCKET, socket.SO_RCVBUF, 2**17)]
_SAFE = frozenset(("GET", "HEAD", "OPTIONS"))
_LENGTH = frozenset((b"content-length", b"transfer-encoding"))
_NOT_SHOWN = frozenset((b"set-cookie",))  # a credential that an arm hands out


class NoAnswer(Exception):  # noqa: N818
    """An arm gave no answer. `status` is what a client is told."""

    def __init__(self, arm: str, problem: str, status: int = 502) -> None:
        super().__init__(f"arm {arm!r}: {problem}")
        self.problem, self.status = problem, status


class Unreachable(NoAnswer):
    """Nothing was sent, because no connection could be made."""


class Upstream:
    """An arm that can be asked. Copies have connections of their own, so they never make a client wait."""

    def __init__(self, arm: ArmConfig, copies: CopyConfig, trust: ssl.SSLContext | None = None) -> None:
        parts = urlsplit(arm.url)
        self.config, self.name = arm, arm.name
        self._scheme, self._host = parts.scheme.encode(), (parts.hostname or "").encode()
        self._port, self._prefix = parts.port, parts.path.rstrip("/").encode()
        self._netloc = parts.netloc.encode()
        self._own, self._marks = as_bytes(arm.headers), as_bytes(copies.headers)
        passed = {name.lower() for name in arm.pass_credentials}
        self.withheld = frozenset(name.encode() for name in copies.all_credentials() - passed)
        self._served = httpcore.AsyncConnectionPool(
            trust, max_connections=None, keepalive_expiry=IDLE_SECONDS
        )
        self._copies = httpcore.AsyncConnectionPool(
            trust, max_connections=copies.concurrency, keepalive_expiry=IDLE_SECONDS, socket_options=_SMALL_WINDOW
        )  # fmt: skip
        self._timeouts = _timeouts(arm.timeout)
        self._copy_timeouts = _timeouts(min(arm.timeout, copies.timeout))
        self._limit, self._copy_seconds = copies.answer_limit, copies.timeout

    @property
    def port(self) -> int:
        """The port that it listens on."""
        return self._port or (443 if self._scheme == b"https" else 80)

    @property
    def host(self) -> str:
        """The host that it runs on."""
        return self._host.decode()

    def headers(
        self, headers: Raw, client: str | None, scheme: str, *, copy: bool = False
    ) -> list[tuple[bytes, bytes]]:
        """The headers of a client's request as this arm gets them; those of a copy lack what `copy` adds."""
        host = self._netloc
        if self.config.preserve_host:
            host = next((value for name, value in headers if name == b"host"), host)
        own = () if copy else self._own
        found = for_arm(headers, host=host, own=own, withheld=self.withheld, client=client, scheme=scheme)
        return [each for each in found if each[0] not in _LENGTH] if copy else found

    async def serve(
        self, method: str, target: bytes, headers: Raw, body: Content | Upload
    ) -> httpcore.Response:
        """Ask for a client. The body of the answer is still to be read, and the response to be closed."""
        request = self._request(method, target, headers, body, self._timeouts)
        try:
            return await self._asked(self._served, request)
        except NoAnswer as error:
            # The arm may have closed an idle connection at this moment. A safe request can be asked again.
            if isinstance(error, Unreachable) or error.status == 504 or method not in _SAFE:
                raise
            if not isinstance(body, Content) or body.kept:
                raise
        return await self._asked(
            self._served, self._request(method, target, headers, Content(), self._timeouts)
        )

    async def copy(self, request: Request) -> Answer:
        """Ask once more with a copy that nobody waits for. Every failure is an answer without a status."""
        body, recording = Content(request.body), Recording(self._limit)
        added = [*self._own, *self._marks]
        replaced = {name for name, _ in added}
        headers = [each for each in as_bytes(request.headers) if each[0] not in replaced] + added
        if request.body:
            headers.append((b"content-length", str(len(request.body)).encode()))
        sent = self._request(
            request.method, request.target.encode("latin-1"), headers, body, self._copy_timeouts
        )
        start = time.perf_counter()
        response: httpcore.Response | None = None
        first: float | None = None
        problem: str | None = None
        try:
            async with asyncio.timeout(self._copy_seconds):
                response = await self._asked(self._copies, sent)
                first = time.perf_counter()
                await _record(response, recording)
        except TimeoutError:
            problem = f"no whole answer within {self._copy_seconds:g} s"
        except NoAnswer as error:
            problem = error.problem
        except (httpcore.NetworkError, httpcore.ProtocolError, httpcore.TimeoutException) as error:
            problem = f"the answer broke off ({type(error).__name__})"
        return self.answer(response, recording, body.sent or start, first, problem)

    def answer(
        self,
        response: httpcore.Response | None,
        recording: Recording,
        sent: float,
        first: float | None,
        problem: str | None = None,
    ) -> Answer:
        """What was recorded of an answer. `sent` and `first` are times: of the request's end, of the first byte."""
        return Answer(
            self.name,
            None if response is None else response.status,
            () if response is None else as_text(response.headers, _NOT_SHOWN),
            recording.body,
            recording.size,
            None if first is None else max(0.0, first - sent),
            max(0.0, time.perf_counter() - sent),
            self.config.cost,
            problem is None and recording.whole,
            problem,
        )

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
                request = self._request("GET", target, headers, Content(), self._copy_timeouts)
                response = await self._asked(self._served, request)
                try:
                    return 200 <= response.status < 300
                finally:
                    await response.aclose()
        except (TimeoutError, OSError, NoAnswer):
            return False

    async def close(self) -> None:
        """Close all connections."""
        await self._served.aclose()
        await self._copies.aclose()

    def _request(
        self,
        method: str,
        target: bytes,
        headers: Raw,
        body: Content | Upload,
        timeouts: dict[str, float],
    ) -> httpcore.Request:
        url = httpcore.URL(
            scheme=self._scheme, host=self._host, port=self._port, target=self._prefix + target
        )
        return httpcore.Request(
            method.encode("latin-1"), url, headers=headers, content=body, extensions={"timeout": timeouts}
        )

    async def _asked(
        self, pool: httpcore.AsyncConnectionPool, request: httpcore.Request
    ) -> httpcore.Response:
        try:
            response = await pool.handle_async_request(request)
        except (httpcore.ConnectError, httpcore.ConnectTimeout) as error:
            raise Unreachable(self.name, f"cannot be connected to ({type(error).__name__})") from None
        except httpcore.TimeoutException as error:
            raise NoAnswer(self.name, f"did not answer in time ({type(error).__name__})", 504) from None
        except httpcore.LocalProtocolError as error:
            raise NoAnswer(self.name, f"the request cannot be passed on ({error})", 400) from None
        except (httpcore.NetworkError, httpcore.RemoteProtocolError) as error:
            raise NoAnswer(self.name, f"gave no valid answer ({type(error).__name__}: {error})") from None
        if not 200 <= response.status <= 599:
            await response.aclose()
            raise NoAnswer(
                self.name, f"answered with the status {response.status}, which HTTP does not have"
            )
        return response


async def _record(response: httpcore.Response, recording: Recording) -> None:
    """Read an answer up to the limit, and hang up there."""
    try:
        async for part in response.aiter_stream():
            recording.add(part)
            if not recording.whole:
                return
    finally:
        await response.aclose()


def _timeouts(seconds: float) -> dict[str, float]:
    return {"connect": min(seconds, CONNECT_SECONDS), "read": seconds, "write": seconds, "pool": seconds}


def trust_of(arms: Sequence[ArmConfig]) -> ssl.SSLContext | None:
    """The certificates to trust, as `SSL_CERT_FILE` sets them; None if no arm uses TLS."""
    if not any(arm.url.startswith("https://") for arm in arms):
        return None
    import httpx  # loading certificates takes a while

    return httpx.create_ssl_context()
