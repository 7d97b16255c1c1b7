"""Python clients of the decision service: `Client` waits, `AsyncClient` awaits; otherwise they are one.

    with Client("http://127.0.0.1:8000") as client:
        client.put_experiment("models", policy={"name": "FTPL"}, arms=["small", "medium", "large"])
        decision = client.decide("models")
        serve(decision.exploit)
        client.feedback(decision, loss=loss_of(decision.explore))   # of the *explored* arm

What they promise:

- A request that may be made twice is made until it is answered, with waits that double and jitter. Every
  attempt to decide carries the same Idempotency-Key, so that no decision is drawn twice.
- Feedback is never lost silently: it is delivered, or kept in the outbox, or raised as `UndeliveredFeedback`.
"""

import asyncio
import os
import time
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Self, TypeVar, overload

import httpx

from ..decision import Arm
from ..errors import ParameterError, complaint
from . import conversation as talk
from .conversation import (
    Decision,
    Flushed,
    Pause,
    Retries,
    Send,
    Talk,
    UndeliveredFeedback,
    Unreachable,
)
from .outbox import Outbox, Undelivered
from .problems import ServiceError

__all__ = [
    "AsyncClient",
    "Client",
    "Decision",
    "Flushed",
    "Outbox",
    "Retries",
    "Undelivered",
    "UndeliveredFeedback",
    "Unreachable",
]

T = TypeVar("T")
Mode = Literal["both", "exploit", "explore"]
KEY_VARIABLE = "DECOUPLED_KEY"


class _Base:
    """What both clients hold.

    Args:
        url: where the service is.
        key: an API key; the environment variable DECOUPLED_KEY if not given.
        outbox: keeps feedback that cannot be delivered now: an `Outbox`, or a path for one that survives
            the program. Without one, such feedback is raised.
        retries: how often and how patiently to try.
        timeout: seconds for one attempt.
        verify: False trusts any certificate; a path names one to trust.
    """

    def __init__(
        self,
        url: str,
        key: str | None = None,
        *,
        outbox: Outbox | str | os.PathLike[str] | None = None,
        retries: Retries | None = None,
        timeout: float = 10.0,
        verify: bool | str = True,
    ) -> None:
        key = key or os.environ.get(KEY_VARIABLE)
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        self._options: dict[str, Any] = {
            "base_url": url,
            "headers": headers,
            "timeout": timeout,
            "verify": verify,
        }
        self.retries = retries or Retries()
        self.outbox = outbox if isinstance(outbox, Outbox) or outbox is None else Outbox(outbox)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._options['base_url']!r})"  # the key stays out of logs

    def _need_outbox(self) -> Outbox:
        if self.outbox is None:
            raise ParameterError(
                "outbox: this client has none; give one, as Client(url, outbox='outbox.jsonl')"
            )
        return self.outbox

    def _check_empty(self) -> None:
        if self.outbox is not None and self.outbox.path is None and len(self.outbox):
            items = self.outbox.items()
            raise UndeliveredFeedback(
                f"outbox: {len(items)} losses were not delivered, and no file keeps them", items
            )


