"""Answers that cannot be read or priced have failed: no arm gains by them, and no client sees anything of it."""

import asyncio
import base64
import gzip
import json
import random
import zlib
from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import pytest

from decoupled_serve.mirror.chat import said
from decoupled_serve.mirror.config import CopyConfig, JudgeConfig, LossConfig
from decoupled_serve.mirror.copies import Copies, Copy
from decoupled_serve.mirror.counts import UNREADABLE, MirrorCounts
from decoupled_serve.mirror.exchange import Answer, Request, Unreadable
from decoupled_serve.mirror.judges import CopyLoss, Judge, Judged
from support.mirrors.running import ALL, Fixed, Start, exchanged
from support.stub_models import chat, responses, stub_models
from support.wire import on_loop

MUTATED = 500
PRICED = (
    'cost = 0.5\ncost_header = "X-Cost"\nprices = { prompt_tokens = 1, completion_tokens = 2 }\n'
)


class Raw(NamedTuple):
    """An answer as an upstream sends it."""

    headers: tuple[str, ...]
    body: bytes

    @property
    def wire(self) -> bytes:
        lines = ("HTTP/1.1 200 OK", *self.headers, f"Content-Length: {len(self.body)}", "", "")
        return "\r\n".join(lines).encode("latin-1") + self.body

    @property
    def target(self) -> str:
        """What tells an upstream to send it."""
        return "/raw:" + base64.urlsafe_b64encode(self.wire).decode()


JSON, EVENTS = "Content-Type: application/json", "Content-Type: text/event-stream"
CALL = {"index": 0, "function": {"name": "add", "arguments": "[1, 2]"}}


def events(*contents: object) -> bytes:
    return b"".join(b"data: %s\n\n" % json.dumps(each).encode() for each in contents)


def chunk(delta: object, index: object = 0, **fields: object) -> dict[str, object]:
    return {"choices": [{"index": index, "delta": delta}], **fields}


WHOLE = chat("m", "It is 408.", False)[0].encode()
GOOD = [
    Raw((JSON,), WHOLE),
    Raw((EVENTS,), chat("m", "It is 408.", True)[0].encode()),
    Raw((EVENTS,), events(chunk({"tool_calls": [CALL]}), chunk({}, usage={"prompt_tokens": 3}))),
    Raw((JSON,), responses("m", False)[0].encode()),
    Raw((EVENTS,), responses("m", True)[0].encode()),
    Raw((JSON, "Content-Encoding: gzip"), gzip.compress(WHOLE, mtime=0)),
    Raw((JSON, "Content-Encoding: deflate"), zlib.compress(WHOLE)),
    Raw((JSON, "X-Cost: 0.25"), WHOLE),
]


def used(usage: str) -> Raw:
    return Raw(
        (JSON,), b'{"choices": [{"message": {"content": "hi"}}], "usage": %s}' % usage.encode()
    )


# Each with the reason by which it counts as failed; None if it can be read and has a loss by its judge.
NAMED: dict[str, tuple[Raw, str | None]] = {
    "401 digits": (used('{"prompt_tokens": %s}' % ("9" * 401)), "price"),
    "5,000 digits": (used('{"prompt_tokens": %s}' % ("9" * 5000)), "json"),
    "negative": (used('{"prompt_tokens": -1}'), "price"),
    "infinite": (used('{"prompt_tokens": 1e999}'), "price"),
    "not a number": (used('{"prompt_tokens": NaN}'), "price"),
    "a list for a count": (used('{"prompt_tokens": []}'), "price"),
    "a list for the usage": (used("[1]"), "price"),
    "a text for a price": (Raw((JSON, "X-Cost: dear"), WHOLE), "price"),
    "an infinite price": (Raw((JSON, "X-Cost: inf"), WHOLE), "price"),
    "half an object": (Raw((JSON,), WHOLE[:-20]), "json"),
    "deeply nested": (Raw((JSON,), b"[" * 20_000), "json"),
    "a broken event": (Raw((EVENTS,), b'data: {"usage": {\n\n'), "json"),
    "gzip that is none": (Raw((JSON, "Content-Encoding: gzip"), WHOLE), "encoding"),
    "gzip that breaks off": (
        Raw((JSON, "Content-Encoding: gzip"), gzip.compress(WHOLE, mtime=0)[:-9]),
        "encoding",
    ),
    "a coding nobody knows": (Raw((JSON, "Content-Encoding: br"), WHOLE), "encoding"),
    "too many codings": (Raw((JSON, f"Content-Encoding: {'gzip,' * 9}"), WHOLE), "encoding"),
    "a list for an index": (Raw((EVENTS,), events(chunk({"content": "hi"}, index=[]))), None),
    "a list for the index of a call": (
        Raw((EVENTS,), events(chunk({"tool_calls": [CALL | {"index": {}}]}))),
        None,
    ),
    "a surrogate pair in two pieces": (
        Raw((EVENTS,), events(chunk({"content": "\ud83d"}), chunk({"content": "\ude00"}))),
        None,
    ),
    "half a surrogate pair": (Raw((JSON,), WHOLE.replace(b"408", b"\\ud800")), None),
    "no UTF-8": (Raw((JSON,), b'{"choices": [{"message": {"content": "\xff"}}]}'), "json"),
    "nothing": (Raw((JSON,), b""), None),
}

