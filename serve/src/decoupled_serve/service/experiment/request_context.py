"""Where a call comes from: the request, its trace, and who sent it. Logs, spans and the audit trail name it.

The origin is a context variable. The commit loop and the threads in the background carry it along with the work.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import NamedTuple

COMMAND_LINE = "command line"


class Trace(NamedTuple):
    """A place in a trace: the ids in hexadecimal, and whether the trace is recorded."""

    trace_id: str
    span_id: str
    sampled: bool


class Origin(NamedTuple):
    """The origin of a call."""

    request: str | None = None  # the id of the request; None if it was none
    # "key ID", "address ADDRESS" for a service without keys, "command line", "program" for a call to `DecisionService` itself,
    # or "service" for what the service found by itself
    caller: str = "program"
    label: str = ""  # the label of the key, or the user of the command line
    trace: Trace | None = (
        None  # the place in a trace that the call belongs to; None if there is none
    )


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


def from_command_line() -> Origin:
    """The origin of a command, with the name of the user who runs it."""
    import getpass

    try:
        user = getpass.getuser()
    except (ImportError, KeyError, OSError):  # a container may run as a user without a name
        user = str(os.getuid()) if hasattr(os, "getuid") else "unknown"
    return Origin(caller=COMMAND_LINE, label=user)
