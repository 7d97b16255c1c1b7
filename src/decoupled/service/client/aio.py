"""The client whose calls are awaited."""

import asyncio
import os
from collections.abc import Sequence
from types import TracebackType
from typing import Any, Self, TypeVar, overload

import httpx

from ...decision import Arm
from ..errors import ServiceError
from . import conversation as talk
from .conversation import Decision, Flushed, Pause, Send, Talk, decision_at, experiment_at
from .outbox import Undelivered
from .requests import (
    Caller,
    Format,
    Mode,
    PolicyLike,
    arguments,
    arms_of,
    checked_items,
    experiment_of,
    format_of,
    item_of,
    listing,
    log_of,
    write_log,
)

T = TypeVar("T")


class AsyncClient(Caller):
    """A client whose calls are awaited; each does what the method of that name in `Client` does."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._http = httpx.AsyncClient(**self._options)

    async def put_experiment(
        self,
        name: str,
        *,
        arms: Sequence[Arm],
        policy: PolicyLike | None = None,
        loss_range: Sequence[float] | None = None,
        deadline_seconds: float | None = None,
        expired_loss: float | None = None,
        seed: int | None = None,
        demo: bool = False,
    ) -> dict[str, Any]:
        """Create an experiment."""
        request = experiment_of(name, arms, policy, loss_range, deadline_seconds, expired_loss, seed, demo)
        return await self._run(talk.create(name, request, self._line))

    async def experiment(self, name: str) -> dict[str, Any]:
        """One experiment."""
        return await self._json(Send("GET", experiment_at(name)))

    async def experiments(self, after: str | None = None, limit: int = 100) -> dict[str, Any]:
        """A page of experiments."""
        return await self._json(listing(after, limit))

    async def archive(self, name: str) -> dict[str, Any]:
        """End an experiment."""
        return await self._json(Send("POST", f"{experiment_at(name)}/archive"))

    async def add_arms(self, name: str, arms: Sequence[Arm]) -> dict[str, Any]:
        """Add arms."""
        return await self._json(arms_of(name, "arms", arms))

    async def retire_arms(self, name: str, arms: Sequence[Arm]) -> dict[str, Any]:
        """Retire arms."""
        return await self._json(arms_of(name, "arms/retire", arms))

    @overload
    async def decide(
        self,
        name: str,
        *,
        mode: Mode = ...,
        count: None = ...,
        available: Sequence[Arm] | None = ...,
        key: str | None = ...,
    ) -> Decision: ...
    @overload
    async def decide(
        self,
        name: str,
        *,
        mode: Mode = ...,
        count: int,
        available: Sequence[Arm] | None = ...,
        key: str | None = ...,
    ) -> list[Decision]: ...
    async def decide(
        self,
        name: str,
        *,
        mode: Mode = "both",
        count: int | None = None,
        available: Sequence[Arm] | None = None,
        key: str | None = None,
    ) -> Decision | list[Decision]:
        """A decision, or a list of `count`."""
        found: Decision | list[Decision] = await self._run(
            talk.decide(name, mode, count, available, key, self._line)
        )
        return found

    async def decision(self, id: str) -> Decision:  # noqa: A002
        """A decision as it stands now."""
        return Decision.of(await self._json(Send("GET", decision_at(id))))

    async def feedback(
        self,
        decision: Decision | str,
        *,
        loss: float | None = None,
        reward: float | None = None,
        arm: Arm | None = None,
    ) -> Decision | None:
        """Send the loss, or the reward, of the arm that `decision` *explored*."""
        return await self._run(talk.feedback(item_of(decision, loss, reward, arm), self.outbox, self._line))

    async def feedback_many(self, items: Sequence[Undelivered]) -> list[Decision | ServiceError]:
        """Send the losses of the explored arms of many decisions."""
        return await self._run(talk.feedback_many(checked_items(items), self._line))

    async def flush(self) -> Flushed:
        """Send what waits in the outbox."""
        return await self._run(talk.flush(self._need_outbox(), self._line))

    async def state(self, name: str) -> dict[str, Any]:
        """What an experiment has learned."""
        return await self._json(Send("GET", f"{experiment_at(name)}/state"))

    async def evaluation(self, name: str) -> dict[str, Any]:
        """The value of every arm and of what was exploited, off policy, with intervals at this moment."""
        return await self._json(Send("GET", f"{experiment_at(name)}/evaluation"))

    async def log(
        self,
        name: str,
        file: str | os.PathLike[str],
        format: Format | None = None,  # noqa: A002
        *,
        overwrite: bool = True,
    ) -> None:
        """Write the log of an experiment to a file."""
        kind = format_of(file, format)
        content = await self._run(talk.bytes_of(log_of(name, kind), self._line))
        await asyncio.to_thread(write_log, file, content, overwrite)

    async def close(self) -> None:
        """Send what waits in the outbox once more, and hang up; what no file keeps is raised."""
        try:
            if self.outbox is not None and len(self.outbox):
                await self.flush()
            self._check_empty()
        finally:
            await self._http.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def _json(self, send: Send) -> dict[str, Any]:
        found: dict[str, Any] = await self._run(talk.json_of(send, self._line))
        return found

    async def _run(self, conversation: Talk[T]) -> T:
        answer: talk.Answer = None
        try:
            while True:
                step = conversation.send(answer)
                if isinstance(step, Pause):
                    if step.reason is not None:
                        self.notify(step.reason)
                    await asyncio.sleep(step.seconds)
                    answer = None
                    continue
                try:
                    answer = await self._http.request(step.method, step.path, **arguments(step))
                except httpx.TransportError as error:
                    answer = error
        except StopIteration as end:
            result: T = end.value
            return result
