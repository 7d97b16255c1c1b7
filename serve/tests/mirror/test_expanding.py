"""Compressed answers: what a judge sees of them, and how little of a large one is ever expanded."""

import asyncio
import base64
import gzip
import tracemalloc
import zlib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from decoupled_serve.mirror import judges, upstream
from decoupled_serve.mirror.exchange import Answer
from decoupled_serve.mirror.expanding import expanded
from support.dropping import answering
from support.mirrors.running import Fixed, UpstreamProcess, mirror, write_config

TEXT = b'{"text": "as long as it is, and no longer"}'
LIMIT = 1000


def raw_deflate(content: bytes) -> bytes:
    deflating = zlib.compressobj(9, zlib.DEFLATED, -15)
    return deflating.compress(content) + deflating.flush()


def answer(body: bytes, *codings: str, complete: bool = True) -> Answer:
    headers = (("Content-Type", "application/json"), *(("Content-Encoding", each) for each in codings))
    return Answer("a", 200, headers, body, len(body), complete=complete)


def named(value: object) -> str:
    return ", ".join(value)[:20] if isinstance(value, tuple) else "body"


@pytest.mark.parametrize(
    ("body", "codings"),
    [
        (TEXT, ()),
        (TEXT, ("identity",)),
        (gzip.compress(TEXT), ("gzip",)),
        (gzip.compress(TEXT), ("X-GZip",)),
        (zlib.compress(TEXT), ("deflate",)),
        (raw_deflate(TEXT), ("Deflate",)),
        (gzip.compress(gzip.compress(TEXT)), ("gzip , gzip",)),
        (gzip.compress(zlib.compress(TEXT)), ("deflate", "gzip")),
        (raw_deflate(gzip.compress(zlib.compress(TEXT))), ("deflate,gzip, identity", "deflate")),
    ],
    ids=named,
)
def test_a_judge_sees_what_was_compressed(body: bytes, codings: tuple[str, ...]) -> None:
    found = expanded(answer(body, *codings), LIMIT)
    assert (found.body, found.complete, found.size) == (TEXT, True, len(body))
    assert found.header("content-encoding") in (None, "identity")
    assert not expanded(answer(body, *codings, complete=False), LIMIT).complete


@pytest.mark.parametrize(
    ("body", "codings"),
    [
        (b"\x1b", ("br",)),
        (gzip.compress(TEXT), ("gzip", "zstd")),
        (b"not compressed", ("gzip",)),
        (b"not compressed", ("deflate",)),
        (gzip.compress(b"not compressed"), ("gzip, gzip",)),
        (gzip.compress(TEXT)[:-12] + bytes(12), ("gzip",)),
        (TEXT, ("gzip," * 10_000,)),
    ],
    ids=named,
)
def test_what_cannot_be_expanded_stays_as_it_is(body: bytes, codings: tuple[str, ...]) -> None:
    given = answer(body, *codings)
    assert expanded(given, LIMIT) is given


@pytest.mark.parametrize("times", [1, 2, 3])
def test_nothing_beyond_the_limit_is_expanded(times: int) -> None:
    body = gzip.compress(bytes(50_000_000), 9)
    for _ in range(times - 1):
        body = gzip.compress(body, 9)
    bomb = answer(body, ", ".join(["gzip"] * times))
    tracemalloc.start()
    try:
        found = expanded(bomb, 2**20)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert found.body == bytes(min(2**20, len(found.body)))
    assert not found.complete
    assert peak < 6 * 2**20


@given(
    st.binary(max_size=300),
    st.integers(0, 300),
    st.sampled_from([gzip.compress, zlib.compress, raw_deflate]),
)
def test_an_answer_is_complete_if_all_of_it_is_there(content: bytes, limit: int, compress: Any) -> None:
    coding = "gzip" if compress is gzip.compress else "deflate"
    body = compress(content)
    found = expanded(answer(body, coding), limit)
    assert (found.body, found.complete) == (content[:limit], len(content) <= limit)
    cut = expanded(answer(body[:-1], coding), limit)
    assert not cut.complete or cut.body == body[:-1], "a stream that breaks off is not whole"
    assert not expanded(answer(body + b"more", coding), limit).complete


def test_answers_are_expanded_off_the_event_loop_for_those_that_are_judged(
    arms: dict[str, UpstreamProcess], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes, on_loop = [], []

    def watched(given: Answer, limit: int) -> Answer:
        found = expanded(given, limit)
        try:
            asyncio.get_running_loop()
            on_loop.append(given.arm)
        except RuntimeError:
            sizes.append(len(found.body))
        return found

    monkeypatch.setattr(judges, "expanded", watched)
    monkeypatch.setattr(upstream, "expanded", watched)
    usage = b'{"usage": {"tokens": 7}, "text": "' + b"a" * 10_000_000 + b'"}'
    body = gzip.compress(usage, 9)
    head = f"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: {len(body)}\r\n\r\n".encode()
    bomb = base64.urlsafe_b64encode(head + body).decode()
    backend = Fixed()
    with answering((200, {}, {"loss": 0.25})) as (url, asked):
        lines = f'[mirror]\nshare = 1.0\nanswer_limit = 50000\n[loss.judge]\nurl = "{url}"\n'
        priced = {"stable": "prices = { tokens = 1 }", "next": "prices = { tokens = 1 }"}
        with mirror(write_config(tmp_path, arms, lines, **priced), backend) as running:
            for _ in range(4):
                assert (
                    running.http.get(f"/raw:{bomb}", headers={"Accept-Encoding": "gzip"}).content == usage
                )
            running.settled()
    assert [loss for _, loss in backend.losses.values()] == [0.25] * 4
    assert (on_loop, set(sizes)) == ([], {50_000})
    for each in asked:
        for shown in (each.body["served"], each.body["mirrored"]):
            assert (len(shown["body"]), shown["complete"], shown["size"]) == (50_000, False, len(body))


def test_an_empty_answer_is_whole() -> None:
    assert expanded(answer(b"", "gzip"), LIMIT).complete
    assert not expanded(answer(gzip.compress(TEXT)[:-4], "gzip"), LIMIT).complete
