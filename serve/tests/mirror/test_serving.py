"""What a client sees of a mirror: the arm's answer, byte for byte. Clients that are slow or too many cost little."""

import base64
import gc
import sys
import threading
import time
import tracemalloc
from contextlib import ExitStack, suppress
from pathlib import Path
from types import FrameType

import httpx
import pytest

from decoupled.client.errors import StoreError
from decoupled_serve.service.http.observe.log_format import TextFormatter
from support.http_service import until_closed
from support.mirrors.running import ALL, Fixed, Start, UpstreamProcess, connected, echoed, upstreams
from support.waiting import wait_for


def test_an_answer_passes_byte_for_byte(start: Start) -> None:
    content = bytes(range(256)) * 500
    with start(ALL) as running:
        answer = running.http.post("/echo?a=1&b=%2F", content=content, headers={"X-Some": "thing"})
        got = echoed(answer)
        large = running.http.get("/bytes:3000000")
        hop = running.http.get("/hop")
        running.settled()
    assert got["arm"] == "stable"
    assert (got["method"], got["target"]) == ("POST", "/echo?a=1&b=%2F")
    assert base64.b64decode(got["body"]) == content
    assert ("x-some", "thing") in got["headers"]
    assert large.content == (bytes(range(256)) * (3_000_000 // 256 + 1))[:3_000_000]
    assert not {"x-private", "keep-alive", "server", "date", "x-decoupled-arm"} & hop.headers.keys()
    assert hop.headers.get_list("set-cookie") == ["a=1", "b=2"]


def test_events_arrive_one_by_one(start: Start) -> None:
    with (
        start(ALL) as running,
        running.http.stream("GET", "/x?stable=events:2:0.2&next=ok") as answer,
    ):
        parts = answer.iter_raw()
        first = next(parts)
        # The second event is written later, so the first was not held back.
        assert first == b"data: stable 0\n\n"
        assert start.arms["stable"].open() == 1
        assert b"".join(parts) == b"data: stable 1\n\n"


@pytest.mark.parametrize(
    ("behaviours", "seconds"),
    [(["hang"], 0.5), (["die", "silent", "malformed", "bytes:9000000", "status:500"], 30.0)],
)
def test_a_bad_copy_is_invisible_to_the_client(
    start: Start, behaviours: list[str], seconds: float
) -> None:
    backend = Fixed()
    with start(f"{ALL}timeout = {seconds}\n", backend) as running:
        for behaviour in behaviours:
            answers = [running.http.get(f"/x?stable=echo&next={behaviour}&n={n}") for n in range(3)]
            # The answers were complete before any copy could have been.
            assert all(answer.status_code == 200 for answer in answers)
            assert all(echoed(answer)["arm"] == "stable" for answer in answers)
            running.settled()
            expected = 0.0 if behaviour.startswith("bytes") else 1.0
            assert running.losses == [expected] * 3, behaviour
            backend.losses.clear()
        status = running.status()
    assert status["copied"] == {"next": 3 * len(behaviours)}
    assert status["learned"]["applied"] == 3 * len(behaviours)


def test_a_dead_mirrored_upstream_is_invisible_and_counts_as_lost(tmp_path: Path) -> None:
    with upstreams("stable", "next") as arms, Start(arms, tmp_path)(ALL) as running:
        arms["next"].kill()
        assert running.http.get("/echo").status_code == 200
        running.settled()
    assert list(running.backend.losses.values()) == [("next", 1.0)]


def test_a_dead_upstream_is_replaced_and_passed_as_not_available(tmp_path: Path) -> None:
    text = f'{ALL}arm_header = "X-Decoupled-Arm"\n'
    with upstreams("stable", "next") as arms, Start(arms, tmp_path)(text) as running:
        assert running.http.get("/echo").headers.get_list("x-decoupled-arm") == ["stable"]
        running.settled()
        arms["stable"].kill()
        answer = running.http.post("/echo", content=b"kept for the other arm")
        got = echoed(answer)
        assert (got["arm"], base64.b64decode(got["body"])) == ("next", b"kept for the other arm")
        assert answer.headers.get_list("x-decoupled-arm") == ["next"], "who answered"
        wait_for(lambda: running.backend.available == ["next"], "a draw without the dead arm")
        status = running.status()
        arms["next"].kill()
        both_dead = running.http.get("/echo")
    assert status["up"] == {"stable": False, "next": True}
    assert status["failed_over"] == {"stable": 1}
    assert both_dead.status_code == 502
    assert both_dead.headers["content-type"] == "application/problem+json"
    assert "cannot be connected to" in both_dead.json()["detail"]


@pytest.mark.parametrize("behaviour", ["die", "die-in-length"])
def test_an_answer_that_breaks_off_is_seen_to_break_off(start: Start, behaviour: str) -> None:
    with start(ALL) as running:
        with pytest.raises(httpx.RemoteProtocolError):
            running.http.get(f"/x?stable={behaviour}&next=ok")
        status = running.settled()
        assert running.http.get("/echo").status_code == 200
    assert status["failed"] == {"stable": 1}
    assert status["served"]["stable"] == {"broken off": 1}


@pytest.mark.parametrize(
    ("behaviour", "status"), [("malformed", 502), ("silent", 502), ("hang", 504)]
)
def test_no_answer_is_a_clear_error(start: Start, behaviour: str, status: int) -> None:
    with start(ALL, stable="timeout = 0.2" if behaviour == "hang" else "") as running:
        answer = running.http.post(f"/x?stable={behaviour}&next=ok")
        assert answer.status_code == status
        assert answer.json()["detail"].startswith("arm 'stable': ")
        running.settled()


@pytest.mark.parametrize("lines", ["[mirror]\nshare = 0.0\n", f"{ALL}timeout = 0.2\n"])
def test_a_client_that_goes_away_frees_the_upstream(start: Start, lines: str) -> None:
    with start(lines) as running:
        with running.http.stream("GET", "/x?stable=events:100000:0.01&next=ok") as answer:
            parts = answer.iter_raw()  # kept, because the answer is closed with it
            assert next(parts)
            assert start.arms["stable"].open() == 1
        wait_for(lambda: start.arms["stable"].open() == 0, "the end of the upstream's answer")
        waiting = connected(running.url)
        waiting.sendall(b"GET /x?stable=hang&next=ok HTTP/1.1\r\nHost: a\r\n\r\n")
        wait_for(lambda: start.arms["stable"].open() == 1, "the upstream's answer")
        waiting.close()
        wait_for(lambda: start.arms["stable"].open() == 0, "the end of the upstream's answer")
        status = running.until(lambda status: status["queue"] == status["in_flight"] == 0)
    assert status["served"]["stable"] == {"client gone": 2}


def test_an_upload_that_is_cut_off_is_not_mirrored(start: Start) -> None:
    before = len(start.arms["next"].seen())
    with start(ALL) as running:
        upload = connected(running.url)
        upload.sendall(b"POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\nonly this")
        wait_for(lambda: running.status()["in_flight"] == 1, "the request")
        upload.close()
        status = running.until(lambda status: status["in_flight"] == 0)
    assert status["dropped"]["client_gone"] == 1
    assert len(start.arms["next"].seen()) == before


def test_a_service_that_fails_is_invisible(start: Start) -> None:
    backend = Fixed()
    with start(ALL, backend) as running:
        assert running.http.get("/echo").status_code == 200  # it has started
        backend.failing = StoreError("the disk is full; make room")
        answers = [running.http.get("/echo") for _ in range(20)]
        failing = running.settled()
        backend.failing = None
        wait_for(
            lambda: running.http.get("/echo") and running.settled()["copied"] != failing["copied"]
        )
    assert {echoed(answer)["arm"] for answer in answers} == {"stable"}
    assert failing["not_mirrored"]["no_decision"] >= failing["repeated"] > 0


def test_a_base_path_and_an_unreadable_request(start: Start) -> None:
    stable = start.arms["stable"]
    arms = start.arms | {"stable": UpstreamProcess("stable", f"{stable.url}/base/", stable.process)}
    with Start(arms, start.folder)(ALL) as running:
        got = echoed(running.http.get("/a?stable=echo&next=ok"))
        with connected(running.url) as connection:
            connection.sendall(b"GET /a HTTP/1.1\r\nHost: a\r\nbad header\r\n\r\n")
            bad = connection.recv(65536)
        running.settled()
    assert got["target"] == "/base/a?stable=echo&next=ok"
    assert bad.startswith(b"HTTP/1.1 400")


def test_an_error_of_the_mirror_has_its_request_id(
    start: Start, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.handler.setFormatter(TextFormatter())
    with start() as running:
        named = running.http.get("/silent", headers={"X-Request-Id": "checkout-7"})
        fresh = running.http.get("/x", headers={"Upgrade": "websocket", "X-Request-Id": "not sane"})
        assert running.status()["refused"]["websocket"] == 1
    assert (named.status_code, fresh.status_code) == (502, 501)
    assert "websockets are not mirrored" in fresh.json()["detail"]
    assert named.json()["request_id"] == named.headers["x-request-id"] == "checkout-7"
    assert fresh.json()["request_id"] == fresh.headers["x-request-id"] != "not sane"
    told = "502: arm 'stable': gave no valid answer (closed the connection) [request checkout-7]"
    assert told in caplog.text
    assert f"[request {fresh.json()['request_id']}]" in caplog.text


NONE = "[mirror]\nshare = 0.0\n"


def test_an_answer_that_nobody_reads_waits_at_its_arm(start: Start) -> None:
    count = 16
    with start(NONE) as running, ExitStack() as opened:
        running.http.get("/ok")
        tracemalloc.start()
        opened.callback(tracemalloc.stop)
        for _ in range(count):
            client = opened.enter_context(connected(running.url, window=4096))
            client.sendall(b"GET /bytes:50000000 HTTP/1.1\r\nHost: a\r\n\r\n")
        wait_for(lambda: running.status()["in_flight"] == count, "all of them at once")
        sizes = [0]

        def settled() -> bool:
            gc.collect()  # the tests look for garbage seldom, and this is about what is held
            sizes.append(tracemalloc.get_traced_memory()[0])
            running.http.get("/ok")  # others are served meanwhile
            return len(sizes) > 20 and sizes[-1] <= max(sizes[-20:-1])

        wait_for(settled, "an end to what is buffered")
    # A read of the event loop has at most 64 KiB, and so have the two write buffers. Without a limit it is 3 MiB each.
    assert max(sizes) < count * 600_000


def test_a_client_that_reads_or_sends_nothing_for_long_is_cut_off(start: Start) -> None:
    with start(f"client_timeout = 0.2\n{NONE}") as running:
        with connected(running.url, window=4096) as client:
            client.sendall(b"GET /bytes:50000000 HTTP/1.1\r\nHost: a\r\n\r\n")
            status = wait_for(lambda: (found := running.status())["served"] and found, "its end")
        wait_for(lambda: start.arms["stable"].open() == 0, "the end of the arm's answer")
    assert status["served"]["stable"]["client gone"] == 1
    with start(f"client_timeout = 0.2\n{ALL}") as running, connected(running.url) as client:
        client.sendall(b"POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\nonly this")
        answer = until_closed(client)
        status = running.settled()
    assert answer.startswith(b"HTTP/1.1 408")
    assert status["served"] == {"stable": {"client too slow": 1}}
    assert status["dropped"]["client_gone"] == 1


@pytest.mark.parametrize("length", ["Content-Length: 100000", "Transfer-Encoding: chunked"])
@pytest.mark.parametrize("kind", ["", "sink = true\n"])
def test_slow_uploads_do_not_fill_the_mirror(start: Start, length: str, kind: str) -> None:
    """A byte now and then is no progress, in whatever share of a chunk it comes."""
    text = f"clients = 3\nclient_timeout = 0.3\n{kind}{ALL}"
    with start(text) as running, ExitStack() as opened:
        lines = [opened.enter_context(connected(running.url)) for _ in range(3)]
        for line in lines:
            line.sendall(f"POST /echo HTTP/1.1\r\nHost: a\r\n{length}\r\n\r\n".encode())
        drop = b"1\r\nx\r\n" if "chunked" in length else b"x"

        def served() -> bool:
            for line in lines:
                with suppress(OSError):
                    line.sendall(drop)
            return running.http.get("/ok").status_code != 503

        wait_for(served, "room for others")
        for line in lines:
            assert line.recv(65536).startswith(b"HTTP/1.1 408")


def test_a_long_upload_at_a_fair_pace_is_served(start: Start) -> None:
    part, count = b"x" * 2_000, 30
    with start(f"client_timeout = 0.2\n{NONE}") as running, connected(running.url) as line:
        head = f"POST /ok HTTP/1.1\r\nHost: a\r\nContent-Length: {len(part) * count}\r\n\r\n"
        line.sendall(head.encode())
        for _ in range(count):  # longer than the limit in all
            line.sendall(part)
            time.sleep(0.02)
        assert line.recv(65536).startswith(b"HTTP/1.1 200")


def test_no_more_requests_at_a_time_than_set(start: Start) -> None:
    with start(f"clients = 1\n{NONE}") as running, connected(running.url) as first:
        first.sendall(b"GET /hang HTTP/1.1\r\nHost: a\r\n\r\n")
        wait_for(lambda: running.status()["in_flight"] == 1)
        refused = running.http.get("/ok")
        first.close()
        wait_for(lambda: running.status()["in_flight"] == 0)
        served = running.http.get("/ok")
        status = running.status()
    assert (refused.status_code, served.status_code) == (503, 200)
    assert "ask again later" in refused.json()["detail"]
    assert status["refused"]["busy"] == 1


def test_a_request_costs_the_same_however_many_connections_there_are(start: Start) -> None:
    calls = 0

    def count(frame: FrameType, event: str, argument: object) -> None:
        nonlocal calls
        calls += event == "call"

    def cost() -> int:
        """Calls of functions for a few requests."""
        before = calls
        for _ in range(20):
            running.http.get("/ok")
        return calls - before

    threading.setprofile(count)
    try:
        with start(NONE) as running, ExitStack() as opened:
            cost()
            alone = cost()
            many = [opened.enter_context(connected(running.url)) for _ in range(100)]
            for client in many:
                client.sendall(b"GET /slow:0.5 HTTP/1.1\r\nHost: a\r\n\r\n")
            for client in many:
                assert client.recv(65536).startswith(b"HTTP/1.1 200")
            among_many = cost()
    finally:
        threading.setprofile(None)
        sys.setprofile(None)
    assert among_many < 1.5 * alone
