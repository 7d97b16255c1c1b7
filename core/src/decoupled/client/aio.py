"""`AsyncClient`, whose calls are awaited."""

import asyncio
import inspect
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Mapping
from functools import wraps
from typing import Any, Concatenate, ParamSpec, Self, TypeVar, Unpack, cast, overload

import httpx

from .base import BaseClient
from .exchange import ApiRequest, Exchange, Received
from .requests import (
    PAGE,
    DecideOptions,
    DecisionFilters,
    ExperimentFilters,
    decision_params,
    experiment_path,
)
from .results import FilePath, Format, RemoteDecision, write_log
from .sync import Client

T = TypeVar("T")
P = ParamSpec("P")


def awaited(
    method: Callable[Concatenate[Client, P], T],
) -> Callable[Concatenate["AsyncClient", P], Coroutine[Any, Any, T]]:
    """A method of `Client` to await: `_run` performs the exchange that the method describes, and is
    awaited here.
    """

    @wraps(method)
    async def call(client: "AsyncClient", /, *arguments: P.args, **options: P.kwargs) -> T:
        return await cast(Awaitable[T], method(cast(Client, client), *arguments, **options))

    call.__qualname__ = f"AsyncClient.{method.__name__}"
    return call


class AsyncClient(BaseClient[httpx.AsyncClient]):
    """A client with the arguments and the methods of `Client`, whose calls are awaited.

    >>> AsyncClient("http://127.0.0.1:8000", outbox="outbox")
    AsyncClient('http://127.0.0.1:8000')
    >>> decision = await client.decide("models")
    >>> (await client.feedback(decision, loss=0.25)).status
    'applied'
    >>> [decision.status async for decision in client.iter_decisions("models")]
    ['applied']
    """

    def _open(self, **options: Any) -> httpx.AsyncClient:
        return httpx.AsyncClient(**options)

    create = awaited(Client.create)
    experiment = awaited(Client.experiment)
    add_arms = awaited(Client.add_arms)
    retire_arms = awaited(Client.retire_arms)
    change_guardrails = awaited(Client.change_guardrails)
    pin = awaited(Client.pin)
    unpin = awaited(Client.unpin)
    set_budget = awaited(Client.set_budget)
    decision = awaited(Client.decision)
    feedback = awaited(Client.feedback)
    feedback_many = awaited(Client.feedback_many)
    label = awaited(Client.label)
    keep_pair = awaited(Client.keep_pair)
    flush = awaited(Client.flush)
    state = awaited(Client.state)
    verdict = awaited(Client.verdict)
    gate = awaited(Client.gate)
    learner = awaited(Client.learner)
    request = awaited(Client.request)

    async def iter_experiments(
        self, **filters: Unpack[ExperimentFilters]
    ) -> AsyncIterator[dict[str, Any]]:
        params: dict[str, Any] = {"limit": PAGE, **filters}
        while True:
            page = await self.request("GET", "/v1/experiments", params=params)
            for experiment in page["experiments"]:
                yield experiment
            if page["next"] is None:
                return
            params["after"] = page["next"]

    async def iter_decisions(
        self, name: str, **filters: Unpack[DecisionFilters]
    ) -> AsyncIterator[RemoteDecision]:
        params = decision_params(filters)
        while True:
            page = await self.request("GET", f"{experiment_path(name)}/decisions", params=params)
            for decision in page["decisions"]:
                yield RemoteDecision.of(decision)
            if page["next"] is None:
                return
            params["after"] = page["next"]

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
        return await self._run(self._calls.decide(name, count, **options))

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
        await asyncio.to_thread(write_log, file, content, overwrite=overwrite)

    async def close(self) -> None:
        try:
            await self._run(self._calls.close())
        finally:
            await self._http.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *error: object) -> None:
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


# What `Client` has, too, has its docstring, without its examples.
for _name, _method in vars(AsyncClient).items():
    _twin = getattr(Client, _name, None)
    if inspect.isfunction(_method) and _twin is not None and _twin.__doc__:
        _method.__doc__ = inspect.cleandoc(_twin.__doc__).partition("\n\n>>>")[0]
