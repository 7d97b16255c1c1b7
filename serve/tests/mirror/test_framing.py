"""Where a request ends, which of its headers are whose, and what a client may not do with them."""

import asyncio
import base64
import json
import threading
from contextlib import suppress

import h11
import pytest

from decoupled_serve.mirror.arm_connection import Pool
from decoupled_serve.mirror.bodies import Content
from support.http_service import until_closed
from support.mirrors.running import ALL, Fixed, RunningMirror, Start, connected, exchanged


def asked(running: RunningMirror, request: bytes) -> tuple[bytes, bytes]:
    """The head and the body of the answer to a request that asks for the end of the connection."""
    head, _, body = exchanged(running.url, request).partition(b"\r\n\r\n")
    return head, body


def raw(answer: bytes) -> str:
    """The target that makes an arm send these bytes."""
    return f"/raw:{base64.urlsafe_b64encode(answer).decode()}"


@pytest.mark.parametrize(
    ("dry_run", "passed"), [("", False), ('dry_run_header = "X-Mirrored"\n', True)]
)
def test_a_client_cannot_pass_for_a_copy(start: Start, dry_run: str, passed: bool) -> None:
    lines = f'{ALL}headers = {{ X-Mirrored = "1" }}\n{dry_run}'
    with start(lines) as running:
        answer = running.http.get("/echo?forged", headers={"X-Mirrored": "yes"})
        running.settled()
    served = dict(answer.json()["headers"])
    copy = dict(
        [each for each in start.arms["next"].seen() if "?forged" in each["target"]][-1]["headers"]
    )
    assert ("x-mirrored" in served) == passed
    assert copy["x-mirrored"] == "1"


