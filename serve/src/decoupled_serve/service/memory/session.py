"""The experiments in memory, each brought up to date with the log before it is used."""

import logging
from collections.abc import Callable, Hashable, Iterable, Sequence
from contextlib import suppress
from typing import Any, Literal, NamedTuple

from decoupled.client import (
    Compiling,
    Gone,
    Loading,
    NotCompiled,
    NotFound,
    ReplayError,
    ServiceError,
    StoreError,
)

from ..experiment.live import LiveExperiment
from ..experiment.records import ExperimentRow, audit_row, moment
from ..experiment.request_context import ITSELF, ORIGIN, coming_from
from ..experiment.snapshots import prepared, snapshot
from ..store.store import Store
from .cache import Cache, KeyCache
from .compiler import Compiler, needed
from .loader import Loader, is_quick, restored
from .traffic import Counts, TrafficCounts, counts_of

_log = logging.getLogger("decoupled.service")

_MOST_IDS = 50_000  # names and tags whose experiment is remembered
_MOST_BEHIND = 5_000  # rows of another replica, to replay while others wait
_FEW_ROWS = 64  # that are replayed as fast as a snapshot is read
_FEW_PENDING = 500  # decisions, whose snapshot is made in a few milliseconds


class Reference(NamedTuple):
    """Names an experiment of a tenant: by its name, or by the tag that the ids of its decisions carry."""

    kind: Literal["name", "tag"]
    tenant: str
    text: str


