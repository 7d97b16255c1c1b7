"""Clients that mean no good, on real sockets and byte by byte: they are cut off, and nobody else waits for them."""

import asyncio
import json
import shutil
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from types import FrameType

import pytest

from decoupled_serve.service.http.admission import Limits
from decoupled_serve.service.service import DecisionService
from support.http_service import Service, served, until_closed
from support.stores import quick_service
from support.wire import Wire, Wired, on_loop, request, wired

HEALTH = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"
H2C = "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABk"


def dripped(line: socket.socket, drop: bytes) -> bytes:
    """Send a byte now and then until the service closes the connection, and return what it said."""
    line.settimeout(0.05)
    heard = b""
    for _ in range(1_200):
        with suppress(BrokenPipeError, ConnectionResetError):
            line.sendall(drop)
        try:
            part = line.recv(65_536)
        except TimeoutError:
            continue
        except ConnectionResetError:
            return heard
        if not part:
            return heard
        heard += part
    raise AssertionError("it was never closed")


SERVED = {"limits": Limits(headers_seconds=0.3, body_seconds=0.3, rate=0.0)}


def prepare(service: Service) -> None:
    service.create("mine")


# Bodies behind `Upgrade`


@pytest.mark.parametrize("chunked", [False, True])
def test_a_body_behind_an_upgrade_is_read_however_it_arrives(
    service: Service, chunked: bool
) -> None:
    for at in (0, 1, 9, 500):
        path = f"/v1/decisions/{service.decide('mine')['id']}/feedback"
        body = b'{"loss": 0.25}'
        asked = request("PUT", path, body, H2C)
        if chunked:
            asked = request("PUT", path, b"", H2C, "Transfer-Encoding: chunked")
            asked = asked.replace(
                b"Content-Length: 0\r\n", b""
            ) + b"4\r\n%b\r\na\r\n%b\r\n0\r\nX: y\r\n\r\n" % (body[:4], body[4:])
        with service.line() as line:
            split = len(asked) - at if at < 100 else 20
            for part in (
                asked[:split],
                asked[split:] + HEALTH.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n"),
            ):
                line.sendall(part)
            heard = until_closed(line)
        assert [each[:3] for each in heard.split(b"HTTP/1.1 ")[1:]] == [b"200", b"200"], heard
        assert service.http.get(path.removesuffix("/feedback")).json()["loss"] == 0.25


def test_a_body_behind_an_upgrade_is_never_the_next_request(service: Service) -> None:
    hidden = b"DELETE /v1/experiments/mine HTTP/1.1\r\nHost: localhost\r\n\r\n"
    with service.line() as line:
        line.sendall(
            request("POST", "/v1/experiments/mine/decisions", hidden, H2C, "Connection: close")
        )
        assert until_closed(line).count(b"HTTP/1.1 ") == 1
    assert service.http.get("/v1/experiments/mine").status_code == 200


@pytest.mark.skipif(shutil.which("curl") is None, reason="needs curl")
def test_curl_that_wishes_for_http_2_is_served(service: Service) -> None:
    path = f"{service.url}/v1/decisions/{service.decide('mine')['id']}/feedback"
    for options in ([], ["-H", "Transfer-Encoding: chunked"], ["-H", "Expect: 100-continue"]):
        command = [
            "curl",
            "-sS",
            "--http2",
            "-X",
            "PUT",
            path,
            "-H",
            "Content-Type: application/json",
        ]
        done = subprocess.run(
            [*command, *options, "-d", '{"loss": 0.5}'], capture_output=True, check=True
        )
        assert json.loads(done.stdout)["loss"] == 0.5, done


@pytest.fixture
def quiet(file: str) -> DecisionService:
    return quick_service(file)


def calls_of(action: Callable[[], None]) -> int:
    """How many functions are called while something happens."""
    calls = 0

    def count(frame: FrameType, event: str, argument: object) -> None:
        nonlocal calls
        calls += event == "call"

    sys.setprofile(count)
    try:
        action()
    finally:
        sys.setprofile(None)
    return calls


BURSTS = {
    "requests": HEALTH * 5_000,
    "small ones": b"GET /healthz HTTP/1.0\r\n\r\n" + b"GET / HTTP/1.1\r\nHost:\r\n\r\n" * 9_000,
    "with bodies": request("POST", "/v1/feedback", b"{}") * 2_000,
    "chunks of a byte": request("POST", "/v1/feedback", b"", "Transfer-Encoding: chunked").replace(
        b"Content-Length: 0\r\n", b""
    )
    + b"1\r\nx\r\n" * 40_000,
    "headers": b"GET / HTTP/1.1\r\n" + b"a:b\r\n" * 40_000,
    "empty lines": b"\r\n" * 100_000,
}


