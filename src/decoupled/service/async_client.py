"""The client whose calls are awaited."""

import asyncio
import os
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Self, TypeVar, overload

import httpx

from ..decision import Arm
from . import conversation as talk
from .calling import Caller, Mode, arguments, arms_of, item_of, listing, log_of
from .conversation import Decision, Flushed, Pause, Send, Talk
from .outbox import Undelivered
from .problems import ServiceError

T = TypeVar("T")


class AsyncClient(Caller):
    """A client whose calls are awaited; each does what the method of that name in `Client` does."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._http = httpx.AsyncClient(**self._options)

    async def put_experiment(self, name: str, **settings: Any) -> dict[str, Any]:
        """Create an experiment."""
        return await self._run(talk.create(name, settings, self.retries))

    async def experiment(self, name: str) -> dict[str, Any]:
        """One experiment."""
        return await self._json(Send("GET", f"/v1/experiments/{name}"))

    async def experiments(self, after: str | None = None, limit: int = 100) -> dict[str, Any]:
        """A page of experiments."""
        return await self._json(listing(after, limit))

    async def archive(self, name: str) -> dict[str, Any]:
        """End an experiment."""
        return await self._json(Send("POST", f"/v1/experiments/{name}/archive"))

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
            talk.decide(name, mode, count, available, key, self.retries)
        )
        return found

    async def decision(self, id: str) -> Decision:  # noqa: A002
        """A decision as it stands now."""
        return Decision.of(await self._json(Send("GET", f"/v1/decisions/{id}")))

    async def feedback(
        self,
        decision: Decision | str,
        *,
        loss: float | None = None,
        reward: float | None = None,
        arm: Arm | None = None,
    ) -> Decision | None:
        """Send the loss, or the reward, of the arm that `decision` *explored*."""
        return await self._run(
            talk.feedback(item_of(decision, loss, reward, arm), self.outbox, self.retries)
        )

    async def feedback_many(self, items: Sequence[Undelivered]) -> list[Decision | ServiceError]:
        """Send the losses of the explored arms of many decisions."""
        return await self._run(talk.feedback_many(items, self.retries))

    async def flush(self) -> Flushed:
        """Send what waits in the outbox."""
        return await self._run(talk.flush(self._need_outbox(), self.retries))

    async def state(self, name: str) -> dict[str, Any]:
        """What an experiment has learned."""
        return await self._json(Send("GET", f"/v1/experiments/{name}/state"))

    async def evaluation(self, name: str) -> dict[str, Any]:
        """The value of every arm and of what was exploited."""
        return await self._json(Send("GET", f"/v1/experiments/{name}/evaluation"))

    async def log(
        self,
        name: str,
        file: str | os.PathLike[str],
        format: Literal["csv", "parquet"] = "csv",  # noqa: A002
    ) -> None:
        """Write the log of an experiment to a file."""
        content = await self._run(talk.bytes_of(log_of(name, format), self.retries))
        await asyncio.to_thread(Path(file).write_bytes, content)

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
        found: dict[str, Any] = await self._run(talk.json_of(send, self.retries))
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
