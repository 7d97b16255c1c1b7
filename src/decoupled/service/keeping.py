"""The part of the desk that looks after what was recorded: the log, backups, retention, API keys."""

import json
import os
from collections.abc import Callable
from concurrent.futures import Future
from functools import partial
from pathlib import Path
from typing import TypeVar

from ..policies import Policy
from .analysis import export
from .analysis.evaluation import Evaluation, evaluate
from .analysis.export import LoggedDecision
from .commands import keys as api_keys
from .commands import retention as retaining
from .commands.experiments import as_experiment
from .commands.keys import ApiKey
from .experiment.rows import ExperimentRow
from .experiment.settings import as_settings
from .office import Office
from .session import Reference
from .store.backup import back_up
from .store.store import Store

T = TypeVar("T")


class Keeping(Office):
    """What can be done with a log. All of it runs beside the writer, on the store as it is when asked."""

    def log(
        self, tenant: str, name: str, after: int = 0, limit: int | None = None
    ) -> "Future[list[LoggedDecision]]":
        """Decisions of the log with their true propensities, those after row `after`."""
        return self._read(tenant, name, lambda reader, row: list(export.logged(reader, row, after, limit)))

    def export(
        self,
        tenant: str,
        name: str,
        path: str | os.PathLike[str],
        format: str = "parquet",  # noqa: A002
    ) -> "Future[int]":
        """Write the whole log to a file, Parquet or CSV; the number of decisions."""
        return self._read(
            tenant, name, lambda reader, row: export.write(export.logged(reader, row), Path(path), format)
        )

    def evaluate(self, tenant: str, name: str) -> "Future[Evaluation]":
        """The value of every arm and of what was exploited, from the log since the arms last changed."""

        def work(reader: Store, row: ExperimentRow) -> Evaluation:
            settings = as_settings(json.loads(row.settings))
            coupled = Policy.from_dict(settings.policy).coupled
            decisions = export.logged(reader, row, after=_comparable(reader, row.id))
            return evaluate(name, decisions, as_experiment(row).arms, settings.loss_range, coupled)

        return self._read(tenant, name, work)

    # Keeping

    def backup(self, path: str | os.PathLike[str], *, force: bool = False) -> "Future[int]":
        """Copy the store as it is now to a SQLite file, a new one unless forced; the number of experiments."""
        return self._aside(lambda: back_up(self._room.store, path, force=force))

    def retention(self, tenant: str, name: str, before: float) -> "Future[int]":
        """Drop the log up to a time, but for decisions that waited then; the number of rows dropped."""
        about: Reference = ("name", tenant, name)
        room = self._room

        def work() -> int:
            base = self._with_reader(tenant, name, lambda reader, row: retaining.cut(reader, row, before))
            if base.head == 0:
                return 0
            self._wait_for(lambda: retaining.rebase(room, about, base, before), about)
            parts = range(1, base.head + 1, retaining.AT_ONCE)
            return sum(
                self._wait_for(partial(retaining.drop, room, about, base, first), about) for first in parts
            )

        return self._aside(work)

    # API keys

    def keys_add(self, tenant: str, role: str, digest: str, label: str = "") -> "Future[ApiKey]":
        """Store a key by the SHA-256 digest of its secret."""
        key = ApiKey(digest, tenant, role, label, self._room.clock())
        return self._do(lambda: api_keys.add(self._room.store, key), alone=True)

    def keys_list(self, tenant: str | None = None) -> "Future[list[ApiKey]]":
        """The keys of a tenant, or of all."""
        return self._do(lambda: api_keys.listing(self._room.store, tenant))

    def keys_revoke(self, digest: str) -> "Future[ApiKey]":
        """Have a key be refused from now on."""
        return self._do(lambda: api_keys.revoke(self._room.store, digest, self._room.clock()), alone=True)

    def key_find(self, digest: str) -> "Future[ApiKey | None]":
        """The key of that digest, revoked or not."""
        return self._do(lambda: api_keys.find(self._room.store, digest))

    def _read(self, tenant: str, name: str, work: Callable[[Store, ExperimentRow], T]) -> "Future[T]":
        return self._aside(lambda: self._with_reader(tenant, name, work))


def _comparable(reader: Store, experiment: int) -> int:
    """The row after which every decision is there, and could choose from the arms of now."""
    base = reader.base(experiment)
    return max(reader.arms_changed(experiment), 0 if base is None else base[0])
