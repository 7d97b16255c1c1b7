"""Where a call comes from: the request, its trace, and who sent it. Logs, spans and the audit trail name it.

The origin is a context variable. The commit loop and the threads in the background carry it along with the work.
"""

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from itertools import count
from typing import NamedTuple

COMMAND_LINE = "command line"
_SANE_ID = re.compile(rb"[A-Za-z0-9][A-Za-z0-9._:/=+@-]{0,127}")
_TRACEPARENT = re.compile(rb"(?!ff)[0-9a-f]{2}-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(?:-.*)?")


class Trace(NamedTuple):
    """A place in a trace: the ids in hexadecimal, and whether the trace is recorded."""

    trace_id: str
    span_id: str
    sampled: bool


class Origin(NamedTuple):
    """The origin of a call.

    Attributes:
        request: the id of the request; None if it was none.
        caller: "key ID", "address ADDRESS" for a service without keys, "command line", "program" for a call to
            `DecisionService` itself, or "service" for what the service found by itself.
        label: the label of the key, or the user of the command line.
        trace: the place in a trace that the call belongs to; None if there is none.
    """

    request: str | None = None
    caller: str = "program"
    label: str = ""
    trace: Trace | None = None


ITSELF = Origin(caller="service")
ORIGIN: ContextVar[Origin] = ContextVar("decoupled_origin", default=Origin())  # noqa: B039 - it is immutable


@contextmanager
def coming_from(origin: Origin) -> Iterator[None]:
    """Attribute what is logged and recorded here to an origin.

    >>> with coming_from(Origin(request="1f2e-7")):
    ...     ORIGIN.get().request
    '1f2e-7'
    >>> ORIGIN.get().request
    """
    before = ORIGIN.set(origin)
    try:
        yield
    finally:
        ORIGIN.reset(before)


class RequestIds:
    """Ids for requests. An id that a client sent is kept if it is sane.

    New ids are a random text for this process, and a number: they are unique, cheap, and in order.

    >>> ids = RequestIds("1f2e")
    >>> ids.of(None), ids.of(b"checkout-7"), ids.of(b"two words")
    ('1f2e-1', 'checkout-7', '1f2e-2')
    """

    def __init__(self, prefix: str | None = None) -> None:
        self._prefix = f"{os.urandom(6).hex() if prefix is None else prefix}-"
        self._numbers = count(1)

    def of(self, header: bytes | None) -> str:
        """The id in an X-Request-Id header if it is sane, or a new one."""
        if header is not None and _SANE_ID.fullmatch(header):
            return header.decode("ascii")
        return f"{self._prefix}{next(self._numbers):x}"


REQUEST_IDS = RequestIds()  # of this process


def trace_of(traceparent: bytes | None) -> Trace | None:
    """The place in a trace that a W3C traceparent header gives; None if it gives none.

    >>> trace_of(b"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")
    Trace(trace_id='0af7651916cd43dd8448eb211c80319c', span_id='b7ad6b7169203331', sampled=True)
    >>> trace_of(b"00-00000000000000000000000000000000-b7ad6b7169203331-01")
    """
    found = None if traceparent is None else _TRACEPARENT.fullmatch(traceparent)
    if found is None:
        return None
    trace, span = found[1].decode(), found[2].decode()
    sampled = bool(int(found[3], 16) & 1)
    return Trace(trace, span, sampled) if trace.strip("0") and span.strip("0") else None


def from_command_line() -> Origin:
    """The origin of a command, with the name of the user who runs it."""
    import getpass

    try:
        user = getpass.getuser()
    except (KeyError, OSError):  # a container may run as a user without a name
        user = str(os.getuid())
    return Origin(caller=COMMAND_LINE, label=user)