# What stands for a value, a byte, a header or a coding.
VALUES = (
    b"null",
    b"[]",
    b"{}",
    b"-1",
    b"1e999",
    b"NaN",
    b"9" * 401,
    b"9" * 5000,
    b'"\\ud800"',
    b'"\\ude00\\ud83d"',
    b"true",
    b'""',
    b"[[]]",
    b'{"index": []}',
    b"\xff\xfe",
    b"\x00",
)
HEADERS = (
    "Content-Encoding: gzip",
    "Content-Encoding: br",
    "Content-Encoding: deflate, gzip",
    "Content-Encoding: ,",
    "Content-Encoding: identity",
    "Content-Type: text/event-stream",
    "Content-Type: application/json; charset=utf-16",
    "Content-Type: \xe9",
    "X-Cost: nan",
    "X-Cost: -1",
    "X-Cost: 1e309",
    "X-Cost: ",
    "X-Cost: 0.25",
)


def mutated(chance: random.Random) -> Raw:
    """A good answer of which one to three things are changed."""
    headers, body = chance.choice(GOOD)
    for _ in range(chance.randrange(1, 4)):
        place, end = sorted(chance.randrange(len(body) + 1) for _ in range(2))
        kind = chance.randrange(6)
        if kind == 0:
            body = body[:place] + chance.choice(VALUES) + body[place:]
        elif kind == 1:
            body = body[:place] + chance.randbytes(1) + body[place + 1 :]
        elif kind == 2:
            body = body[:place] + body[min(end, place + 30) :]
        elif kind == 3:
            body = with_value(body, chance)
        elif kind == 4:
            headers = (*headers, chance.choice(HEADERS))
        else:
            headers = headers[1:]
            body = body + body[place:end]
    return Raw(headers, body)


def with_value(body: bytes, chance: random.Random) -> bytes:
    """The body with another value after one of its colons."""
    colons = [place for place, byte in enumerate(body) if byte == ord(":")]
    if not colons:
        return body
    place = chance.choice(colons) + 1
    length = min(body.find(each, place) % (len(body) + 1) for each in (b",", b"}"))
    return body[:place] + chance.choice(VALUES) + body[max(length, place) :]


def test_every_mutated_answer_has_a_loss_and_reaches_its_client_as_it_is(start: Start) -> None:
    chance = random.Random(8)
    raws = [raw for raw, _ in NAMED.values()] + [mutated(chance) for _ in range(MUTATED)]
    direct = start.arms["stable"].url
    with stub_models() as models:
        models.says["judge"] = lambda body: '{"better": "first"}'
        table = f'[loss.cost]\nhigh = 9.0\n[loss.judge]\nmodel = "judge"\nurl = "{models.url}"\n'
        with start(f"{ALL}{table}", stable=PRICED, next=PRICED) as running:
            for number, raw in enumerate(raws):
                request = (
                    f"GET {raw.target} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n".encode()
                )
                through = exchanged(running.url, request)
                assert content_of(through) == content_of(exchanged(direct, request)), raw
                assert content_of(through)[1] == raw.body
                running.until(partial(has_handled, number + 1))
            status = running.settled()
    assert status["dropped"] == dict.fromkeys(status["dropped"], 0)
    assert status["learned"]["applied"] == len(running.losses) == len(raws)
    assert all(0.0 <= loss <= 1.0 for loss in running.losses)
    assert sum(status["unreadable"].values()) > 100, "many of them cannot be read"
    assert set(status["unreadable"]) == set(UNREADABLE)
    assert status["unreadable"]["error"] == 0, "and it is known why"


def has_handled(count: int, status: dict[str, Any]) -> bool:
    learned = sum(status["learned"].values())
    dropped = sum(status["dropped"].values())
    return bool(learned + dropped >= count)


def content_of(wire: bytes) -> tuple[bytes, bytes]:
    """The status and the body of an answer that declares its length."""
    head, _, body = wire.partition(b"\r\n\r\n")
    return head.split(b"\r\n")[0][:12], body


