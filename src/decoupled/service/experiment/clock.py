"""The time of the service: that of the machine, without its jumps."""

import logging
import time
from collections.abc import Callable
from threading import Lock
from typing import NamedTuple

JUMP = 1.0  # seconds by which a clock does not drift between two looks
PACE = 0.1  # how much faster or slower than real time it may run, to approach another clock
_EVERY = 1.0  # seconds between two looks at the machine's clock
_WITHIN = 10.0  # seconds in which it follows what is no jump

_log = logging.getLogger("decoupled.service")


def elapsed() -> float:
    """Seconds since some moment, also those in which the machine slept, where that is known."""
    boot = getattr(time, "CLOCK_BOOTTIME", None)
    return time.monotonic() if boot is None else time.clock_gettime(boot)


class _Line(NamedTuple):
    """The time `at` a moment of the steady clock `since`, and its rate from there."""

    since: float
    at: float
    rate: float

    def now(self, moment: float) -> float:
        return self.at + self.rate * (moment - self.since)


class SteadyClock:
    """Seconds since 1970 that never go back, and pass at the rate of real time, up to a tenth more or less.

    It begins with the machine's clock and follows it. If that is set to another time, deadlines must not pass at once, nor
    last for a day: so a jump is logged and counted, and then approached slowly.

    Args:
        wall: the machine's clock.
        steady: seconds that nobody can set.

    >>> machine, real = [1000.0], [0.0]
    >>> clock = SteadyClock(lambda: machine[0], lambda: real[0])
    >>> machine[0], real[0] = 1060.0, 60.0
    >>> clock()
    1060.0
    >>> machine[0] += 86_400.0
    >>> real[0] += 2.0
    >>> clock(), clock.jumps, round(clock.behind)
    (1062.0, 1, 86398)
    """

    def __init__(
        self, wall: Callable[[], float] = time.time, steady: Callable[[], float] = elapsed
    ) -> None:
        self._wall, self._steady = wall, steady
        self._line = _Line(steady(), wall(), 1.0)
        self._looking = Lock()
        self.jumps = 0
        self.behind = 0.0  # seconds by which the machine's clock was ahead at the last look

    def __call__(self) -> float:
        """The time now."""
        moment = self._steady()
        if moment - self._line.since >= _EVERY and self._looking.acquire(blocking=False):
            try:
                self._look(moment)
            finally:
                self._looking.release()
        return self._line.now(moment)

    def _look(self, moment: float) -> None:
        line = self._line
        now = line.now(moment)
        behind = self._wall() - now
        expected = self.behind - (line.rate - 1.0) * (moment - line.since)
        if abs(behind - expected) > JUMP:
            self.jumps += 1
            _log.warning(
                "the clock of this machine jumped by %+.1f s: deadlines go on as if it had not, and the times that are "
                "recorded approach it by %g s a minute; restart the service to take its time as it is",
                behind - expected,
                60.0 * PACE,
            )
        self.behind = behind
        self._line = _Line(moment, now, 1.0 + max(-PACE, min(PACE, behind / _WITHIN)))
