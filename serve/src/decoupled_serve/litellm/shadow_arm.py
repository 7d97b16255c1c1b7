"""Sends shadows to one model through LiteLLM's router, so that keys, prices and limits are those of its configuration."""

import asyncio
import json
import time
from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import Any

from ..mirror.exchange import Answer, Request
from .requests import CHAT


@dataclass(frozen=True, slots=True)
class Shadow:
    """A shadow on its way: the group and the arm that it must reach."""

    group: str
    arm: str


# Set while a shadow is sent, in its task alone. Unlike a mark in the request, no client can forge it.
SHADOW: ContextVar[Shadow | None] = ContextVar("decoupled_shadow", default=None)

# One attempt, to this model alone, not answered from the cache of what was served. A failure must not make the router
# avoid the deployment: it would be the shadow's fault that clients are served by another.
_ALONE: dict[str, Any] = {
    "cache": {"no-cache": True, "no-store": True},
    "cooldown_time": 0,
    "disable_fallbacks": True,
    "num_retries": 0,
    "stream": False,
}


class ShadowArm:
    """One model of a group, as shadows reach it."""

    def __init__(self, name: str, group: str, router: Callable[[], Any], seconds: float) -> None:
        self.name, self._group, self._router, self._seconds = name, group, router, seconds
        self._late = f"no answer within {seconds:g} s"

    async def copy(self, request: Request) -> Answer:
        """Send a shadow; the answer says what went wrong, if something did."""
        mark = SHADOW.set(Shadow(self._group, self.name))
        began = time.perf_counter()
        try:
            async with asyncio.timeout(self._seconds):
                found = await self._asked(request)
        except TimeoutError:
            return failure_of(self.name, time.perf_counter() - began, self._late)
        except Exception as error:  # a provider's, or the router's
            return failure_of(self.name, time.perf_counter() - began, error)
        finally:
            SHADOW.reset(mark)
        return answer_of(self.name, found, time.perf_counter() - began)

    async def _asked(self, request: Request) -> Any:
        router, arguments = self._router(), {**request.json(), **_ALONE, "timeout": self._seconds}
        if request.headers:
            arguments["extra_headers"] = dict(request.headers)
        if request.target == CHAT:
            return await router.acompletion(
                model=self._group, metadata={"decoupled_shadow": True}, **arguments
            )
        arguments["litellm_metadata"] = {"decoupled_shadow": True}
        return await router.aresponses(model=self._group, store=False, **arguments)

    def in_time(self, served: Answer) -> Answer:
        """What was served, where it stands for a shadow: one that took as long would have failed."""
        late = served.duration > self._seconds
        return replace(served, problem=served.problem or self._late) if late else served


def failure_of(arm: str, seconds: float, error: object) -> Answer:
    """What an error of a provider, or of the router, is to a judge."""
    status = getattr(error, "status_code", None)
    known = status if isinstance(status, int) and 100 <= status <= 599 else None
    told = f"{type(error).__name__}: {error}"[:500] if isinstance(error, Exception) else str(error)
    return Answer(arm, known, duration=seconds, problem=told)


def answer_of(arm: str, found: Any, seconds: float, cost: float | None = None) -> Answer:
    """What a model answered, as a judge sees it, whether it was streamed or not.

    Args:
        arm: the model.
        found: LiteLLM's object with the whole answer.
        seconds: how long it took.
        cost: its price in dollars; None if it is with the object.
    """
    if cost is None:
        cost = (getattr(found, "_hidden_params", None) or {}).get("response_cost")
    text = found.model_dump_json() if hasattr(found, "model_dump_json") else json.dumps(found, default=str)
    body = text.encode()
    headers = (("content-type", "application/json"),)
    return Answer(
        arm, 200, headers, body, len(body), latency=seconds, duration=seconds, cost=float(cost or 0.0)
    )