class Session:
    """The running experiments, and the open transaction from `enter` to the store's `commit`.

    Everything in memory is a copy. After a failure `abandon` drops it, and experiments are restored from the store
    when they are next needed.
    """

    def __init__(
        self,
        store: Store,
        clock: Callable[[], float],
        snapshot_every: int,
        compiler: Compiler,
        most: int,
    ) -> None:
        self.store = store
        self.clock = clock
        self.compiler = compiler
        self.keys = KeyCache(store)
        self.loader = Loader(store)
        self._snapshot_every, self._closing = snapshot_every, False
        self._cache = Cache(most)
        self._ids: dict[Reference, int] = {}
        self._held: dict[int, LiveExperiment] = {}
        self._heads: dict[int, tuple[int, int]] = {}
        self._wanted: set[int] = set()  # those of the held that somebody asked for
        self._awaited: set[int] = set()  # restored for commands that have not run yet
        self._before: dict[int, Counts] = {}
        self._incumbents: dict[int, bool | None] = {}  # whether they were released
        self.traffic = TrafficCounts()
        self._broken: dict[int, ServiceError] = {}
        # While a batch runs: whether it should make way.
        self.others_wait: Callable[[], bool] = lambda: False

    # Transactions

    def enter(self, about: Iterable[Reference]) -> None:
        """Open a transaction, and lock and update the experiments that it is about."""
        for each in (
            self._held,
            self._heads,
            self._wanted,
            self._before,
            self._incumbents,
            self._broken,
        ):
            each.clear()
        if len(self._ids) > _MOST_IDS:
            self._ids.clear()
        for running in self.loader.finished() if self.loader.ended else ():
            if self._cache.get(running.id) is None:
                self._cache.use(running)
                self._awaited.add(running.id)
        self.store.begin()
        self.keys.renew()
        wanted = set(about)
        self._hold_found(wanted)
        if self._broken:
            self._find_again(wanted)

    def _hold_found(self, wanted: Iterable[Reference]) -> None:
        if ids := {found for each in wanted if (found := self._find(each)) is not None}:
            self.hold(ids)

    def hold(self, ids: Iterable[int], *, unused: bool = False) -> list[LiveExperiment]:
        """Lock experiments until the transaction ends, but those that cannot run; `unused` ones are the first to leave memory again."""
        held = []
        for row in self.store.lock(sorted(ids)):
            if row.deleted_at is not None:
                self._cache.drop(row.id)
                told = f"decision: its experiment was deleted at {moment(row.deleted_at)}"
                self._broken[row.id] = Gone(told)
                continue
            known = self._cache.get(row.id) is not None
            try:
                running = self._at_head(row)
            except (ReplayError, Compiling, Loading, NotCompiled) as error:
                self._cache.drop(row.id)
                self._broken[row.id] = error
                continue
            running.late, running.next_expiry = row.late, row.next_expiry
            self._held[row.id] = running
            self._awaited.discard(row.id)
            self._heads[row.id] = (running.head, running.version)
            self._before[row.id] = counts_of(running)
            self._incumbents[row.id] = running.incumbent_released
            if not unused:
                self._wanted.add(row.id)
                self._cache.use(running)
            elif not known:
                self._cache.add_unused(running)
            held.append(running)
        return held

    def _at_head(self, row: ExperimentRow) -> LiveExperiment:
        running = self._cache.get(row.id)
        if running is not None and not 0 <= row.head - running.head <= _MOST_BEHIND:
            running = None
        known = running is not None
        if running is None:
            self.compiler.require(row.name, *needed(row))
            if self.loader.busy_with(row.id) or not is_quick(self.store, row):
                self.loader.require(row)
            running = restored(self.store, row)
        if running.head < row.head:
            for each in self.store.rows_since(row.id, running.head):
                running.replay(each)
        if running.head != row.head:
            raise ReplayError(
                f"experiment {row.name!r}: its log ends at {running.head}, not {row.head}"
            )
        if not known and (lead := running.last_at - self.clock()) > 1.0:
            told = "experiment %r: its log is %.0f s ahead of the clock, so deadlines wait; check the clock"
            _log.warning(told, row.name, lead)
        return running

    def lane(self, about: Sequence[Reference]) -> Hashable:
        """The experiment that a command is about, for fair turns; callable from every thread."""
        return self._ids.get(about[0], about[0]) if about else None

    def write(self) -> None:
        """Write the rows, and the head of each changed experiment."""
        for running in self._held.values():
            changes = self._changes(running)
            if changes:
                self.store.update(running.id, **changes)
            if "head" in changes:
                self._record_release(running)
                # A snapshot lists every pending decision: the more there are, the less often it is written.
                if running.head - running.saved >= max(
                    self._snapshot_every, len(running.pending) // 4
                ):
                    self.save(running)
                self._cache.reweigh(running)
        for running in self._cache.surplus(self._wanted | self._awaited):
            # What is dropped can be restored from its log in no time.
            if running.head - running.saved > _FEW_ROWS:
                self.save(running)
            self._cache.drop(running.id)
        while self.loader.snapshots:
            experiment, seq, text = self.loader.snapshots.popleft()
            self.store.add_snapshot(experiment, seq, text, self.clock())
        self.store.flush()

    def _record_release(self, running: LiveExperiment) -> None:
        """Record that what this transaction observed has released the incumbent."""
        if running.incumbent_released and self._incumbents.get(running.id) is False:
            incumbent = running.learner.guardrails.incumbent
            with coming_from(ITSELF):
                self.record("incumbent.release", running.tenant, running.name, incumbent)

    def committed(self) -> None:
        """Count what the transaction did, now that it is on disk."""
        for running in self._held.values():
            self.traffic.add(
                (running.tenant, running.name), self._before[running.id], counts_of(running)
            )

    def _changes(self, running: LiveExperiment) -> dict[str, Any]:
        """The columns of an experiment that have changed since it was locked."""
        changes = dict[str, Any]()
        if (running.head, running.version) != self._heads[running.id]:
            changes |= {"head": running.head, "version": running.version}
        # An earlier time may stay as it is: when it comes, `sweep_all` finds the next one.
        if running.next_expiry is None and (expiry := running.first_expiry()) is not None:
            running.next_expiry = changes["next_expiry"] = expiry
        return changes

    def abandon(self) -> None:
        """Roll back, and drop everything in memory."""
        self._cache.clear()
        self._awaited.clear()
        self._held.clear()
        self._ids.clear()
        with suppress(StoreError):  # the next transaction raises it again, to a caller
            self.store.rollback()

    # Experiments

    def get(self, reference: Reference) -> LiveExperiment:
        """An experiment that this transaction holds; `NotFound` if there is none."""
        running = self.find(reference)
        if running is None:
            remedy = "create the experiment first, or check the name"
            raise NotFound(f"experiment {reference.text!r}: is not known; {remedy}")
        return running

    def find(self, reference: Reference) -> LiveExperiment | None:
        """An experiment that this transaction holds; None if there is none."""
        found = self._ids.get(reference)
        running = None if found is None else self._held.get(found)
        if running is None and found in self._broken:
            raise self._broken[found]
        return running

    def _find_again(self, wanted: Iterable[Reference]) -> None:
        """Look up names that another replica deleted: they may belong to new experiments by now."""
        gone = {each for each, error in self._broken.items() if isinstance(error, Gone)}
        stale = [each for each in wanted if each.kind == "name" and self._ids.get(each) in gone]
        for each in stale:
            del self._ids[each]
        self._hold_found(stale)

    def drop(self, running: LiveExperiment) -> None:
        """Forget an experiment that this transaction deletes."""
        self._cache.drop(running.id)
        self._held.pop(running.id, None)
        self._ids = {each: found for each, found in self._ids.items() if found != running.id}

    def check_loaded(self, about: Iterable[Reference]) -> None:
        """Raise `Compiling` or `Loading` if one of these experiments is still being compiled or restored."""
        for each in about:
            error = self._broken.get(self._ids.get(each, 0))
            if isinstance(error, (Compiling, Loading)):
                raise error

    def in_memory(self) -> list[LiveExperiment]:
        """Every experiment in memory; another replica may have moved some of them on."""
        return self._cache.all()

    def _find(self, reference: Reference) -> int | None:
        found = self._ids.get(reference)
        if found is None:
            kind, tenant, text = reference
            row = self.store.named(tenant, text) if kind == "name" else self.store.tagged(text)
            if row is None or row.tenant != tenant:
                return None
            found = self._ids[reference] = row.id
        return found

    def record(
        self, action: str, tenant: str, subject: str, old: Any = None, new: Any = None
    ) -> None:
        """Add a change to the audit trail, in this transaction; `old` and `new` must be JSON."""
        self.store.add_audit(
            audit_row(self.clock(), ORIGIN.get(), action, tenant, subject, old, new)
        )

    # Snapshots

    def save(self, running: LiveExperiment) -> None:
        """Write a snapshot; a long one is made in the background, and written a moment later."""
        if len(running.pending) > _FEW_PENDING and not self._closing:
            self.loader.write(running, prepared(running))
        else:
            self.store.add_snapshot(running.id, running.head, snapshot(running), self.clock())
        running.saved, running.saved_at = running.head, self.clock()

    def close(self) -> None:
        """Write a snapshot of every experiment that has changed since its last one, and close the store."""
        self._closing = True
        self.loader.close()
        try:
            moved = [each.id for each in self._cache.all() if each.head > each.saved]
            if moved or self.loader.snapshots:
                self.enter(())
                for running in self.hold(moved):
                    self.save(running)
                self.write()
                self.store.commit()
        except StoreError:  # a snapshot only shortens the next start
            self.abandon()
        finally:
            self.store.close()
