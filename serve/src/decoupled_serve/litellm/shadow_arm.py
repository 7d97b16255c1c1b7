"""Says what of a request is copied for a shadow, and sends shadows to one model.

What is copied is named here. So nothing else that LiteLLM holds about a request, such as the client's keys, identity or
cookies, can reach a shadow. LiteLLM's router sends them, with the keys, prices and limits of its configuration.
"""

import asyncio
import copy
import json
import math
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from ..mirror.config import MIB
from ..mirror.exchange import Answer, Request
from ..mirror.spending import amount_of

CHAT, RESPONSES = "/v1/chat/completions", "/v1/responses"
# The calls of LiteLLM, as callbacks see them, that are copied.
TARGETS = {"acompletion": CHAT, "aresponses": RESPONSES}
Fields: TypeAlias = Mapping[str, Any]
MOST_KEPT = MIB  # bytes of an answer; a longer one is cut for judges

# Not `user` and the like: LiteLLM and the providers would charge the shadow to that user.
_COPIED = {
    CHAT: (
        "audio", "frequency_penalty", "function_call", "functions", "logit_bias", "logprobs", "max_completion_tokens",
        "max_tokens", "modalities", "n", "parallel_tool_calls", "prediction", "presence_penalty", "reasoning_effort",
        "response_format", "seed", "service_tier", "stop", "temperature", "thinking", "tool_choice", "tools",
        "top_logprobs", "top_p", "verbosity",
    ),
    RESPONSES: (
        "include", "input", "instructions", "max_output_tokens", "max_tool_calls", "parallel_tool_calls", "prompt",
        "reasoning", "service_tier", "temperature", "text", "tool_choice", "tools", "top_logprobs", "top_p",
        "truncation",
    ),
}  # fmt: skip
# The answer continues another one, which only the model that gave it has, or is fetched later.
_NOT_ALONE = ("background", "conversation", "previous_response_id")
# Tools that the client runs, if at all. Others run where the model is, and would run twice.
_HARMLESS_TOOLS = (None, "function", "custom")


def copied(
    request: Fields, messages: Sequence[Any] | None, more: Collection[str] = ()
) -> tuple[str, dict[str, Any]] | None:
    """The target and the body of a copy of a call to the router; None if it must not be sent twice.

    `messages` are those of a chat, None if it is not one, and `more` names further arguments to copy.

    >>> copied({"temperature": 0.2, "api_key": "secret", "user": "ann"}, [{"role": "user", "content": "hi"}])
    ('/v1/chat/completions', {'temperature': 0.2, 'messages': [{'role': 'user', 'content': 'hi'}]})
    >>> copied({"input": "hi", "tools": [{"type": "mcp"}]}, None)
    """
    target = RESPONSES if messages is None else CHAT
    if messages is None and "input" not in request:
        return None
    if any(request.get(name) for name in _NOT_ALONE):
        return None
    tools = request.get("tools") or ()
    if any(isinstance(tool, Mapping) and tool.get("type") not in _HARMLESS_TOOLS for tool in tools):
        return None
    names = (*_COPIED[target], *more)
    body = {name: request[name] for name in names if request.get(name) is not None}
    if messages is not None:
        body["messages"] = messages
    return target, copy.deepcopy(body)  # the gateway may change it on its way to the served model


def metadata_of(request: Fields) -> dict[str, Any]:
    """What LiteLLM notes about a request; for newer kinds of calls `metadata` is the client's.

    >>> metadata_of({"metadata": {"subject": "law"}, "litellm_metadata": {"model_group": "chat"}})
    {'model_group': 'chat'}
    """
    name = "litellm_metadata" if "litellm_metadata" in request else "metadata"
    found = request.get(name)
    return found if isinstance(found, dict) else {}


def headers_of(request: Fields) -> dict[str, str]:
    """The headers of a request, with names in lower case; none if it did not come through the proxy.

    >>> headers_of({"metadata": {"headers": {"X-Session-Id": "17"}}})
    {'x-session-id': '17'}
    """
    secret = request.get("secret_fields")
    raw = secret.get("raw_headers") if isinstance(secret, Mapping) else None
    found = raw if isinstance(raw, Mapping) else metadata_of(request).get("headers")
    pairs = found.items() if isinstance(found, Mapping) else ()
    return {str(name).lower(): str(value) for name, value in pairs}


def context_of(request: Fields, names: Sequence[str]) -> dict[str, Any]:
    """Some fields of the metadata that the client sent. A field that it did not send is None.

    >>> context_of({"metadata": {"requester_metadata": {"subject": "law"}, "model_group": "chat"}}, ["subject", "team"])
    {'subject': 'law', 'team': None}
    """
    # The proxy keeps the client's own apart from its notes; a call without the proxy has the client's alone.
    given = metadata_of(request).get("requester_metadata", request.get("metadata"))
    sent = given if isinstance(given, Mapping) else {}
    found = {name: sent.get(name) for name in names}
    return {
        name: value if isinstance(value, str | int | float) else None
        for name, value in found.items()
    }


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
        mark = {"decoupled_shadow": True}
        if request.target == CHAT:
            return await router.acompletion(model=self._group, metadata=mark, **arguments)
        return await router.aresponses(
            model=self._group, store=False, litellm_metadata=mark, **arguments
        )

    def in_time(self, served: Answer) -> Answer:
        """What was served, where it stands for a shadow: one that took as long would have failed."""
        late = served.duration > self._seconds
        return replace(served, problem=served.problem or self._late) if late else served


def failure_of(arm: str, seconds: float, error: object) -> Answer:
    """What an error of a provider, or of the router, is to a judge. What it cost nobody knows."""
    status = getattr(error, "status_code", None)
    known = status if isinstance(status, int) and 100 <= status <= 599 else None
    told = f"{type(error).__name__}: {error}"[:500] if isinstance(error, Exception) else str(error)
    return Answer(arm, known, duration=seconds, cost=None, problem=told)


def answer_of(arm: str, found: Any, seconds: float, cost: object = None) -> Answer:
    """What a model answered, as a judge sees it, whether it was streamed or not. Without a price, it is with the answer.

    A price that LiteLLM does not know is None. One that no call can have is NaN, which cannot be read.
    """
    if cost is None:
        cost = (getattr(found, "_hidden_params", None) or {}).get("response_cost")
    text = (
        found.model_dump_json()
        if hasattr(found, "model_dump_json")
        else json.dumps(found, default=str)
    )
    body = text.encode(errors="replace")
    return Answer(
        arm,
        200,
        (("content-type", "application/json"),),
        body[:MOST_KEPT],
        len(body),
        latency=seconds,
        duration=seconds,
        cost=_price_of(cost),
        complete=len(body) <= MOST_KEPT,
    )


def _price_of(cost: object) -> float | None:
    """A price that LiteLLM states: None if it states none, and NaN if it is none that a call can have."""
    if cost is None:
        return None
    amount = amount_of(cost)
    return math.nan if amount is None else amount
