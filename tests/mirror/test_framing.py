"""Where a request ends, which of its headers are whose, and what a client may not do with them."""

import base64
import json
import socket
import threading
from pathlib import Path
from typing import Any

import pytest

from support.mirrors.running import Fixed, RunningMirror, UpstreamProcess, connected, mirror, write_config

Arms = dict[str, UpstreamProcess]
ALL = '[mirror]\nshare = 1.0\nrepeat = ["* /*"]\n'


def asked(running: RunningMirror, request: bytes) -> tuple[bytes, bytes]:
    """The head and the body of the answer to a request that asks for the end of the connection."""
    with connected(running.url) as connection:
        connection.sendall(request)
        head, _, body = b"".join(iter(lambda: connection.recv(65536), b"")).partition(b"\r\n\r\n")
    return head, body


def arrived(answer: tuple[bytes, bytes]) -> tuple[dict[str, Any], dict[str, str]]:
    """What an arm says it got, and its headers."""
    got: dict[str, Any] = json.loads(answer[1])
    return got, dict(got["headers"])


def raw(answer: bytes) -> str:
    """The target that makes an arm send these bytes."""
    return f"/raw:{base64.urlsafe_b64encode(answer).decode()}"


@pytest.mark.parametrize(("dry_run", "passed"), [("", False), ('dry_run_header = "X-Mirrored"\n', True)])
def test_a_client_cannot_pass_for_a_copy(arms: Arms, tmp_path: Path, dry_run: str, passed: bool) -> None:
    lines = f'{ALL}headers = {{ X-Mirrored = "1" }}\n{dry_run}'
    with mirror(write_config(tmp_path, arms, lines), Fixed()) as running:
        answer = running.http.get("/echo?forged", headers={"X-Mirrored": "yes"})
        running.settled()
    served = dict(answer.json()["headers"])
    copy = dict([each for each in arms["next"].seen() if "?forged" in each["target"]][-1]["headers"])
    assert ("x-mirrored" in served) == passed
    assert copy["x-mirrored"] == "1"


