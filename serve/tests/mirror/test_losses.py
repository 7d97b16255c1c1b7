"""Losses: what is measured, and what judges say, quickly, slowly or wrongly; a judge that fails is loud."""

import asyncio
import base64
import gzip
import json
import logging
import threading
import tracemalloc
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from decoupled.client import Retries
from decoupled.errors import ParameterError
from decoupled_serve.mirror import judges, upstream
from decoupled_serve.mirror.config import JudgeConfig, LossConfig, TermConfig
from decoupled_serve.mirror.counts import Judgements
from decoupled_serve.mirror.exchange import Answer, Request, expanded
from decoupled_serve.mirror.judges import BadVerdict, CopyLoss, loss_of
from support.command_line import run
from support.dropping import Answer as Said
from support.dropping import answering
from support.mirrors.running import ALL, Fixed, RunningMirror, Start, asking, commanded
from support.waiting import wait_for

GOOD = Answer("next", 200, (), b"ok", 2, latency=0.5, duration=1.0, cost=0.02)


def test_a_loss_is_the_weighted_mean_of_its_parts() -> None:
    config = LossConfig(
        status=2.0,
        latency=TermConfig(high=1.0),
        duration=TermConfig(high=4.0),
        bytes=TermConfig(weight=0.5, high=4.0),
        cost=TermConfig(weight=0.5, low=0.01, high=0.05),
    )
    loss = asyncio.run(CopyLoss(config).of("d", Request("GET", "/"), GOOD, GOOD))
    assert loss.loss == pytest.approx((1.0 * 0.5 + 1.0 * 0.25 + 0.5 * 0.5 + 0.5 * 0.25) / 5.0)


@pytest.mark.parametrize(
    ("status", "settings", "loss"),
    [
        (200, {}, 0.0),
        (304, {}, 0.0),
        (401, {}, 1.0),  # every client would get it if no arm got their credentials
        (403, {}, 1.0),
        (422, {}, 1.0),
        (404, {}, 0.0),
        (429, {}, 0.0),
        (503, {}, 1.0),
        (404, {"good_status": ()}, 1.0),
        (401, {"bad_status": 500}, 0.0),
    ],
)
def test_which_statuses_are_bad(status: int, settings: dict[str, Any], loss: float) -> None:
    assert CopyLoss(LossConfig(status=1.0, **settings)).measured(Answer("a", status)) == loss


@pytest.mark.parametrize(
    "answer", [Answer("a", None, problem="refused"), Answer("a", 200, (), b"", problem="broke off")]
)
def test_no_whole_answer_has_the_highest_loss_without_asking_a_judge(answer: Answer) -> None:
    config = LossConfig(cost=TermConfig(high=9.0), judge=JudgeConfig(python="a:b"))
    assert (
        asyncio.run(CopyLoss(config, None).of("d", Request("GET", "/"), GOOD, answer)).loss == 1.0
    )


@pytest.mark.parametrize(
    "verdict",
    [
        1.5, -0.1, float("nan"), "better", {}, {"loss": 1, "preference": "tie"}, {"preference": 1}, [0.5], {"loss": "0.5"},
    ],
)  # fmt: skip
def test_a_verdict_that_means_nothing_is_refused(verdict: object) -> None:
    with pytest.raises(BadVerdict, match="answer"):
        loss_of(verdict)


JUDGES = """
import asyncio, os, time
calls = []
def compare(request, served, mirrored):
    return globals()[request.target.rpartition("=")[2]](request, served, mirrored)
def by_size(request, served, mirrored):
    assert request.header("cookie") is None and request.header("x-some") == "thing"
    assert served.arm == "stable" and mirrored.arm == "next"
    return {"preference": "explore" if len(mirrored.body) < len(served.body) else "exploit"}
async def awaited(request, served, mirrored):
    return 0.25
def broken(request, served, mirrored):
    raise KeyError("this judge is broken")
def twice(request, served, mirrored):
    calls.append(1)
    return 7 if len(calls) < 2 else 0.75
def silent(request, served, mirrored):
    return None
def stuck(request, served, mirrored):
    time.sleep(100.0)
def leaves(request, served, mirrored):
    raise SystemExit(2)
async def leaves_in_a_task(request, served, mirrored):
    async def leave():
        raise SystemExit(2)
    await asyncio.create_task(leave())
def ends_its_process(request, served, mirrored):
    os._exit(3)
def prints(request, served, mirrored):
    print("this is not an answer")
    return Half()
class Half:
    def __float__(self):
        return 0.5
"""
# The losses that follow, and none where the judge fails or has no opinion.
VERDICTS = {
    "by_size": 0.0, "awaited": 0.25, "broken": None, "twice": 0.75, "silent": None, "leaves": None,
    "leaves_in_a_task": None, "ends_its_process": None, "stuck": None, "prints": 0.5,
}  # fmt: skip


