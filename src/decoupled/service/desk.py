"""The desk: everything the service can do, without HTTP. Every call returns a future."""

import os
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future
from typing import Any, NoReturn, TypeAlias, TypeVar

from ..decision import Arm
from .commands import decide as deciding
from .commands import experiments, views
from .commands import feedback as settling
from .errors import Compiling, NotCompiled, ServiceError
from .experiment.records import DecisionRecord, Experiment, Feedback, Mode, Settings, State
from .keeping import Keeping
from .session import Reference
from .store.open import open_store

__all__ = ["Desk", "open_desk"]

T = TypeVar("T")
Plain: TypeAlias = tuple[str, float | None, float | None]


class Desk(Keeping):
    """Takes decisions and feedback for many experiments; what it answers is on disk."""

    # Experiments

    def put_experiment(
        self, tenant: str, name: str, settings: Settings, seed: int | None = None
    ) -> "Future[tuple[Experiment, bool]]":
        """Create an experiment; True if it is new. The same again: False; other settings: Conflict.

        It is on disk before its policy is compiled. The future waits for that no longer than `patience`;
        the experiment's status says how far it has come.
        """
        about: Reference = ("name", tenant, name)
        future: Future[tuple[Experiment, bool]] = self.future()
        committed: Future[tuple[Experiment, bool]] = Future()
        committed.add_done_callback(lambda done: self._created(done, future))
        self._aside(
            lambda: experiments.prepare(tenant, name, settings, seed),
            lambda ready: experiments.put(self._room, tenant, name, ready, seed),
            (about,),
            future=committed,
            pool=self._checks,
        )
        return future

    def _created(self, done: "Future[tuple[Experiment, bool]]", future: Any) -> None:
        """Answer who created an experiment, when it can decide or at the end of patience."""
        error = done.exception()
        if error is not None:
            self.deliver([(future, None, error)])
            return
        made, created = done.result()

        def answer() -> None:
            self.deliver([(future, (experiments.with_status(self._compiler, made), created), None)])

        def answer_if_ready() -> None:
            try:
                if made.status != "archived":
                    experiments.require_compiled(self._compiler, made)
            except Compiling as waits:
                self._compiler.wait(waits.job, answer_if_ready, answer, self.patience)
                return
            except NotCompiled:
                pass
            answer()

        answer_if_ready()

    def get_experiment(self, tenant: str, name: str) -> "Future[Experiment]":
        """An experiment as it stands."""
        about: Reference = ("name", tenant, name)
        return self._do(lambda: experiments.show(self._room, about), about)

    def list_experiments(
        self, tenant: str, after: str | None = None, limit: int = 100
    ) -> "Future[list[Experiment]]":
        """Experiments by name, those after `after`."""
        return self._do(lambda: experiments.listing(self._room, tenant, after or "", limit))

    def archive(self, tenant: str, name: str) -> "Future[Experiment]":
        """End an experiment: it decides no more, and still takes feedback."""
        about: Reference = ("name", tenant, name)
        return self._do(lambda: experiments.archive(self._room, about), about)

    def add_arms(self, tenant: str, name: str, arms: Iterable[Arm]) -> "Future[Experiment]":
        """Let arms come; those that are there already stay as they are."""
        about: Reference = ("name", tenant, name)
        return self._do(
            lambda: experiments.change_arms(self._room, about, "added", arms), about, alone=True
        )

    def retire_arms(self, tenant: str, name: str, arms: Iterable[Arm]) -> "Future[Experiment]":
        """Let arms go; what they explored before still takes feedback."""
        about: Reference = ("name", tenant, name)
        return self._do(
            lambda: experiments.change_arms(self._room, about, "retired", arms), about, alone=True
        )

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
        return self._about_decision(tenant, id, settling.look, id)

    def feedback(
        self,
        tenant: str,
        id: str,  # noqa: A002
        *,
        loss: float | None = None,
        reward: float | None = None,
        arm: Arm | None = None,
    ) -> "Future[DecisionRecord]":
        """Give the loss, or the reward, of the arm that a decision *explored*; any other `arm` is refused."""
        return self._about_decision(tenant, id, settling.feedback, Feedback(id, loss, reward, arm))

    def feedback_many(
        self, tenant: str, items: Sequence[Feedback | Plain]
    ) -> "Future[list[DecisionRecord | ServiceError]]":
        """Feedback for many decisions in one transaction, with a result or an error for each."""
        given = [Feedback(*each) for each in items]
        about = tuple(found for each in given if (found := _reference(tenant, each.decision)) is not None)

        def apply() -> list[DecisionRecord | ServiceError]:
            return settling.feedback_many(self._room, tenant, given)

        def apply_all() -> list[DecisionRecord | ServiceError]:
            self._room.check_compiled(about)
            return apply()

        return self._do(apply_all, *about, otherwise=apply)

    # State

    def state(self, tenant: str, name: str) -> "Future[State]":
        """What an experiment has learned."""
        about: Reference = ("name", tenant, name)

        def work() -> State:
            running = self._room.get(about)
            settling.sweep(self._room, running)
            return views.state(running)

        return self._do(work, about)

    def _about_decision(self, tenant: str, id: str, work: Callable[..., T], given: Any) -> "Future[T]":  # noqa: A002
        about = _reference(tenant, id)
        if about is None:
            return self._do(lambda: _unknown(id))
        return self._do(lambda: work(self._room, about, given), about)


def _unknown(decision: object) -> NoReturn:
    raise views.unknown_decision(decision)


def _reference(tenant: str, decision: object) -> Reference | None:
    if not isinstance(decision, str):
        return None
    tag, _, number = decision.rpartition("-")
    return ("tag", tenant, tag) if number and tag.isascii() and tag.isalnum() else None


def open_desk(url_or_path: str | os.PathLike[str], *, create: bool = True, **options: Any) -> Desk:
    """A desk over a SQLite file, or over PostgreSQL for an address that begins postgresql://.

    Without `create` a store that is not there is an error, and stays away.

    >>> import pathlib, tempfile
    >>> from decoupled.service.experiment.records import Settings
    >>> desk = open_desk(pathlib.Path(tempfile.mkdtemp()) / "store.db")
    >>> _ = desk.put_experiment("local", "colours", Settings({"name": "FTPL"}, ("red", "blue")), seed=7).result()
    >>> [decision] = desk.decide("local", "colours").result()
    >>> desk.feedback("local", decision.id, loss=0.3).result().status
    'applied'
    >>> desk.close()
    """
    store = open_store(url_or_path, create=create)
    try:
        return Desk(store, **options)
    except BaseException:
        store.close()
        raise
