"""Clients that do not read, do not send, or are too many: they cost little, not for long, and nobody else waits."""

import gc
import sys
import threading
import time
import tracemalloc
from contextlib import ExitStack, suppress
from types import FrameType

import pytest

from support.http_service import until_closed
from support.mirrors.running import ALL, Start, connected
from support.waiting import wait_for

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
