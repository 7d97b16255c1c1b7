"""The desk: everything the service can do, without HTTP. Every call returns a future."""

import os
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from ..decision import Arm
from . import deciding, experiments, settling
from .problems import ServiceError
from .records import DecisionRecord, Experiment, Mode, Settings, State
from .room import Reference, Room
from .running import place_of
from .store import Store
from .writer import Command, Outcome, Writer, resolve

__all__ = ["Desk", "open_desk"]


class Desk:
    """Takes decisions and feedback for many experiments; what it answers is on disk.

    Args:
        store: where everything is kept.
        clock: the time in seconds, for deadlines.
        snapshot_every: so many rows of a log come between two snapshots.
        max_pending: so many decisions of an experiment may wait; beyond it the oldest expires.
        future: makes the futures that calls return.
        deliver: takes all outcomes of a commit, (future, result, error) each, to resolve the futures.
            An asyncio server passes one that hands them to its loop in one call.
    """

    def __init__(
        self,
        store: Store,
        *,
        clock: Callable[[], float] = time.time,
        snapshot_every: int = 10_000,
        max_pending: int = 100_000,
        future: Callable[[], Any] = Future,
        deliver: Callable[[Sequence[Outcome]], None] = resolve,
    ) -> None:
        store.migrate(clock())
        self._room = Room(store, clock, snapshot_every)
        self._max_pending = max_pending
        self.future = future
        self._writer = Writer(self._room, idle=self._sweep, deliver=deliver)
        self._preparing = ThreadPoolExecutor(1, "decoupled-prepare")

    @property
    def deliver(self) -> Callable[[Sequence[Outcome]], None]:
        """What resolves the futures of a commit."""
        return self._writer.deliver

    @deliver.setter
    def deliver(self, deliver: Callable[[Sequence[Outcome]], None]) -> None:
        self._writer.deliver = deliver

    # Experiments

    def put_experiment(
        self, tenant: str, name: str, settings: Settings, seed: int | None = None
    ) -> "Future[tuple[Experiment, bool]]":
        """Create an experiment; True if it is new. The same again: False; other settings: Conflict."""
        future = self.future()
        about: Reference = ("name", tenant, name)

        def prepare() -> None:
            try:
                ready = experiments.prepare(settings, seed)
            except Exception as error:
                failure = error  # the name `error` is gone when the writer comes to it
                self._writer.submit(Command(lambda: _raise(failure), (), future))
                return
            work = lambda: experiments.put(self._room, tenant, name, ready, seed)  # noqa: E731
            self._writer.submit(Command(work, (about,), future, alone=True))

        # Apart from the writer: a policy new to this machine compiles for seconds.
        self._preparing.submit(prepare)
        return future  # type: ignore[no-any-return]

    def get_experiment(self, tenant: str, name: str) -> "Future[Experiment]":
        """An experiment as it stands."""
        about: Reference = ("name", tenant, name)
        return self._do(lambda: self._room.get(about).experiment(), about)

    def list_experiments(
        self, tenant: str, after: str | None = None, limit: int = 100
    ) -> "Future[list[Experiment]]":
        """Experiments by name, those after `after`."""
        return self._do(lambda: experiments.listing(self._room.store, tenant, after or "", limit))

    def archive(self, tenant: str, name: str) -> "Future[Experiment]":
        """End an experiment: it decides no more, and still takes feedback."""
        about: Reference = ("name", tenant, name)
        return self._do(lambda: experiments.archive(self._room, about), about)

    # Decisions and feedback

    def decide(
        self,
        tenant: str,
        name: str,
        *,
        mode: Mode = "both",
        count: int = 1,
        available: Iterable[Arm] | None = None,
        key: str | None = None,
    ) -> "Future[list[DecisionRecord]]":
        """Decide `count` times. The same key again gives the same decisions."""
        about: Reference = ("name", tenant, name)
        limit = self._max_pending
        return self._do(
            lambda: deciding.decide(self._room, about, mode, count, available, key, limit), about
        )

    def get_decision(self, tenant: str, id: str) -> "Future[DecisionRecord]":  # noqa: A002
        """A decision and what became of it."""
        return self._about_decision(tenant, id, settling.look)

    def feedback(
        self,
        tenant: str,
        id: str,  # noqa: A002
        *,
        loss: float | None = None,
        reward: float | None = None,
    ) -> "Future[DecisionRecord]":
        """Give the loss, or the reward, of the arm that a decision *explored*."""
        return self._about_decision(tenant, id, settling.feedback, loss, reward)

    def feedback_many(
        self, tenant: str, items: Sequence[tuple[str, float | None, float | None]]
    ) -> "Future[list[DecisionRecord | ServiceError]]":
        """Feedback for many decisions, (id, loss, reward) each, with a result or an error for each."""
        about = tuple(found for each in items if (found := _reference(tenant, each[0])) is not None)
        return self._do(lambda: settling.feedback_many(self._room, tenant, items), *about)

    # State

    def state(self, tenant: str, name: str) -> "Future[State]":
        """What an experiment has learned."""
        about: Reference = ("name", tenant, name)

        def work() -> State:
            running = self._room.get(about)
            settling.sweep(self._room, running)
            return running.state()

        return self._do(work, about)

    def ready(self) -> bool:
        """Whether the last transaction went through."""
        return self._writer.healthy

    def counters(self) -> dict[str, int]:
        """How much was committed, and how often a commit failed."""
        return {"commits": self._writer.commits, "failures": self._writer.failures}

    def close(self) -> None:
        """Finish what was asked, keep a snapshot of every experiment, and let go of the store."""
        self._preparing.shutdown()
        self._writer.close()
        self._room.close()

    # Inside

    def _do(self, work: Callable[[], Any], *about: Reference, alone: bool = False) -> Any:
        future = self.future()
        self._writer.submit(Command(work, about, future, alone))
        return future

    def _about_decision(self, tenant: str, id: str, work: Callable[..., Any], *values: Any) -> Any:  # noqa: A002
        about = _reference(tenant, id)
        if about is None:
            return self._do(lambda: place_of(id))  # which says why
        return self._do(lambda: work(self._room, about, id, *values), about)

    def _sweep(self) -> None:
        settling.sweep_all(self._room)


def _reference(tenant: str, decision: object) -> Reference | None:
    if not isinstance(decision, str):
        return None
    tag, _, number = decision.rpartition("-")
    return ("tag", tenant, tag) if tag and number else None


def _raise(error: Exception) -> None:
    raise error


def open_desk(url_or_path: str | os.PathLike[str], **options: Any) -> Desk:
    """A desk over a SQLite file, or over PostgreSQL for an address that begins postgresql://.

    >>> import pathlib, tempfile
    >>> from decoupled.service.records import Settings
    >>> desk = open_desk(pathlib.Path(tempfile.mkdtemp()) / "store.db")
    >>> _ = desk.put_experiment("local", "colours", Settings({"name": "FTPL"}, ("red", "blue")), seed=7).result()
    >>> [decision] = desk.decide("local", "colours").result()
    >>> desk.feedback("local", decision.id, loss=0.3).result().status
    'applied'
    >>> desk.close()
    """
    from .sqlite_store import SqliteStore

    return Desk(SqliteStore(url_or_path), **options)
