"""Random requests and answers, through a mirror and directly: the same arrives, and the same comes back."""

import base64
import random
import socket
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import h11
import pytest

from support.mirrors.running import Start, UpstreamProcess, connected, exchanged, upstreams

Headers = list[tuple[str, str]]
LINES = '[mirror]\nshare = 1.0\nrepeat = ["* /*"]\nheaders = { X-Mirrored = "1" }\n'
HOP_BY_HOP = {
    "connection", "keep-alive", "te", "trailer", "transfer-encoding", "upgrade", "proxy-connection", "expect",
}  # fmt: skip
WITHHELD = {"authorization", "x-api-key", "x-mirrored"}
FORWARDED = {"x-forwarded-for", "x-forwarded-host", "x-forwarded-proto"}
NAMES = (
    "Accept", "X-Some", "X-Some", "Cookie", "Authorization", "X-Api-Key", "X-Mirrored", "X-Forwarded-For",
    "X-Forwarded-For", "X-Forwarded-Proto", "TE", "Keep-Alive", "If-None-Match", "Range", "X-Http-Method", "x_under",
)  # fmt: skip
VALUES = (
    "1", "", "a, b", 'W/"x"', "bytes=0-9", "caf\xe9", "x" * 300, "10.0.0.7", "two  spaces", "tab\there",
)  # fmt: skip


@dataclass
class Case:
    """A request with the answer that it asks for."""

    method: str
    target: str
    headers: Headers
    body: bytes
    chunks: list[bytes] | None
    trailers: Headers = field(default_factory=list)

    def wire(self) -> bytes:
        lines = [f"{name}: {value}" for name, value in self.headers]
        head = "\r\n".join([f"{self.method} {self.target} HTTP/1.1", *lines, "", ""]).encode(
            "latin-1"
        )
        if self.chunks is None:
            return head + self.body
        parts = b"".join(b"%x;ext=1\r\n%s\r\n" % (len(each), each) for each in self.chunks if each)
        last = "".join(f"{name}: {value}\r\n" for name, value in self.trailers).encode("latin-1")
        return head + parts + b"0\r\n" + last + b"\r\n"


def answer(chance: random.Random) -> bytes:
    """An answer that HTTP allows, now and then with a body that its status forbids to announce."""
    status = chance.choice((200, 200, 200, 201, 204, 206, 301, 304, 404, 418, 500, 503))
    body = b"" if status in (204, 304) else chance.randbytes(chance.choice((0, 1, 10, 1500)))
    lines = [
        f"HTTP/1.1 {status} Some Reason",
        *(f"Set-Cookie: c{n}=1" for n in range(chance.randrange(3))),
    ]
    lines.append(f"X-Answer: {chance.choice(VALUES)}")
    framing = chance.choice(("length", "chunks", "close")) if status not in (204, 304) else "none"
    if framing == "length" or (status == 304 and chance.random() < 0.5):
        lines.append(f"Content-Length: {len(body) or (77 if status == 304 else 0)}")
    elif framing == "chunks":
        lines.append("Transfer-Encoding: chunked")
        half = len(body) // 2
        parts = [b"%x\r\n%s\r\n" % (len(part), part) for part in (body[:half], body[half:]) if part]
        body = b"".join(parts) + b"0\r\nX-Trailer: 1\r\n\r\n"
    elif framing == "close":
        lines.append("Connection: close")
    first = b"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n" if chance.random() < 0.2 else b""
    return first + "\r\n".join([*lines, "", ""]).encode("latin-1") + body


def case(chance: random.Random, number: int) -> Case:
    method = chance.choice(
        ("GET", "GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH", "QUERY")
    )
    told = answer(chance)
    if method == "HEAD":  # nothing may follow the head of its answer
        heads = 2 if told.startswith(b"HTTP/1.1 103") else 1
        told = b"\r\n\r\n".join([*told.split(b"\r\n\r\n")[:heads], b""])
    action = f"/raw:{base64.urlsafe_b64encode(told).decode()}"
    target = f"{action}?n={number}&q={chance.choice(('', 'a%20b', '%2F', 'x=y', '%00', '?'))}"
    headers = [("Host", "shop.example")]
    headers += [(name, chance.choice(VALUES)) for name in chance.sample(NAMES, chance.randrange(6))]
    if chance.random() < 0.2:
        named = chance.choice(("keep-alive", "X-Some, cookie", "content-length", "host"))
        headers.append(("Connection", named))
    body, chunks, trailers = b"", None, list[tuple[str, str]]()
    if method not in ("GET", "HEAD", "OPTIONS"):
        body = chance.randbytes(chance.choice((0, 1, 20, 3000, 70_000 if number % 20 == 0 else 5)))
        if chance.random() < 0.5:
            cuts = sorted(chance.randrange(len(body) + 1) for _ in range(3))
            chunks = [body[a:b] for a, b in zip([0, *cuts], [*cuts, len(body)], strict=True)]
            trailers = [("X-Admin", "1"), ("Cookie", "evil")] if chance.random() < 0.5 else []
            headers.append(("Transfer-Encoding", "chunked"))
        else:
            headers.append(("Content-Length", str(len(body))))
    chance.shuffle(headers)
    return Case(method, target, headers, body, chunks, trailers)


