"""What judges, models, labellers and webhooks answer is read up to a limit, as it comes and as it is expanded."""

import asyncio
import gzip
import socket
import threading
import tracemalloc
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import httpx
import pytest

from decoupled.client import Retries
from decoupled_serve.mirror import judges
from decoupled_serve.mirror.capped import MOST_READ, Reply, TooLarge, post, post_unread
from decoupled_serve.mirror.config import JudgeConfig
from decoupled_serve.mirror.exchange import Answer, Request, Unreadable
from decoupled_serve.mirror.judges import JudgeFailed
from decoupled_serve.mirror.judging import judge_of
from support.dropping import answering
from support.mirrors.running import ALL, Fixed, Start, mirror
from support.waiting import wait_for

BOMB = gzip.compress(bytes(200_000_000), 9)
GZIP = b"Content-Encoding: gzip\r\n"
LOSS = b'{"loss": 0.25}'


class Server:
    """Answers every request with the same bytes, then with more of the same if it is endless; and counts."""

    def __init__(self, wire: bytes, endless: bytes = b"", close: bool = True) -> None:
        self.wire = wire
        self.endless = endless
        self.close = close
        self.asked = 0
        self.sent = 0
        self.heads: list[bytes] = []
        self.gone = threading.Event()  # the other side has hung up

    def serve(self, connection: socket.socket) -> None:
        with connection, suppress(OSError):
            request = b""
            while b"\r\n\r\n" not in request:
                request += connection.recv(65_536)
            head, _, body = request.partition(b"\r\n\r\n")
            [length] = [
                int(line.split(b":")[1])
                for line in head.lower().split(b"\r\n")
                if line.startswith(b"content-length:")
            ]
            while len(body) < length:
                body += connection.recv(65_536)
            self.heads.append(head.lower())
            self.asked += 1
            connection.sendall(self.wire)
            while self.endless:
                connection.sendall(self.endless)
                self.sent += len(self.endless)
            if not self.close:
                connection.recv(1)
        self.gone.set()


