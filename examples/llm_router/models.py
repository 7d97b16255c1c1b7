"""Three stub models behind an OpenAI-style API, with different quality, latency and price.

    python examples/llm_router/models.py

serves them on the ports 9101 to 9103. A question is a product such as "12 * 34"; each model gets some of them wrong,
always the same ones.
"""

import argparse
import json
import random
import re
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import NamedTuple


class Model(NamedTuple):
    """How often a model is wrong, how many seconds it takes, and the price of a call in cents."""

    wrong: float
    seconds: float
    price: float


MODELS = {
    "small": Model(0.35, 0.001, 0.1),
    "medium": Model(0.10, 0.003, 0.5),
    "large": Model(0.07, 0.008, 2.5),
}


def is_wrong(name: str, question: str) -> bool:
    """Whether a model gets a question wrong."""
    return random.Random(f"{name} {question}").random() < MODELS[name].wrong


def product(question: str) -> int:
    """The right answer.

    >>> product("12 * 34")
    408
    """
    left, _, right = question.partition(" * ")
    return int(left) * int(right)


def completion(name: str, request: dict[str, object]) -> dict[str, object]:
    """What the API answers."""
    messages = request["messages"]
    assert isinstance(messages, list)
    found = re.search(r"\d+ \* \d+", messages[-1]["content"])
    assert found is not None
    question = found[0]
    content = str(product(question) + is_wrong(name, question))
    return {
        "object": "chat.completion",
        "model": name,
        "choices": [
            {"index": 0, "message": {"role": "assistant", "content": content}, "finish_reason": "stop"}
        ],
        "usage": {"prompt_tokens": 3, "completion_tokens": 1, "total_tokens": 4},
    }


def server(name: str, port: int) -> ThreadingHTTPServer:
    """A server of one model."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True  # a response is two small writes

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            answer = json.dumps(completion(name, json.loads(body))).encode()
            time.sleep(MODELS[name].seconds)
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


def main() -> None:
    """Serve the models, and print their ports as JSON."""
    parser = argparse.ArgumentParser(description="Three stub models behind an OpenAI-style API.")
    parser.add_argument("--port", type=int, default=9101, help="of the first model; 0 for free ports")
    port = parser.parse_args().port
    servers = {name: server(name, port and port + place) for place, name in enumerate(MODELS)}
    print(json.dumps({name: each.server_address[1] for name, each in servers.items()}), flush=True)
    for each in servers.values():
        threading.Thread(target=each.serve_forever, daemon=True).start()
    threading.Event().wait()


if __name__ == "__main__":
    main()
