"""Says what of a request is copied for a shadow, and where its headers and its key are.

What is copied is named here. So nothing else that LiteLLM holds about a request, such as the keys of the client, its
identity or its cookies, can reach a shadow.
"""

import copy
from collections.abc import Collection, Mapping, Sequence
from typing import Any, TypeAlias

CHAT, RESPONSES = "/v1/chat/completions", "/v1/responses"
# The calls of LiteLLM, as callbacks see them, that are copied.
TARGETS = {"acompletion": CHAT, "aresponses": RESPONSES}
Fields: TypeAlias = Mapping[str, Any]

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
    """The target and the body of a copy; None if the request must not be sent twice.

    Args:
        request: the arguments of the call to the router.
        messages: the messages of a chat; None if it is not one.
        more: further arguments to copy.

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
    return (
        {str(name).lower(): str(value) for name, value in found.items()}
        if isinstance(found, Mapping)
        else {}
    )


def context_of(request: Fields, names: Sequence[str]) -> dict[str, Any]:
    """Some fields of the metadata that the client sent. A field that it did not send is None.

    >>> context_of({"metadata": {"requester_metadata": {"subject": "law"}, "model_group": "chat"}}, ["subject", "team"])
    {'subject': 'law', 'team': None}
    """
    # The proxy keeps the client's own apart from its notes; a call without the proxy has the client's alone.
    given = metadata_of(request).get("requester_metadata", request.get("metadata"))
    sent = given if isinstance(given, Mapping) else {}
    found = {name: sent.get(name) for name in names}
    return {name: value if isinstance(value, str | int | float) else None for name, value in found.items()}