@contextmanager
def serving(server: Server) -> Iterator[str]:
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def accept() -> None:
            with suppress(OSError):
                while True:
                    connection, _ = listener.accept()
                    threading.Thread(target=server.serve, args=(connection,), daemon=True).start()

        thread = threading.Thread(target=accept, daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            listener.shutdown(socket.SHUT_RDWR)
    thread.join(60)


def whole(body: bytes, headers: bytes = b"", status: int = 200) -> bytes:
    return b"HTTP/1.1 %d OK\r\n%sContent-Length: %d\r\n\r\n%s" % (status, headers, len(body), body)


CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
# Servers whose answer must not be read to its end, and what is said of it.
HOSTILE: dict[str, tuple[Callable[[], Server], str]] = {
    "a bomb": (lambda: Server(whole(BOMB, GZIP)), "once expanded"),
    "a bomb in a bomb": (
        lambda: Server(whole(gzip.compress(BOMB), b"Content-Encoding: gzip, gzip\r\n")),
        "once expanded",
    ),
    "an endless body": (lambda: Server(CHUNKED, b"10000\r\n%s\r\n" % bytes(65_536)), "more than"),
    "an endless bomb": (
        lambda: Server(b"HTTP/1.1 200 OK\r\n" + GZIP + b"\r\n", bytes(65_536)),
        "more than",
    ),
    "a length too large": (lambda: Server(whole(bytes(MOST_READ + 1))), "more than"),
    "a coding nobody asked for": (lambda: Server(whole(LOSS, b"Content-Encoding: br\r\n")), "'br'"),
    "a bomb that breaks off": (lambda: Server(whole(gzip.compress(LOSS)[:-9], GZIP)), "breaks off"),
}


def posted(server: Server, limit: int = MOST_READ) -> Reply:
    async def steps() -> Reply:
        async with httpx.AsyncClient(timeout=60.0) as http:
            return await post(http, url, {"text": "\ud800"}, limit)

    with serving(server) as url:
        return asyncio.run(steps())


@pytest.mark.parametrize("kind", HOSTILE)
def test_a_hostile_answer_is_refused_and_its_memory_is_bounded(kind: str) -> None:
    make, words = HOSTILE[kind]
    server = make()
    tracemalloc.start()
    try:
        with pytest.raises((TooLarge, Unreadable), match=words):
            posted(server)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 12 * MOST_READ
    assert server.gone.wait(60), "the connection is closed, and nothing more is waited for"
    assert b"\r\naccept-encoding: identity" in server.heads[0]


@pytest.mark.parametrize(
    ("wire", "body"),
    [
        (whole(LOSS), LOSS),
        (whole(gzip.compress(LOSS), GZIP), LOSS),
        (whole(zlib.compress(LOSS), b"Content-Encoding: deflate\r\n"), LOSS),
        (whole(bytes(1000)), bytes(1000)),
        (whole(gzip.compress(bytes(1000)), GZIP), bytes(1000)),
        (CHUNKED + b"1\r\na\r\n" * 1000 + b"0\r\n\r\n", b"a" * 1000),
        (b"HTTP/1.1 204 No Content\r\n\r\n", b""),
    ],
    ids=["plain", "gzip", "deflate", "at the limit", "gzip at the limit", "in pieces", "nothing"],
)
def test_what_is_within_the_limit_is_read(wire: bytes, body: bytes) -> None:
    found = posted(Server(wire), limit=1000)
    assert (found.body, found.is_success) == (body, True)


def test_of_an_error_the_beginning_is_read() -> None:
    for wire, length in ((whole(b"no" * 1000, status=500), 1000), (whole(BOMB, GZIP, 503), 1000)):
        found = posted(Server(wire), limit=1000)
        assert (found.is_success, len(found.body)) == (False, length)
    assert posted(Server(whole(LOSS, b"Content-Encoding: br\r\n", 500))).body == b""


def test_pieces_of_a_byte_leave_turns_to_others() -> None:
    """Between two turns of somebody else, no more than 32 pieces are read."""
    server = Server(CHUNKED + b"1\r\na\r\n" * 20_000 + b"0\r\n\r\n")
    turns = 0

    async def steps() -> Reply:
        nonlocal turns

        async def others() -> None:
            nonlocal turns
            while True:
                turns += 1
                await asyncio.sleep(0)

        waiting = asyncio.create_task(others())
        async with httpx.AsyncClient(timeout=60.0) as http:
            reply = await post(http, url, {})
        waiting.cancel()
        return reply

    with serving(server) as url:
        assert len(asyncio.run(steps()).body) == 20_000
    assert turns >= 20_000 / 32


def test_of_a_webhook_nothing_is_read() -> None:
    server = Server(CHUNKED, bytes(65_536))

    async def steps() -> int:
        async with httpx.AsyncClient(timeout=60.0) as http:
            return await post_unread(http, url, {})

    with serving(server) as url:
        assert asyncio.run(steps()) == 200
        assert server.gone.wait(60)


@pytest.mark.parametrize("kind", HOSTILE)
@pytest.mark.parametrize("model", [None, "m"])
def test_a_judge_that_answers_too_much_has_failed_and_says_why(
    tmp_path: Path, kind: str, model: str | None
) -> None:
    server = HOSTILE[kind][0]()
    with serving(server) as url:
        config = JudgeConfig(url=f"{url}/v1", model=model, attempts=3, cost=0.1 if model else 0.0)

        async def steps() -> None:
            judge = judge_of(config, tmp_path)
            try:
                answers = (Answer("a", 200, (), b"1"), Answer("b", 200, (), b"2"))
                await judge.judge("d", Request("POST", "/"), *answers)
            finally:
                await judge.close()

        with pytest.raises(JudgeFailed, match=HOSTILE[kind][1]) as caught:
            asyncio.run(steps())
    assert server.asked == 1, "it would answer the same again"
    assert caught.value.cost == config.cost


@pytest.mark.parametrize(("otherwise", "losses"), [("", []), ("otherwise = 1.0\n", [1.0])])
def test_the_decision_of_such_a_judge_ends_as_that_of_one_that_fails(
    start: Start, otherwise: str, losses: list[float]
) -> None:
    judge = '[loss.judge]\nurl = "{url}"\n'
    with (
        serving(Server(whole(BOMB, GZIP))) as url,
        start(f"{ALL}{judge.format(url=url)}{otherwise}") as running,
    ):
        assert running.http.get("/ok").text == "stable"
        status = running.settled()
        forgotten = list(running.backend.forgotten)
    assert running.losses == losses
    assert status["judge"]["failed"] == {"TooLarge": 1}
    assert "and no more are read" in status["judge"]["problem"]
    assert status["dropped"]["judge_failed"] == (0 if losses else 1)
    assert len(forgotten) == (0 if losses else 1), "nobody waits for it"


def test_a_slow_body_ends_at_the_timeout(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(judges, "_RETRIES", Retries(first=0.01))
    server = Server(CHUNKED + b"1\r\n1\r\n", close=False)
    with serving(server) as url:
        lines = f'url = "{url}"\ntimeout = 0.5\nattempts = 2\notherwise = 1.0\n'
        with start(f"{ALL}[loss.judge]\n{lines}") as running:
            running.http.get("/ok")
            status = running.settled()
    assert running.losses == [1.0]
    assert (server.asked, status["judge"]["failed"]) == (2, {"TimeoutError": 1})


def test_a_labeller_that_answers_too_much_is_counted(start: Start) -> None:
    labels = "[labels]\nshare = 1.0\nfirst = 1000\n"
    with serving(Server(whole(BOMB, GZIP))) as url:
        text = f'[mirror]\nshare = 1.0\n[experiment]\nseed = 5\n{labels}to = "{url}"\n'
        with start.embedded(text) as running:
            for _ in range(3):
                running.http.get("/echo")
            status = running.until(lambda status: status["queue"] == 0 and labelled(status) >= 1)
    assert status["labels"]["failed"] == labelled(status) >= 1


def labelled(status: dict[str, Any]) -> int:
    counts: dict[str, int] = status["labels"]
    return sum(counts.values())


@pytest.mark.parametrize("body", ["endless", "bomb"])
def test_a_copy_that_is_too_large_is_cut_on_both_sides(start: Start, body: str) -> None:
    """The mirror hangs up at the limit, and expands no more than that."""
    bomb = gzip.compress(bytes(30_000_000), 9)
    server = Server(CHUNKED, b"10000\r\n%s\r\n" % bytes(65_536))
    if body == "bomb":
        server = Server(whole(bomb, GZIP))
    (start.folder / "sizes.py").write_text(
        "def judge(request, mirrored):\n    return len(mirrored.body) / 4e6 + (not mirrored.complete) / 2\n"
    )
    judge = '[loss.judge]\npython = "sizes:judge"\nalone = true\n'
    with serving(server) as url:
        arms = start.file(
            f'[mirror]\nshare = 1.0\nrepeat = ["* /*"]\nanswer_limit = 1000000\n{judge}'
        )
        text = arms.read_text().replace(start.arms["next"].url, url)
        arms.write_text(text)
        with mirror(arms, Fixed()) as running:
            running.http.post("/ok", content=b"1")
            running.settled()
    assert running.losses == [0.75]
    wait_for(server.gone.is_set, "the connection to be closed")


def test_what_is_sent_is_json_whatever_is_in_it() -> None:
    async def steps(url: str) -> None:
        async with httpx.AsyncClient() as http:
            await post(http, url, {"text": "é\ud800"})

    with answering((200, {}, {})) as (url, asked):
        asyncio.run(steps(url))
    assert asked[0].body == {"text": "é?"}
    assert asked[0].headers["content-type"] == "application/json"
