"""Reads the requests and the answers of OpenAI-style APIs as text, whole or streamed, so that they can be judged."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from io import StringIO
from typing import Any

from ..nested import parsed

_LINE = re.compile(rb"[^\r\n]+")
_STREAM = re.compile(rb"\s*(data|event|id|retry)?:")  # no JSON begins like this


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
    messages = [(str(each.get("role", "tool")), _text(each)) for each in _objects(given)]
    return [(_encodable(role), _encodable(text)) for role, text in messages]


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
    # A long stream is not tried as JSON: that would be one long step for nothing.
    is_stream = _STREAM.match(body) is not None
    content = (None if is_stream else parsed(body)) or _whole(body)
    found = content if isinstance(content, dict) else {}
    if "choices" in found:
        messages = [
            one.get("message", {"content": one.get("text")}) for one in _objects(found["choices"])
        ]
    elif "output" in found:  # of /v1/responses
        messages = found["output"]
    elif "content" in found:  # a message by itself
        messages = [found]
    else:
        return body.decode(errors="replace")
    texts = [_text(each) for each in _objects(messages)]
    return _encodable("\n".join(filter(None, texts)))


def event_data(body: bytes) -> Iterator[bytes]:
    r"""The data of each line of a stream of events, one at a time: a long stream is never held twice.

    >>> list(event_data(b"event: x\ndata: 1\r\n\r\ndata:2"))
    [b' 1', b'2']
    """
    for line in _LINE.finditer(body):
        if body.startswith(b"data:", line.start()):
            yield line[0][5:]


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


@dataclass(slots=True)
class _Call:
    """A tool call whose pieces come one by one."""

    names: StringIO = field(default_factory=StringIO)
    arguments: StringIO = field(default_factory=StringIO)

    def add(self, function: dict[str, Any]) -> None:
        """Keep a piece."""
        self.names.write(str(function.get("name") or ""))
        self.arguments.write(str(function.get("arguments") or ""))

    def to_dict(self) -> dict[str, Any]:
        """The call as an answer that is not streamed has it."""
        return {"name": self.names.getvalue(), "arguments": self.arguments.getvalue()}


@dataclass(slots=True)
class _Streamed:
    """A message whose pieces come one by one.

    They are found by their index and never copied again, so that many small pieces cost no more
    work than their bytes, and no single step is long.
    An index may be anything that an arm sends: those with the same text belong together.
    """

    contents: StringIO = field(default_factory=StringIO)
    calls: dict[str, _Call] = field(default_factory=dict)

    def add(self, delta: dict[str, Any]) -> None:
        """Keep a piece."""
        self.contents.write(str(delta.get("content") or delta.get("refusal") or ""))
        for piece in _objects(delta.get("tool_calls")):
            call = self.calls.setdefault(str(piece.get("index")), _Call())
            function = piece.get("function")
            if isinstance(function, dict):
                call.add(function)

    def to_dict(self) -> dict[str, Any]:
        """The message as an answer that is not streamed has it."""
        calls = [call.to_dict() for call in self.calls.values()]
        return {"content": self.contents.getvalue(), "tool_calls": calls}


def _whole(body: bytes) -> dict[str, Any]:
    """What the events of a stream add up to; nothing if it is none."""
    response: dict[str, Any] = {}
    messages: dict[str, _Streamed] = {}
    for data in event_data(body):
        event = parsed(data)
        if not isinstance(event, dict):
            continue
        if isinstance(event.get("response"), dict):  # the last one has all of it
            response = event["response"]
        for choice in _objects(event.get("choices")):
            message = messages.setdefault(str(choice.get("index")), _Streamed())
            [delta, *_] = _objects([choice.get("delta"), {"content": choice.get("text")}])
            message.add(delta)
    if not messages:
        return response
    return {"choices": [{"message": message.to_dict()} for message in messages.values()]}


def _encodable(text: str) -> str:
    """The text with both halves of a surrogate pair as one character, and a half by itself as a replacement.

    A stream may break an emoji in two, and UTF-8 has neither half.
    """
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text
