"""`AsyncClient`, whose calls are awaited."""

import asyncio
import inspect
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Self, TypeVar, Unpack, overload

import httpx

from ...decision import Arm
from ...learner.preferences import Preference
from ..errors import ServiceError
from .base import BaseClient
from .exchange import ApiRequest, Exchange, Received
from .guardrails import BudgetLimits, GuardrailChanges
from .log_file import FilePath, Format, type_of, write_log
from .outbox import Undelivered
from .requests import DecideOptions, DecisionFilters, ExperimentFilters, ExperimentSettings
from .results import DecisionPage, Flushed, RemoteDecision
from .sync import Client

Kind = TypeVar("Kind", bound=type)


def documented_by(other: type) -> Callable[[Kind], Kind]:
    """A class decorator: what has no docstring has that of `other`, without its examples."""

    def complete(kind: Kind) -> Kind:
        for name, method in vars(kind).items():
            twin = getattr(other, name, None)
            if inspect.isfunction(method) and twin is not None and twin.__doc__:
                method.__doc__ = method.__doc__ or without_examples(twin.__doc__)
        return kind

    return complete


def without_examples(text: str) -> str:
    r"""A docstring up to its examples.

    >>> without_examples("Add one.\n\nArgs:\n    n: a number.\n\n>>> add(1)\n2")
    'Add one.\n\nArgs:\n    n: a number.'
    """
    return inspect.cleandoc(text).partition("\n\n>>>")[0]


T = TypeVar("T")


@documented_by(Client)
class AsyncClient(BaseClient[httpx.AsyncClient]):
    """A client whose calls are awaited. It takes the same arguments and has the same methods as `Client`.

    >>> AsyncClient("http://127.0.0.1:8000", outbox="outbox.jsonl")
    AsyncClient('http://127.0.0.1:8000')
    >>> decision = await client.decide("models")
    >>> (await client.feedback(decision, loss=0.25)).status
    'applied'
    >>> [each.status async for each in client.iter_decisions("models")]
    ['applied']
    """

    def _open(self, **options: Any) -> httpx.AsyncClient:
        return httpx.AsyncClient(**options)

    async def create(
        self, name: str, *, arms: Sequence[Arm] | int | None = None, **settings: Unpack[ExperimentSettings]
    ) -> dict[str, Any]:
        return await self._run(self._calls.create(name, arms=arms, **settings))

    async def experiment(self, name: str) -> dict[str, Any]:
        return await self._run(self._calls.experiment(name))

    async def experiments(
        self, after: str | None = None, limit: int = 100, **filters: Unpack[ExperimentFilters]
    ) -> dict[str, Any]:
        return await self._run(self._calls.experiments(after, limit, filters))

    async def iter_experiments(self, **filters: Unpack[ExperimentFilters]) -> AsyncIterator[dict[str, Any]]:
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
        return await self._run(self._calls.decisions(name, after, limit, filters))

    async def iter_decisions(
        self, name: str, **filters: Unpack[DecisionFilters]
    ) -> AsyncIterator[RemoteDecision]:
        page = await self.decisions(name, **filters)
        while True:
            for decision in page.decisions:
                yield decision
            if page.next is None:
                return
            page = await self.decisions(name, page.next, **filters)

    async def delete(self, name: str, *, confirm: str) -> dict[str, Any]:
        return await self._run(self._calls.delete(name, confirm))

    async def archive(self, name: str) -> dict[str, Any]:
        return await self._run(self._calls.archive(name))

    async def add_arms(self, name: str, arms: Sequence[Arm]) -> dict[str, Any]:
        return await self._run(self._calls.add_arms(name, arms))

    async def retire_arms(self, name: str, arms: Sequence[Arm]) -> dict[str, Any]:
        return await self._run(self._calls.retire_arms(name, arms))

    async def change_guardrails(self, name: str, **changes: Unpack[GuardrailChanges]) -> dict[str, Any]:
        return await self._run(self._calls.change_guardrails(name, changes))

    async def pin(self, name: str, arm: Arm) -> dict[str, Any]:
        return await self._run(self._calls.change_guardrails(name, {"pinned": arm}))

    async def unpin(self, name: str) -> dict[str, Any]:
        return await self._run(self._calls.change_guardrails(name, {"pinned": None}))

    async def set_down(self, name: str, arms: Sequence[Arm]) -> dict[str, Any]:
        return await self._run(self._calls.set_down(name, arms))

    async def set_budget(self, name: str, **limits: Unpack[BudgetLimits]) -> dict[str, Any]:
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
        found: RemoteDecision | list[RemoteDecision] = await self._run(
            self._calls.decide(name, count, **options)
        )
        return found

    async def decision(self, id: str) -> RemoteDecision:
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
        return await self._run(self._calls.feedback(decision, loss, reward, arm, preference))

    async def feedback_many(self, items: Sequence[Undelivered]) -> list[RemoteDecision | ServiceError]:
        return await self._run(self._calls.feedback_many(items))

    async def flush(self) -> Flushed:
        return await self._run(self._calls.flush())

    async def state(self, name: str) -> dict[str, Any]:
        return await self._run(self._calls.state(name))

    async def verdict(self, name: str) -> dict[str, Any]:
        return await self._run(self._calls.verdict(name))

    async def segments(self, name: str, *, by: Sequence[str] = (), limit: int = 100) -> dict[str, Any]:
        return await self._run(self._calls.segments(name, by, limit))

    async def gate(
        self,
        name: str,
        arm: Arm,
        *,
        against: Arm | None = None,
        margin: float = 0.0,
        when: Literal["passed", "failed"] = "passed",
    ) -> dict[str, Any]:
        return await self._run(self._calls.gate(name, arm, against, margin, when))

    async def history(self, name: str, points: int = 200) -> dict[str, Any]:
        return await self._run(self._calls.history(name, points))

    async def evaluation(self, name: str, *, tags: Mapping[str, str] | None = None) -> dict[str, Any]:
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
        content = await self._run(self._calls.log(name, file, format, tags))
        await asyncio.to_thread(write_log, file, content, overwrite)

    async def learner(self, name: str) -> str:
        return await self._run(self._calls.learner(name))

    async def replay(self, name: str, file: FilePath, *, unrandomised: bool = False) -> dict[str, Any]:
        content = await asyncio.to_thread(Path(file).read_bytes)
        return await self._run(self._calls.replay(name, type_of(file), content, unrandomised))

    async def close(self) -> None:
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
            return await self._http.request(**vars(step))
        except httpx.TransportError as error:
            return error
