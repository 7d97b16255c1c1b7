"""Reaches the decision service behind a mirror: embedded, or elsewhere."""

import asyncio
import logging
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, NamedTuple

from decoupled.client import (
    HOW_LONG,
    AsyncClient,
    Compiling,
    Conflict,
    Gone,
    NotCompiled,
    NotFound,
    Retries,
    ServiceError,
    UndeliveredFeedback,
)
from decoupled.decision import Mode
from decoupled.errors import shown
from decoupled.learner import Guardrails, Labels

from ..service.api.pairs import Pair
from ..service.experiment.context import Value, with_fields_of
from ..service.experiment.records import Settings
from ..service.experiment.settings import changed_guardrails, checked_budget, checked_policy
from ..service.http.models.schemas import experiment_out
from ..service.http.models.watched import verdict_out
from ..service.service import DecisionService
from .config import MirrorConfig
from .news import Known

TENANT = "local"
DAY = 86_400.0
_PAUSE = 1.0  # seconds between two attempts while the policy is compiled
_AHEAD = 2_000  # decisions that are drawn ahead, and perhaps never used
_log = logging.getLogger("decoupled.mirror")


class Routing(NamedTuple):
    """A decision: serve `exploit`, send the copy to `explore` if there is one, whose answer may want a `label`."""

    id: str
    exploit: str
    explore: str | None
    label: bool = False


class Traits(NamedTuple):
    """What a decision is made for: the key of a request, and its context; None if it has none."""

    key: str | None = None
    context: dict[str, Value] | None = None

    def options(self, available: Sequence[str] | None) -> dict[str, Any]:
        """What a learner or a service is told.

        >>> Traits(key="s1").options(["small"]), UNKNOWN.options(None)
        ({'key': 's1', 'available': ['small']}, {})
        """
        given = {"key": self.key, "context": self.context, "available": available}
        return {name: value for name, value in given.items() if value is not None}


UNKNOWN = Traits()


def experiment_settings(config: MirrorConfig) -> dict[str, Any]:
    """The settings of the experiment as the service takes them.

    >>> from decoupled_serve.mirror.config import ArmConfig
    >>> arms = (ArmConfig(name="a", url="http://a"), ArmConfig(name="b", url="http://b"))
    >>> sorted(experiment_settings(MirrorConfig(arm=arms)))
    ['arms', 'deadline_seconds', 'patience', 'policy']
    """
    experiment = config.experiment
    settings: dict[str, Any] = {
        "arms": [arm.name for arm in config.arms],
        "policy": experiment.policy,
        "deadline_seconds": experiment.deadline_seconds,
        "patience": config.mirror.newer + _AHEAD,
    }
    if config.labels is not None:
        settings["labels"] = config.labels.rules().to_dict()
        settings["patience"] = max(settings["patience"], config.labels.deadline)
    if config.context:
        settings["context"] = {name: field.type for name, field in config.context.items()}
    if experiment.seed is not None:
        settings["seed"] = experiment.seed
    return settings


class LocalService:
    """The calls of `AsyncClient` that a mirror makes, to a service in this process."""

    def __init__(self, service: DecisionService) -> None:
        self._service, self._experiments = service, service.experiments
        self.add_arms = partial(service.experiments.add_arms, TENANT)
        self.retire_arms = partial(service.experiments.retire_arms, TENANT)
        self.decide = partial(service.decisions.decide, TENANT)
        self.feedback = partial(service.decisions.feedback, TENANT)
        self.label = partial(service.decisions.label, TENANT)

    async def experiment(self, name: str) -> dict[str, Any]:
        """An experiment as it is now, and its seed."""
        found = await self._experiments.get(TENANT, name)
        return experiment_out(found) | {"seed": found.seed}

    async def create(self, name: str, **given: Any) -> dict[str, Any]:
        """Create an experiment, with `experiment_settings`."""
        settings = Settings(
            checked_policy(given["policy"]).to_dict(),
            tuple(given["arms"]),
            deadline=given["deadline_seconds"],
            context=given.get("context", {}),
            patience=given["patience"],
            labels=Labels(**given["labels"]) if "labels" in given else None,
        )
        found, _ = await self._experiments.put(TENANT, name, settings, given.get("seed"))
        return experiment_out(found)

    async def keep_pair(self, decision: str, *, keep_days: float, **pair: Any) -> None:
        """Keep the answers of a decision until a person has seen them."""
        await self._service.pairs.keep(TENANT, decision, Pair(**pair), keep_days)

    async def change_guardrails(self, name: str, **changes: Any) -> None:
        """Change some guardrails."""
        await self._experiments.change_guardrails(TENANT, name, changes)

    async def set_budget(self, name: str, **limits: Any) -> None:
        """Set the budget."""
        await self._experiments.set_budget(TENANT, name, limits)

    async def verdict(self, name: str) -> dict[str, Any]:
        """What can be said about the arms."""
        return verdict_out(await self._service.verdicts.get(TENANT, name))


