"""Reads the requests and the answers of OpenAI-style APIs as text, whole or streamed, so that they can be judged."""

import json
from typing import Any

from ..nested import parsed


def conversation(body: bytes) -> list[tuple[str, str]]:
    """The messages of a request as pairs of role and text; none if it is no chat.

    >>> conversation(b'{"messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "hi"}]}')
    [('system', 'Be brief.'), ('user', 'hi')]
    >>> conversation(b'{"input": "hi"}'), conversation(b"n=1")
    ([('user', 'hi')], [])
    """
    content = parsed(body)
    if not isinstance(content, dict):
        return []
    given = content.get("messages") or content.get("input") or content.get("prompt")
    if isinstance(given, str):
        given = [{"role": "user", "content": given}]
    if isinstance(instructions := content.get("instructions"), str):
        given = [{"role": "system", "content": instructions}, *_objects(given)]
    return [(str(each.get("role", "tool")), _text(each)) for each in _objects(given)]


def said(body: bytes) -> str:
    r"""What an answer says, with its tool calls as JSON; the whole body if it is no chat.

    Neither the name of the model nor an id is in it, which could tell who answered.

    >>> said(b'{"model": "small", "choices": [{"message": {"content": "408"}}]}')
    '408'
    >>> said(b'data: {"choices": [{"delta": {"content": "4"}}]}\n\ndata: {"choices": [{"delta": {"content": "08"}}]}\n\n')
    '408'
    >>> said(b'{"output": [{"type": "function_call", "call_id": "c1", "name": "add", "arguments": "[1, 2]"}]}')
    '{"call": "add", "arguments": "[1, 2]"}'
    """
    content = parsed(body) or _whole(body)
    found = content if isinstance(content, dict) else {}
    if "choices" in found:
        messages = [one.get("message", {"content": one.get("text")}) for one in _objects(found["choices"])]
    elif "output" in found:  # of /v1/responses
        messages = found["output"]
    elif "content" in found:  # a message by itself
        messages = [found]
    else:
        return body.decode(errors="replace")
    return "\n".join(text for each in _objects(messages) if (text := _text(each)))


def _objects(value: Any) -> list[dict[str, Any]]:
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


def _text(message: dict[str, Any]) -> str:
    content = message.get("content")
    found = [content] if isinstance(content, str) else []
    for part in _objects(content):  # an image is named, not shown
        text = part.get("text") or part.get("refusal")
        found.append(text if isinstance(text, str) else f"[{part.get('type')}]")
    if isinstance(refusal := message.get("refusal"), str):
        found.append(refusal)
    calls = [*_objects(message.get("tool_calls")), *_objects([message.get("function_call")])]
    for call in [*calls, *([message] if "name" in message and "role" not in message else [])]:
        [inner, *_] = _objects([call.get("function"), call.get("custom"), call])
        arguments = inner.get("arguments", inner.get("input"))
        found.append(json.dumps({"call": inner.get("name"), "arguments": arguments}))
    return "\n".join(filter(None, found))


def _whole(body: bytes) -> dict[str, Any]:
    """What the events of a stream add up to; nothing if it is none."""
    found: dict[str, Any] = {}
    messages: dict[Any, dict[str, Any]] = {}
    lines = [line[5:] for line in body.splitlines() if line.startswith(b"data:")]
    for event in _objects([parsed(line) for line in lines]):
        if isinstance(event.get("response"), dict):  # the last one has all of it
            found = event["response"]
        for choice in _objects(event.get("choices")):
            message = messages.setdefault(choice.get("index"), {"content": "", "tool_calls": []})
            [delta, *_] = _objects([choice.get("delta"), {"content": choice.get("text")}])
            message["content"] += str(delta.get("content") or delta.get("refusal") or "")
            for piece in _objects(delta.get("tool_calls")):
                _add(message["tool_calls"], piece)
    return {"choices": [{"message": each} for each in messages.values()]} if messages else found


def _add(calls: list[dict[str, Any]], piece: dict[str, Any]) -> None:
    """Add a piece of a tool call to the calls so far."""
    known = next((each for each in calls if each["index"] == piece.get("index")), None)
    if known is None:
        calls.append(known := {"index": piece.get("index"), "name": "", "arguments": ""})
    inner = piece.get("function")
    for name in ("name", "arguments"):
        known[name] += str(inner.get(name) or "") if isinstance(inner, dict) else ""