class Client(_Base):
    """A client that waits for each answer. Threads may share one."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._http = httpx.Client(**self._options)

    # Experiments

    def put_experiment(self, name: str, **settings: Any) -> dict[str, Any]:
        """Create an experiment: policy, arms, loss_range, deadline_seconds, expired_loss, seed."""
        return self._json(Send("PUT", f"/v1/experiments/{name}", settings))

    def experiment(self, name: str) -> dict[str, Any]:
        """One experiment."""
        return self._json(Send("GET", f"/v1/experiments/{name}"))

    def experiments(self, after: str | None = None, limit: int = 100) -> dict[str, Any]:
        """A page of experiments."""
        return self._json(_listing(after, limit))

    def archive(self, name: str) -> dict[str, Any]:
        """End an experiment: it decides no more."""
        return self._json(Send("POST", f"/v1/experiments/{name}/archive"))

    def add_arms(self, name: str, arms: Sequence[Arm]) -> dict[str, Any]:
        """Add arms."""
        return self._json(_arms(name, "arms", arms))

    def retire_arms(self, name: str, arms: Sequence[Arm]) -> dict[str, Any]:
        """Retire arms."""
        return self._json(_arms(name, "arms/retire", arms))

    # Decisions

    @overload
    def decide(
        self,
        name: str,
        *,
        mode: Mode = ...,
        count: None = ...,
        available: Sequence[Arm] | None = ...,
        key: str | None = ...,
    ) -> Decision: ...
    @overload
    def decide(
        self,
        name: str,
        *,
        mode: Mode = ...,
        count: int,
        available: Sequence[Arm] | None = ...,
        key: str | None = ...,
    ) -> list[Decision]: ...
    def decide(
        self,
        name: str,
        *,
        mode: Mode = "both",
        count: int | None = None,
        available: Sequence[Arm] | None = None,
        key: str | None = None,
    ) -> Decision | list[Decision]:
        """A decision, or a list of `count`. `key` is the Idempotency-Key; left out, a fresh one."""
        found: Decision | list[Decision] = self._run(
            talk.decide(name, mode, count, available, key, self.retries)
        )
        return found

    def decision(self, id: str) -> Decision:  # noqa: A002
        """A decision as it stands now."""
        return Decision.of(self._json(Send("GET", f"/v1/decisions/{id}")))

    def feedback(
        self,
        decision: Decision | str,
        *,
        loss: float | None = None,
        reward: float | None = None,
        arm: Arm | None = None,
    ) -> Decision | None:
        """Send the loss, or the reward, of the arm that `decision` *explored*; None if it went to the outbox.

        `arm` says whose loss it is, as a safeguard: any arm but the explored one is refused.
        """
        return self._run(talk.feedback(_item(decision, loss, reward, arm), self.outbox, self.retries))

    def feedback_many(self, items: Sequence[Undelivered]) -> list[Decision | ServiceError]:
        """Send the losses of the explored arms of many decisions; a decision or an error for each."""
        return self._run(talk.feedback_many(items, self.retries))

    def flush(self) -> Flushed:
        """Send what waits in the outbox."""
        return self._run(talk.flush(self._need_outbox(), self.retries))

    # Looking

    def state(self, name: str) -> dict[str, Any]:
        """What an experiment has learned."""
        return self._json(Send("GET", f"/v1/experiments/{name}/state"))

    def evaluation(self, name: str) -> dict[str, Any]:
        """The value of every arm and of what was exploited, off policy, with intervals."""
        return self._json(Send("GET", f"/v1/experiments/{name}/evaluation"))

    def log(
        self,
        name: str,
        file: str | os.PathLike[str],
        format: Literal["csv", "parquet"] = "csv",  # noqa: A002
    ) -> None:
        """Write the log of an experiment to a file."""
        content = self._run(talk.bytes_of(_log(name, format), self.retries))
        Path(file).write_bytes(content)

    # Inside

    def close(self) -> None:
        """Send what waits in the outbox once more, and hang up; what no file keeps is raised."""
        try:
            if self.outbox is not None and len(self.outbox):
                self.flush()
            self._check_empty()
        finally:
            self._http.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _json(self, send: Send) -> dict[str, Any]:
        found: dict[str, Any] = self._run(talk.json_of(send, self.retries))
        return found

    def _run(self, conversation: Talk[T]) -> T:
        answer: talk.Answer = None
        try:
            while True:
                step = conversation.send(answer)
                if isinstance(step, Pause):
                    time.sleep(step.seconds)
                    answer = None
                    continue
                try:
                    answer = self._http.request(step.method, step.path, **_arguments(step))
                except httpx.TransportError as error:
                    answer = error
        except StopIteration as end:
            result: T = end.value
            return result


class AsyncClient(_Base):
    """A client whose calls are awaited; each does what the method of that name in `Client` does."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._http = httpx.AsyncClient(**self._options)

    async def put_experiment(self, name: str, **settings: Any) -> dict[str, Any]:
        """Create an experiment."""
        return await self._json(Send("PUT", f"/v1/experiments/{name}", settings))

    async def experiment(self, name: str) -> dict[str, Any]:
        """One experiment."""
        return await self._json(Send("GET", f"/v1/experiments/{name}"))

    async def experiments(self, after: str | None = None, limit: int = 100) -> dict[str, Any]:
        """A page of experiments."""
        return await self._json(_listing(after, limit))

    async def archive(self, name: str) -> dict[str, Any]:
        """End an experiment."""
        return await self._json(Send("POST", f"/v1/experiments/{name}/archive"))

    async def add_arms(self, name: str, arms: Sequence[Arm]) -> dict[str, Any]:
        """Add arms."""
        return await self._json(_arms(name, "arms", arms))

    async def retire_arms(self, name: str, arms: Sequence[Arm]) -> dict[str, Any]:
        """Retire arms."""
        return await self._json(_arms(name, "arms/retire", arms))

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
        return await self._run(talk.feedback(_item(decision, loss, reward, arm), self.outbox, self.retries))

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
        content = await self._run(talk.bytes_of(_log(name, format), self.retries))
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
                    await asyncio.sleep(step.seconds)
                    answer = None
                    continue
                try:
                    answer = await self._http.request(step.method, step.path, **_arguments(step))
                except httpx.TransportError as error:
                    answer = error
        except StopIteration as end:
            result: T = end.value
            return result


def _arguments(send: Send) -> dict[str, Any]:
    found: dict[str, Any] = {"headers": send.headers, "params": send.params}
    if send.json is not None:
        found["json"] = send.json
    return found


def _item(
    decision: Decision | str, loss: float | None, reward: float | None, arm: Arm | None
) -> Undelivered:
    if (loss is None) == (reward is None):
        rule, remedy = "and reward: one of them is needed, and not both", "give that of the explored arm"
        raise ParameterError(complaint("loss", loss, rule, remedy))
    return Undelivered(decision if isinstance(decision, str) else decision.id, loss, reward, arm)


def _listing(after: str | None, limit: int) -> Send:
    params: dict[str, Any] = {"limit": limit} if after is None else {"limit": limit, "after": after}
    return Send("GET", "/v1/experiments", params=params)


def _arms(name: str, what: str, arms: Sequence[Arm]) -> Send:
    return Send("POST", f"/v1/experiments/{name}/{what}", {"arms": list(arms)})


def _log(name: str, format: str) -> Send:  # noqa: A002
    return Send("GET", f"/v1/experiments/{name}/log", params={"format": format})
