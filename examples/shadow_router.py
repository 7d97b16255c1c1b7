"""A router in front of three model endpoints: the best one serves, and shadow traffic explores the others.

One model answers every request (`exploit`). A copy of the request goes to a model that the service chooses
(`explore`). No user sees that answer. The router judges it, and its loss is the feedback. So users never pay
for exploration, and the router notices a better model before any user is served by it.

    python examples/shadow_router.py

starts a decision service with a temporary store and three small model servers, and sends requests through the
router. With --url it uses a running service.
"""

import argparse
import random
import re
import subprocess
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import httpx

import decoupled as dc
from decoupled import Client

ERRORS = {"small": 0.45, "medium": 0.25, "large": 0.05}  # how often each model is wrong


@contextmanager
def model_server(name: str) -> Iterator[str]:
    """A model behind HTTP: for n it answers n * n, or sometimes a wrong number."""

    class Model(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True  # a response is two small writes

        def do_GET(self) -> None:
            n = int(self.path.removeprefix("/"))
            wrong = random.Random(f"{name} {n}").random() < ERRORS[name]
            answer = str(n * n + wrong).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, format: str, *arguments: object) -> None:  # noqa: A002
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Model) as server:
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}"
        finally:
            server.shutdown()


@dataclass
class Router:
    """Routes requests according to the decisions of a service."""

    service: Client
    models: dict[str, str]  # the address of each model, by name
    experiment: str = "models"
    served: list[str] = field(default_factory=list)
    explored: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        policy = dc.Ladder()
        self.service.create(
            self.experiment, policy=policy, arms=list(self.models), deadline_seconds=3600
        )
        self._http = httpx.Client()

    def answer(self, n: int) -> int:
        """Answer one request, and explore with a copy of it."""
        decision = self.service.decide(self.experiment)
        answer = self._ask(str(decision.exploit), n)
        self.served.append(str(decision.exploit))
        # A busy router does the rest in another thread, after it has sent the answer.
        shadow = self._ask(str(decision.explore), n)
        self.explored.append(str(decision.explore))
        # How the answer is judged is up to you: a label, a rule, a stronger model.
        loss = float(shadow != n * n)
        self.service.feedback(decision, loss=loss, arm=decision.explore)
        return answer

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def _ask(self, model: str, n: int) -> int:
        return int(self._http.get(f"{self.models[model]}/{n}").text)


@contextmanager
def temporary_service() -> Iterator[str]:
    """`decoupled serve` with a temporary store."""
    with tempfile.TemporaryDirectory() as folder:
        options = ["--store", f"{folder}/store.db", "--port", "0"]
        command = [sys.executable, "-m", "decoupled", "serve", *options]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        try:
            assert process.stdout is not None
            found = re.search(r"http://\S+", process.stdout.readline())
            if found is None:
                raise SystemExit("the service did not start")
            yield found[0]
        finally:
            process.terminate()
            process.wait(30)


def route(url: str, requests: int) -> Router:
    """Send requests through a router, and print how they move to the best model."""
    with (
        Client(url) as service,
        model_server("small") as small,
        model_server("medium") as medium,
        model_server("large") as large,
    ):
        router = Router(service, {"small": small, "medium": medium, "large": large})
        wrong = sum(router.answer(n) != n * n for n in range(requests))
        router.close()
        quarter = max(1, requests // 4)
        for start in range(0, requests, quarter):
            shares = Counter(router.served[start : start + quarter])
            line = ", ".join(f"{name} {shares[name] / quarter:4.0%}" for name in ERRORS)
            print(f"requests {start + 1:4} to {start + quarter:4}: served by {line}")
        state = service.state(router.experiment)
        print(f"wrong answers served: {wrong} of {requests}; feedback applied: {state['applied']}")
        return router


def main() -> None:
    """Run the example."""
    parser = argparse.ArgumentParser(
        description="A shadow-traffic router for three model endpoints."
    )
    parser.add_argument("--url", help="the decision service to use; default: start a temporary one")
    parser.add_argument("--requests", type=int, default=400)
    options = parser.parse_args()
    if options.url:
        route(options.url, options.requests)
    else:
        with temporary_service() as url:
            route(url, options.requests)


if __name__ == "__main__":
    main()
