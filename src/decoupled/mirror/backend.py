"""Reaches the decision service behind a mirror: embedded, or elsewhere."""

import asyncio
import logging
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal, NamedTuple, Protocol

from ..errors import shown
from ..learner.budget import Budget
from ..learner.guardrails import Guardrails
from ..service.client.aio import AsyncClient
from ..service.client.errors import UndeliveredFeedback
from ..service.client.exchange import Retries
from ..service.errors import HOW_LONG, Compiling, Conflict, Gone, NotCompiled, NotFound, ServiceError
from ..service.experiment.context import Value, with_fields_of
from ..service.experiment.guarding import changed_guardrails, checked_budget
from ..service.experiment.records import Settings
from ..service.experiment.settings import checked_policy
from ..service.service import DecisionService
from .config import MirrorConfig
from .news import Known

TENANT = "local"
DAY = 86_400.0
_PAUSE = 1.0  # seconds between two attempts while the policy is compiled
_log = logging.getLogger("decoupled.mirror")
Mode = Literal["both", "exploit"]


class Routing(NamedTuple):
    """A decision: serve `exploit`, send the copy to `explore` if there is one."""

    id: str
    exploit: str
    explore: str | None


class Traits(NamedTuple):
    """What a decision is made for: the key of a request, and its context; None if it has none."""

    key: str | None = None
    context: dict[str, Value] | None = None


UNKNOWN = Traits()


class Backend(Protocol):
    """Makes decisions and takes losses."""

    async def prepare(self) -> None:
        """Create the experiment, or bring its arms up to date, and wait until its policy is compiled."""

    async def decide(
        self, mode: Mode, count: int, available: Sequence[str] | None, about: Traits = UNKNOWN
    ) -> list[Routing]:
        """Draw decisions, which are on disk before they are returned. The same key exploits the same arm."""

    async def learn(self, decision: str, arm: str, loss: float) -> str:
        """Give the loss of the explored arm; returns "applied", "late" or "kept" (for a later attempt)."""

    async def rules(self) -> object:
        """The guardrails and the budget that hold now, to be compared with those of another moment."""

    async def known(self) -> Known:
        """What the verdict says now."""

    async def tidy(self) -> None:
        """Do what is due from time to time."""

    async def close(self) -> None:
        """Finish."""


def experiment_settings(config: MirrorConfig) -> dict[str, Any]:
    """The settings of the experiment as the service takes them.

    >>> from decoupled.mirror.config import ArmConfig
    >>> arms = (ArmConfig(name="a", url="http://a"), ArmConfig(name="b", url="http://b"))
    >>> sorted(experiment_settings(MirrorConfig(arm=arms)))
    ['arms', 'deadline_seconds', 'policy']
    """
    experiment = config.experiment
    settings: dict[str, Any] = {
        "arms": [arm.name for arm in config.arms],
        "policy": experiment.policy,
        "deadline_seconds": experiment.deadline_seconds,
    }
    if config.context:
        settings["context"] = {name: field.type for name, field in config.context.items()}
    if experiment.seed is not None:
        settings["seed"] = experiment.seed
    return settings


class Embedded:
    """A decision service in this process, over a store."""

    def __init__(
        self, service: DecisionService, config: MirrorConfig, retries: Retries | None = None
    ) -> None:
        self._service, self._config, self._name = service, config, config.experiment.name
        self._retries = retries or Retries()
        self._tidied = time.monotonic()

    async def prepare(self) -> None:
        """Create the experiment, or bring its arms up to date, and wait until its policy is compiled."""
        until, notified = time.monotonic() + self._retries.compiling, False
        while True:
            try:
                await self._prepare()
                found = await self._service.experiments.get(TENANT, self._name)
                if found.status == "failed":
                    raise NotCompiled(str(found.problem))
                if found.status != "compiling":
                    return
            except Compiling:  # nothing was changed
                pass
            if time.monotonic() >= until:
                raise Compiling(
                    f"experiment {self._name!r}: its policy is not compiled after {self._retries.compiling:g} s; "
                    "to wait longer, start the mirror again"
                )
            if not notified:
                notified = True
                _log.info(
                    "the policy of experiment %r is being compiled, and requests wait until it is ready; %s",
                    self._name,
                    HOW_LONG,
                )
            await asyncio.sleep(_PAUSE)

    async def _prepare(self) -> None:
        given = experiment_settings(self._config)
        arms, experiments = given["arms"], self._service.experiments
        policy, fields = checked_policy(given["policy"]).to_dict(), given.get("context", {})
        settings = Settings(policy, tuple(arms), deadline=given["deadline_seconds"], context=fields)
        try:
            found = await experiments.get(TENANT, self._name)
        except NotFound:
            await experiments.put(TENANT, self._name, settings, given.get("seed"))
            await self._set_rules(Guardrails(), Budget(), arms)
            return
        # The arms may change from one start to the next; all else is fixed, and the service says so.
        same = replace(settings, arms=found.settings.arms)
        await experiments.put(TENANT, self._name, same, given.get("seed"))
        await experiments.add_arms(TENANT, self._name, arms)
        await experiments.retire_arms(TENANT, self._name, [arm for arm in found.arms if arm not in arms])
        await self._set_rules(found.guardrails, found.budget, arms)

    async def _set_rules(self, guardrails: Guardrails, budget: Budget, arms: Sequence[str]) -> None:
        """Set what the file names; what it does not, such as a pin in the console, stays as it is."""
        experiments, config = self._service.experiments, self._config
        if changed_guardrails(guardrails, config.guardrails, arms, False) != guardrails:
            await experiments.change_guardrails(TENANT, self._name, config.guardrails)
        if config.budget and checked_budget(config.budget, arms, False) != budget:
            await experiments.set_budget(TENANT, self._name, config.budget)

    async def decide(
        self, mode: Mode, count: int, available: Sequence[str] | None, about: Traits = UNKNOWN
    ) -> list[Routing]:
        """Draw decisions."""
        records = await self._service.decisions.decide(
            TENANT,
            self._name,
            mode=mode,
            count=count,
            available=available,
            key=about.key,
            context=about.context,
        )
        return [Routing(each.id, str(each.exploit), _name_of(each.explore)) for each in records]

    async def learn(self, decision: str, arm: str, loss: float) -> str:
        """Give the loss of the explored arm."""
        try:
            await self._service.decisions.feedback(TENANT, decision, loss=loss, arm=arm)
        except (Gone, NotFound):  # retention drops old decisions
            return "late"
        return "applied"

    async def rules(self) -> object:
        """The guardrails and the budget that hold now."""
        found = await self._service.experiments.get(TENANT, self._name)
        return found.guardrails, found.budget

    async def known(self) -> Known:
        """What the verdict says now."""
        found = await self._service.verdicts.get(TENANT, self._name)
        decided, incumbent = tuple(str(arm) for arm in found.decided), _name_of(found.incumbent)
        return Known(found.verdict.text, decided, incumbent, bool(found.incumbent_released))

    async def tidy(self) -> None:
        """Drop the old part of the log, once an hour."""
        days = self._config.experiment.keep_days
        if days > 0.0 and time.monotonic() - self._tidied >= DAY / 24:
            self._tidied = time.monotonic()
            await self._service.logs.retention(TENANT, self._name, time.time() - days * DAY)

    async def close(self) -> None:
        """Write everything, and close the store."""
        await asyncio.to_thread(self._service.close)


