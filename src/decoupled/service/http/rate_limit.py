"""How much one caller may ask: token buckets, and the sizes beyond which a request is refused."""

import math
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass

from ..errors import TooMany
from ..experiment.records import LONGEST_DEADLINE as LONGEST_DEADLINE
from ..experiment.records import MOST_DECISIONS as MOST_DECISIONS

MOST_FEEDBACK = 1_000  # items in one batch
MOST_ARMS = 10_000
MOST_LISTED = 1_000  # experiments or rows of the log on a page
MOST_AT_ONCE = 2  # exports and evaluations of one tenant
LONGEST_KEY = 255  # characters of an Idempotency-Key
LONGEST_NAME = 100
_CALLERS = 10_000  # buckets kept; the one longest unused goes first


@dataclass(frozen=True)
class Limits:
    """What the service takes from one caller.

    Attributes:
        headers: bytes of a request's headers.
        headers_seconds: seconds in which they must come.
        body: bytes of a request's body.
        body_seconds: seconds in which it must come.
        rate: requests a second for each key (decisions and feedback in batches count one by one); 0 for
            no limit.
        burst: so many may come at once.
        bad_keys: wrong keys a second from one address.
    """

    headers: int = 65_536
    headers_seconds: float = 20.0
    body: int = 1_048_576
    body_seconds: float = 30.0
    rate: float = 10_000.0
    burst: float = 20_000.0
    bad_keys: float = 5.0


class Buckets:
    """A token bucket for each caller.

    >>> now = [0.0]
    >>> buckets = Buckets(rate=2.0, burst=2.0, clock=lambda: now[0])
    >>> [buckets.wait("me", 1.0) for _ in range(3)]
    [0.0, 0.0, 0.5]
    >>> now[0] = 0.5
    >>> buckets.wait("me", 1.0)
    0.0
    """

    def __init__(self, rate: float, burst: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._rate, self._burst, self._clock = rate, max(burst, 1.0), clock
        self._full_at: OrderedDict[str, float] = OrderedDict()

    def wait(self, caller: str, cost: float) -> float:
        """Take `cost` tokens and return 0, or take nothing and return the seconds until they are there.

        A bucket is the time at which it will be full again. What costs more than a whole bucket is let
        through when the bucket is full, and paid off afterwards.
        """
        if self._rate <= 0.0:
            return 0.0
        now = self._clock()
        full_at = max(self._full_at.get(caller, now), now)
        over = full_at - now + (min(cost, self._burst) - self._burst) / self._rate
        if over > 1e-9:
            return over
        self._full_at[caller] = full_at + cost / self._rate
        self._full_at.move_to_end(caller)
        if len(self._full_at) > _CALLERS:
            self._full_at.popitem(last=False)
        return 0.0

    def empty(self, caller: str) -> bool:
        """Whether a token would have to be waited for."""
        full_at = self._full_at.get(caller)
        return full_at is not None and full_at - self._clock() + (1.0 - self._burst) / self._rate > 1e-9

    def take(self, caller: str, cost: float, what: str) -> None:
        """Take tokens, or refuse with the time to wait."""
        wait = self.wait(caller, cost)
        if wait > 0.0:
            seconds = max(1, math.ceil(wait))
            raise TooMany(
                f"{what}: above the limit of {self._rate:g} a second; try again in {seconds} s", seconds
            )