@dataclass
class Line:
    """A connection that is kept, as a client keeps it."""

    url: str
    open: socket.socket | None = None

    def ask(self, asked: Case, chance: random.Random) -> tuple[int, Headers, bytes]:
        """Send a request in pieces, and read the whole answer."""
        self.open = self.open or connected(self.url)
        http, found, body = h11.Connection(h11.CLIENT), None, b""
        http.send(h11.Request(method=asked.method, target="/", headers=[("Host", "a")]))
        http.send(h11.EndOfMessage())
        wire = asked.wire()
        cuts = sorted(chance.randrange(len(wire)) for _ in range(chance.randrange(5)))
        for start, end in zip([0, *cuts], [*cuts, len(wire)], strict=True):
            self.open.sendall(wire[start:end])
        while not isinstance(event := http.next_event(), h11.EndOfMessage):
            if event is h11.NEED_DATA:
                http.receive_data(self.open.recv(65536))
            elif isinstance(event, h11.Response):
                found = event
            elif isinstance(event, h11.Data):
                body += event.data
        assert found is not None
        assert http.trailing_data[0] == b""
        if http.their_state is not h11.DONE:
            self.close()
        return (
            found.status_code,
            [(n.decode(), v.decode("latin-1")) for n, v in found.headers],
            body,
        )

    def close(self) -> None:
        if self.open is not None:
            self.open.close()
            self.open = None


def shown(headers: Headers) -> Headers:
    return [each for each in headers if each[0] not in HOP_BY_HOP]


def expected(seen: dict[str, Any]) -> dict[str, Any]:
    """What an arm of a mirror gets, by what an upstream without one gets."""
    headers = dict[str, str]()
    kept = []
    for name, value in seen["headers"]:
        if name in FORWARDED:
            headers[name] = f"{headers[name]}, {value}" if name in headers else value
        elif name not in HOP_BY_HOP | WITHHELD | {"host"}:
            kept.append((name, value))
    before = f"{headers['x-forwarded-for']}, " if "x-forwarded-for" in headers else ""
    forwarded = {
        "x-forwarded-for": f"{before}127.0.0.1",
        "x-forwarded-host": headers.get("x-forwarded-host", "shop.example"),
        "x-forwarded-proto": headers.get("x-forwarded-proto", "http"),
    }
    return {**seen, "headers": kept + list(forwarded.items())}


def as_arrived(seen: dict[str, Any]) -> dict[str, Any]:
    dropped = {"host", "transfer-encoding"}
    return {**seen, "headers": [each for each in seen["headers"] if each[0] not in dropped]}


@pytest.fixture(scope="module")
def direct() -> Iterator[UpstreamProcess]:
    """An upstream that does as the arm that serves."""
    with upstreams("stable") as found:
        yield found["stable"]


def test_requests_and_answers(start: Start, direct: UpstreamProcess) -> None:
    chance, passed = random.Random(31), 'pass_credentials = ["Cookie"]'
    with start(LINES, stable=passed, next=passed) as running:
        lines = (Line(direct.url), Line(running.url))
        for number in range(200):
            asked = case(chance, number)
            without, through = (line.ask(asked, chance) for line in lines)
            assert through[0] == without[0], asked
            assert through[2] == without[2], asked
            framing = {"content-length"} - dict(without[1]).keys()
            kept = [each for each in shown(through[1]) if each[0] not in framing]
            assert kept == shown(without[1]), asked
            if number % 25 == 24:
                for line in lines:
                    line.close()
        for line in lines:
            line.close()
        status = running.settled()
    seen, served = direct.seen(), [as_arrived(each) for each in start.arms["stable"].seen()]
    assert served == [expected(each) for each in seen]
    assert status["failed"] == {}
    copies = {each["target"]: each for each in start.arms["next"].seen()}
    assert len(copies) > 100
    for each in served:
        if (copy := copies.get(each["target"])) is not None:
            changed = ("host", "content-length", "x-mirrored")
            headers = [pair for pair in copy["headers"] if pair[0] not in changed]
            assert headers == [pair for pair in each["headers"] if pair[0] != "content-length"]
            assert ("x-mirrored", "1") in copy["headers"]
            assert (copy["method"], copy["body"]) == (each["method"], each["body"])


