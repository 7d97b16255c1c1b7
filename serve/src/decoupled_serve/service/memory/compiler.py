"""Compile policies in the background: one at a time, those that a request waits for first.

Numba compiles one function at a time in a process, so more than one thread would gain nothing. Code that was
compiled before on this machine is loaded from disk in a fraction of a second.
"""

import json
import logging
import threading
import time
from collections.abc import Callable, Hashable, Iterable, Iterator
from functools import lru_cache
from itertools import count
from typing import Any, NamedTuple, TypeAlias

from decoupled.client import HOW_LONG, Compiling, NotCompiled
from decoupled.errors import DecoupledError
from decoupled.learner import on_compile
from decoupled.policies import Policy, warmup

from ..experiment.records import MOST_ARMS, ExperimentRow

# Why a policy is compiled: a request waits for it, a stored experiment needs it, or it may be needed later.
ASKED, STORED, LATER = range(3)
AGAIN = 60.0  # seconds after which a policy that failed to compile may be tried again

_log = logging.getLogger("decoupled.service")


class Code(NamedTuple):
    """The machine code that an experiment needs: that of a policy with a number of arms."""

    policy: Policy
    arms: int
    form: Hashable


def code_of(policy: dict[str, Any], arms: int) -> Code:
    """The code for a stored policy. A policy that this process does not know counts as one that does not compile."""
    try:
        return _code_of(json.dumps(policy, sort_keys=True), arms)
    except DecoupledError as error:
        raise NotCompiled(str(error)) from None


def needed(row: ExperimentRow) -> tuple[dict[str, Any], set[int]]:
    """The policy of a stored experiment, and the numbers of arms that it runs with.

    They are the number of arms at the start, now, and in all: a replay needs each of them, and the form of the
    policy may depend on the number.
    """
    settings, ever = json.loads(row.settings), len(json.loads(row.arms))
    return settings["policy"], {len(settings["arms"]), ever, ever - len(json.loads(row.retired))}


@lru_cache(maxsize=4096)
def _code_of(policy: str, arms: int) -> Code:
    found = Policy.from_json(policy)
    form, few = warmup.form(found, arms), min(arms, MOST_ARMS)
    # The same machine code serves any number of arms of a form, and is called with fewer arms in less time.
    return Code(found, few if warmup.form(found, few) == form else arms, form)


_Call: TypeAlias = Callable[[], None]


class _Waiter(NamedTuple):
    then: _Call
    give_up: _Call
    until: float


class Awaited:
    """Work in the background that commands wait for: a policy that is compiled, an experiment that is restored."""

    def __init__(self) -> None:
        self.ended_at: float | None = None
        self._lock = threading.Lock()
        self._waiters: list[_Waiter] = []

    def wait(
        self, then: _Call, give_up: _Call = lambda: None, patience: float | None = None
    ) -> None:
        """Call `then` when it has ended, or `give_up` some time after `patience` seconds."""
        until = float("inf") if patience is None else time.monotonic() + patience
        with self._lock:
            if self.ended_at is None:
                self._waiters.append(_Waiter(then, give_up, until))
                return
        then()

    def dismiss(self, now: float) -> None:
        """Call `give_up` for those that have waited long enough."""
        with self._lock:
            due = [each for each in self._waiters if each.until <= now]
            self._waiters = [each for each in self._waiters if each.until > now]
        for each in due:
            each.give_up()

    def end(self) -> int:
        """Call those that wait, and return how many there were."""
        with self._lock:
            self.ended_at = time.monotonic()
            waiters, self._waiters = self._waiters, []
        for each in waiters:
            try:
                each.then()
            except Exception:  # the others must still be called
                _log.exception("a command that waited failed")
        return len(waiters)


class Job(Awaited):
    """A policy to compile."""

    def __init__(self, code: Code, steps: Iterator[None], number: int) -> None:
        super().__init__()
        self.code, self.steps, self.number = code, steps, number
        self.urgency = LATER
        self.stored = False  # whether an experiment needed it when the service started
        self.problem: str | None = None
        self.announced_at: float | None = None


