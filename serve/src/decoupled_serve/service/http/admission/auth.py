"""Who may ask, and how much: API keys, roles and rate limits.

A key has 256 random bits. It is shown once, stored as a digest, and compared in constant time. Nobody can guess it, so
its SHA-256 is enough: a slow hash would protect nothing.
"""

import hashlib
import hmac
import math
import secrets
import time
from collections import OrderedDict
from collections.abc import Callable
from typing import NamedTuple

from decoupled.client import Forbidden, TooMany, Unauthorized
from decoupled.errors import ParameterError, near_name

from ...api.keys import Keys
from ...experiment.audited import OPERATOR
from ...memory.cache import KEYLESS, MISSING, REFUSED, keep
from .limits import Limits

PREFIX = "dk_"
ROLES = ("read", "decide", "admin")  # each includes those before it
REACH = {role: ROLES[: place + 1] for place, role in enumerate(ROLES)}
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


def checked_role(role: str) -> str:
    """A role by its name.

    >>> checked_role("decide")
    'decide'
    """
    if role not in ROLES:
        raise ParameterError.of("role", role, "is not a role", near_name(role, ROLES))
    return role


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
            raise Forbidden(f"role = {self.role!r}: must be {role!r} or above for this; use such a key")

    def require_operator(self, role: str) -> None:
        """Refuse the request unless its key may manage the whole instance."""
        self.require(role)
        if self.tenant != OPERATOR:
            raise Forbidden(
                f"tenant = {self.tenant!r}: must be {OPERATOR!r} for what concerns the whole instance; "
                "ask its operator"
            )


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
            raise TooMany(
                f"{what}: above the limit of {self._rate:g} a second; try again in {seconds} s", seconds
            )


def _anyone(address: str) -> Access:
    """The access of a request to a service without keys."""
    return Access(OPERATOR, "admin", f"address {address}", permit=KEYLESS)


def _digest_in(authorization: bytes) -> str:
    scheme, _, key = authorization.decode("latin-1").partition(" ")
    if scheme.lower() != "bearer" or not key:
        raise Unauthorized("Authorization: must be 'Bearer KEY'; send a key that decoupled keys add made")
    return digest_of(key.strip())


class Admission:
    """Admits requests. With `open_to_all`, a request without a key is admin as long as the store has no key."""

    def __init__(
        self, keys: Keys, limits: Limits, *, open_to_all: bool, clock: Callable[[], float] = time.monotonic
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
            access = await self._with_key(_digest_in(authorization), address, checked_later)
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
        return _anyone(address)

    async def _with_key(self, digest: str, address: str, checked_later: bool) -> Access:
        known = self._known.get(digest)
        if known is not None and checked_later:
            return known
        access = await self._look_up(digest)
        if access is None:  # only then: a valid key is never locked out by others behind the same address
            self._failures.take(address, 1.0, "wrong keys from this address")
            raise Unauthorized(REFUSED)
        return access

    async def _look_up(self, digest: str) -> Access | None:
        found = await self._keys.find(digest)
        if found is None or found.revoked_at is not None or not hmac.compare_digest(found.digest, digest):
            self._known.pop(digest, None)
            return None
        access = Access(found.tenant, found.role, f"key {found.id}", found.label, digest)
        keep(self._known, digest, access, _REMEMBERED)
        return access
