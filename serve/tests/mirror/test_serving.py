"""What a client sees of a mirror: the answer of the arm that serves, byte for byte, whatever the copy does."""

import base64
from pathlib import Path

import httpx
import pytest

from decoupled.client.errors import StoreError
from support.mirrors.running import (
    Fixed,
    UpstreamProcess,
    connected,
    echoed,
    eventually,
    mirror,
    upstreams,
    write_config,
)

Arms = dict[str, UpstreamProcess]
ALL = '[mirror]\nshare = 1.0\nrepeat = ["* /*"]\n'


def test_an_answer_passes_byte_for_byte(arms: Arms, tmp_path: Path) -> None:
    content = bytes(range(256)) * 500
    with mirror(write_config(tmp_path, arms, ALL), Fixed()) as running:
        answer = running.http.post("/echo?a=1&b=%2F", content=content, headers={"X-Some": "thing"})
        got = echoed(answer)
        large = running.http.get("/bytes:3000000")
        running.settled()
    assert got["arm"] == "stable"
    assert (got["method"], got["target"]) == ("POST", "/echo?a=1&b=%2F")
    assert base64.b64decode(got["body"]) == content
    assert ("x-some", "thing") in got["headers"]
    assert large.content == (bytes(range(256)) * (3_000_000 // 256 + 1))[:3_000_000]


def test_headers_that_an_arm_names_as_its_own_end_at_the_proxy(arms: Arms, tmp_path: Path) -> None:
    with mirror(write_config(tmp_path, arms, ALL), Fixed()) as running:
        answer = running.http.get("/hop")
        running.settled()
    assert not {"x-private", "keep-alive", "server", "date"} & answer.headers.keys()
    assert answer.headers.get_list("set-cookie") == ["a=1", "b=2"]


def test_events_arrive_one_by_one(arms: Arms, tmp_path: Path) -> None:
    with (
        mirror(write_config(tmp_path, arms, ALL), Fixed()) as running,
        running.http.stream("GET", "/x?stable=events:2:0.2&next=ok") as answer,
    ):
        parts = answer.iter_raw()
        first = next(parts)
        # The second event is written later, so the first was not held back.
        assert first == b"data: stable 0\n\n"
        assert arms["stable"].open() == 1
        assert b"".join(parts) == b"data: stable 1\n\n"


@pytest.mark.parametrize(
    ("behaviours", "seconds"),
    [(["hang"], 0.5), (["die", "silent", "malformed", "bytes:9000000", "status:500"], 30.0)],
)
def test_a_bad_copy_is_invisible_to_the_client(
    arms: Arms, tmp_path: Path, behaviours: list[str], seconds: float
) -> None:
    backend = Fixed()
    with mirror(write_config(tmp_path, arms, f"{ALL}timeout = {seconds}\n"), backend) as running:
        for behaviour in behaviours:
            answers = [running.http.get(f"/x?stable=echo&next={behaviour}&n={n}") for n in range(3)]
            # The answers were complete before any copy could have been.
            assert all(answer.status_code == 200 for answer in answers)
            assert all(echoed(answer)["arm"] == "stable" for answer in answers)
            running.settled()
            expected = 0.0 if behaviour.startswith("bytes") else 1.0
            assert [loss for _, loss in backend.losses.values()] == [expected] * 3, behaviour
            backend.losses.clear()
        status = running.status()
    assert status["copied"] == {"next": 3 * len(behaviours)}
    assert status["learned"]["applied"] == 3 * len(behaviours)


def test_a_dead_mirrored_upstream_is_invisible_and_counts_as_lost(tmp_path: Path) -> None:
    backend = Fixed()
    with upstreams("stable", "next") as arms, mirror(write_config(tmp_path, arms, ALL), backend) as running:
        arms["next"].kill()
        assert running.http.get("/echo").status_code == 200
        running.settled()
    assert list(backend.losses.values()) == [("next", 1.0)]


def test_a_dead_upstream_is_replaced_and_passed_as_not_available(tmp_path: Path) -> None:
    backend = Fixed()
    with upstreams("stable", "next") as arms, mirror(write_config(tmp_path, arms, ALL), backend) as running:
        arms["stable"].kill()
        answer = running.http.post("/echo", content=b"kept for the other arm")
        assert answer.status_code == 200
        got = echoed(answer)
        assert got["arm"] == "next"
        assert base64.b64decode(got["body"]) == b"kept for the other arm"
        eventually(lambda: backend.available == ["next"], "a draw without the dead arm")
        status = running.status()
        arms["next"].kill()
        both_dead = running.http.get("/echo")
    assert status["up"] == {"stable": False, "next": True}
    assert status["failed_over"] == {"stable": 1}
    assert both_dead.status_code == 502
    assert both_dead.headers["content-type"] == "application/problem+json"
    assert "cannot be connected to" in both_dead.json()["detail"]


@pytest.mark.parametrize("behaviour", ["die", "die-in-length"])
def test_an_answer_that_breaks_off_is_seen_to_break_off(arms: Arms, tmp_path: Path, behaviour: str) -> None:
    with mirror(write_config(tmp_path, arms, ALL), Fixed()) as running:
        with pytest.raises(httpx.RemoteProtocolError):
            running.http.get(f"/x?stable={behaviour}&next=ok")
        status = running.settled()
        assert running.http.get("/echo").status_code == 200
    assert status["failed"] == {"stable": 1}
    assert status["served"]["stable"] == {"broken off": 1}


@pytest.mark.parametrize(("behaviour", "status"), [("malformed", 502), ("silent", 502), ("hang", 504)])
def test_no_answer_is_a_clear_error(arms: Arms, tmp_path: Path, behaviour: str, status: int) -> None:
    file = write_config(tmp_path, arms, ALL, stable="timeout = 0.2" if behaviour == "hang" else "")
    with mirror(file, Fixed()) as running:
        answer = running.http.post(f"/x?stable={behaviour}&next=ok")
        assert answer.status_code == status
        assert answer.json()["detail"].startswith("arm 'stable': ")
        running.settled()


@pytest.mark.parametrize("lines", ["[mirror]\nshare = 0.0\n", f"{ALL}timeout = 0.2\n"])
def test_a_client_that_goes_away_frees_the_upstream(arms: Arms, tmp_path: Path, lines: str) -> None:
    with mirror(write_config(tmp_path, arms, lines), Fixed()) as running:
        with running.http.stream("GET", "/x?stable=events:100000:0.01&next=ok") as answer:
            parts = answer.iter_raw()  # kept, because the answer is closed with it
            assert next(parts)
            assert arms["stable"].open() == 1
        eventually(lambda: arms["stable"].open() == 0, "the end of the upstream's answer")
        waiting = connected(running.url)
        waiting.sendall(b"GET /x?stable=hang&next=ok HTTP/1.1\r\nHost: a\r\n\r\n")
        eventually(lambda: arms["stable"].open() == 1, "the upstream's answer")
        waiting.close()
        eventually(lambda: arms["stable"].open() == 0, "the end of the upstream's answer")
        status = eventually(lambda: (found := running.settled())["in_flight"] == 0 and found)
    assert status["served"]["stable"] == {"client gone": 2}


def test_an_upload_that_is_cut_off_is_not_mirrored(arms: Arms, tmp_path: Path) -> None:
    before = len(arms["next"].seen())
    with mirror(write_config(tmp_path, arms, ALL), Fixed()) as running:
        upload = connected(running.url)
        upload.sendall(b"POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\nonly this")
        eventually(lambda: running.status()["in_flight"] == 1, "the request")
        upload.close()
        status = eventually(lambda: (found := running.status())["in_flight"] == 0 and found)
    assert status["dropped"]["client_gone"] == 1
    assert len(arms["next"].seen()) == before


def test_a_websocket_is_refused_clearly(arms: Arms, tmp_path: Path) -> None:
    headers = {
        "Connection": "Upgrade",
        "Upgrade": "websocket",
        "Sec-WebSocket-Key": "a",
        "Sec-WebSocket-Version": "13",
    }
    with mirror(write_config(tmp_path, arms, ALL), Fixed()) as running:
        answer = running.http.get("/chat", headers=headers)
        status = running.status()
    assert answer.status_code == 501
    assert "websockets are not mirrored" in answer.json()["detail"]
    assert status["refused"]["websocket"] == 1


def test_a_service_that_fails_is_invisible(arms: Arms, tmp_path: Path) -> None:
    backend = Fixed()
    with mirror(write_config(tmp_path, arms, ALL), backend) as running:
        assert running.http.get("/echo").status_code == 200  # it has started
        backend.failing = StoreError("the disk is full; make room")
        answers = [running.http.get("/echo") for _ in range(20)]
        failing = running.settled()
        backend.failing = None
        eventually(lambda: running.http.get("/echo") and running.settled()["copied"] != failing["copied"])
    assert {echoed(answer)["arm"] for answer in answers} == {"stable"}
    assert failing["not_mirrored"]["no_decision"] >= failing["repeated"] > 0


def test_a_base_path_and_an_unreadable_request(arms: Arms, tmp_path: Path) -> None:
    file = write_config(tmp_path, arms, ALL)
    file.write_text(file.read_text().replace(arms["stable"].url, arms["stable"].url + "/base/"))
    with mirror(file, Fixed()) as running:
        got = echoed(running.http.get("/a?stable=echo&next=ok"))
        with connected(running.url) as connection:
            connection.sendall(b"GET /a HTTP/1.1\r\nHost: a\r\nbad header\r\n\r\n")
            bad = connection.recv(65536)
        running.settled()
    assert got["target"] == "/base/a?stable=echo&next=ok"
    assert bad.startswith(b"HTTP/1.1 400")
