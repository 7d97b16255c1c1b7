"""Keeps a gateway at the shares of an experiment."""

from collections.abc import Callable
from dataclasses import dataclass

from decoupled.client import TEMPORARY, ServiceError
from decoupled.errors import DecoupledError

from .shares import Shares, has_moved
from .targets import NotTaken, Target


@dataclass
class Follower:
    """Applies shares that have moved. While the service is away, the gateway keeps what it has.

    Args:
        look: asks the service for the shares.
        target: the gateway.
        threshold: how far a share may be from what the gateway has.
        fallback: the shares for a gateway that has none while the service is away; None to wait for the service.
        say: called with each change.
        warn: called with a problem, once until it is over.
    """

    look: Callable[[], Shares]
    target: Target
    threshold: float
    fallback: Shares | None
    say: Callable[[str], None]
    warn: Callable[[str], None]
    _away: bool = False
    _problems: tuple[str, ...] = ()

    def once(self, *, always: bool = False, lenient: bool = False) -> None:
        """Look, and apply what has moved, or anything. A gateway that has nothing gets the fallback before the error.

        If `lenient`, upstreams that the gateway does not have are left out.
        """
        try:
            self._apply(self.look(), always, lenient)
        except ServiceError as error:
            if error.status in TEMPORARY and self.fallback is not None and self.target.current() is None:
                self._apply(self.fallback, always, lenient)
            raise

    def forever(self, wait: Callable[[], None]) -> None:
        """Look again after each wait. Only errors that will not pass are raised, such as that of an unknown experiment.

        The first look applies what it finds: a process that was killed may have written a file that nobody has read. Its
        errors may be those of the options. Later ones, such as of arms that are new, must not leave the gateway alone.
        """
        applied = False
        while True:
            try:
                self.once(always=not applied, lenient=True)
                self._away, applied = False, True
            except (DecoupledError, OSError) as error:
                passes = error.status in TEMPORARY if isinstance(error, ServiceError) else applied
                if not passes and not isinstance(error, NotTaken):
                    raise
                if not self._away:
                    self.warn(f"{error}; the gateway keeps what it has")
                self._away = True
            wait()

    def _apply(self, shares: Shares, always: bool, lenient: bool) -> None:
        try:
            self._write(shares, always)
        except NotTaken as error:
            if not lenient or not error.unknown or not shares.of.keys() - error.unknown:
                raise
            told = f"{', '.join(sorted(error.unknown))} left out: {error}"
            shares = shares.without(error.unknown)._replace(problems=(*shares.problems, told))
            self._write(shares, always)
        for problem in shares.problems:
            if problem not in self._problems:
                self.warn(problem)
        self._problems = shares.problems

    def _write(self, shares: Shares, always: bool) -> None:
        there = self.target.current()
        if (
            always
            or there is None
            or self._has_moved(shares, there)
            or self.target.is_outdated(shares.experiment)
        ):
            self.target.apply(shares)
            self.say(str(shares))

    def _has_moved(self, shares: Shares, there: dict[str, float]) -> bool:
        # An upstream that must get nothing, because it is down or retired, is never within the threshold.
        emptied = any(share > 0.0 and shares.of.get(name, 0.0) == 0.0 for name, share in there.items())
        return emptied or has_moved(self.target.rounded(shares), there, self.threshold)
