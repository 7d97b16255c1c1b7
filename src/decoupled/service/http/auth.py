"""Who is asking: from a request's headers to a tenant and a role, or a refusal."""

import time
from collections import OrderedDict
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from typing import Any, NamedTuple, Protocol

from ..api_keys import OPERATOR, digest_of, reaches, same_digest
from ..errors import Forbidden, Unauthorized
from .futures import Bridge
from .rate_limit import Buckets, Limits

FRESH = 2.0  # seconds for which a key that was found is trusted: as long may a revoked one go on
_REMEMBERED = 10_000


class Access(NamedTuple):
    """Whose request it is and what it may do."""

    tenant: str
    role: str
    caller: str  # what rate limits count by and logs name: a key's label and digest's start, or an address

    def require(self, role: str) -> None:
        """Refuse unless the role reaches to `role`."""
        if not reaches(self.role, role):
            raise Forbidden(f"role = {self.role!r}: must be {role!r} or above for this; use such a key")

    def require_operator(self, role: str) -> None:
        """Refuse unless the key sees to the whole instance."""
        self.require(role)
        if self.tenant != OPERATOR:
            raise Forbidden(
                f"tenant = {self.tenant!r}: must be {OPERATOR!r} for what concerns the whole instance; "
                "ask its operator"
            )


class KeyRecord(Protocol):
    """What the desk keeps of a key."""

    @property
    def tenant(self) -> str:
        """Whose it is."""

    @property
    def role(self) -> str:
        """What it may do."""

    @property
    def digest(self) -> str:
        """SHA-256 of the key."""

    @property
    def revoked_at(self) -> float | None:
        """When it ended, if it did."""


class KeyBook(Protocol):
    """The part of the desk that knows keys."""

    def key_find(self, digest: str) -> "Future[Any]":
        """The record of a key with that digest, or None."""

    def keys_list(self) -> "Future[Any]":
        """All records."""


class Gate:
    """Lets requests in. `open_to_all`: without a key one is admin, as long as the store holds no key."""

    def __init__(
        self,
        book: KeyBook,
        bridge: Bridge,
        limits: Limits,
        *,
        open_to_all: bool,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._book, self._bridge, self._open, self._clock = book, bridge, open_to_all, clock
        self._known: OrderedDict[str, tuple[Access | None, float]] = OrderedDict()
        self._keyless_until = -1.0
        self._requests = Buckets(limits.rate, limits.burst, clock)
        self._failures = Buckets(limits.bad_keys, 4.0 * limits.bad_keys, clock)

    async def admit(self, authorization: bytes | None, address: str) -> Access:
        """Who is asking, after a request's worth of tokens was taken."""
        if authorization is None:
            access = await self._without_key(address)
        else:
            scheme, _, key = authorization.decode("latin-1").partition(" ")
            if scheme.lower() != "bearer" or not key:
                raise Unauthorized(
                    "Authorization: must be 'Bearer KEY'; send a key that decoupled keys add made"
                )
            access = await self._with_key(digest_of(key.strip()), address)
        self._requests.take(access.caller, 1.0, "requests")
        return access

    def charge(self, access: Access, further: int) -> None:
        """Take tokens for the further items of a batch."""
        if further > 0:
            self._requests.take(access.caller, float(further), "decisions and feedback")

    async def _without_key(self, address: str) -> Access:
        if self._open and self._clock() >= self._keyless_until:
            # Someone may add the first key while the service runs: from then on keys are needed.
            keys: Iterable[KeyRecord] = await self._bridge.wait(self._book.keys_list())
            self._open = all(key.revoked_at is not None for key in keys)
            self._keyless_until = self._clock() + FRESH
        if not self._open:
            raise Unauthorized("Authorization: is missing; send 'Authorization: Bearer KEY'")
        return Access(OPERATOR, "admin", address)

    async def _with_key(self, digest: str, address: str) -> Access:
        access, until = self._known.get(digest, (None, -1.0))
        if self._clock() >= until:
            # Guessing is slowed for addresses that guess; a key seen to be good is never locked out.
            if access is None and self._failures.empty(address):
                self._failures.take(address, 1.0, "wrong keys from this address")
            access = await self._look_up(digest)
        if access is None:
            self._failures.take(address, 1.0, "wrong keys from this address")
            raise Unauthorized("Authorization: the key is unknown or revoked; ask for a new one")
        return access

    async def _look_up(self, digest: str) -> Access | None:
        found: KeyRecord | None = await self._bridge.wait(self._book.key_find(digest))
        access = None
        if found is not None and found.revoked_at is None and same_digest(found.digest, digest):
            access = Access(found.tenant, found.role, f"key {digest[:8]}")
        self._known[digest] = (access, self._clock() + FRESH)
        self._known.move_to_end(digest)
        if len(self._known) > _REMEMBERED:
            self._known.popitem(last=False)
        return access
