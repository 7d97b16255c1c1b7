"""Stub models behind an OpenAI-style API, for the examples."""

import json
import threading
from collections.abc import Callable, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

Reply = Callable[[dict[str, object]], str]


def last_message(request: dict[str, object]) -> str:
    """What was said last in a request."""
    messages = request["messages"]
    assert isinstance(messages, list)
    return str(messages[-1]["content"])


def product(question: str) -> int:
    """The right answer to a question such as "12 * 34".

    >>> product("12 * 34")
    408
    """
    left, _, right = question.partition(" * ")
    return int(left) * int(right)


def completion(model: str, content: str, asked: str) -> dict[str, object]:
    """What the API answers; the tokens are words."""
    message = {"role": "assistant", "content": content}
    words = len(asked.split()), len(content.split())
    return {
        "object": "chat.completion",
        "model": model,
        "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
        "usage": {
            "prompt_tokens": words[0],
            "completion_tokens": words[1],
            "total_tokens": sum(words),
        },
    }


def server(model: str, reply: Reply, port: int) -> ThreadingHTTPServer:
    """A server of one model."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True  # a response is two small writes

        def do_POST(self) -> None:
            request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            answer = json.dumps(completion(model, reply(request), last_message(request))).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, format: str, *arguments: object) -> None:  # noqa: A002
            pass

    found = ThreadingHTTPServer(("127.0.0.1", port), Handler)
    found.daemon_threads = True
    return found


def serve(models: Mapping[str, Reply], port: int) -> None:
    """Serve models on consecutive ports, or on free ones for port 0, and print the ports as JSON."""
    servers = {
        name: server(name, reply, port and port + place)
        for place, (name, reply) in enumerate(models.items())
    }
    print(json.dumps({name: each.server_address[1] for name, each in servers.items()}), flush=True)
    for each in servers.values():
        threading.Thread(target=each.serve_forever, daemon=True).start()
    threading.Event().wait()
