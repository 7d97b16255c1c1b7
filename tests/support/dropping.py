"""Services that misbehave: a proxy that drops connections, and one that gives the answers it was told to give."""

import json
import random
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple

from .http_service import Service


@contextmanager
def dropping_proxy(service: Service, outcome: Callable[[], str]) -> Iterator[str]:
    """A proxy: `outcome` decides for each request to "pass" it, or to drop it "before" or "after" it is served."""
    there = ("127.0.0.1", int(service.url.rsplit(":", 1)[1]))

    def handle(client: socket.socket) -> None:
        with client, socket.create_connection(there) as upstream:
            while request := read_message(client):
                what = outcome()
                if what == "before":
                    return
                upstream.sendall(request)
                answer = read_message(upstream)
                if what == "after" or not answer:
                    return
                client.sendall(answer)

    with socket.create_server(("127.0.0.1", 0)) as listener:

        def accept() -> None:
            while True:
                try:
                    client, _ = listener.accept()
                except OSError:
                    return
                threading.Thread(target=handle, args=(client,), daemon=True).start()

        thread = threading.Thread(target=accept, daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            listener.shutdown(socket.SHUT_RDWR)
    thread.join(5)


def read_message(connection: socket.socket) -> bytes:
    data = b""
    while b"\r\n\r\n" not in data:
        part = connection.recv(65_536)
        if not part:
            return b""
        data += part
    head, _, body = data.partition(b"\r\n\r\n")
    lengths = [
        int(line[15:])
        for line in head.lower().split(b"\r\n")
        if line.startswith(b"content-length:")
    ]
    while len(body) < (lengths or [0])[0]:
        part = connection.recv(65_536)
        if not part:
            return b""
        data += part
        body += part
    return data


def random_outcomes(seed: int) -> Callable[[], str]:
    rng = random.Random(seed)
    return lambda: rng.choice(["pass", "before", "after"])


class Seen(NamedTuple):
    method: str
    path: str
    headers: dict[str, str]
    body: Any


Answer = tuple[int, dict[str, str], Any]  # status, headers, JSON


@contextmanager
def answering(
    *answers: Answer | Callable[[Seen], Answer], read: Callable[[bytes], Any] = json.loads
) -> Iterator[tuple[str, list[Seen]]]:
    """A service that gives these answers in turn, then the last one; and what it was sent."""
    seen: list[Seen] = []

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def respond(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            headers = {name.lower(): value for name, value in self.headers.items()}
            asked = Seen(self.command, self.path, headers, read(body) if body else None)
            seen.append(asked)
            answer = answers[min(len(seen), len(answers)) - 1]
            status, further, content = answer(asked) if callable(answer) else answer
            text = content if isinstance(content, bytes) else json.dumps(content).encode()
            self.send_response(status)
            for name, value in {**further, "Content-Length": str(len(text))}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(text)

        do_GET = do_PUT = do_POST = do_PATCH = respond

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}", seen
    finally:
        server.shutdown()
        server.server_close()
        thread.join(5)
