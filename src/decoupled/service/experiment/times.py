"""Times as everybody outside sees them: UTC, to the microsecond. Inside they are seconds since 1970."""

import math
from datetime import UTC, datetime
from functools import lru_cache


def moment(seconds: float | None) -> str | None:
    """A time as RFC 3339 and ISO 8601 have it.

    >>> moment(0.25)
    '1970-01-01T00:00:00.250000Z'
    """
    if seconds is None:
        return None
    whole, rest = divmod(microseconds(seconds), 1_000_000)
    return f"{_second(whole)}.{rest:06d}Z"


def microseconds(seconds: float) -> int:
    """Whole microseconds since 1970: those of `moment`.

    >>> microseconds(1.5)
    1500000
    """
    whole = math.floor(seconds)
    return whole * 1_000_000 + min(int((seconds - whole) * 1e6), 999_999)


@lru_cache(1024)  # the decisions of one second share all of a time but its end
def _second(whole: int) -> str:
    return f"{datetime.fromtimestamp(whole, UTC):%Y-%m-%dT%H:%M:%S}"