class Compiler:
    """Compiles policies, in steps, in a thread that lives as long as there is work."""

    def __init__(
        self,
        steps: Callable[[Policy, int], Iterator[None]] = warmup.steps,
        is_warm: Callable[[Hashable], bool] = warmup.is_warm_form,
    ) -> None:
        self._steps, self._is_warm = steps, is_warm
        self._jobs: dict[Hashable, Job] = {}  # all that are not ready: waiting or failed
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._numbers = count()
        self._closed = False

    # Requests

    def require(self, experiment: str, policy: dict[str, Any], arms: Iterable[int]) -> None:
        """Raise unless a policy is ready for all these numbers of arms, and start to compile it if it is not."""
        try:
            jobs = [job for each in arms if (job := self.begin(code_of(policy, each))) is not None]
        except NotCompiled as error:
            raise NotCompiled(f"experiment {experiment!r}: {error}") from None
        for job in jobs:
            if job.problem is not None:
                raise NotCompiled(f"experiment {experiment!r}: {job.problem}")
        if jobs:
            problem = (
                f"the service is compiling {jobs[0].code.policy}; {HOW_LONG}: ask again in 1 s"
            )
            raise Compiling(f"experiment {experiment!r}: {problem}", jobs[0])

    def begin(self, code: Code, urgency: int = ASKED) -> Job | None:
        """Start to compile a policy; None if it is ready. The job takes the highest urgency that was asked for."""
        if self._is_warm(code.form):
            return None
        with self._lock:
            job = self._jobs.get(code.form)
            if job is None or (
                job.ended_at is not None and time.monotonic() > job.ended_at + AGAIN
            ):
                steps = self._steps(code.policy, code.arms)
                job = self._jobs[code.form] = Job(code, steps, next(self._numbers))
            job.urgency = min(job.urgency, urgency)
            job.stored = job.stored or urgency == STORED
            if self._thread is None and not self._closed:
                # Not a daemon: a process that ends while LLVM is running crashes.
                self._thread = threading.Thread(target=self._work, name="decoupled-compiler")
                self._thread.start()
            return job

    def wait(self, job: Job, then: _Call, give_up: _Call, patience: float | None) -> None:
        """Call `then` when a job has ended, or `give_up` some time after `patience` seconds, or if this is closed."""
        job.wait(then, give_up, patience)
        if self._closed:
            job.dismiss(float("inf"))

    def dismiss(self, now: float | None = None) -> None:
        """Call `give_up` for those that have waited long enough."""
        with self._lock:
            jobs = list(self._jobs.values())
        for job in jobs:
            job.dismiss(time.monotonic() if now is None else now)

    def stored_to_do(self) -> int:
        """How many policies of stored experiments are still to be compiled."""
        with self._lock:
            return sum(job.stored and job.ended_at is None for job in self._jobs.values())

    def jobs(self) -> tuple[int, int]:
        """How many policies wait to be compiled, or are being compiled; and how many have failed to."""
        with self._lock:
            failed = sum(job.problem is not None for job in self._jobs.values())
            return sum(job.ended_at is None for job in self._jobs.values()), failed

    def busy(self) -> bool:
        """Whether something is being compiled. It cannot be interrupted."""
        thread = self._thread
        return thread is not None and thread.is_alive()

    def close(self) -> None:
        """Start nothing more, and call `give_up` for all that wait. The running step is completed."""
        with self._lock:
            self._closed = True
        self.dismiss(float("inf"))

    # The thread

    def _work(self) -> None:
        while True:
            with self._lock:
                waiting = [job for job in self._jobs.values() if job.ended_at is None]
                if not waiting or self._closed:
                    self._thread = None
                    return
                job = min(waiting, key=lambda each: (each.urgency, each.number))
            self._step(job)

    def _step(self, job: Job) -> None:
        problem = None
        try:
            with on_compile(_announcer(job)):
                next(job.steps)
            return
        except StopIteration:
            if job.announced_at is not None:
                took = time.monotonic() - job.announced_at
                _log.info("%s is ready, compiled in %.0f s", job.code.policy.label, took)
        except Exception as error:
            _log.exception("%s does not compile", job.code.policy.label)
            reason = str(error).strip().partition("\n")[0]
            remedy = "see the service's log, and create an experiment with another policy"
            rule = f"does not compile here ({type(error).__name__}: {reason})"
            problem = f"{job.code.policy} {rule}; {remedy}"
        job.problem = problem
        if problem is None:
            with self._lock:
                del self._jobs[job.code.form]
        job.end()


def _announcer(job: Job) -> Callable[[], None]:
    """A call that logs once that a policy is being compiled. Code that ships or is on disk is not announced."""
    thread = threading.get_ident()

    def announce() -> None:
        if job.announced_at is None and threading.get_ident() == thread:
            job.announced_at = time.monotonic()
            _log.info("compiling %s: %s", job.code.policy.label, HOW_LONG)

    return announce
