"""Remembers which API keys are valid, and checks them in the transaction that runs a request.

A look-up for each request would cost as much as a decision. So keys are looked up once and remembered, and a number that
every change of keys increases says whether what is remembered still holds. It is read once in a transaction, which begins
after its requests have arrived: a key that was revoked before then, by any process, is refused.
"""

from ..errors import Unauthorized
from ..store.store import Store

KEYLESS = ""  # the permit of requests without a key, which is valid as long as the store has no active key
REFUSED = "Authorization: the key is unknown or revoked; ask for a new one"
MISSING = "Authorization: is missing; send 'Authorization: Bearer KEY'"
_REMEMBERED = 10_000


class KeyCache:
    """The permits of one store: digests of keys, or `KEYLESS`."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._valid: dict[str, bool] = {}
        self._changes = -1
        self._current = False  # whether the number of changes was read in this transaction

    def renew(self) -> None:
        """A transaction has begun."""
        self._current = False

    def check(self, permit: str) -> None:
        """Raise `Unauthorized` unless a permit is valid in this transaction."""
        if not self._current:
            changes = self._store.key_changes()
            if changes != self._changes or len(self._valid) > _REMEMBERED:
                self._valid.clear()
            self._changes, self._current = changes, True
        valid = self._valid.get(permit)
        if valid is None:
            valid = self._valid[permit] = self._look_up(permit)
        if not valid:
            raise Unauthorized(MISSING if permit == KEYLESS else REFUSED)

    def _look_up(self, permit: str) -> bool:
        if permit == KEYLESS:
            return not any_active(self._store)
        sql = "SELECT 1 FROM api_keys WHERE digest = ? AND revoked_at IS NULL"
        return bool(self._store.run(sql, (permit,)))


def any_active(store: Store) -> bool:
    """Whether a store has a key that is not revoked."""
    return bool(store.run("SELECT 1 FROM api_keys WHERE revoked_at IS NULL LIMIT 1"))
