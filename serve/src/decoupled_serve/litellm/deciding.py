"""Decides for the plug-in: with a learner in this process, or with a decision service. No request waits for long."""

import asyncio
import atexit
import logging
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol

from decoupled.client import AsyncClient
from decoupled.decision import Mode
from decoupled.errors import DecoupledError, FeedbackError, ParameterError
from decoupled.learner import Guardrails, Learner
from decoupled.policies import Ladder, Policy

from ..mirror.backend import UNKNOWN, Routing, ServiceCalls, Traits
from ..mirror.copies import Learning
from ..mirror.prefetch import Prefetch

PATIENCE = 0.1  # seconds that a request with a key waits for the service
REST = 5.0  # seconds without asking for such decisions after one did not come in time
PATIENT = 10_000  # decisions that a verdict waits for a shadow; fewer begin after one that waits
SAVE_SECONDS = 1.0  # between a change and the file that has it
_PAUSE = 1.0  # seconds until the next attempt to reach the service
_log = logging.getLogger("decoupled.litellm")
fcntl: Any
try:
    fcntl = import_module("fcntl")
except ImportError:  # Windows
    fcntl = None


class Decider(Learning, Protocol):
    """Decides, and takes losses."""

    async def draw(self, mode: Mode, available: Sequence[str], about: Traits) -> Routing | None:
        """A decision among these arms; None if there is none now."""


class SavedSoon:
    """Something that is saved by a function."""

    def __init__(self, save: Callable[[], None]) -> None:
        self._save = save
        self._saving: asyncio.Task[None] | None = None
        atexit.register(save)

    def changed(self) -> None:
        """Save it soon, in a thread. Must be called in the event loop."""
        if self._saving is None or self._saving.done():
            self._saving = asyncio.create_task(self._save_soon())

    async def _save_soon(self) -> None:
        await asyncio.sleep(SAVE_SECONDS)
        try:
            await asyncio.to_thread(self._save)
        except OSError as error:  # such as a full disk
            _log.error("what was learned cannot be saved: %s", error)


class InProcess:
    """A learner in this process, which is saved to a file soon after each loss and when the process ends."""

    def __init__(self, learner: Learner, file: Path | None = None) -> None:
        self.learner = learner
        self._lock = None if file is None else _locked(file)
        self._saved = None if file is None else SavedSoon(partial(learner.save, file))

    @classmethod
    def of(
        cls,
        policy: Policy | None,
        arms: Sequence[str],
        file: Path | None = None,
        *,
        guardrails: Guardrails | None = None,
        seed: int | None = None,
    ) -> "InProcess":
        """The learner of the file, with these arms; a new one if there is no file.

        >>> import decoupled as dc
        >>> InProcess.of(dc.Ladder(), ["small", "large"]).learner.arms
        ('small', 'large')
        """
        if file is None or not file.exists():
            learner = Learner(policy or Ladder(), list(arms), seed)
            learner.watch(patience=PATIENT)  # so that the file can be asked for a verdict
        else:
            learner = Learner.load(file)
            if policy is not None and policy != learner.policy:
                remedy = "give the same policy, or another file"
                raise ParameterError(
                    f"save = {str(file)!r}: has a learner of {learner.policy!r}; {remedy}"
                )
            for decision in learner.pending:  # of shadows that ended with the process
                learner.forget(decision)
            learner.add_arms([arm for arm in arms if arm not in learner.arms])
            learner.retire_arms([arm for arm in learner.arms if arm not in arms])
        if guardrails is not None:
            learner.guardrails = guardrails
        return cls(learner, file)

    async def draw(self, mode: Mode, available: Sequence[str], about: Traits) -> Routing | None:
        """A decision among these arms."""
        options = about.options(None if len(available) == len(self.learner.arms) else available)
        if mode == "exploit":
            return Routing("", str(self.learner.exploit(**options).exploit), None)
        decision = self.learner.decide(**options)
        return Routing(decision.id, str(decision.exploit), str(decision.explore))

    async def learn(
        self,
        decision: str,
        arm: str,
        loss: float,
        position: float | None = None,
        cost: float | None = None,
    ) -> str:
        """Learn the loss of the explored arm. What it cost is in the plug-in's own budget."""
        try:
            self.learner.observe(decision, loss)
        except FeedbackError:  # forgotten, because too many came after it
            return "late"
        if self._saved is not None:
            self._saved.changed()
        return "applied"

    def forget(self, decision: str) -> None:
        """Wait no longer for a decision."""
        with suppress(FeedbackError):
            self.learner.forget(decision)

    def close(self) -> None:
        """Let another process use the file."""
        if self._lock is not None:
            self._lock.close()


class OnService(ServiceCalls):
    """An experiment of a decision service.

    Decisions are drawn ahead; one for a key or a context is waited for, not for long. While the service is away, no request waits.
    """

    def __init__(
        self, client: AsyncClient, name: str, create: Callable[[], Awaitable[object]]
    ) -> None:
        super().__init__(client, name)
        self._create, self._prefetch = create, Prefetch(self)
        self._starting: asyncio.Task[None] | None = None
        self._available: list[str] | None = None
        self._ready = False

    async def draw(self, mode: Mode, available: Sequence[str], about: Traits) -> Routing | None:
        """A decision among these arms; None if there is none now."""
        if self._starting is None:
            self._starting = asyncio.create_task(self._start())
        if list(available) != self._available:
            self._available = list(available)
            self._prefetch.restrict(self._available)
        if not self._ready:
            return None
        own = (
            None if about == UNKNOWN else await self._prefetch.draw_for(about, mode, PATIENCE, REST)
        )
        return own or self._prefetch.take(mode)

    @property
    def starting(self) -> bool:
        """Whether the first decisions are still being drawn."""
        return not self._ready

    async def close(self) -> None:
        """Draw nothing more."""
        if self._starting is not None:
            self._starting.cancel()
        await self._prefetch.stop()

    async def _start(self) -> None:
        level = logging.WARNING  # the first time
        while not self._ready:
            try:
                await self._create()
                await self._prefetch.start()
                self._ready = True
            except DecoupledError as error:
                _log.log(level, "no decisions yet, so the first arm serves: %s", error)
                level = logging.DEBUG
                await asyncio.sleep(_PAUSE)


def _locked(file: Path) -> Any:
    """Hold a lock beside a file, until this process ends."""
    if fcntl is None:
        return None
    lock = open(file.with_name(f"{file.name}.lock"), "w")  # noqa: SIM115
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        lock.close()
        rule = "is in use, by another worker or because the plug-in is loaded twice"
        remedy = "name it under callbacks alone, and run one worker, or give it a service"
        raise ParameterError(f"save = {str(file)!r}: {rule}; {remedy}") from None
    return lock