@contextmanager
def judged(start: Start, lines: str) -> Iterator[RunningMirror]:
    (start.folder / "judges_of_tests.py").write_text(JUDGES)
    with start(f"{ALL}[loss.judge]\n{lines}\n", next='pass_credentials = ["Cookie"]') as running:
        yield running


def test_a_judge_in_python(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(judges, "_RETRIES", Retries(first=0.01))
    with judged(
        start, 'python = "judges_of_tests:compare"\nattempts = 2\ntimeout = 1.0'
    ) as running:
        headers = {"Cookie": "id=7", "X-Some": "thing"}
        for function, loss in VERDICTS.items():
            target = f"/x?stable=status:200&next=bytes:3&judge={function}"
            assert running.http.get(target, headers=headers).text == "stable"
            status = running.settled()
            assert running.losses == ([] if loss is None else [loss]), function
            running.backend.losses.clear()
    assert (status["learned"]["applied"], status["dropped"]["no_opinion"]) == (4, 1)
    assert status["dropped"]["judge_failed"] == 5


def test_judges_that_hang_do_not_end_learning(start: Start) -> None:
    options = "timeout = 1.0\nattempts = 1\nconcurrency = 2\notherwise = 1.0"
    with judged(start, f'python = "judges_of_tests:compare"\n{options}') as running:
        for function in ("stuck", "stuck", "stuck", "awaited"):
            assert running.http.get(f"/ok?judge={function}").text == "stable"
        running.settled()
    assert sorted(running.losses) == [0.25, 1.0, 1.0, 1.0]


@pytest.mark.parametrize(
    ("module", "words"),
    [("import argparse, sys\nsys.exit(2)\n", "SystemExit: 2"), ("oops", "NameError")],
)
def test_a_module_that_does_not_load_is_named_at_the_start(
    start: Start, module: str, words: str
) -> None:
    (start.folder / "judge_that_leaves.py").write_text(module)
    text = '[loss.judge]\npython = "judge_that_leaves:compare"\n'
    with pytest.raises(ParameterError, match=words), start(text) as running:
        running.ended.wait(60)
    checked = run("mirror", "--check", str(start.file(text)))
    assert (checked.exit_code, words in checked.output) == (1, True)


def test_a_judge_over_http(start: Start) -> None:
    said: list[Said] = [
        (200, {}, {"loss": 0.3}), (200, {}, {"preference": "tie"}), (200, {}, b"no JSON"),
        (500, {}, b""), (202, {}, b""), (204, {}, b""),
    ]  # fmt: skip
    with answering(*said) as (url, asked), judged(start, f'url = "{url}"\nattempts = 1') as running:
        for _ in said:
            running.http.post(
                "/x?stable=ok&next=status:404", content=b"\xff", headers={"Cookie": "id=7"}
            )
            status = running.settled()
    assert running.losses == [0.3, 0.5]
    assert (status["learned"]["applied"], status["learned"]["left_to_judge"]) == (2, 1)
    assert (status["dropped"]["judge_failed"], status["dropped"]["no_opinion"]) == (2, 1)
    sent = asked[0].body
    assert sent["decision"].startswith("d-")
    assert (sent["request"]["method"], sent["request"]["body_base64"]) == ("POST", "/w==")
    assert sent["served"]["body"] == "stable"
    assert (sent["mirrored"]["arm"], sent["mirrored"]["status"]) == ("next", 404)
    assert "id=7" not in json.dumps([each.body for each in asked])


def test_a_slow_judge_delays_no_client_and_outlives_a_restart(start: Start) -> None:
    ready, backend = threading.Event(), Fixed()

    def respond(_: object) -> Said:
        ready.wait(60.0)
        return 200, {}, {"loss": 0.75}

    with answering(respond) as (url, asked):
        text = f'drain = 1\n{ALL}[loss.judge]\nurl = "{url}"\n'
        with start(text, backend) as running:
            answers = [running.http.get("/ok?slow-judge").text for _ in range(3)]
            wait_for(lambda: len(asked) == 3, "the judge's questions")
        assert answers == ["stable"] * 3
        assert backend.losses == {}
        before = len(start.arms["next"].seen())
        ready.set()
        with start(text, backend) as running:
            running.settled()
    assert running.losses == [0.75] * 3
    assert len(start.arms["next"].seen()) == before, (
        "those with an answer are judged, not sent again"
    )


# Compressed answers: what a judge sees of them, and how little of a large one is ever expanded

TEXT = b'{"text": "as long as it is, and no longer"}'
LIMIT = 1000


def raw_deflate(content: bytes) -> bytes:
    deflating = zlib.compressobj(9, zlib.DEFLATED, -15)
    return deflating.compress(content) + deflating.flush()


def answer(body: bytes, *codings: str, complete: bool = True) -> Answer:
    headers = (
        ("Content-Type", "application/json"),
        *(("Content-Encoding", each) for each in codings),
    )
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
def test_an_answer_is_complete_if_all_of_it_is_there(
    content: bytes, limit: int, compress: Any
) -> None:
    coding = "gzip" if compress is gzip.compress else "deflate"
    body = compress(content)
    found = expanded(answer(body, coding), limit)
    assert (found.body, found.complete) == (content[:limit], len(content) <= limit)
    cut = expanded(answer(body[:-1], coding), limit)
    assert not cut.complete or cut.body == body[:-1], "a stream that breaks off is not whole"
    assert expanded(answer(b"", coding), limit).complete, "as the answer to HEAD"
    assert not expanded(answer(body + b"more", coding), limit).complete


def test_judged_answers_are_expanded_off_the_loop(
    start: Start, monkeypatch: pytest.MonkeyPatch
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
    head = (
        f"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: {len(body)}\r\n\r\n".encode()
    )
    bomb = base64.urlsafe_b64encode(head + body).decode()
    with answering((200, {}, {"loss": 0.25})) as (url, asked):
        lines = f'[mirror]\nshare = 1.0\nanswer_limit = 50000\n[loss.judge]\nurl = "{url}"\n'
        priced = {"stable": "prices = { tokens = 1 }", "next": "prices = { tokens = 1 }"}
        with start(lines, None, **priced) as running:
            for _ in range(4):
                answered = running.http.get(f"/raw:{bomb}", headers={"Accept-Encoding": "gzip"})
                assert answered.content == usage
            running.settled()
    assert running.losses == [0.25] * 4
    assert (on_loop, set(sizes)) == ([], {50_000})
    for each in asked:
        for shown in (each.body["served"], each.body["mirrored"]):
            assert (len(shown["body"]), shown["complete"], shown["size"]) == (
                50_000,
                False,
                len(body),
            )


FAILING = """
import os
calls = []
class ApiTimeoutError(Exception):
    pass
def compare(request, served, mirrored):
    calls.append(1)
    if request.target == "/calls":
        return {"loss": len(calls) / 100, "cost": 0.25}
    if request.target == "/late" and len(calls) % 2:
        raise ApiTimeoutError
    if request.target == "/late":
        return 0.5
    return served.no_such_thing
"""
FAILED = "judge failed {0} of {0}: AttributeError: 'Answer' object has no attribute 'no_such_thing'"


def test_a_judges_error_is_logged_once_and_counted(
    start: Start, caplog: pytest.LogCaptureFixture
) -> None:
    (start.folder / "failing_judge.py").write_text(FAILING)
    caplog.set_level(logging.WARNING, "decoupled.mirror")
    with start(
        f'{ALL}[loss.judge]\npython = "failing_judge:compare"\nconcurrency = 1\n'
    ) as running:
        for _ in range(12):
            running.http.get("/ok")
            status = running.settled()
        metrics = running.http.get(f"{running.console}/mirror/metrics").text
        running.http.get("/calls")
        judged = running.settled()["judge"]
    assert status["judge"]["failed"] == {"AttributeError": 12}
    assert (status["judge"]["problem"], status["dropped"]["judge_failed"]) == (
        FAILED.format(12),
        12,
    )
    assert running.losses == [0.13], "nobody's bug is tried again"
    assert (judged["judgements"], judged["spent"], judged["position"]) == (13, 0.25, None)
    assert 'decoupled_mirror_judge_failed_total{kind="AttributeError"} 12.0' in metrics
    assert "decoupled_mirror_judgements_total 12.0" in metrics
    first, tenth = [each.getMessage() for each in caplog.records if "judge" in each.getMessage()]
    assert 'failing_judge.py", line 14, in compare\n    return served.no_such_thing' in first
    assert tenth == FAILED.format(10)


def test_it_is_said_beside_the_verdict(start: Start) -> None:
    (start.folder / "failing_judge.py").write_text(FAILING)
    file = start.file(f'{ALL}[loss.judge]\npython = "failing_judge:compare"\n')
    with commanded(file) as (_, console, url):
        assert asking.get(f"{url}/ok").text in ("stable", "next")
        wait_for(lambda: asking.get(f"{console}/mirror").json()["judge"]["failed"], "a failure")
        assert FAILED.format(1) in run("client", "verdict", "mirror", "--url", console).output
        verdict = asking.get(f"{console}/v1/experiments/mirror/verdict").json()
        assert verdict["remark"].endswith(f"; {FAILED.format(1)}"), "the console shows it"


def test_only_what_may_pass_is_tried_again(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(judges, "_RETRIES", Retries(first=0.01))
    (start.folder / "failing_judge.py").write_text(FAILING)
    with start(
        f'{ALL}[loss.judge]\npython = "failing_judge:compare"\nconcurrency = 1\n'
    ) as running:
        running.http.get("/late")
        running.settled()
    assert running.losses == [0.5]
    found: Said = (200, {}, {"loss": 0.75, "cost": 0.5})
    with answering((429, {}, {}), (503, {}, {}), found, (404, {}, {})) as (url, asked):
        with start(f'{ALL}[loss.judge]\nurl = "{url}"\n') as running:
            for _ in range(2):
                running.http.get("/ok")
                status = running.settled()
        assert (running.losses, len(asked)) == ([0.75], 4)
    assert status["judge"]["failed"] == {"status 404": 1}
    assert status["judge"]["spent"] == 0.5


def test_the_check_has_a_sample_judged(start: Start) -> None:
    (start.folder / "checked_judge.py").write_text(FAILING)
    sample = {"request": {"method": "GET", "target": "/calls", "headers": [], "body": ""}}
    answer = {"arm": "a", "status": 200, "headers": [], "body": "hi"}
    (start.folder / "sample.json").write_text(
        json.dumps({**sample, "served": answer, "mirrored": answer})
    )

    def check(lines: str) -> tuple[int, str]:
        said = run("mirror", "--check", str(start.file(f"[loss.judge]\n{lines}\n")))
        return said.exit_code, said.output

    python = 'python = "checked_judge:compare"'
    code, said = check(python)
    assert (code, "no_such_thing" in said) == (1, True)
    assert 'checked_judge.py", line 14, in compare' in said
    assert check(f'{python}\nsample = "sample.json"')[0] == 0
    code, said = check(f'{python}\nsample = "none.json"')
    assert (code, "loss.judge.sample = 'none.json': cannot be read (FileNotFoundError" in said) == (
        1,
        True,
    )
    answers: list[Said] = [(200, {}, {"loss": 0.25}), (202, {}, b""), (500, {}, b"")]
    with answering(*answers) as (url, asked):
        found = [check(f'url = "{url}"') for _ in answers]
    assert [code for code, _ in found] == [0, 0, 1]
    assert "judged a sample pair: loss 0.25" in found[0][1]
    assert ("status 500" in found[2][1], len(asked)) == (True, 3), "a check is one attempt"


def test_kinds_of_failures_are_bounded_and_tell_the_most_frequent() -> None:
    counts = Judgements()
    loud = [
        turn for turn in range(1, 1001) if counts.failed(f"Kind{min(turn, 30)}: {'x' * 500}", 0.0)
    ]
    assert loud == [1, 10, 100, 1000]
    assert (len(counts.failures), counts.failures["other"]) == (21, 980)
    assert len(str(counts.problem)) < 300