class Remote:
    """A decision service elsewhere. Losses that it cannot take now wait in a file."""

    def __init__(self, client: AsyncClient, config: MirrorConfig) -> None:
        self._client, self._config, self._name = client, config, config.experiment.name

    async def prepare(self) -> None:
        """Create the experiment, or bring its arms up to date."""
        settings = experiment_settings(self._config)
        arms = settings.pop("arms")
        try:
            found = await self._client.experiment(self._name)
        except NotFound:
            found = await self._client.create(self._name, arms=arms, **settings)
            await self._set_rules(found, arms)
            return
        policy = checked_policy(settings["policy"])
        fields = with_fields_of(settings.get("context", {}), policy)
        wanted = {**settings, "policy": policy.to_dict(), "context": fields}
        for name in ("policy", "deadline_seconds", "context"):
            if found[name] != wanted[name]:
                raise Conflict(
                    f"experiment {self._name!r}: exists with {name} = {shown(found[name])}; "
                    "settings are fixed, set the same or choose another name"
                )
        await self._client.add_arms(self._name, arms)
        gone = [arm for arm in found["arms"] if arm not in arms]
        if gone:
            await self._client.retire_arms(self._name, gone)
        await self._set_rules(found, arms)

    async def _set_rules(self, found: dict[str, Any], arms: Sequence[str]) -> None:
        """Set what the file names; what it does not, such as a pin in the console, stays as it is."""
        config = self._config
        now = changed_guardrails(Guardrails(), found["guardrails"], arms, False)
        if changed_guardrails(now, config.guardrails, arms, False) != now:
            await self._client.change_guardrails(self._name, **config.guardrails)
        budget = checked_budget(config.budget, arms, False)
        if budget and budget != checked_budget(found["budget"], arms, False):
            await self._client.set_budget(self._name, **config.budget)

    async def decide(
        self, mode: Mode, count: int, available: Sequence[str] | None, about: Traits = UNKNOWN
    ) -> list[Routing]:
        """Draw decisions."""
        found = await self._client.decide(
            self._name, count=count, mode=mode, available=available, key=about.key, context=about.context
        )
        return [Routing(each.id, str(each.exploit), _name_of(each.explore)) for each in found]

    async def learn(self, decision: str, arm: str, loss: float) -> str:
        """Give the loss of the explored arm."""
        try:
            applied = await self._client.feedback(decision, loss=loss, arm=arm)
        except (Gone, NotFound):
            return "late"
        return "kept" if applied is None else "applied"

    async def rules(self) -> object:
        """The guardrails and the budget that hold now."""
        found = await self._client.experiment(self._name)
        return found["guardrails"], found["budget"]

    async def known(self) -> Known:
        """What the verdict says now."""
        found = await self._client.verdict(self._name)
        arms = (found["best"], *found["out"]) if found["state"] == "decided" else ()
        incumbent = _name_of(found["incumbent"])
        return Known(found["text"], tuple(map(str, arms)), incumbent, bool(found["incumbent_released"]))

    async def tidy(self) -> None:
        """Try again to deliver the losses that wait."""
        if self._client.outbox is not None and len(self._client.outbox):
            await self._client.flush()

    async def close(self) -> None:
        """Try once more to deliver what waits; what is left stays in its file."""
        try:
            await self._client.close()
        except (ServiceError, UndeliveredFeedback):
            return


def _name_of(arm: object) -> str | None:
    return None if arm is None else str(arm)
