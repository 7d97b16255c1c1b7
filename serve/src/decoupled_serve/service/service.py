"""The decision service without HTTP: one object, with a part for each kind of call."""

import logging
import time
from collections.abc import Callable, Iterable
from contextlib import closing, suppress
from functools import partial
from typing import Any

from decoupled.base import whole_number
from decoupled.client import NotCompiled, StoreError
from decoupled.policies import Policy

from .api.decisions import Decisions, sweep_all
from .api.experiments import DELETE_AFTER, Deletion, Experiments
from .api.keys import Audit, Keys
from .api.listing import Listing
from .api.logs import Logs
from .api.pairs import Pairs
from .api.replaying import Replaying
from .api.verdicts import Verdicts
from .commits.background import Background
from .commits.loop import CommitLoop, Observer
from .memory.cache import MOST
from .memory.compiler import LATER, STORED, Compiler, code_of, needed
from .memory.session import Session
from .memory.traffic import Health, by_experiment
from .store.open import Location, open_store
from .store.store import Store

__all__ = ["DecisionService", "open_service"]

_log = logging.getLogger("decoupled.service")

KEEP_KEYS = 24 * 3600.0
SIZES_EVERY = 10.0  # seconds between two looks at the size of the store
_KEYS_AT_ONCE = 5_000  # as many as arrive in a second, and no pause that a client would notice


