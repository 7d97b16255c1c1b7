"""`AsyncClient`, whose calls are awaited."""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar, Unpack, overload

import httpx

from ...decision import Arm
from ...learner.preferences import Preference
from ..errors import ServiceError
from .base import BaseClient
from .documented import documented_by
from .exchange import ApiRequest, Exchange, Received
from .guardrails import BudgetLimits, GuardrailChanges
from .log_file import FilePath, Format, type_of, write_log
from .outbox import Undelivered
from .requests import DecideOptions, DecisionFilters, ExperimentFilters, ExperimentSettings
from .results import DecisionPage, Flushed, RemoteDecision
from .sync import Client

T = TypeVar("T")


@documented_by(Client)
class AsyncClient(BaseClient[httpx.AsyncClient]):
    """A client whose calls are awaited. It takes the same arguments and has the same methods as `Client`.

    >>> client = AsyncClient("http://127.0.0.1:8000", outbox="outbox.jsonl")
    >>> client
    AsyncClient('http://127.0.0.1:8000')
    """

    def _open(self, **options: Any) -> httpx.AsyncClient:
        return httpx.AsyncClient(**options)

    async def create(
        self, name: str, *, arms: Sequence[Arm] | int | None = None, **settings: Unpack[ExperimentSettings]
    ) -> dict[str, Any]:
        """Create an experiment, and wait until its policy is compiled.

        >>> import decoupled as dc
        >>> (await client.create("prompts", arms=["short", "long"], policy=dc.FTPL()))["status"]
        'ready'
        """
        return await self._run(self._calls.create(name, arms=arms, **settings))

    async def experiment(self, name: str) -> dict[str, Any]:
        """Return one experiment: its settings, arms and status.

        >>> (await client.experiment("models"))["arms"]
        ['small', 'medium', 'large']
        """
        return await self._run(self._calls.experiment(name))

    async def experiments(
        self, after: str | None = None, limit: int = 100, **filters: Unpack[ExperimentFilters]
    ) -> dict[str, Any]:
        """Return a page of experiments.

        >>> (await client.experiments(limit=10))["next"]
        """
        return await self._run(self._calls.experiments(after, limit, filters))

    async def iter_experiments(self, **filters: Unpack[ExperimentFilters]) -> AsyncIterator[dict[str, Any]]:
        """Yield every experiment, page after page.

        >>> [each["name"] async for each in client.iter_experiments(prefix="mod")]
        ['models']
        """
        page = await self.experiments(**filters)
        while True:
            for experiment in page["experiments"]:
                yield experiment
            if page["next"] is None:
                return
            page = await self.experiments(page["next"], **filters)

    async def decisions(
        self, name: str, after: str | None = None, limit: int = 100, **filters: Unpack[DecisionFilters]
    ) -> DecisionPage:
        """Return a page of decisions, the newest first.

        >>> made = await client.decide("models")
        >>> page = await client.decisions("models", status="pending")
        >>> page.decisions == [made], page.next
        (True, None)
        """
        return await self._run(self._calls.decisions(name, after, limit, filters))

    async def iter_decisions(
        self, name: str, **filters: Unpack[DecisionFilters]
    ) -> AsyncIterator[RemoteDecision]:
        """Yield every decision of an experiment, page after page.

        >>> made = await client.decide("models", count=3)
        >>> [each.id async for each in client.iter_decisions("models", sort="made_at")] == [each.id for each in made]
        True
        """
        page = await self.decisions(name, **filters)
        while True:
            for decision in page.decisions:
                yield decision
            if page.next is None:
                return
            page = await self.decisions(name, page.next, **filters)

    async def delete(self, name: str, *, confirm: str) -> dict[str, Any]:
        """Delete an experiment that was archived long enough ago, with its log.

        >>> archived = await client.archive("models")
        >>> try:
        ...     await client.delete("models", confirm="models")
        ... except ServiceError as error:
        ...     print(error.status, "is kept for 30 days" in str(error))
        409 True
        """
        return await self._run(self._calls.delete(name, confirm))

    async def archive(self, name: str) -> dict[str, Any]:
        """End an experiment: it makes no more decisions, and still takes feedback.

        >>> (await client.archive("models"))["status"]
        'archived'
        """
        return await self._run(self._calls.archive(name))

    async def add_arms(self, name: str, arms: Sequence[Arm]) -> dict[str, Any]:
        """Add arms to an experiment.

        >>> (await client.add_arms("models", ["huge"]))["arms"]
        ['small', 'medium', 'large', 'huge']
        """
        return await self._run(self._calls.add_arms(name, arms))

    async def retire_arms(self, name: str, arms: Sequence[Arm]) -> dict[str, Any]:
        """Retire arms: no later decision names them.

        >>> (await client.retire_arms("models", ["small"]))["arms"]
        ['medium', 'large']
        """
        return await self._run(self._calls.retire_arms(name, arms))

    async def change_guardrails(self, name: str, **changes: Unpack[GuardrailChanges]) -> dict[str, Any]:
        """Change what is served, whatever the policy draws.

        >>> (await client.change_guardrails("models", floors={"small": 0.1}))["guardrails"]["floors"]
        {'small': 0.1}
        """
        return await self._run(self._calls.change_guardrails(name, changes))

    async def pin(self, name: str, arm: Arm) -> dict[str, Any]:
        """Exploit this arm in every decision from now on: the kill switch. Exploring and learning go on.

        >>> (await client.pin("models", "small"))["guardrails"]["pinned"]
        'small'
        """
        return await self._run(self._calls.change_guardrails(name, {"pinned": arm}))

    async def unpin(self, name: str) -> dict[str, Any]:
        """Let the policy choose again.

        >>> (await client.unpin("models"))["guardrails"]["pinned"]
        """
        return await self._run(self._calls.change_guardrails(name, {"pinned": None}))

    async def set_down(self, name: str, arms: Sequence[Arm]) -> dict[str, Any]:
        """Set the arms that are down, such as those that fail a health check; all others are up.

        >>> (await client.set_down("models", ["large"]))["guardrails"]["down"]
        ['large']
        """
        return await self._run(self._calls.set_down(name, arms))

    async def set_budget(self, name: str, **limits: Unpack[BudgetLimits]) -> dict[str, Any]:
        """Set how much may be explored; without limits, as much as is asked for.

        >>> (await client.set_budget("models", share=0.01))["budget"]["share"]
        0.01
        """
        return await self._run(self._calls.set_budget(name, limits))

    @overload
    async def decide(
        self, name: str, *, count: None = None, **options: Unpack[DecideOptions]
    ) -> RemoteDecision: ...
    @overload
    async def decide(
        self, name: str, *, count: int, **options: Unpack[DecideOptions]
    ) -> list[RemoteDecision]: ...
    async def decide(
        self, name: str, *, count: int | None = None, **options: Unpack[DecideOptions]
    ) -> RemoteDecision | list[RemoteDecision]:
        """Return a decision, or a list of decisions.

        >>> decision = await client.decide("models", mode="exploit")
        >>> decision.explore is None
        True
        """
        found: RemoteDecision | list[RemoteDecision] = await self._run(
            self._calls.decide(name, count, **options)
        )
        return found

    async def decision(self, id: str) -> RemoteDecision:
        """Return a decision with its present status.

        >>> made = await client.decide("models")
        >>> (await client.decision(made.id)).status
        'pending'
        """
        return await self._run(self._calls.decision(id))

    async def feedback(
        self,
        decision: RemoteDecision | str,
        *,
        loss: float | None = None,
        reward: float | None = None,
        arm: Arm | None = None,
        preference: Preference | None = None,
    ) -> RemoteDecision | None:
        """Send the loss, or the reward, of the arm that a decision *explored*.

        >>> decision = await client.decide("models")
        >>> (await client.feedback(decision, loss=0.25)).status
        'applied'
        """
        return await self._run(self._calls.feedback(decision, loss, reward, arm, preference))

    async def feedback_many(self, items: Sequence[Undelivered]) -> list[RemoteDecision | ServiceError]:
        """Send the losses of the explored arms of many decisions.

        >>> decision = await client.decide("models")
        >>> [applied] = await client.feedback_many([Undelivered(decision.id, reward=1.0)])
        >>> applied.loss
        0.0
        """
        return await self._run(self._calls.feedback_many(items))

    async def flush(self) -> Flushed:
        """Send everything in the outbox.

        >>> await client.flush()
        Flushed(delivered=[], refused=[], left=0)
        """
        return await self._run(self._calls.flush())

    async def state(self, name: str) -> dict[str, Any]:
        """Return what an experiment has learned: probabilities, estimates, counts and the regret.

        >>> (await client.state("models"))["decisions"]
        0
        """
        return await self._run(self._calls.state(name))

    async def verdict(self, name: str) -> dict[str, Any]:
        """Return which arm is best, as far as that is decided, with the mean loss of each arm and the regret.

        All of it holds at every moment at once: look as often as you like, and stop when you like.

        >>> (await client.verdict("models"))["text"]
        'too early: nothing was observed'
        """
        return await self._run(self._calls.verdict(name))

    async def history(self, name: str, points: int = 200) -> dict[str, Any]:
        """Return counts and mean losses over time, with their intervals.

        >>> decision = await client.decide("models")
        >>> (await client.history("models"))["decisions"]
        [1]
        """
        return await self._run(self._calls.history(name, points))

    async def evaluation(self, name: str, *, tags: Mapping[str, str] | None = None) -> dict[str, Any]:
        """Return the off-policy value of every arm and of what was exploited, each with its interval.

        >>> (await client.evaluation("models"))["observed"]
        0
        """
        return await self._run(self._calls.evaluation(name, tags))

    async def audit(
        self,
        subject: str | None = None,
        *,
        action: str | None = None,
        tenant: str | None = None,
        before: int | None = None,
        limit: int = 100,
    ) -> dict[str, Any]:
        """Return who changed what, newest first. Needs an admin key.

        >>> [entry["action"] for entry in (await client.audit("models"))["entries"]]
        ['experiment.create']
        """
        return await self._run(self._calls.audit(subject, action, tenant, before, limit))

    async def log(
        self,
        name: str,
        file: FilePath,
        format: Format | None = None,
        *,
        overwrite: bool = True,
        tags: Mapping[str, str] | None = None,
    ) -> None:
        """Write the log of an experiment to a file, whole or not at all.

        >>> import tempfile
        >>> await client.log("models", f"{tempfile.mkdtemp()}/models.parquet")
        """
        content = await self._run(self._calls.log(name, file, format, tags))
        await asyncio.to_thread(write_log, file, content, overwrite)

    async def learner(self, name: str) -> str:
        """Return what an experiment has learned, with its random stream, as the text that `Learner.from_json` reads.

        That learner goes on bit for bit. Pending decisions are not part of it.

        >>> import decoupled as dc
        >>> learner = dc.Learner.from_json(await client.learner("models"))
        >>> learner.decide().explore == (await client.decide("models")).explore
        True
        """
        return await self._run(self._calls.learner(name))

    async def replay(self, name: str, file: FilePath, *, unrandomised: bool = False) -> dict[str, Any]:
        """Let an experiment learn from a log in a file.

        It needs the columns `explore`, `propensity` and `loss`. The same log again learns nothing twice. Read the
        `warnings` of the answer: they say what may be claimed.

        >>> import json, pathlib, tempfile
        >>> file = pathlib.Path(tempfile.mkdtemp()) / "log.jsonl"
        >>> _ = file.write_text(json.dumps({"explore": "small", "propensity": 0.5, "loss": 0.3}))
        >>> (await client.replay("models", file))["learned"]
        1
        """
        content = await asyncio.to_thread(Path(file).read_bytes)
        return await self._run(self._calls.replay(name, type_of(file), content, unrandomised))

    async def close(self) -> None:
        """Send everything in the outbox once more, and close the connections.

        >>> await client.close()
        """
        try:
            await self._run(self._calls.close())
        finally:
            await self._http.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def _run(self, exchange: Exchange[T]) -> T:
        reply: Received = None
        try:
            while True:
                reply = await self._perform(exchange.send(reply))
        except StopIteration as end:
            result: T = end.value
            return result

    async def _perform(self, step: ApiRequest | float) -> Received:
        if not isinstance(step, ApiRequest):
            await asyncio.sleep(step)
            return None
        try:
            return await self._http.request(
                step.method,
                step.path,
                json=step.json,
                params=step.params,
                headers=step.headers,
                content=step.content,
            )
        except httpx.TransportError as error:
            return error
