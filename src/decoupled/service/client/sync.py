"""Python clients of the decision service: `Client` waits, `AsyncClient` awaits; otherwise they are one.

    with Client("http://127.0.0.1:8000") as client:
        client.put_experiment("models", policy=dc.FTPL.recommended(), arms=["small", "medium", "large"])
        decision = client.decide("models")
        serve(decision.exploit)
        client.feedback(decision, loss=loss_of(decision.explore))   # of the *explored* arm

What they promise:

- While the service compiles a policy, which it does once, they wait, and say so once.
- A request that may be made twice is made until it is answered, with waits that double and jitter. Every
  attempt to decide carries the same Idempotency-Key, so that no decision is drawn twice.
- Feedback is never lost silently: it is delivered, or kept in the outbox, or raised as `UndeliveredFeedback`.
"""

import os
import time
from collections.abc import Sequence
from types import TracebackType
from typing import Any, Self, TypeVar, overload

import httpx

from ...decision import Arm
from ..errors import ServiceError
from . import conversation as talk
from .aio import AsyncClient
from .conversation import (
    Decision,
    Flushed,
    Pause,
    Retries,
    Send,
    Talk,
    UndeliveredFeedback,
    Unreachable,
    decision_at,
    experiment_at,
)
from .outbox import Outbox, Undelivered
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


class Client(Caller):
    """A client that waits for each answer. Threads may share one."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._http = httpx.Client(**self._options)

    # Experiments

    def put_experiment(
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
        """Create an experiment.

        `policy` is a policy such as `dc.FTPL.recommended()`, its `to_dict()`, or its name; left out, the
        service takes `FTPL.recommended()`. What else is left out has the defaults of the service.
        A policy that is new to the service's machine is compiled first, which is waited for.
        """
        request = experiment_of(name, arms, policy, loss_range, deadline_seconds, expired_loss, seed, demo)
        return self._run(talk.create(name, request, self._line))

    def experiment(self, name: str) -> dict[str, Any]:
        """One experiment."""
        return self._json(Send("GET", experiment_at(name)))

    def experiments(self, after: str | None = None, limit: int = 100) -> dict[str, Any]:
        """A page of experiments."""
        return self._json(listing(after, limit))

    def archive(self, name: str) -> dict[str, Any]:
        """End an experiment: it decides no more."""
        return self._json(Send("POST", f"{experiment_at(name)}/archive"))

    def add_arms(self, name: str, arms: Sequence[Arm]) -> dict[str, Any]:
        """Add arms."""
        return self._json(arms_of(name, "arms", arms))

    def retire_arms(self, name: str, arms: Sequence[Arm]) -> dict[str, Any]:
        """Retire arms."""
        return self._json(arms_of(name, "arms/retire", arms))

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
            talk.decide(name, mode, count, available, key, self._line)
        )
        return found

    def decision(self, id: str) -> Decision:  # noqa: A002
        """A decision as it stands now."""
        return Decision.of(self._json(Send("GET", decision_at(id))))

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
        return self._run(talk.feedback(item_of(decision, loss, reward, arm), self.outbox, self._line))

    def feedback_many(self, items: Sequence[Undelivered]) -> list[Decision | ServiceError]:
        """Send the losses of the explored arms of many decisions; a decision or an error for each."""
        return self._run(talk.feedback_many(checked_items(items), self._line))

    def flush(self) -> Flushed:
        """Send what waits in the outbox."""
        return self._run(talk.flush(self._need_outbox(), self._line))

    # Looking

    def state(self, name: str) -> dict[str, Any]:
        """What an experiment has learned."""
        return self._json(Send("GET", f"{experiment_at(name)}/state"))

    def evaluation(self, name: str) -> dict[str, Any]:
        """The value of every arm and of what was exploited, off policy, with intervals at this moment."""
        return self._json(Send("GET", f"{experiment_at(name)}/evaluation"))

    def log(
        self,
        name: str,
        file: str | os.PathLike[str],
        format: Format | None = None,  # noqa: A002
        *,
        overwrite: bool = True,
    ) -> None:
        """Write the log of an experiment to a file, whole or not at all.

        Args:
            name: the experiment.
            file: where to; a file that exists is replaced.
            format: "csv" or "parquet"; left out, as the name of the file ends.
            overwrite: False leaves a file that exists as it is, with a `FileExistsError`.
        """
        kind = format_of(file, format)
        content = self._run(talk.bytes_of(log_of(name, kind), self._line))
        write_log(file, content, overwrite)

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
        found: dict[str, Any] = self._run(talk.json_of(send, self._line))
        return found

    def _run(self, conversation: Talk[T]) -> T:
        answer: talk.Answer = None
        try:
            while True:
                step = conversation.send(answer)
                if isinstance(step, Pause):
                    if step.reason is not None:
                        self.notify(step.reason)
                    time.sleep(step.seconds)
                    answer = None
                    continue
                try:
                    answer = self._http.request(step.method, step.path, **arguments(step))
                except httpx.TransportError as error:
                    answer = error
        except StopIteration as end:
            result: T = end.value
            return result
