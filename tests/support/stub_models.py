"""Stub models behind an OpenAI-style API: chat, streaming and responses. They note what they are asked."""

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

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
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            model = body["model"]
            names = {name.lower(): value for name, value in self.headers.items()}
            models.asked.append({"path": self.path, "model": model, "headers": names, "body": body})
            if model in models.failing:
                self.answer(500, json.dumps({"error": {"message": "broken", "type": "server_error"}}))
            elif self.path.endswith("/responses"):
                self.answer(200, *responses(model, bool(body.get("stream"))))
            else:
                text = models.says[model](body) if model in models.says else f"I am {model}."
                self.answer(200, *chat(model, text, bool(body.get("stream"))))

        def answer(self, status: int, text: str, kind: str = "application/json") -> None:
            content = text.encode()
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, format: str, *arguments: object) -> None:  # noqa: A002
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    models = StubModels(f"http://127.0.0.1:{server.server_address[1]}/v1")
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield models
    finally:
        server.shutdown()
        server.server_close()


def chat(model: str, text: str, stream: bool) -> tuple[str, str]:
    if not stream:
        choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
        whole = {
            "id": "c1",
            "object": "chat.completion",
            "created": 1,
            "model": model,
            "choices": [choice],
            "usage": USAGE,
        }
        return json.dumps(whole), "application/json"
    parts: list[dict[str, Any]] = [{"role": "assistant", "content": text[:5]}, {"content": text[5:]}, {}]
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