@pytest.mark.parametrize("name", BURSTS)
@on_loop
async def test_no_client_takes_long_turns(quiet: DecisionService, name: str) -> None:
    """One read of the event loop, which is at most 256 KiB, is parsed in many turns, and others have theirs between."""
    async with wired(quiet) as http:
        wire = http.connect()
        assert calls_of(lambda: wire.send(BURSTS[name][:262_144])) < 20_000
        other = http.connect()
        turns = 0
        other.send(HEALTH)
        while not other.sent:
            turns += 1
            await asyncio.sleep(0)
        assert turns < 20


@pytest.fixture
def keyed(tmp_path: Path) -> Iterator[Service]:
    limits = Limits(headers_seconds=0.3, body_seconds=0.3, rate=0.0, bad_keys=1e9)
    with served(tmp_path, limits=limits, open_to_all=False) as running:
        yield running


def test_who_is_refused_before_the_body_cannot_stay(keyed: Service) -> None:
    service = keyed
    key = service.key("read")["Authorization"]
    path = "/v1/experiments/mine/decisions"
    early = {
        "401": request("POST", path, b"", "Authorization: Bearer dk_wrong", "Expect: 100-continue"),
        "403": request("POST", path, b"", "Origin: http://other.example"),
        "413": request("POST", path, b"", f"Authorization: {key}").replace(b": 0", b": 99999999"),
        "404": request("PUT", "/nothing", b"", f"Authorization: {key}"),
    }
    with ExitStack() as opened:
        lines = []
        for status, asked in early.items():
            for _ in range(40):
                lines.append((status, opened.enter_context(service.line())))
                lines[-1][1].sendall(asked.replace(b"Content-Length: 0", b"Content-Length: 1000"))
        assert service.http.get("/healthz").status_code == 200
        for status, line in lines:
            if status != "404":  # which is known once the body is here, or late
                with suppress(BrokenPipeError, ConnectionResetError):
                    line.sendall(b"x")
        for status, line in lines:
            heard = until_closed(line)
            expected = "408" if status == "404" else status
            assert heard.startswith(f"HTTP/1.1 {expected} ".encode()), heard
            assert b"\r\nconnection: close\r\n" in heard
            assert b"100 Continue" not in heard or status == "404"
        with service.line() as line:
            line.sendall(early["401"].replace(b"Content-Length: 0", b"Content-Length: 1000"))
            assert dripped(line, b"x").startswith(b"HTTP/1.1 401")


def test_a_client_that_sends_all_first_still_reads_why_it_is_refused(service: Service) -> None:
    for _ in range(5):
        with service.line() as line:
            line.sendall(request("POST", "/v1/feedback", b"x" * 5_000_000))
            assert until_closed(line).startswith(b"HTTP/1.1 413 ")


@pytest.mark.parametrize(
    "begun",
    [
        b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX: ",
        b"GET /",
        b"",
        HEALTH + b"GET /",
        request("POST", "/v1/feedback", b"").replace(b": 0", b": 1000"),
        request("POST", "/v1/experiments/mine/replay", b"")
        .replace(b": 0", b": 1000")
        .replace(b"json", b"x-ndjson"),
        b"POST /v1/feedback HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n1;x=",
        b"POST /v1/feedback HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nX: ",
    ],
)
def test_slow_requests_have_a_limit_however_they_go_on(service: Service, begun: bytes) -> None:
    with service.line() as line:
        line.sendall(begun)
        heard = dripped(line, b"1" if begun else b"\r\n")
    assert heard.rpartition(b"HTTP/1.1 ")[2].startswith(b"408 "), heard


@on_loop
async def test_who_does_not_read_is_cut_off_and_who_reads_slowly_is_not(
    quiet: DecisionService,
) -> None:
    async def stuck(http: Wired, taken: int) -> bool:
        """Whether a client that takes so much at a time is cut off before it has everything."""
        wire = http.connect()
        wire.buffered = 500_000
        wire.protocol.pause_writing()
        while not wire.closed and wire.buffered > 0:
            wire.buffered -= taken
            await asyncio.sleep(0.01)
        cut = wire.closed
        if not cut:
            wire.protocol.resume_writing()
            wire.close()
        return cut

    async with wired(quiet, limits=Limits(body_seconds=0.1)) as http:
        assert await stuck(http, 0)
        assert await stuck(http, 1)
        assert not await stuck(http, 5_000)