def test_an_answer_without_a_body_leaves_the_connection_as_it_was(arms: Arms, tmp_path: Path) -> None:
    answers = [
        b"HTTP/1.1 304 Not Modified\r\nContent-Length: 1234\r\nETag: x\r\n\r\n",
        b"HTTP/1.1 304 Not Modified\r\nTransfer-Encoding: chunked\r\n\r\n",
        b"HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n\r\n",
    ]
    with (
        mirror(write_config(tmp_path, arms, ALL), Fixed()) as running,
        connected(running.url) as connection,
    ):
        for answer in answers:
            connection.sendall(f"GET {raw(answer)} HTTP/1.1\r\nHost: a\r\n\r\n".encode())
            head = connection.recv(65536)
            assert head.startswith(answer[:12])
            assert head.endswith(b"\r\n\r\n")
        connection.sendall(b"GET /ok HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
        following = b"".join(iter(lambda: connection.recv(65536), b""))
        status = running.settled()
    assert following.startswith(b"HTTP/1.1 200")
    assert following.endswith(b"stable")
    assert status["served"]["stable"] == {"304": 2, "204": 1, "200": 1}
    assert status["failed"] == {}


def test_a_head_that_cannot_be_passed_on_is_a_502_and_counted(arms: Arms, tmp_path: Path) -> None:
    answers = [
        b"HTTP/1.1 200 OK\r\nX-Bad: a\x01b\r\nContent-Length: 0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab",
        b"HTTP/1.1 999 Whatever\r\nContent-Length: 0\r\n\r\n",
        b"HTTP/1.1 101 Switching Protocols\r\n\r\n",
    ]
    backend = Fixed(explore="next")
    with mirror(write_config(tmp_path, arms, ALL), backend) as running:
        for answer in answers:
            found = running.http.post(raw(answer))
            assert found.status_code == 502, answer
            assert "gave no valid answer" in found.json()["detail"]
        status = running.settled()
    assert status["failed"] == {"stable": 4}
    assert [loss for _, loss in backend.losses.values()] == [1.0] * 4  # the copies got the same answers


def test_what_nobody_asked_for_is_not_the_next_answer(arms: Arms, tmp_path: Path) -> None:
    stale = b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nstale!"
    answer = b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nmine" + stale
    with mirror(write_config(tmp_path, arms, ALL), Fixed()) as running:
        assert running.http.get(raw(answer)).content == b"mine"
        assert running.http.get("/ok").content == b"stable"
        running.settled()


def test_an_http_1_0_client_gets_no_chunks(arms: Arms, tmp_path: Path) -> None:
    bodies = {
        "/ok": b"stable",
        "/events:3": b"".join(b"data: stable %d\n\n" % n for n in range(3)),
        raw(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nto the end"): b"to the end",
    }
    with mirror(write_config(tmp_path, arms, ALL), Fixed()) as running:
        for target, expected in bodies.items():
            head, body = asked(running, f"GET {target} HTTP/1.0\r\n\r\n".encode())
            assert head.startswith(b"HTTP/1.1 200")
            assert b"chunked" not in head.lower()
            assert body == expected
        running.settled()


def test_what_is_for_no_arm_is_refused(arms: Arms, tmp_path: Path) -> None:
    refused = {
        "GET /ok HTTP/2.0": 400,
        "CONNECT example.org:443 HTTP/1.1": 400,
        "GET ok HTTP/1.1": 400,
    }
    with mirror(write_config(tmp_path, arms, ALL), Fixed()) as running:
        for line, status in refused.items():
            head, body = asked(running, f"{line}\r\nHost: a\r\nConnection: close\r\n\r\n".encode())
            assert head.startswith(b"HTTP/1.1 %d" % status)
            assert json.loads(body)["status"] == status
        status = running.status()
    assert status["served"] == {}


def test_headers_that_come_at_once_are_limited_too(arms: Arms, tmp_path: Path) -> None:
    lines = "".join(f"X-{n}: {'a' * 1000}\r\n" for n in range(70))
    request = f"GET /ok HTTP/1.1\r\nHost: a\r\nConnection: close\r\n{lines}\r\n"
    with mirror(write_config(tmp_path, arms, ALL), Fixed()) as running:
        head, _ = asked(running, request.encode())
    assert head[9:12] in (b"431", b"400")  # 400 if they came in parts


def test_a_whole_address_is_a_path_to_an_arm(arms: Arms, tmp_path: Path) -> None:
    with mirror(write_config(tmp_path, arms, ALL), Fixed()) as running:
        request = (
            b"GET http://shop.example/echo?a=1 HTTP/1.1\r\nHost: shop.example\r\nConnection: close\r\n\r\n"
        )
        got, headers = arrived(asked(running, request))
    assert got["target"] == "/echo?a=1"
    assert headers["x-forwarded-host"] == "shop.example"


def test_a_request_that_a_shutdown_cuts_off_gets_a_503(
    arms: Arms, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with mirror(write_config(tmp_path, arms, f"drain = 1\n{ALL}"), Fixed()) as running:
        answers: list[bytes] = []
        request = b"GET /x?stable=hang&next=ok HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"
        client = threading.Thread(target=lambda: answers.append(b"\r\n\r\n".join(asked(running, request))))
        before = arms["stable"].open()
        client.start()
        while arms["stable"].open() == before:
            pass
        running.end()
        client.join(60)
    assert answers[0].startswith(b"HTTP/1.1 503")
    assert json.loads(answers[0].partition(b"\r\n\r\n")[2])["detail"] == "the mirror is ending; ask again"
    assert "Traceback" not in caplog.text


def test_a_half_sent_request_is_not_served(arms: Arms, tmp_path: Path) -> None:
    with (
        mirror(write_config(tmp_path, arms, ALL), Fixed()) as running,
        connected(running.url) as connection,
    ):
        connection.sendall(b"GET /ok HTTP/1.1\r\nHost: a\r\n")
        connection.shutdown(socket.SHUT_WR)
        assert connection.recv(65536) == b""
