"""Threads for work that would hold up the commit loop: reading logs, checking settings."""

from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from functools import partial, wraps
from threading import Event
from typing import Concatenate, ParamSpec, TypeVar

from decoupled.client import CLOSED, Compiling, NotCompiled, NotFound, StoreError

from ...fair_threads import FairThreads, resting
from ..experiment.records import ExperimentRow
from ..memory.compiler import Compiler, needed
from ..store.store import Store
from .loop import CommitLoop, as_service_error
from .replies import Reply, deliver

S = TypeVar("S")
T = TypeVar("T")
P = ParamSpec("P")


class Background(FairThreads):
    """Runs work of tenants that take turns, and one piece of work after another for each of them."""

    def start(self, work: Callable[[], object], lane: Hashable = None) -> None:
        """Run work that answers for itself, in the context of the caller."""
        try:
            super().start(work, lane)
        except RuntimeError:
            raise StoreError(CLOSED) from None

    def submit(self, work: Callable[[], T], lane: Hashable = None) -> Reply[T]:
        """Run work, and answer with its result."""
        reply: Reply[T] = Reply()
        self.start(partial(answer, reply, work), lane)
        return reply


def in_background(
    thread: str = "_background",
) -> Callable[[Callable[Concatenate[S, P], T]], Callable[Concatenate[S, P], Reply[T]]]:
    """A decorator for methods that run in the background of their object, by the name of that attribute.

    Their first argument says whose turn it is: the tenant, unless the work is the operator's.
    """

    def decorate(method: Callable[Concatenate[S, P], T]) -> Callable[Concatenate[S, P], Reply[T]]:
        @wraps(method)
        def begin(self: S, /, *arguments: P.args, **options: P.kwargs) -> Reply[T]:
            background: Background = getattr(self, thread)
            lane = next(iter((*arguments, *options.values())))
            return background.submit(partial(method, self, *arguments, **options), lane)

        return begin

    return decorate


def answer(reply: Reply[T], work: Callable[[], T]) -> None:
    """Run work, and give its result or its error to a reply."""
    try:
        deliver([(reply, work(), None)])
    except Exception as error:
        deliver([(reply, None, as_service_error(error))])


@contextmanager
def reading(
    commits: CommitLoop, tenant: str, name: str, *, compiled: bool = True
) -> Iterator[tuple[Store, ExperimentRow]]:
    """A second connection to the store as it is now, and an experiment in it, whose policy is `compiled` first."""
    reader = commits.session.store.reader()
    try:
        row = reader.named(tenant, name)
        if row is None:
            raise NotFound(f"experiment {name!r}: is not known; create it first, or check the name")
        if compiled:
            _await_compiled(commits.session.compiler, row, commits.patience)
        yield reader, row
    finally:
        reader.close()


def _await_compiled(compiler: Compiler, row: ExperimentRow, patience: float | None) -> None:
    """Wait for the policy of an experiment. If it failed, go on: parts of a log can be read without it."""
    while True:  # a policy may have several forms, compiled one after another
        try:
            compiler.require(row.name, *needed(row))
            return
        except NotCompiled:
            return
        except Compiling as error:
            ended = Event()
            compiler.wait(error.job, ended.set, ended.set, patience)
            with resting():
                ended.wait()
            if error.job.ended_at is None:
                raise
