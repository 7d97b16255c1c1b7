"""Stub models behind an OpenAI-style API: chat, streaming and responses. They note what they are asked."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from .dropping import Answer, Seen, answering

USAGE = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}


class StubModels:
    """Every model answers with its name, or what `says` has for it. Those in `failing` answer 500."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.asked: list[dict[str, Any]] = []  # path, model, headers and body
        self.failing: set[str] = set()
        self.says: dict[str, Callable[[dict[str, Any]], str]] = {}

    def of(self, prompt: str) -> list[str]:
        """The models that were asked with a prompt that begins like this, in order."""
        return [each["model"] for each in self.asked if prompt_of(each["body"]).startswith(prompt)]


def prompt_of(body: dict[str, Any]) -> str:
    return str(body["messages"][-1]["content"] if "messages" in body else body["input"])


@contextmanager
def stub_models() -> Iterator[StubModels]:
    def answer(asked: Seen) -> Answer:
        body = asked.body
        model = body["model"]
        models.asked.append(
            {"path": asked.path, "model": model, "headers": asked.headers, "body": body}
        )
        if model in models.failing:
            return 500, {}, {"error": {"message": "broken", "type": "server_error"}}
        if asked.path.endswith("/responses"):
            text, kind = responses(model, bool(body.get("stream")))
        else:
            said = models.says[model](body) if model in models.says else f"I am {model}."
            text, kind = chat(model, said, bool(body.get("stream")))
        return 200, {"Content-Type": kind}, text.encode()

    with answering(answer) as (url, _):
        models = StubModels(f"{url}/v1")
        yield models


def chat(model: str, text: str, stream: bool) -> tuple[str, str]:
    if not stream:
        choice = {
            "index": 0,
            "message": {"role": "assistant", "content": text},
            "finish_reason": "stop",
        }
        whole = {
            "id": "c1",
            "object": "chat.completion",
            "created": 1,
            "model": model,
            "choices": [choice],
            "usage": USAGE,
        }
        return json.dumps(whole), "application/json"
    parts: list[dict[str, Any]] = [
        {"role": "assistant", "content": text[:5]},
        {"content": text[5:]},
        {},
    ]
    chunks = []
    for part in parts:
        choice = {"index": 0, "delta": part, "finish_reason": None if part else "stop"}
        chunk = {
            "id": "c1",
            "object": "chat.completion.chunk",
            "created": 1,
            "model": model,
            "choices": [choice],
        }
        chunks.append(json.dumps(chunk if part else {**chunk, "usage": USAGE}))
    return "".join(f"data: {each}\n\n" for each in (*chunks, "[DONE]")), "text/event-stream"


def responses(model: str, stream: bool) -> tuple[str, str]:
    content = [{"type": "output_text", "text": f"I am {model}.", "annotations": []}]
    message = {
        "type": "message",
        "id": "m1",
        "status": "completed",
        "role": "assistant",
        "content": content,
    }
    whole = {
        "id": "resp_1", "object": "response", "created_at": 1, "status": "completed", "model": model, "output": [message],
        "parallel_tool_calls": True, "tool_choice": "auto", "tools": [], "error": None, "incomplete_details": None,
        "instructions": None, "metadata": {}, "temperature": 1.0, "top_p": 1.0,
        "usage": {"input_tokens": 10, "output_tokens": 5, "total_tokens": 15},
    }  # fmt: skip
    if not stream:
        return json.dumps(whole), "application/json"
    events = [
        {
            "type": "response.created",
            "sequence_number": 0,
            "response": {**whole, "status": "in_progress", "output": []},
        },
        {"type": "response.completed", "sequence_number": 1, "response": whole},
    ]
    return "".join(
        f"event: {each['type']}\ndata: {json.dumps(each)}\n\n" for each in events
    ), "text/event-stream"
