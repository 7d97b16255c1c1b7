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

from ...errors import ParameterError, invalid_value, near_name
from ..errors import Forbidden, TooMany, Unauthorized
from ..experiment.audited import OPERATOR
from ..parts.keys import Keys
from .limits import Limits

PREFIX = "dk_"
ROLES = ("read", "decide", "admin")  # each includes those before it
REACH = {role: ROLES[: place + 1] for place, role in enumerate(ROLES)}
FRESH = 2.0  # seconds for which a lookup is trusted, and for which a revoked key may still work
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
        raise ParameterError(invalid_value("role", role, "is not a role", near_name(role, ROLES)))
    return role


class Access(NamedTuple):
    """The tenant and the role of a request."""

    tenant: str
    role: str
    caller: str  # counted by rate limits and named in logs: the id of a key, or an address
    label: str = ""  # that of the key

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
        self._full_at[caller] = full_at + cost / self._rate
        self._full_at.move_to_end(caller)
        if len(self._full_at) > _REMEMBERED:
            self._full_at.popitem(last=False)
        return 0.0

    def empty(self, caller: str) -> bool:
        """Whether a caller has no token left."""
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


def _anyone(address: str) -> Access:
    """The access of a request to a service without keys."""
    return Access(OPERATOR, "admin", f"address {address}")


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
        self._keys, self._open, self._clock = keys, open_to_all, clock
        self._known: OrderedDict[str, tuple[Access | None, float]] = OrderedDict()
        self._keyless_until = -1.0
        self._requests = Buckets(limits.rate, limits.burst, clock)
        self._failures = Buckets(limits.bad_keys, 4.0 * limits.bad_keys, clock)

    async def admit(self, authorization: bytes | None, address: str) -> Access:
        """The tenant and role of a request, after counting it against the rate limit."""
        if authorization is None:
            access = await self._without_key(address)
        else:
            access = await self._with_key(_digest_in(authorization), address)
        self._requests.take(access.caller, 1.0, "requests")
        return access

    def admit_known(self, authorization: bytes | None, address: str) -> Access | None:
        """The same, without looking into the store: None, and nothing is counted, if that is necessary."""
        if authorization is None:
            if not self._open or self._clock() >= self._keyless_until:
                return None
            access: Access | None = _anyone(address)
        else:
            access, until = self._known.get(_digest_in(authorization), (None, -1.0))
            if self._clock() >= until:
                return None
        if access is not None:
            self._requests.take(access.caller, 1.0, "requests")
        return access

    def charge(self, access: Access, further: int) -> None:
        """Count the further items of a batch against the rate limit."""
        if further > 0:
            self._requests.take(access.caller, float(further), "decisions and feedback")

    async def _without_key(self, address: str) -> Access:
        if self._open and self._clock() >= self._keyless_until:
            # The first key may be added while the service runs; from then on keys are needed.
            self._open = all(key.revoked_at is not None for key in await self._keys.list())
            self._keyless_until = self._clock() + FRESH
        if not self._open:
            raise Unauthorized("Authorization: is missing; send 'Authorization: Bearer KEY'")
        return _anyone(address)

    async def _with_key(self, digest: str, address: str) -> Access:
        access, until = self._known.get(digest, (None, -1.0))
        if self._clock() >= until:
            # Slows down addresses that guess. A key that was valid before is never locked out.
            if access is None and self._failures.empty(address):
                self._failures.take(address, 1.0, "wrong keys from this address")
            access = await self._look_up(digest)
        if access is None:
            self._failures.take(address, 1.0, "wrong keys from this address")
            raise Unauthorized("Authorization: the key is unknown or revoked; ask for a new one")
        return access

    async def _look_up(self, digest: str) -> Access | None:
        found = await self._keys.find(digest)
        access = None
        if found is not None and found.revoked_at is None and hmac.compare_digest(found.digest, digest):
            access = Access(found.tenant, found.role, f"key {found.id}", found.label)
        self._known[digest] = (access, self._clock() + FRESH)
        self._known.move_to_end(digest)
        if len(self._known) > _REMEMBERED:
            self._known.popitem(last=False)
        return access
