"""Two releases of a service. The next one is faster, until a bad deploy breaks it for a while.

    python examples/bad_deploy/releases.py

serves them on the ports 9201 and 9202. A request says how far the day has come: `/work?n=120&of=1000`. From 40 % to
75 % of the day, most answers of the next release are errors.
"""

import argparse
import json
import random
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

BAD = (0.40, 0.75)  # the part of the day in which the next release is broken
ERRORS = {"stable": 0.01, "next": 0.01}
ERRORS_WHEN_BAD = 0.7
SECONDS = {"stable": 0.05, "next": 0.01}


def fails(name: str, number: int, of: int) -> bool:
    """Whether a release answers a request with an error; always the same for the same request."""
    bad = name == "next" and BAD[0] <= number / of < BAD[1]
    return random.Random(f"{name} {number}").random() < (ERRORS_WHEN_BAD if bad else ERRORS[name])


def server(name: str, port: int) -> ThreadingHTTPServer:
    """A server of one release."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True  # a response is two small writes

        def do_GET(self) -> None:
            query = parse_qs(urlsplit(self.path).query)
            failed = fails(name, int(query["n"][0]), int(query["of"][0]))
            time.sleep(SECONDS[name])
            self.send_response(500 if failed else 200)
            self.send_header("X-Arm", name)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, format: str, *arguments: object) -> None:  # noqa: A002
            pass

    found = ThreadingHTTPServer(("127.0.0.1", port), Handler)
    found.daemon_threads = True
    return found


def main() -> None:
    """Serve both releases, and print their ports as JSON."""
    parser = argparse.ArgumentParser(description="Two releases of a service.")
    parser.add_argument(
        "--port", type=int, default=9201, help="of the first release; 0 for free ports"
    )
    port = parser.parse_args().port
    servers = {name: server(name, port and port + place) for place, name in enumerate(SECONDS)}
    print(json.dumps({name: each.server_address[1] for name, each in servers.items()}), flush=True)
    for each in servers.values():
        threading.Thread(target=each.serve_forever, daemon=True).start()
    threading.Event().wait()


if __name__ == "__main__":
    main()
