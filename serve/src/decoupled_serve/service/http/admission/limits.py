"""The limits on what one caller may send."""

from dataclasses import dataclass

from ...analysis.history import MOST_POINTS as MOST_POINTS
from ...experiment.numbered_arms import MOST_NAMED as MOST_NAMED
from ...experiment.numbered_arms import MOST_NUMBERED as MOST_NUMBERED
from ...experiment.records import LONGEST_DEADLINE as LONGEST_DEADLINE
from ...experiment.records import MOST_DECISIONS as MOST_DECISIONS

MOST_FEEDBACK = 1_000  # items in one batch
MOST_LISTED = 1_000  # experiments on a page
MOST_FLAGS = 200  # experiments in a bulk evaluation, each of which makes a decision
MOST_AT_ONCE = 2  # exports and evaluations of one tenant
LONGEST_KEY = 255  # characters of an Idempotency-Key
# Bytes a second of a long body or answer, below which its client is too slow.
LEAST_RATE = 4_096


@dataclass(frozen=True)
class Limits:
    """The limits for one caller.

    Attributes:
        connections: open at a time; beyond them, the one that waits for a request for longest is closed.
        headers: bytes of a request's headers.
        headers_seconds: seconds within which they must arrive.
        body: bytes of a request's body.
        body_seconds: seconds within which it must arrive, and in which a client must read some of its answer.
        replay: bytes of a log that is replayed, which may arrive at `LEAST_RATE` after `body_seconds`.
        rate: requests a second for each key, where each item of a batch counts as one; 0 for no limit.
        burst: how many may come at once.
        bad_keys: wrong keys a second from one address.
        spool: bytes of exported logs on disk that are not sent yet. A tenant may have as much as is left for others.
        export_seconds: seconds within which a client must read a log.
    """

    connections: int = 10_000
    headers: int = 65_536
    headers_seconds: float = 20.0
    body: int = 1_048_576
    body_seconds: float = 30.0
    replay: int = 67_108_864
    rate: float = 10_000.0
    burst: float = 20_000.0
    bad_keys: float = 5.0
    spool: int = 1 << 32
    export_seconds: float = 600.0