class DecisionService:
    """Makes decisions and takes feedback for many experiments; what it has acknowledged is on disk.

    Its parts are `experiments`, `decisions`, `logs`, `keys`, `verdicts`, `audit`, `listing`, `replaying`, `pairs` and `deletion`.
    Every call to a part returns a `Reply`: `result()` waits for it in a thread, `await` on an event loop.
    """

    def __init__(
        self,
        store: Store,
        *,
        clock: Callable[[], float] = time.time,  # for deadlines
        snapshot_every: int = 10_000,  # rows of a log between two snapshots
        max_pending: int = 100_000,  # decisions of an experiment; beyond that the oldest expires
        keep_keys: float = KEEP_KEYS,  # seconds for which an idempotency key is remembered
        # Others are restored from the store when they are next used. One with many arms or waiting decisions counts as one
        # more for every 10,000 of them.
        experiments_in_memory: int = MOST,
        # Seconds (and at most one more) that a request waits for a policy that is being compiled, before it is refused; None
        # for as long as it takes.
        patience: float | None = None,
        compiler: Compiler | None = None,
        delete_after: float = DELETE_AFTER,  # seconds for which an archived experiment is kept at least
    ) -> None:
        if store.migrate(clock()):
            _log.info("store %s: created", store.where)
        self._compiler = compiler or Compiler()
        most = whole_number(
            "experiments_in_memory", experiments_in_memory, 1, f"the default is {MOST:,}"
        )
        self._session = Session(store, clock, snapshot_every, self._compiler, most)
        self._swept = 0  # the experiment whose deadlines were looked at last
        self._housekeeping = partial(self._keep_house, keep_keys=keep_keys)
        self._commits = CommitLoop(
            self._session, patience=patience, housekeeping=self._housekeeping
        )
        # Each kind of work in threads of its own: a check never has to wait for an export.
        kinds = (
            "checks",
            "reads",
            "verdicts",
            "histories",
            "lists",
            "replays",
            "pairs",
            "deletion",
        )
        self._threads = threads = {kind: Background(f"decoupled-{kind}") for kind in kinds}
        self._listing = False
        self._sizes: dict[str, int] = {}
        self._sizes_due = 0.0
        self.experiments = Experiments(self._commits, threads["checks"])
        self.decisions = Decisions(self._commits, max_pending)
        self.logs = Logs(self._commits, threads["reads"], threads["histories"])
        self.keys = Keys(self._commits)
        self.verdicts = Verdicts(self._commits, threads["verdicts"])
        self.audit = Audit(self._commits)
        self.listing = Listing(self._commits, threads["lists"])
        self.replaying = Replaying(self._commits, threads["replays"])
        self.pairs = Pairs(self._commits, threads["pairs"], self.decisions)
        checks, deletion = threads["checks"], threads["deletion"]
        self.deletion = Deletion(self._commits, checks, deletion, delete_after, self.pairs)

    @property
    def patience(self) -> float | None:
        """For how many seconds a request waits for a policy that is being compiled."""
        return self._commits.patience

    @patience.setter
    def patience(self, seconds: float | None) -> None:
        self._commits.patience = seconds

    @property
    def database(self) -> str:
        """The database of the store: "sqlite" or "postgresql"."""
        return self._session.store.system

    def ready(self) -> bool:
        """Whether the store took the last write. After a failure one is tried every second."""
        return self._commits.healthy

    def close(self) -> None:
        """Finish what was asked, write a snapshot of every experiment, and close the store."""
        self._compiler.close()
        self._session.loader.close()
        self._threads["checks"].close()  # which may still start a deletion
        self.deletion.close()
        self.replaying.close()
        for each in self._threads.values():
            each.close()
        self.pairs.close()
        self._commits.close()
        self._session.close()

    # Compiling

    def compile_stored(self, offered: Iterable[Policy] = ()) -> None:
        """Compile the policies of all stored experiments in the background, and then those on offer."""
        self._listing = True
        self._threads["checks"].start(partial(self._compile_stored, tuple(offered)))

    def _compile_stored(self, offered: tuple[Policy, ...]) -> None:
        try:
            with closing(self._session.store.reader()) as reader:
                for row in reader.every_experiment():
                    policy, numbers = needed(row)
                    urgency = STORED if row.archived_at is None else LATER
                    with suppress(NotCompiled):  # a request for this experiment gets the error
                        for arms in numbers:
                            self._compiler.begin(code_of(policy, arms), urgency)
            for each in offered:
                self._compiler.begin(code_of(each.to_dict(), 2), LATER)
        except Exception:
            _log.exception(
                "the stored experiments could not be listed; each policy compiles on first use"
            )
        finally:
            self._listing = False

    def stored_to_compile(self) -> int:
        """How many policies of the experiments stored at the start are still to be compiled."""
        return self._compiler.stored_to_do() + self._listing

    def still_compiling(self) -> bool:
        """Whether a thread is compiling, which cannot be interrupted."""
        return self._compiler.busy()

    # Housekeeping

    def counters(self) -> dict[str, int]:
        """What this process did since it opened the service; queue, experiments and pending are as of now."""
        running, done = self._session.in_memory(), self._session.traffic.total
        return {
            "commits": self._commits.commits,
            "failed_commits": self._commits.failures,
            "commands": self._commits.commands,
            "queue": self._commits.queued(),
            "experiments": len(running),
            "decisions": done.decisions,
            "observed": done.observed,
            "expired": done.expired,
            "late": done.late,
            "pending": sum(len(each.pending) for each in running),
        }

    def observe_commits(self, observer: Observer) -> None:
        """Call a function after each transaction, in the thread that committed it: it must be quick."""
        self._commits.observers.append(observer)

    def health(self) -> Health:
        """How the service is: its store, its snapshots, its compiler, and what each experiment does."""
        running = self._session.in_memory()
        moved = [each for each in running if each.head > each.saved]
        now, (compiling, failed) = self._session.clock(), self._compiler.jobs()
        return Health(
            ready=self._commits.healthy,
            sizes=self._sizes,
            snapshot_age=max([0.0, *(now - each.saved_at for each in moved)]),
            snapshot_rows=max((each.head - each.saved for each in moved), default=0),
            compiling=compiling,
            not_compiled=failed,
            experiments=by_experiment(self._session.traffic, running, self.verdicts.warned()),
        )

    def watch_experiments(self, most: int) -> None:
        """Count the first `most` experiments that are used from now on by their names, for `health`."""
        self._session.traffic.most = most

    def _keep_house(self, session: Session, *, keep_keys: float) -> bool:
        """What is done every second; returns whether there is more of it to do."""
        self._compiler.dismiss()
        if time.monotonic() >= self._sizes_due:
            self._sizes, self._sizes_due = session.store.sizes(), time.monotonic() + SIZES_EVERY
            if session.store.has_pairs():
                with suppress(StoreError):  # the service is being closed
                    self._threads["pairs"].start(self.pairs.sweep)
        if not self._commits.healthy:
            session.store.probe()
        self._swept = sweep_all(session, self._swept)
        session.store.drop_keys(session.clock() - keep_keys, _KEYS_AT_ONCE)
        return self._swept > 0


def open_service(url_or_path: Location, *, create: bool = True, **options: Any) -> DecisionService:
    """The service over a SQLite file, or over PostgreSQL for an address that begins with postgresql://.

    Without `create`, a store that does not exist is an error, and is not made. `options` are those of `DecisionService`.

    >>> import pathlib, tempfile
    >>> from decoupled_serve.service.experiment.records import Settings
    >>> service = open_service(pathlib.Path(tempfile.mkdtemp()) / "store.db")
    >>> colours = Settings({"name": "FTPL"}, ("red", "blue"))
    >>> _ = service.experiments.put("local", "colours", colours, seed=7).result()
    >>> [decision] = service.decisions.decide("local", "colours").result()
    >>> service.decisions.feedback("local", decision.id, loss=0.3).result().status
    'applied'
    >>> service.close()
    """
    store = open_store(url_or_path, create=create)
    try:
        return DecisionService(store, **options)
    except BaseException:
        store.close()
        raise