@pytest.mark.parametrize("name", NAMED)
def test_an_answer_is_read_or_has_failed_with_a_reason(start: Start, name: str) -> None:
    """The explored arm alone gives it. The client gets the good answer of the other one."""
    raw, reason = NAMED[name]
    good = GOOD[0].target.removeprefix("/")
    with stub_models() as models:
        models.says["judge"] = lambda body: '{"better": "tie"}'
        table = f'[loss.judge]\nmodel = "judge"\nurl = "{models.url}"\n'
        with start(f"{ALL}{table}", next=PRICED) as running:
            target = f"/x?stable={good}&next={raw.target.removeprefix('/')}"
            assert running.http.get(target).content == GOOD[0].body
            status = running.settled()
            metrics = running.http.get(f"{running.console}/mirror/metrics").text
    assert running.losses == [0.5 if reason is None else 1.0]
    expected = dict.fromkeys(UNREADABLE, 0)
    if reason is not None:
        expected[reason] = 1
        assert f'decoupled_mirror_unreadable_total{{reason="{reason}"}} 1.0' in metrics
    assert status["unreadable"] == expected
    # A call without a price that can be read counts as the dearest.
    assert status["spent"]["next"] >= (0.5 if reason in ("price", "json") else 0.0)


def test_a_served_answer_that_cannot_be_read_is_not_the_explored_arms_fault(start: Start) -> None:
    good = GOOD[0].target.removeprefix("/")
    bad = NAMED["gzip that is none"][0]
    with stub_models() as models:
        models.says["judge"] = lambda body: json.dumps({"better": better(body)})
        table = f'[loss.judge]\nmodel = "judge"\nurl = "{models.url}"\n'
        with start(f"{ALL}{table}") as running:
            target = f"/x?stable={bad.target.removeprefix('/')}&next={good}"
            headers = {"Accept-Encoding": "identity"}
            with running.http.stream("GET", target, headers=headers) as answer:
                assert b"".join(answer.iter_raw()) == bad.body
            status = running.settled()
    assert running.losses == [0.0]
    assert status["unreadable"]["encoding"] == 1


def better(body: dict[str, Any]) -> str:
    """A judge that prefers an answer to none."""
    first = body["messages"][-1]["content"].partition("first answer]")[2]
    return "second" if first.strip().startswith("(no answer)") else "first"


def test_what_nobody_looks_at_need_not_be_readable(start: Start) -> None:
    with start(ALL) as running:
        for name in ("a coding nobody knows", "half an object"):
            running.http.get(NAMED[name][0].target, headers={"Accept-Encoding": "br"})
        status = running.settled()
    assert running.losses == [0.0, 0.0]
    assert sum(status["unreadable"].values()) == 0


# Whatever else an arm, its reading or its judge raises


class Arm:
    """Answers with what it is given, or raises it."""

    def __init__(self, answer: Answer | Exception) -> None:
        self.answer = answer

    async def copy(self, request: Request) -> Answer:
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


class Raising(Judge):
    """Raises an error that is not one of a judge."""

    async def judge(self, decision: str, request: Request, served: Any, mirrored: Answer) -> Judged:
        raise UnicodeEncodeError("utf-8", "\ud800", 0, 1, "private text")


def raising(error: Exception) -> Callable[[Answer], Answer]:
    def read(answer: Answer) -> Answer:
        raise error

    return read


FINE = Answer("a", 200, (), b"fine", 4)
JUDGED = LossConfig(judge=JudgeConfig(python="a:b"))
CASES: dict[str, dict[str, Any]] = {
    "the arm": {"arm": Arm(KeyError("private text"))},
    "the reading": {"read": raising(ZeroDivisionError("private text"))},
    "the judge": {"loss": CopyLoss(JUDGED, Raising(JudgeConfig(python="a:b")))},
}


@pytest.mark.parametrize("raises", CASES)
@on_loop
async def test_any_other_error_ends_as_a_failed_answer_too(
    raises: str, caplog: pytest.LogCaptureFixture
) -> None:
    given = {"arm": Arm(FINE), "read": None, "loss": CopyLoss(LossConfig(status=1.0))} | CASES[
        raises
    ]
    counts, backend, asked = MirrorCounts(), Fixed(), Request("GET", "/")
    copies = Copies(
        {"a": given["arm"]}, CopyConfig(), given["loss"], backend, counts, read=given["read"]
    )
    for number in range(3):
        assert copies.reserve() is None
        copies.start(Copy(f"d-{number}", "a", asked, asked, None))
    while len(copies):
        await asyncio.sleep(0)
    assert list(backend.losses.values()) == [("a", 1.0)] * 3
    assert counts.unreadable == Counter(error=3)
    assert caplog.text.count("cannot be read and counts as failed") == 1
    assert "private text" not in caplog.text


def test_both_halves_of_a_pair_are_read_as_one_character() -> None:
    halves = events(chunk({"content": "\ud83d"}), chunk({"content": "\ude00 \ud800"}))
    assert said(halves) == "\N{GRINNING FACE} \N{REPLACEMENT CHARACTER}"
    with pytest.raises(Unreadable, match="private") as raised:
        raise Unreadable.of(Unreadable("json", "private"), cost=2.0)
    assert (raised.value.reason, raised.value.cost) == ("json", 2.0)