def test_an_answer_without_a_body_leaves_the_connection_as_it_was(start: Start) -> None:
    answers = [
        b"HTTP/1.1 304 Not Modified\r\nContent-Length: 1234\r\nETag: x\r\n\r\n",
        b"HTTP/1.1 304 Not Modified\r\nTransfer-Encoding: chunked\r\n\r\n",
        b"HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n\r\n",
    ]
    with start(ALL) as running, connected(running.url) as connection:
        for answer in answers:
            connection.sendall(f"GET {raw(answer)} HTTP/1.1\r\nHost: a\r\n\r\n".encode())
            head = connection.recv(65536)
            assert head.startswith(answer[:12])
            assert head.endswith(b"\r\n\r\n")
        connection.sendall(b"GET /ok HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
        following = until_closed(connection)
        status = running.settled()
    assert following.startswith(b"HTTP/1.1 200")
    assert following.endswith(b"stable")
    assert status["served"]["stable"] == {"304": 2, "204": 1, "200": 1}
    assert status["failed"] == {}


def test_a_head_that_cannot_be_passed_on_is_a_502_and_counted(start: Start) -> None:
    answers = [
        b"HTTP/1.1 200 OK\r\nX-Bad: a\x01b\r\nContent-Length: 0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab",
        b"HTTP/1.1 999 Whatever\r\nContent-Length: 0\r\n\r\n",
        b"HTTP/1.1 101 Switching Protocols\r\n\r\n",
    ]
    with start(ALL, Fixed(explore="next")) as running:
        for answer in answers:
            found = running.http.post(raw(answer))
            assert found.status_code == 502, answer
            assert "gave no valid answer" in found.json()["detail"]
        status = running.settled()
    assert status["failed"] == {"stable": 4}
    assert running.losses == [1.0] * 4  # the copies got the same answers


def test_what_nobody_asked_for_is_not_the_next_answer(start: Start) -> None:
    stale = b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nstale!"
    answer = b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nmine" + stale
    with start(ALL) as running:
        assert running.http.get(raw(answer)).content == b"mine"
        assert running.http.get("/ok").content == b"stable"
        running.settled()


def test_an_http_1_0_client_gets_no_chunks(start: Start) -> None:
    bodies = {
        "/ok": b"stable",
        "/events:3": b"".join(b"data: stable %d\n\n" % n for n in range(3)),
        raw(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nto the end"): b"to the end",
    }
    with start(ALL) as running:
        for target, expected in bodies.items():
            head, body = asked(running, f"GET {target} HTTP/1.0\r\n\r\n".encode())
            assert head.startswith(b"HTTP/1.1 200")
            assert b"chunked" not in head.lower()
            assert body == expected
        running.settled()


def test_a_request_cut_off_by_a_shutdown_gets_a_503(
    start: Start, caplog: pytest.LogCaptureFixture
) -> None:
    with start(f"drain = 1\n{ALL}") as running:
        answers: list[bytes] = []
        request = b"GET /x?stable=hang&next=ok HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"
        client = threading.Thread(
            target=lambda: answers.append(b"\r\n\r\n".join(asked(running, request)))
        )
        before = start.arms["stable"].open()
        client.start()
        while start.arms["stable"].open() == before:
            pass
        running.end()
        client.join(60)
    assert answers[0].startswith(b"HTTP/1.1 503")
    assert (
        json.loads(answers[0].partition(b"\r\n\r\n")[2])["detail"]
        == "the mirror is ending; ask again"
    )
    assert "Traceback" not in caplog.text


def test_chunks_overrule_a_length_that_an_arm_declares_as_well(start: Start) -> None:
    content = b"all of this is the answer"
    body = b"%x\r\n%b\r\n0\r\n\r\n" % (len(content), content)
    heads = [
        b"Content-Length: 3\r\nTransfer-Encoding: chunked",
        b"Transfer-Encoding: chunked\r\nContent-Length: 3",
        b"Transfer-Encoding: Chunked\r\ncontent-length: 3000",
    ]
    with start(ALL, Fixed(explore="stable")) as running:
        for head in heads:
            answer = running.http.get(raw(b"HTTP/1.1 200 OK\r\n" + head + b"\r\n\r\n" + body))
            assert answer.content == content
            assert "content-length" not in answer.headers
            assert running.http.get("/ok").content == b"stable"
        gzipped = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n" + body
        assert running.http.get(raw(gzipped)).status_code == 502
        status = running.settled()
    assert status["failed"] == {"stable": 1}


def test_a_connection_ends_with_an_answer_of_two_lengths() -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\n%b\r\n\r\n2\r\nok\r\n0\r\n\r\n" % head)
        with suppress(ConnectionResetError):
            await reader.read()
        writer.close()
        answered.set()

    async def main() -> bool:
        async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
            port = server.sockets[0].getsockname()[1]
            connection = await Pool(("127.0.0.1", port), None).new(30.0)
            await connection.send(
                h11.Request(method="GET", target="/", headers=[("Host", "a")]), Content(), 30.0
            )
            await connection.head(30.0)
            assert [part async for part in connection.parts(30.0)] == [b"ok"]
            reusable = connection.reusable
            connection.close()
            await answered.wait()
            return reusable

    head, answered = b"Transfer-Encoding: chunked", asyncio.Event()
    assert asyncio.run(main())
    head, answered = b"Transfer-Encoding: chunked\r\nContent-Length: 2", asyncio.Event()
    assert not asyncio.run(main())


def test_a_target_is_passed_on_as_it_came(start: Start) -> None:
    wanted = ["/a?", "/a??", "/a?b?", "/a", "/?", "/a?b=#c"]
    with start(ALL) as running:
        before = {name: len(arm.seen()) for name, arm in start.arms.items()}
        for target in wanted:
            for form in (target, f"http://shop.example{target}"):
                asked(
                    running, f"GET {form} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n".encode()
                )
            running.settled()
    for name, arm in start.arms.items():
        targets = [each["target"] for each in arm.seen()[before[name] :]]
        assert [each for each in targets if each != "/seen"] == [
            each for each in wanted for _ in range(2)
        ]
