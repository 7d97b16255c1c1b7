"""The experiments in memory, each brought up to date with the log before it is used."""

from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any, Literal, NamedTuple

from ..native.calls import FEW_ARMS
from .compiler import Compiler, needed
from .errors import Compiling, NotCompiled, NotFound, ReplayError, ServiceError, StoreError
from .experiment.audited import audit_row
from .experiment.live import Running
from .experiment.rows import ExperimentRow, Row
from .experiment.snapshots import snapshot
from .origin import ORIGIN
from .recovery import restored
from .store.store import Store
from .traffic import Counts, Traffic, counts_of


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
        self, store: Store, clock: Callable[[], float], snapshot_every: int, compiler: Compiler
    ) -> None:
        self.store = store
        self.clock = clock
        self.compiler = compiler
        self._snapshot_every = snapshot_every
        self._running: dict[int, Running] = {}
        self._ids: dict[Reference, int] = {}
        self._held: dict[int, Running] = {}
        self._heads: dict[int, tuple[int, int]] = {}
        self._before: dict[int, Counts] = {}
        self.traffic = Traffic()
        self._broken: dict[int, ServiceError] = {}

    # Transactions

    def enter(self, about: Iterable[Reference], *, begun: bool = False) -> None:
        """Open a transaction, unless it has begun, and lock and update the experiments that it is about."""
        self._held.clear()
        self._heads.clear()
        self._before.clear()
        self._broken.clear()
        if not begun:
            self.store.begin()
        ids = {found for each in set(about) if (found := self._find(each)) is not None}
        if ids:
            self.hold(ids)

    def hold(self, ids: Iterable[int]) -> list[Running]:
        """Lock experiments until the transaction ends; other replicas wait. Leaves out those that cannot run."""
        held = []
        for row in self.store.lock(sorted(ids)):
            try:
                running = self._at_head(row)
            except (ReplayError, Compiling, NotCompiled) as error:
                self._running.pop(row.id, None)
                self._broken[row.id] = error
                continue
            running.late = row.late
            self._running[row.id] = self._held[row.id] = running
            self._heads[row.id] = (running.head, running.version)
            self._before[row.id] = counts_of(running)
            held.append(running)
        return held

    def _at_head(self, row: ExperimentRow) -> Running:
        running = self._running.get(row.id)
        if running is None or running.head > row.head:
            self.compiler.require(row.name, *needed(row))
            running = restored(self.store, row)
        if running.head < row.head:
            for each in self.store.rows_since(row.id, running.head):
                running.replay(each)
        if running.head != row.head:
            raise ReplayError(f"experiment {row.name!r}: its log ends at {running.head}, not {row.head}")
        return running

    def is_quick(self, about: Iterable[Reference], rows: int) -> bool:
        """Whether so many rows for these experiments need no loading, no snapshot and no long computation."""
        for each in set(about):
            running = self._running.get(self._ids.get(each, 0))
            if running is None or len(running.names) > FEW_ARMS or self._is_due(running, rows):
                return False
        return True

    def write(self) -> None:
        """Write the rows, and the head of each changed experiment."""
        for running in self._held.values():
            if self._heads[running.id] != (running.head, running.version):
                self.store.update(running.id, head=running.head, version=running.version)
                if self._is_due(running):
                    self.save(running)
        self.store.flush()

    def committed(self) -> None:
        """Count what the transaction did, now that it is on disk."""
        for running in self._held.values():
            self.traffic.add((running.tenant, running.name), self._before[running.id], counts_of(running))

    def abandon(self) -> None:
        """Roll back, and drop everything in memory."""
        self._running.clear()
        self._held.clear()
        self._ids.clear()
        with suppress(StoreError):  # the next transaction raises it again, to a caller
            self.store.rollback()

    # Experiments

    def get(self, reference: Reference) -> Running:
        """An experiment that this transaction holds; `NotFound` if there is none."""
        running = self.find(reference)
        if running is None:
            raise NotFound(
                f"experiment {reference.text!r}: is not known; create the experiment first, or check the name"
            )
        return running

    def find(self, reference: Reference) -> Running | None:
        """An experiment that this transaction holds; None if there is none."""
        found = self._ids.get(reference)
        running = None if found is None else self._held.get(found)
        if running is None and found in self._broken:
            raise self._broken[found]
        return running

    def check_compiled(self, about: Iterable[Reference]) -> None:
        """Raise `Compiling` if the policy of one of these experiments is still being compiled."""
        for each in about:
            error = self._broken.get(self._ids.get(each, 0))
            if isinstance(error, Compiling):
                raise error

    def all_running(self) -> list[Running]:
        """Every experiment in memory; another replica may have moved some of them on."""
        return list(self._running.values())

    def _find(self, reference: Reference) -> int | None:
        found = self._ids.get(reference)
        if found is None:
            kind, tenant, text = reference
            row = self.store.named(tenant, text) if kind == "name" else self.store.tagged(text)
            if row is None or row.tenant != tenant:
                return None
            found = self._ids[reference] = row.id
        return found

    def append(self, running: Running, row: Row) -> None:
        """Add a row that `running` has already applied to the log."""
        self.store.append(running.id, row)

    def record(self, action: str, tenant: str, subject: str, old: Any = None, new: Any = None) -> None:
        """Add a change to the audit trail, in this transaction; `old` and `new` must be JSON."""
        self.store.add_audit(audit_row(self.clock(), ORIGIN.get(), action, tenant, subject, old, new))

    # Snapshots

    def _is_due(self, running: Running, rows: int = 0) -> bool:
        # A snapshot lists every pending decision: the more there are, the less often it is written.
        return running.head + rows - running.saved >= max(self._snapshot_every, len(running.pending))

    def save(self, running: Running) -> None:
        """Write a snapshot."""
        self.store.add_snapshot(running.id, running.head, snapshot(running), self.clock())
        running.saved, running.saved_at = running.head, self.clock()

    def close(self) -> None:
        """Write a snapshot of every experiment that has changed since its last one, and close the store."""
        try:
            moved = [each.id for each in self._running.values() if each.head > each.saved]
            if moved:
                self.enter(())
                for running in self.hold(moved):
                    self.save(running)
                self.write()
                self.store.commit()
        except StoreError:  # a snapshot only shortens the next start
            self.abandon()
        finally:
            self.store.close()
