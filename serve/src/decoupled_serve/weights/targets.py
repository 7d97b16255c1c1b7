"""Keeps a gateway at the shares of an experiment, by a file and a command that makes the gateway read it, or HAProxy's socket."""

import csv
import shlex
import socket
import subprocess
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

from decoupled.base import write_atomically
from decoupled.client import TEMPORARY, ServiceError
from decoupled.errors import DecoupledError

from .shares import Document, Shares, has_moved

_PATIENCE = 30.0  # seconds for a command or an answer
_MOST_WEIGHT = 256  # of a server of HAProxy


class NotTaken(DecoupledError):  # noqa: N818
    """The gateway did not take the weights. What it had before stays. `unknown` are upstreams that it may not have."""

    def __init__(self, problem: str, unknown: Collection[str] = ()) -> None:
        super().__init__(problem)
        self.unknown = unknown


class Target(ABC):
    """Something that can be told what to serve."""

    @abstractmethod
    def current(self) -> dict[str, float] | None:
        """The shares that it has; None if it has none."""

    @abstractmethod
    def rounded(self, shares: Shares) -> dict[str, float]:
        """The shares as it would have them."""

    def is_outdated(self, experiment: str) -> bool:
        """Whether it has its shares in another form, such as that of other options."""
        return False

    @abstractmethod
    def apply(self, shares: Shares) -> None:
        """Take shares, all of them or none; a `NotTaken` if it does not."""


@dataclass(frozen=True)
class FileTarget(Target):
    """A file that is replaced as a whole. If the command after it fails, the file is as it was before, if there was one."""

    file: Path
    document: Document
    reload: Sequence[str] = ()

    def current(self) -> dict[str, float] | None:
        try:
            return self.document.read(self.file.read_text("utf-8"))
        except (FileNotFoundError, ValueError, LookupError, TypeError, AttributeError):
            return None

    def rounded(self, shares: Shares) -> dict[str, float]:
        return self.document.read(self.document.text(shares))

    def is_outdated(self, experiment: str) -> bool:
        there = self.current()
        if there is None:
            return True
        return self.document.text(Shares(experiment, there)) != self.file.read_text("utf-8")

    def apply(self, shares: Shares) -> None:
        before = self.file.read_bytes() if self.file.exists() else None
        there = self.current() or shares.of
        write_atomically(self.file, self.document.text(shares))
        problem = _failure(self.reload) if self.reload else None
        if problem is None:
            return
        stays = "stays for a gateway that starts later"  # and may need the file in order to start
        if before is not None:
            write_atomically(self.file, before)
            stays = "is as it was before"
        told = f"`{shlex.join(self.reload)}`: {problem}; {self.file} {stays}"
        raise NotTaken(told, shares.of.keys() - there.keys())


