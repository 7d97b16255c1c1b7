"""The server's protocol, with limits on the head of each request: its size and its time.

The server itself would read headers without limit, take the trailers of a body for headers, and close a connection as
soon as the client has nothing more to send. The gateway limits bodies.
"""

import asyncio
import logging
from typing import Any, ClassVar

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from ...errors import BadRequest, HeadersTooLarge, ServiceError, TooSlow
from ...experiment.request_context import Origin, coming_from
from ..admission.limits import Limits
from .responses import REQUEST_IDS, refusal

_log = logging.getLogger("decoupled.access")
_LINE = 4  # bytes of a header beside its name and value


def connections_within(limits: Limits) -> type[asyncio.Protocol]:
    """The protocol for connections that keep to these limits."""
    return type("Connection", (LimitedConnection,), {"limits": limits})


class LimitedConnection(HttpToolsProtocol):
    """One connection. The parser calls the `on_` methods for the parts of a request, in their order."""

    limits: ClassVar[Limits]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._waiting = True  # for the headers of a request
        self._trailing = False  # whether trailers may follow, which look like headers to the parser
        self._received = 0  # bytes of either, in earlier reads
        self._reading = 0  # bytes of this read
        self._timer: asyncio.TimerHandle | None = None
        self._refusal: ServiceError | None = None
        self._ended = False  # whether nothing more is read
        self._earlier: list[Any] = []  # requests before the last one that still wait for their answers

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to wait for the first request."""
        super().connection_made(transport)
        self._start_timer()

    def data_received(self, data: bytes) -> None:
        """Parse what came, and wait for what is missing of a head."""
        self._reading, trailing = len(data), self._trailing
        super().data_received(data)
        if self._waiting or (trailing and self._trailing):
            self._received += self._reading
            if self._received > self.limits.headers:
                self._hang_up(self._too_large())
                return
        if not self._waiting:  # most requests arrive at once, and never need a timer
            if self._timer is not None:
                self._stop_timer()
        elif self._timer is None:
            self._start_timer()

    def eof_received(self) -> bool:  # type: ignore[override]
        """Stay open for what was asked, if the client has only closed its own half."""
        if not self._answering or self.scheme == "https":  # TLS cannot be half closed
            return False
        self.cycle.keep_alive = False
        return True

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop waiting. The server tells only the last request that its client is gone."""
        self._stop_timer()
        for cycle in self._earlier:
            cycle.disconnected = True
            cycle.message_event.set()
        super().connection_lost(exc)

    # What the parser finds

    def on_message_begin(self) -> None:
        """A request begins."""
        super().on_message_begin()
        self._waiting, self._trailing, self._received = True, False, 0

    def on_headers_complete(self) -> None:
        """Check the size of the headers, and begin the request."""
        self._waiting = False
        if self._received + self._reading > self.limits.headers and self._head() > self.limits.headers:
            self._refusal = self._too_large()
            raise self._refusal  # the server then asks for the response to what cannot be parsed
        if self.cycle is not None and not self.cycle.response_complete:
            self._earlier = [each for each in (*self._earlier, self.cycle) if not each.response_complete]
        super().on_headers_complete()
        # Trailers go where nobody reads them, because what is in front of the service did not check them as headers.
        self.headers = []

    def on_chunk_header(self) -> None:
        """A chunk of the body follows, or the trailers if it is the last."""
        self._trailing, self._received = True, 0

    def on_body(self, body: bytes) -> None:
        """A part of the body."""
        self._trailing = False
        super().on_body(body)

    def on_message_complete(self) -> None:
        """The request is complete."""
        self._trailing = False
        super().on_message_complete()

    def _head(self) -> int:
        return len(self.url) + sum(len(name) + len(value) + _LINE for name, value in self.headers)

    # Refusals

    def _too_large(self) -> HeadersTooLarge:
        rule = f"must not exceed {self.limits.headers:,} bytes"
        return HeadersTooLarge(f"headers: {rule}; send fewer, or a shorter address")

    def _start_timer(self) -> None:
        self._timer = self.loop.call_later(self.limits.headers_seconds, self._hang_up_late)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def send_400_response(self, msg: str) -> None:
        """Refuse what is not well-formed."""
        remedy = "check the client, and use https:// only if the service has a certificate"
        self._hang_up(self._refusal or BadRequest(f"request: is not well-formed HTTP/1.1; {remedy}"))

    def _unsupported_upgrade_warning(self) -> None:
        """Ignore the wish for another protocol, as HTTP allows."""

    def _hang_up_late(self) -> None:
        rule = f"must arrive within {self.limits.headers_seconds:g} s"
        self._hang_up(TooSlow(f"headers: {rule}; send them at once"))

    def _hang_up(self, error: ServiceError) -> None:
        self._stop_timer()
        if self.transport.is_closing() or self._ended:
            return
        self._ended = True
        request = REQUEST_IDS.of(None)
        with coming_from(Origin(request, "-")):
            _log.info("a connection was closed: %s", error)
        if self._answering:  # to what came before, whose client must not take this for its answer
            self.cycle.keep_alive = False
        else:
            self.transport.write(refusal(error, request))
            self.transport.close()

    @property
    def _answering(self) -> bool:
        """Whether a request that is complete waits for its answer."""
        cycle = self.cycle
        return cycle is not None and not cycle.response_complete and not cycle.more_body
