"""Fields of a context from requests of OpenAI-style APIs: `python = "decoupled_serve.mirror.prompts:tokens"`.

A request that is not a chat has none of these fields.
"""

import re
from typing import Any

from ..nested import parsed
from .chat import conversation
from .exchange import Request

_CHARACTERS = 4  # of English a token, roughly
_FENCE = re.compile(r"^ {0,3}(?:```|~~~)[ \t]*([\w+#.-]*)", re.MULTILINE)


def prompt(request: Request) -> str | None:
    """The last message of the user, for a field of the type "vector".

    >>> prompt(Request("POST", "/v1/chat/completions", (), b'{"messages": [{"role": "user", "content": "hi"}]}'))
    'hi'
    """
    said = [text for role, text in conversation(request.body) if role == "user"]
    return said[-1] if said else None


def tokens(request: Request) -> float | None:
    """About how many tokens its messages have: a quarter of their characters.

    >>> tokens(Request("POST", "/v1/chat/completions", (), b'{"prompt": "What is 2+2?"}'))
    3.0
    """
    messages = conversation(request.body)
    return sum(len(text) for _, text in messages) / _CHARACTERS if messages else None


def turns(request: Request) -> int | None:
    """How many messages the user wrote.

    >>> turns(Request("POST", "/v1/chat/completions", (), b'{"prompt": "hi"}'))
    1
    """
    messages = conversation(request.body)
    return sum(role == "user" for role, _ in messages) if messages else None


def tools(request: Request) -> int | None:
    """How many tools the model may call.

    >>> tools(Request("POST", "/v1/chat/completions", (), b'{"prompt": "hi", "tools": [{"type": "function"}]}'))
    1
    """
    if not conversation(request.body):
        return None
    content: Any = parsed(request.body)
    given = content.get("tools") or content.get("functions")
    return len(given) if isinstance(given, list) else 0


def language(request: Request) -> str | None:
    r"""The language of the last code block that the user wrote: "code" if it is not named, None without a block.

    >>> body = b'{"prompt": "Why does this fail?\\n```python\\nprint(1\\n```"}'
    >>> language(Request("POST", "/v1/chat/completions", (), body))
    'python'
    """
    said = "\n".join(text for role, text in conversation(request.body) if role == "user")
    opened = _FENCE.findall(said)[::2]  # every other fence closes a block
    return (opened[-1].lower() or "code") if opened else None