def _failure(command: Sequence[str]) -> str | None:
    """Why a command failed; None if it did not."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_PATIENCE)
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    said = (done.stderr or done.stdout).strip()[-500:]
    return None if done.returncode == 0 else f"exit status {done.returncode}: {said}"


@dataclass(frozen=True)
class HaProxy(Target):
    """The weights of the servers of a backend, which HAProxy changes while it runs.

    It has its own weights again after a reload, so what it has is asked for and not remembered. Servers of the backend that
    are no upstreams of the experiment, such as retired arms, get nothing. Its backup servers stay as they are.
    """

    address: str  # the path of its runtime socket, or HOST:PORT. Its level must be `admin`.
    backend: str  # the backend, whose servers have the names of the upstreams

    def current(self) -> dict[str, float] | None:
        weights = self._weights()
        total = sum(weights.values())
        return {name: weight / total for name, weight in weights.items()} if total else None

    def rounded(self, shares: Shares) -> dict[str, float]:
        weights = weights_of(shares)
        return {name: weight / sum(weights.values()) for name, weight in weights.items()}

    def apply(self, shares: Shares) -> None:
        """Set all weights in one line. Higher ones first, so that at no moment all are 0."""
        there, weights = self._weights(), weights_of(shares)
        missing = weights.keys() - there.keys()
        if missing:
            names = ", ".join(sorted(missing))
            raise NotTaken(
                f"--backend = {self.backend!r}: has no server {names}; see --upstream", missing
            )
        wanted = {name: weights.get(name, 0) for name in there}
        order = sorted(wanted, key=lambda name: there[name] - wanted[name])
        said = self._ask(
            "; ".join(f"set weight {self.backend}/{name} {wanted[name]}" for name in order)
        )
        if said.strip():
            raise NotTaken(f"HAProxy at {self.address!r}: refuses: {said.strip()}")

    def _weights(self) -> dict[str, int]:
        """The weight of every server that is no backup."""
        said = self._ask(f"show servers state {self.backend}")
        lines = [
            line.split() for line in said.splitlines() if line.strip() and not line.startswith("#")
        ]
        if len(lines) < 2:
            told = said.strip() or "no servers"
            raise NotTaken(f"--backend = {self.backend!r}: is not known to HAProxy: {told}")
        # After a line with the version of the format: be_id be_name srv_id srv_name srv_addr ... srv_uweight.
        number = lines[1][0]  # a frontend may have the same name
        table = csv.DictReader(self._ask(f"show stat {number} 4 -1").splitlines())
        backups = {row["svname"] for row in table if row["bck"] == "1"}
        return {line[3]: int(line[7]) for line in lines[1:] if line[3] not in backups}

    def _ask(self, command: str) -> str:
        try:
            with self._connected() as talk:
                talk.sendall(command.encode() + b"\n")
                return b"".join(iter(lambda: talk.recv(1 << 16), b"")).decode()
        except OSError as error:
            told = f"does not answer ({error}); is its `stats socket` there?"
            raise NotTaken(f"HAProxy at {self.address!r}: {told}") from None

    def _connected(self) -> socket.socket:
        host, _, port = self.address.rpartition(":")
        if host and port.isdigit() and "/" not in self.address:
            return socket.create_connection((host, int(port)), timeout=_PATIENCE)
        if not hasattr(socket, "AF_UNIX"):
            raise NotTaken(
                f"HAProxy at {self.address!r}: this system has no such sockets; use HOST:PORT"
            )
        talk = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            talk.settimeout(_PATIENCE)
            talk.connect(self.address)
        except BaseException:
            talk.close()
            raise
        return talk


def weights_of(shares: Shares) -> dict[str, int]:
    """The shares as weights of HAProxy, of which the highest is 256.

    >>> weights_of(Shares("chat", {"small": 0.25, "large": 0.75}))
    {'small': 85, 'large': 256}
    """
    highest = max(shares.of.values())
    return {name: round(_MOST_WEIGHT * share / highest) for name, share in shares.of.items()}


@dataclass
class Follower:
    """Applies shares that have moved. While the service is away, the gateway keeps what it has."""

    look: Callable[[], Shares]  # asks the service for the shares
    target: Target  # the gateway
    threshold: float  # how far a share may be from what the gateway has
    # the shares for a gateway that has none while the service is away; None to wait for the service
    fallback: Shares | None
    say: Callable[[str], None]  # called with each change
    warn: Callable[[str], None]  # called with a problem, once until it is over
    _away: bool = False
    _problems: tuple[str, ...] = ()

    def once(self, *, always: bool = False, lenient: bool = False) -> None:
        """Look, and apply what has moved; if `lenient`, without upstreams that are not there. The fallback comes before the error."""
        try:
            self._apply(self.look(), always, lenient)
        except ServiceError as error:
            if (
                error.status in TEMPORARY
                and self.fallback is not None
                and self.target.current() is None
            ):
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
        moved = always or there is None or self._has_moved(shares, there)
        if moved or self.target.is_outdated(shares.experiment):
            self.target.apply(shares)
            self.say(str(shares))

    def _has_moved(self, shares: Shares, there: dict[str, float]) -> bool:
        # An upstream that must get nothing, because it is down or retired, is never within the threshold.
        emptied = any(
            share > 0.0 and shares.of.get(name, 0.0) == 0.0 for name, share in there.items()
        )
        return emptied or has_moved(self.target.rounded(shares), there, self.threshold)