class ServiceCalls:
    """Makes decisions and takes losses, by an experiment of a decision service here or elsewhere."""

    def __init__(self, service: LocalService | AsyncClient, name: str) -> None:
        self._service, self._name = service, name
        self._labelled = (
            False  # whether a loss is what a judge says, and some decisions ask for a label
        )

    async def decide(
        self, mode: Mode, count: int, available: Sequence[str] | None, about: Traits = UNKNOWN
    ) -> list[Routing]:
        """Draw decisions, which are on disk before they are returned. The same key exploits the same arm."""
        found = await self._service.decide(
            self._name, count=count, mode=mode, **about.options(available)
        )
        return [
            Routing(each.id, str(each.exploit), _name_of(each.explore), each.label)
            for each in found
        ]

    async def learn(
        self,
        decision: str,
        arm: str,
        loss: float,
        position: float | None = None,
        cost: float | None = None,
    ) -> str:
        """Give the loss of the explored arm; returns "applied", "late" or "kept" (for a later attempt)."""
        try:
            said: Any = {"judged": loss, "position": position} if self._labelled else {"loss": loss}
            applied = await self._service.feedback(decision, **said, arm=arm, cost=cost)
        except (Gone, NotFound):  # retention drops old decisions
            return "late"
        return "kept" if applied is None else "applied"

    async def label(self, decision: str, loss: float) -> None:
        """Give the label of a decision, the true loss of its explored arm."""
        await self._service.label(decision, loss=loss)

    async def keep(self, decision: str, pair: Pair, days: float) -> None:
        """Keep the answers of a decision until a person has seen them."""
        await self._service.keep_pair(decision, keep_days=days, **pair._asdict())

    def forget(self, decision: str) -> None:
        """Wait no longer for a decision. One of a service elsewhere waits until its deadline."""


