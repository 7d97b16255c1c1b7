"""Who may ask, and how much: limits on what one caller may send, API keys, roles and rates.

A key has 256 random bits. It is shown once, stored as a digest, and compared in constant time. Nobody can guess it, so
its SHA-256 is enough: a slow hash would protect nothing.
"""

import asyncio
import hashlib
import hmac
import logging
import math
import re
import secrets
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from starlette.requests import ClientDisconnect, Request
from starlette.types import Message, Receive

from decoupled.base import read_secret
from decoupled.client import (
    BadRequest,
    Conflict,
    Forbidden,
    TooLarge,
    TooMany,
    TooSlow,
    Unauthorized,
)
from decoupled.errors import ParameterError

from ..api.keys import Keys
from ..experiment.records import OPERATOR
from ..memory.cache import KEYLESS, MISSING, REFUSED, keep

MOST_FEEDBACK = 1_000  # items in one batch
MOST_LISTED = 1_000  # experiments on a page
MOST_FLAGS = 200  # experiments in a bulk evaluation, each of which makes a decision
MOST_AT_ONCE = 2  # exports and evaluations of one tenant
LONGEST_KEY = 255  # characters of an Idempotency-Key
# Bytes a second of a long body or answer, below which its client is too slow.
LEAST_RATE = 4_096


@dataclass(frozen=True)
class Limits:
    """The limits for one caller."""

    # open at a time; beyond them, the one that waits for a request for longest is closed
    connections: int = 10_000
    headers: int = 65_536  # bytes of a request's headers
    headers_seconds: float = 20.0  # seconds within which they must arrive
    body: int = 1_048_576  # bytes of a request's body
    # seconds within which it must arrive, and in which a client must read some of its answer
    body_seconds: float = 30.0
    # bytes of a log that is replayed, which may arrive at `LEAST_RATE` after `body_seconds`
    replay: int = 67_108_864
    # requests a second for each key, where each item of a batch counts as one; 0 for no limit
    rate: float = 10_000.0
    burst: float = 20_000.0  # how many may come at once
    bad_keys: float = 5.0  # wrong keys a second from one address
    # bytes of exported logs on disk that are not sent yet. A tenant may have as much as is left for others.
    spool: int = 1 << 32
    export_seconds: float = 600.0  # seconds within which a client must read a log


REPLAY = "/replay"  # a body that is too large for memory: it is written to a file as it arrives


def is_streamed(method: str, path: str) -> bool:
    """Whether the route reads its body itself.

    >>> is_streamed("POST", "/v1/experiments/models/replay"), is_streamed("GET", "/v1/experiments/models/state")
    (True, False)
    """
    return method == "POST" and path.endswith(REPLAY) and path.startswith("/v1/experiments/")


class Paced:
    """A `receive` that raises `TimeoutError` for a client that is too slow, however little it sends at a time.

    A client may take some seconds for a body, and gains time with every byte: at `LEAST_RATE`, as much as it takes.
    """

    def __init__(self, receive: Receive, seconds: float) -> None:
        self._receive, self._seconds, self._left = receive, seconds, seconds

    async def __call__(self) -> Message:
        """The next message. Only the time that is waited here counts."""
        now = asyncio.get_running_loop().time
        start = now()
        async with asyncio.timeout(self._left):
            message = await self._receive()
        gained = len(message.get("body", b"")) / LEAST_RATE
        self._left = min(self._seconds, self._left + gained - (now() - start))
        return message


async def save_body(request: Request, path: Path, limits: Limits) -> int:
    """Write the body of a request to a file, and return its size."""
    length = request.headers.get("content-length", "0")
    if not length.isdigit():
        raise BadRequest("Content-Length: must be a whole number")
    if len(length) > 15 or int(length) > limits.replay:
        raise _too_large(limits)
    size = 0
    try:
        with path.open("wb") as file:
            async for part in Request(
                request.scope, Paced(request.receive, limits.body_seconds)
            ).stream():
                size += len(part)
                if size > limits.replay:
                    raise _too_large(limits)
                await asyncio.to_thread(file.write, part)
    except TimeoutError:
        rule = f"must arrive within {limits.body_seconds:g} s, or at {LEAST_RATE:,} bytes a second"
        raise TooSlow(f"body: {rule}; send it faster") from None
    except ClientDisconnect:
        raise BadRequest("body: was cut off; send it again") from None
    return size


