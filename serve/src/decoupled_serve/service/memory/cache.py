"""What is kept in memory of the store: the experiments that were used last, and which API keys are valid."""

from collections import OrderedDict
from collections.abc import Container, Iterator
from typing import TypeVar

from decoupled.client import Unauthorized

from ..experiment.live import LiveExperiment
from ..store.store import Store

MOST = 2_000
UNIT = 10_000  # arms and waiting decisions that count as one more experiment
KEYLESS = ""  # the permit of requests without a key, which is valid as long as the store has no active key
REFUSED = "Authorization: the key is unknown or revoked; ask for a new one"
MISSING = "Authorization: is missing; send 'Authorization: Bearer KEY'"
_REMEMBERED = 10_000


K = TypeVar("K")
V = TypeVar("V")


def keep(kept: "OrderedDict[K, V]", key: K, value: V, most: int) -> None:
    """Keep a value as the one that was used last, and drop those that were not used for longest."""
    kept[key] = value
    kept.move_to_end(key)
    while len(kept) > most:
        kept.popitem(last=False)


class Cache:
    """Live experiments by their id, those that were not used for longest first. One that is large counts as several."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._running: OrderedDict[int, LiveExperiment] = OrderedDict()
        self._weights: dict[int, int] = {}
        self._total = 0

    def get(self, experiment: int) -> LiveExperiment | None:
        """An experiment, if it is in memory."""
        return self._running.get(experiment)

    def all(self) -> list[LiveExperiment]:
        """Every experiment in memory."""
        return list(self._running.values())

    def use(self, running: LiveExperiment) -> None:
        """Keep an experiment, as the one that was used last."""
        self._weigh(running)
        self._running[running.id] = running
        self._running.move_to_end(running.id)

    def add_unused(self, running: LiveExperiment) -> None:
        """Keep an experiment that nobody asked for, as the first to leave."""
        self.use(running)
        self._running.move_to_end(running.id, last=False)

    def drop(self, experiment: int) -> None:
        """Remove an experiment, if it is there."""
        if self._running.pop(experiment, None) is not None:
            self._total -= self._weights.pop(experiment)

    def clear(self) -> None:
        """Remove all experiments."""
        self._running.clear()
        self._weights.clear()
        self._total = 0

    def surplus(self, needed: Container[int]) -> Iterator[LiveExperiment]:
        """The experiments beyond the limit, except for those that are needed. The caller drops each of them."""
        if self._total <= self._most:
            return
        for running in self.all():
            if running.id not in needed:
                yield running
                if self._total <= self._most:
                    return

    def reweigh(self, running: LiveExperiment) -> None:
        """An experiment may have more arms or waiting decisions than before."""
        if running.id in self._weights:
            self._weigh(running)

    def _weigh(self, running: LiveExperiment) -> None:
        weight = 1 + (len(running.names) + len(running.pending)) // UNIT
        self._total += weight - self._weights.get(running.id, 0)
        self._weights[running.id] = weight


class KeyCache:
    """The permits of one store, digests of keys or `KEYLESS`, checked in the transaction that runs a request.

    A look-up for each request would cost as much as a decision. So keys are looked up once and remembered, and a number that
    every change of keys increases says whether what is remembered still holds. It is read once in a transaction, which begins
    after its requests have arrived: a key that was revoked before then, by any process, is refused.
    """

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