@on_loop
async def test_who_does_not_read_is_cut_off_between_two_answers(quiet: DecisionService) -> None:
    """The end of an answer, or the next request of a pipeline, does not stop the clock."""
    async with wired(quiet, limits=Limits(body_seconds=0.1)) as http:
        for more in (0, 1, 5):
            wire = http.connect()
            write = wire.write

            def stuck(
                data: bytes, wire: Wire = wire, write: Callable[[bytes], None] = write
            ) -> None:
                write(data)
                if not wire.buffered:
                    wire.buffered = 500_000
                    wire.protocol.pause_writing()

            wire.write = stuck  # type: ignore[method-assign]
            wire.send(HEALTH * (1 + more))
            async with asyncio.timeout(20):
                while not wire.closed:
                    await asyncio.sleep(0.01)


@on_loop
async def test_a_body_that_is_arriving_is_read_before_the_end(quiet: DecisionService) -> None:
    async with wired(quiet) as http:
        wire = http.connect()
        whole = request("PUT", "/v1/experiments/new", json.dumps({"arms": ["a", "b"]}).encode())
        wire.send(whole[:-4])
        await asyncio.sleep(0)
        wire.protocol.shutdown()
        wire.send(whole[-4:])
        answer = await wire.answer()
        assert answer.status == 201
        assert b"connection: close" in answer.head.lower()


def test_who_waits_for_longest_lingers_or_owes_a_body_makes_room(tmp_path: Path) -> None:
    limits = Limits(connections=10, body_seconds=60.0)
    with served(tmp_path, open_to_all=False, limits=limits) as service, ExitStack() as opened:
        owing = b"POST /healthz HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n"
        for _ in range(40):
            opened.enter_context(service.line(owing))
        line = opened.enter_context(service.line())
        line.sendall(HEALTH)
        assert line.recv(65_536).startswith(b"HTTP/1.1 200 ")
    with served(tmp_path, limits=Limits(connections=10)) as service, ExitStack() as opened:
        lines = [opened.enter_context(service.line()) for _ in range(30)]
        for line in lines[-5:]:
            line.sendall(HEALTH)
            assert line.recv(65_536).startswith(b"HTTP/1.1 200 ")
        for line in lines[:20]:
            assert until_closed(line) == b""


BODY = b"2\r\n{}\r\n0\r\n\r\n"


@pytest.mark.parametrize(
    "head",
    [
        b"Content-Length: 2\r\nTransfer-Encoding: chunked",
        b"Transfer-Encoding: chunked\r\nContent-Length: 2",
        b"Transfer-Encoding: gzip, chunked",
        b"Transfer-Encoding: chunked\r\nTransfer-Encoding: gzip",
        b"Transfer-Encoding: gzip\r\nTransfer-Encoding: chunked",
        b"Transfer-Encoding: xchunked",
        b"Transfer-Encoding: identity",
        b"Content-Length: 2, 2",
        b"Content-Length : 12",
        b"X: a\r\n b\r\nContent-Length: 12",
        b"Content-Length: 12\nX: a",
        b"Host: other\r\nContent-Length: 12",
    ],
)
@pytest.mark.parametrize("wish", [b"", b"Connection: Upgrade\r\nUpgrade: h2c\r\n"])
def test_a_length_that_reads_in_two_ways_is_refused(
    service: Service, head: bytes, wish: bytes
) -> None:
    with service.line() as line:
        first = (
            b"POST /v1/feedback HTTP/1.1\r\nHost: localhost\r\n" + wish + head + b"\r\n\r\n" + BODY
        )
        line.sendall(first + HEALTH)
        heard = until_closed(line)
    assert heard.startswith(b"HTTP/1.1 400 ")
    assert b"\r\nconnection: close\r\n" in heard
    assert b"HTTP/1.1 200" not in heard, "and nothing after it is read"


def test_other_forms_of_a_target(service: Service) -> None:
    def asked(start: bytes, version: bytes = b"1.1") -> tuple[bytes, bytes]:
        with service.line() as line:
            line.sendall(
                start + b" HTTP/" + version + b"\r\nHost: localhost\r\nConnection: close\r\n\r\n"
            )
            head, _, body = until_closed(line).partition(b"\r\n\r\n")
        return head[9:12], body

    assert asked(b"GET http://localhost/healthz")[0] == b"200"
    assert asked(b"GET HTTP://other:80/healthz?")[0] == b"200"
    assert asked(b"GET /healthz", b"1.0")[0] == b"200"
    assert asked(b"GET http://localhost?x=1")[0] == b"200"  # the start page
    assert asked(b"OPTIONS *")[0] in (b"404", b"405")
    assert asked(b"CONNECT localhost:80")[0] == b"400"
    assert asked(b"HEAD /healthz") == (b"405", b"") or asked(b"HEAD /healthz") == (b"200", b"")