class Backend(ServiceCalls, ABC):
    """The decision service of a mirror."""

    def __init__(
        self,
        service: LocalService | AsyncClient,
        config: MirrorConfig,
        retries: Retries | None = None,
    ) -> None:
        super().__init__(service, config.experiment.name)
        self._config, self._retries = config, retries or Retries()
        self._labelled = config.labels is not None

    async def prepare(self) -> None:
        """Create the experiment, or bring its arms up to date, and wait until its policy is compiled."""
        until, level = time.monotonic() + self._retries.compiling, logging.INFO
        while True:
            try:
                await self._prepare()
                found = await self._service.experiment(self._name)
                if found["status"] == "failed":
                    raise NotCompiled(str(found["problem"]))
                if found["status"] != "compiling":
                    return
            except Compiling:  # nothing was changed
                pass
            if time.monotonic() >= until:
                late = f"its policy is not compiled after {self._retries.compiling:g} s"
                remedy = "to wait longer, start the mirror again"
                raise Compiling(f"experiment {self._name!r}: {late}; {remedy}")
            told = "the policy of experiment %r is being compiled, and requests wait for it; %s"
            _log.log(level, told, self._name, HOW_LONG)
            level = logging.DEBUG
            await asyncio.sleep(_PAUSE)

    async def _prepare(self) -> None:
        settings = experiment_settings(self._config)
        arms, patience = settings.pop("arms"), settings.pop("patience")
        try:
            found = await self._service.experiment(self._name)
        except NotFound:
            found = await self._service.create(self._name, arms=arms, patience=patience, **settings)
        else:  # The arms may change from one start to the next; all else is fixed.
            policy = checked_policy(settings["policy"])
            fields = with_fields_of(settings.get("context", {}), policy)
            wanted = {**settings, "policy": policy.to_dict(), "context": fields}
            for name, value in wanted.items():
                if found.get(name, value) != value:
                    other = "another seed" if name == "seed" else f"{name} = {shown(found[name])}"
                    remedy = "settings are fixed, set the same or choose another name"
                    raise Conflict(f"experiment {self._name!r}: exists with {other}; {remedy}")
            await self._service.add_arms(self._name, arms)
            if gone := [arm for arm in found["arms"] if arm not in arms]:
                await self._service.retire_arms(self._name, gone)
        await self._set_rules(found, arms)

    async def _set_rules(self, found: dict[str, Any], arms: Sequence[str]) -> None:
        """Set what the file names; what it does not, such as a pin in the console, stays as it is."""
        changes, limits = self._config.guardrails, self._config.decision_budget
        now = changed_guardrails(Guardrails(), found["guardrails"], arms, False)
        if changed_guardrails(now, changes, arms, False) != now:
            await self._service.change_guardrails(self._name, **changes)
        if limits and checked_budget(limits, arms, False) != checked_budget(
            found["budget"], arms, False
        ):
            await self._service.set_budget(self._name, **limits)

    async def rules(self) -> object:
        """The guardrails and the budget that hold now, to be compared with those of another moment."""
        found = await self._service.experiment(self._name)
        return found["guardrails"], found["budget"]

    async def known(self) -> Known:
        """What the verdict says now."""
        found = await self._service.verdict(self._name)
        arms = (found["best"], *found["out"]) if found["state"] == "decided" else ()
        released, warning = bool(found["incumbent_released"]), found.get("warning")
        return Known(
            found["text"], tuple(map(str, arms)), _name_of(found["incumbent"]), released, warning
        )

    def add_remark(self, remark: Callable[[], str | None]) -> None:
        """Have verdicts say this, too. A service elsewhere does not."""

    @abstractmethod
    async def tidy(self) -> None:
        """Do what is due from time to time."""

    @abstractmethod
    async def close(self) -> None:
        """Finish."""


class Embedded(Backend):
    """A decision service in this process, over a store."""

    def __init__(
        self, service: DecisionService, config: MirrorConfig, retries: Retries | None = None
    ) -> None:
        super().__init__(LocalService(service), config, retries)
        self._opened, self._tidied = service, time.monotonic()

    def add_remark(self, remark: Callable[[], str | None]) -> None:
        """Have verdicts say this, too."""
        self._opened.verdicts.remarks[TENANT, self._name] = remark

    def forget(self, decision: str) -> None:
        """Wait no longer for a decision."""
        self._opened.decisions.forget(TENANT, decision)

    async def tidy(self) -> None:
        """Drop the old part of the log, once an hour."""
        days = self._config.experiment.keep_days
        if days > 0.0 and time.monotonic() - self._tidied >= DAY / 24:
            self._tidied = time.monotonic()
            await self._opened.logs.retention(TENANT, self._name, time.time() - days * DAY)

    async def close(self) -> None:
        """Write everything, and close the store."""
        await asyncio.to_thread(self._opened.close)


class Remote(Backend):
    """A decision service elsewhere. Losses that it cannot take now wait in a folder."""

    def __init__(self, client: AsyncClient, config: MirrorConfig) -> None:
        super().__init__(client, config)
        self._client = client

    async def tidy(self) -> None:
        """Try again to deliver the losses that wait."""
        if self._client.outbox is not None and len(self._client.outbox):
            await self._client.flush()

    async def close(self) -> None:
        """Try once more to deliver what waits; what is left stays in its folder."""
        with suppress(ServiceError, UndeliveredFeedback):
            await self._client.close()


def _name_of(arm: object) -> str | None:
    return None if arm is None else str(arm)
