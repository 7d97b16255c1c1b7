"""Decides for the plug-in: with a learner in this process, or with a decision service. No request waits for long."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple, Protocol, cast

from ...errors import DecoupledError, FeedbackError, ParameterError
from ...learner.guardrails import Guardrails
from ...learner.learner import Learner
from ...mirror.backend import Mode, Routing
from ...mirror.prefetch import Prefetch
from ...policies import Ladder, Policy
from ...service.client.aio import AsyncClient
from ...service.errors import Gone, NotFound
from .saving import SavedSoon

PATIENCE = 0.1  # seconds that a request with a key waits for the service
REST = 5.0  # seconds without asking for such decisions after one did not come in time
_PAUSE = 1.0  # seconds until the next attempt to reach the service
_log = logging.getLogger("decoupled.litellm")
fcntl: Any
try:
    fcntl = import_module("fcntl")
except ImportError:  # Windows
    fcntl = None


class About(NamedTuple):
    """What a decision is made for: the key of a request, and its context; None if it has none."""

    key: str | None = None
    context: dict[str, Any] | None = None

    def options(self, available: Sequence[str] | None) -> dict[str, Any]:
        """What a learner or a service is told.

        >>> About(key="s1").options(["small"]), About().options(None)
        ({'key': 's1', 'available': ['small']}, {})
        """
        given = {"key": self.key, "context": self.context, "available": available}
        return {name: value for name, value in given.items() if value is not None}


NOTHING = About()


class Decider(Protocol):
    """Decides, and takes losses."""

    async def draw(self, mode: Mode, available: Sequence[str], about: About) -> Routing | None:
        """A decision among these arms; None if there is none now."""

    async def learn(self, decision: str, arm: str, loss: float) -> str:
        """Learn the loss of the explored arm; returns "applied", "late" or "kept" (for a later attempt)."""


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
            learner = Learner(policy or Ladder(), list(arms), seed, guardrails=guardrails)
            learner.watch()  # so that the file can be asked for a verdict
            return cls(learner, file)
        learner = Learner.load(file)
        if policy is not None and policy != learner.policy:
            remedy = "give the same policy, or another file"
            raise ParameterError(f"save = {str(file)!r}: has a learner of {learner.policy!r}; {remedy}")
        learner.add_arms([arm for arm in arms if arm not in learner.arms])
        learner.retire_arms([arm for arm in learner.arms if arm not in arms])
        if guardrails is not None:
            learner.guardrails = guardrails
        return cls(learner, file)

    async def draw(self, mode: Mode, available: Sequence[str], about: About) -> Routing | None:
        """A decision among these arms."""
        options = about.options(None if len(available) == len(self.learner.arms) else available)
        if mode == "exploit":
            return Routing("", str(self.learner.exploit(**options).exploit), None)
        decision = self.learner.decide(**options)
        return Routing(decision.id, str(decision.exploit), str(decision.explore))

    async def learn(self, decision: str, arm: str, loss: float) -> str:
        """Learn the loss of the explored arm."""
        try:
            self.learner.observe(decision, loss)
        except FeedbackError:  # forgotten, because too many came after it
            return "late"
        if self._saved is not None:
            self._saved.changed()
        return "applied"

    def close(self) -> None:
        """Let another process use the file."""
        if self._lock is not None:
            self._lock.close()


class OnService:
    """An experiment of a decision service.

    Decisions are drawn ahead. One for a key or a context is waited for, but not for long. As long as the service is away,
    nothing is drawn, and no request waits.
    """

    def __init__(self, client: AsyncClient, name: str, create: Callable[[], Awaitable[object]]) -> None:
        self._client, self._name, self._create = client, name, create
        self._prefetch = Prefetch(cast(Any, self))  # it draws by `decide`
        self._starting: asyncio.Task[None] | None = None
        self._available: list[str] | None = None
        self._ready = False
        self._resting_until = 0.0

    async def draw(self, mode: Mode, available: Sequence[str], about: About) -> Routing | None:
        """A decision among these arms; None if there is none now."""
        if self._starting is None:
            self._starting = asyncio.create_task(self._start())
        if list(available) != self._available:
            self._available = list(available)
            self._prefetch.restrict(self._available)
        if not self._ready:
            return None
        if about == NOTHING:
            return self._prefetch.take(mode)
        return await self._waited_for(mode, about) or self._prefetch.take(mode)

    async def decide(
        self, mode: Mode, count: int, available: Sequence[str] | None, about: About = NOTHING
    ) -> list[Routing]:
        """Draw decisions."""
        found = await self._client.decide(self._name, mode=mode, count=count, **about.options(available))
        return [
            Routing(each.id, str(each.exploit), None if each.explore is None else str(each.explore))
            for each in found
        ]

    async def learn(self, decision: str, arm: str, loss: float) -> str:
        """Give the loss of the explored arm."""
        try:
            applied = await self._client.feedback(decision, loss=loss, arm=arm)
        except (Gone, NotFound):
            return "late"
        return "kept" if applied is None else "applied"

    @property
    def starting(self) -> bool:
        """Whether the first decisions are still being drawn."""
        return not self._ready

    async def close(self) -> None:
        """Draw nothing more."""
        if self._starting is not None:
            self._starting.cancel()
        await self._prefetch.stop()

    async def _waited_for(self, mode: Mode, about: About) -> Routing | None:
        now = asyncio.get_running_loop().time
        if now() < self._resting_until:
            return None
        try:
            async with asyncio.timeout(PATIENCE):
                [decision] = await self.decide(mode, 1, self._available, about)
                return decision
        except (DecoupledError, TimeoutError):
            self._resting_until = now() + REST
            return None

    async def _start(self) -> None:
        told = False
        while not self._ready:
            try:
                await self._create()
                await self._prefetch.start()
                self._ready = True
            except DecoupledError as error:
                if not told:
                    _log.warning("no decisions yet, so the first arm serves: %s", error)
                told = True
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