BODY = b"5\r\nhello\r\n0\r\n\r\n"
BROKEN = [
    b"Content-Length: 5\r\nContent-Length: 6\r\n\r\nhello",
    b"Content-Length: 5\r\nContent-Length: 5\r\n\r\nhello",
    b"Content-Length: 5, 5\r\n\r\nhello",
    b"Content-Length: +5\r\n\r\nhello",
    b"Content-Length: -5\r\n\r\nhello",
    b"Content-Length: 0x5\r\n\r\nhello",
    b"Content-Length : 5\r\n\r\nhello",
    b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n" + BODY,
    b"Transfer-Encoding: chunked\r\nContent-Length: 100\r\n\r\n" + BODY,
    b"Transfer-Encoding: xchunked\r\n\r\n" + BODY,
    b"Transfer-Encoding: identity\r\nContent-Length: 5\r\n\r\nhello",
    b"Transfer-Encoding: chunked, chunked\r\n\r\n" + BODY,
    b"Transfer-Encoding: gzip, chunked\r\n\r\n" + BODY,
    b"Transfer-Encoding:\tchunked\r\n\r\n" + BODY,
    b"Transfer-Encoding : chunked\r\n\r\n" + BODY,
    b"Transfer-Encoding: chunked\r\n\r\n0x5\r\nhello\r\n0\r\n\r\n",
    b"Transfer-Encoding: chunked\r\n\r\n-5\r\nhello\r\n0\r\n\r\n",
    b"Transfer-Encoding: chunked\r\n\r\n5\r\nhelloXX0\r\n\r\n",
    b"Transfer-Encoding: chunked\r\n\r\n5 \r\nhello\r\n0\r\n\r\n",
    b"Transfer-Encoding: chunked\r\n\r\nfffffffffffffffffffff\r\n\r\n",
    b"Transfer-Encoding: chunked\r\n\r\n5\nhello\n0\n\n",
    b"X-Folded: a\r\n b\r\nContent-Length: 5\r\n\r\nhello",
    b"X-Nul: a\x00b\r\nContent-Length: 5\r\n\r\nhello",
    b"X-Cr: a\rb\r\nContent-Length: 5\r\n\r\nhello",
    b"X Space: 1\r\nContent-Length: 5\r\n\r\nhello",
    b": 1\r\nContent-Length: 5\r\n\r\nhello",
    b"Host: b\r\nContent-Length: 5\r\n\r\nhello",
    b"Content-Length: 5\n\nhello",
    b"Upgrade: h2c\r\nConnection: Upgrade, HTTP2-Settings\r\nHTTP2-Settings: AAA\r\nContent-Length: 5\r\n\r\nhello",
    b"\r\n",
]


def test_requests_that_are_not_well_formed(start: Start, direct: UpstreamProcess) -> None:
    """No part of one is another request for an arm: it is refused, or it is what it is for the arm itself."""
    refused = set[int]()
    with start("[mirror]\nshare = 0.0\n") as running:
        for number, broken in enumerate(BROKEN):
            after = f"GET /after?{number} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n".encode()
            wire = f"POST /echo?{number} HTTP/1.1\r\nHost: a\r\n".encode() + broken + after
            expected, answer = (exchanged(url, wire) for url in (direct.url, running.url))
            if answer[9:12] == b"400":
                refused.add(number)
            else:
                assert answer[9:12] == expected[9:12] != b"", broken
        running.settled()

    def arrived(upstream: UpstreamProcess) -> list[tuple[str, ...]]:
        found = [(each["method"], each["target"], each["body"]) for each in upstream.seen()]
        return [each for each in found if each[1].partition("?")[2].isdigit()]

    without, through = arrived(direct), arrived(start.arms["stable"])
    assert through == [each for each in without if int(each[1].partition("?")[2]) not in refused]
    passed = [broken for number, broken in enumerate(BROKEN) if number not in refused]
    assert [broken.partition(b":")[0] for broken in passed] == [
        b"Transfer-Encoding",
        b"Upgrade",
        b"\r\n",
    ]