def _too_large(limits: Limits) -> TooLarge:
    remedy = "split the log, or start the service with a larger --replay-limit"
    return TooLarge(f"body: must not exceed {limits.replay:,} bytes; {remedy}")


PREFIX = "dk_"
ROLES = ("read", "decide", "admin", "label")
# Whose requests each role may make. Answers that await a label may be private, so only admins and those who label see them,
# and a key that labels can do nothing else.
REACH = {"read": ROLES[:1], "decide": ROLES[:2], "admin": ROLES, "label": ROLES[3:]}
_REMEMBERED = 10_000  # keys, and callers with a bucket; those unused for longest go first


def new_key() -> str:
    """A new key of 256 random bits.

    >>> key = new_key()
    >>> key.startswith("dk_"), len(key)
    (True, 46)
    """
    return PREFIX + secrets.token_urlsafe(32)


def digest_of(key: str) -> str:
    """The digest by which a key is stored.

    >>> digest_of("dk_example")[:16]
    '9c85cfe0efedb48e'
    """
    return hashlib.sha256(key.encode("utf-8", "surrogateescape")).hexdigest()


class Access(NamedTuple):
    """The tenant and the role of a request."""

    tenant: str
    role: str
    caller: str  # counted by rate limits and named in logs: the id of a key, or an address
    label: str = ""  # that of the key
    permit: str | None = None  # what the transaction of a command checks again

    def require(self, role: str) -> None:
        """Refuse the request unless its role includes `role`."""
        if role not in REACH[self.role]:
            wide = " or ".join(repr(each) for each in ROLES if role in REACH[each])
            raise Forbidden(f"role = {self.role!r}: must be {wide} for this; use such a key")

    def require_operator(self, role: str) -> None:
        """Refuse the request unless its key may manage the whole instance."""
        self.require(role)
        if self.tenant != OPERATOR:
            rule = f"must be {OPERATOR!r} for what concerns the whole instance"
            raise Forbidden(f"tenant = {self.tenant!r}: {rule}; ask its operator")


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

    def __init__(
        self, rate: float, burst: float, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._rate, self._burst, self._clock = rate, max(burst, 1.0), clock
        self._full_at: OrderedDict[str, float] = OrderedDict()

    def wait(self, caller: str, cost: float) -> float:
        """Take `cost` tokens and return 0, or take none and return the seconds until there are enough.

        A bucket is stored as the time at which it will be full again. A cost above a whole bucket is accepted when
        the bucket is full, and paid off afterwards.
        """
        if self._rate <= 0.0:
            return 0.0
        now = self._clock()
        full_at = max(self._full_at.get(caller, now), now)
        over = full_at - now + (min(cost, self._burst) - self._burst) / self._rate
        if over > 1e-9:
            return over
        keep(self._full_at, caller, full_at + cost / self._rate, _REMEMBERED)
        return 0.0

    def take(self, caller: str, cost: float, what: str) -> None:
        """Take tokens, or refuse with the time to wait."""
        wait = self.wait(caller, cost)
        if wait > 0.0:
            seconds = max(1, math.ceil(wait))
            rule = f"above the limit of {self._rate:g} a second"
            raise TooMany(f"{what}: {rule}; try again in {seconds} s", seconds)


class Admission:
    """Admits requests. With `open_to_all`, a request without a key is admin as long as the store has no key."""

    def __init__(
        self,
        keys: Keys,
        limits: Limits,
        *,
        open_to_all: bool,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._keys, self._open = keys, open_to_all
        self._known: OrderedDict[str, Access] = OrderedDict()
        self._open_seen = False
        self._requests = Buckets(limits.rate, limits.burst, clock)
        self._failures = Buckets(limits.bad_keys, 4.0 * limits.bad_keys, clock)

    async def admit(
        self, authorization: bytes | None, address: str, *, checked_later: bool = False
    ) -> Access:
        """The tenant and role of a request, after counting it against the rate limit.

        A key is looked up for each request, unless the transaction that runs the request checks its permit again
        (`checked_later`): then a key that was valid before is taken to be so.
        """
        if authorization is None:
            access = await self._without_key(address, checked_later)
        else:
            scheme, _, key = authorization.decode("latin-1").partition(" ")
            if scheme.lower() != "bearer" or not key:
                remedy = "send a key that decoupled keys add made"
                raise Unauthorized(f"Authorization: must be 'Bearer KEY'; {remedy}")
            access = await self._with_key(digest_of(key.strip()), address, checked_later)
        self._requests.take(access.caller, 1.0, "requests")
        return access

    def charge(self, access: Access, further: int) -> None:
        """Count the further items of a batch against the rate limit."""
        if further > 0:
            self._requests.take(access.caller, float(further), "decisions and feedback")

    def forget(self, access: Access) -> None:
        """A permit was found to be no longer valid: look it up next time."""
        if access.permit == KEYLESS:
            self._open = False
        elif access.permit is not None:
            self._known.pop(access.permit, None)

    async def _without_key(self, address: str, checked_later: bool) -> Access:
        if self._open and not (checked_later and self._open_seen):
            # The first key may be added while the service runs; from then on keys are needed.
            self._open_seen = self._open = not await self._keys.any_active()
        if not self._open:
            raise Unauthorized(MISSING)
        return Access(OPERATOR, "admin", f"address {address}", permit=KEYLESS)

    async def _with_key(self, digest: str, address: str, checked_later: bool) -> Access:
        known = self._known.get(digest)
        if known is not None and checked_later:
            return known
        found = await self._keys.find(digest)
        if (
            found is None
            or found.revoked_at is not None
            or not hmac.compare_digest(found.digest, digest)
        ):
            self._known.pop(digest, None)
            # Only now: a valid key is never locked out by others behind the same address.
            self._failures.take(address, 1.0, "wrong keys from this address")
            raise Unauthorized(REFUSED)
        access = Access(found.tenant, found.role, f"key {found.id}", found.label, digest)
        keep(self._known, digest, access, _REMEMBERED)
        return access


# The first key of a fresh store, from a file that is mounted into a container.
LABEL = "admin key file"
_LIKE_A_KEY = re.compile(r"[\x21-\x7e]{32,200}")
_log = logging.getLogger("decoupled.service")


def register_admin_key(keys: Keys, path: Path) -> None:
    """Add the key in a file to a store that lacks it, as an admin key of the operator.

    A key that the store has stays as it is, also if it was revoked. An earlier key of the file stays active, because
    other replicas may still use it.
    """
    name = "--admin-key-file"
    key = read_secret(name, path)
    if not _LIKE_A_KEY.fullmatch(key):  # a short one could be guessed
        rule = "must contain 32 to 200 visible ASCII characters"
        raise ParameterError(f"{name}: {path} {rule}; write what `decoupled keys new` prints to it")
    digest = digest_of(key)
    found = keys.find(digest).result()
    if found is None:
        try:
            keys.add(OPERATOR, "admin", digest, LABEL).result()
            _log.info("key %s: added from %s", digest[:12], path)
        except Conflict:
            pass  # another replica was faster
    elif found.revoked_at is not None:
        _log.warning("key %s: is in %s, but was revoked; put another key there", digest[:12], path)
    elif (found.tenant, found.role) != (OPERATOR, "admin"):
        told = "key %s: is in %s, but is the key of tenant %s with the role %s"
        _log.warning(told, digest[:12], path, found.tenant, found.role)
