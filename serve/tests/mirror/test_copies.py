"""What is mirrored, what is not, and what a copy carries."""

import asyncio
import base64
import re
from functools import partial
from pathlib import Path

import pytest

from decoupled_serve.mirror.backend import experiment_settings
from decoupled_serve.mirror.config import CopyConfig, LossConfig
from decoupled_serve.mirror.config_file import read_config
from decoupled_serve.mirror.copies import Copies, Copy, take_copies
from decoupled_serve.mirror.counts import MirrorCounts
from decoupled_serve.mirror.exchange import Answer, Request
from decoupled_serve.mirror.loss import CopyLoss
from decoupled_serve.mirror.prefetch import MOST
from support.mirrors.running import (
    Fixed,
    UpstreamProcess,
    connected,
    echoed,
    eventually,
    mirror,
    write_config,
)

Arms = dict[str, UpstreamProcess]
SHARE = "[mirror]\nshare = 1.0\n"


def copies_of(arms: Arms, mark: str) -> list[dict[str, object]]:
    """The requests that the mirrored arm got with this mark in their target."""
    return [each for each in arms["next"].seen() if mark in each["target"]]


def test_only_safe_methods_are_mirrored_unless_told(arms: Arms, tmp_path: Path) -> None:
    with mirror(write_config(tmp_path, arms, SHARE), Fixed()) as running:
        for method in ("GET", "HEAD", "OPTIONS", "POST", "PUT", "DELETE", "PATCH"):
            running.http.request(method, "/ok?safe-only")
        status = running.settled()
    assert [each["method"] for each in copies_of(arms, "safe-only")] == ["GET", "HEAD", "OPTIONS"]
    assert status["not_mirrored"]["not_repeatable"] == 4


def test_rules_by_path_and_header(arms: Arms, tmp_path: Path) -> None:
    rules = 'repeat = ["GET /*", "POST /search*"]\nskip = ["GET /logout"]\ndry_run_header = "X-Dry-Run"\n'
    requests = [
        ("POST", "/search/all?rules", {}, True),
        ("POST", "/orders?rules", {}, False),
        ("POST", "/orders?rules&dry", {"X-Dry-Run": "yes"}, True),
        ("GET", "/logout?rules", {}, False),
        ("GET", "/log%6fut?rules", {}, False),
        ("POST", "/search/%2e%2e/orders?rules", {}, False),
    ]
    with mirror(write_config(tmp_path, arms, SHARE + rules), Fixed()) as running:
        for method, path, headers, _ in requests:
            assert running.http.request(method, path, headers=headers).status_code == 200
        running.settled()
    expected = [(method, path) for method, path, _, mirrored in requests if mirrored]
    assert sorted((each["method"], each["target"]) for each in copies_of(arms, "rules")) == sorted(expected)


def test_credentials_go_only_where_they_are_meant_to(
    arms: Arms, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NEXT_KEY", "secret-of-next")
    extra = 'credentials = ["X-Tenant-Token"]\nheaders = { X-Mirrored = "1" }\n'
    stable = 'pass_credentials = ["Authorization"]'
    next_ = 'headers = { Authorization = "Bearer ${NEXT_KEY}" }\npass_credentials = ["Cookie"]'
    file = write_config(tmp_path, arms, SHARE + extra, stable=stable, next=next_)
    sent = {
        "Authorization": "Bearer of-the-client",
        "Cookie": "id=7",
        "X-Api-Key": "k",
        "X-Tenant-Token": "t",
    }
    with mirror(file, Fixed()) as running:
        served = dict(echoed(running.http.get("/echo?secrets", headers=sent))["headers"])
        running.settled()
    [copy] = copies_of(arms, "secrets")
    copied = dict(copy["headers"])  # type: ignore[call-overload]
    assert served["authorization"] == "Bearer of-the-client"
    assert not {"cookie", "x-api-key", "x-tenant-token", "x-mirrored"} & served.keys()
    assert copied["authorization"] == "Bearer secret-of-next"
    assert copied["cookie"] == "id=7"
    assert copied["x-mirrored"] == "1"
    assert not {"x-api-key", "x-tenant-token"} & copied.keys()


def test_a_body_above_the_limit_is_served_and_not_mirrored(arms: Arms, tmp_path: Path) -> None:
    limit = 'repeat = ["* /*"]\nbody_limit = 1000\n'
    with mirror(write_config(tmp_path, arms, SHARE + limit), Fixed()) as running:
        known = running.http.post("/echo?limit", content=b"a" * 1001)
        unknown = running.http.post("/echo?limit", content=iter([b"a" * 600, b"b" * 600]))
        within = running.http.post("/echo?limit&within", content=b"c" * 1000)
        status = running.settled()
    assert len(base64.b64decode(echoed(known)["body"])) == 1001
    assert len(base64.b64decode(echoed(unknown)["body"])) == 1200
    assert len(base64.b64decode(echoed(within)["body"])) == 1000
    assert len(copies_of(arms, "limit")) == 1
    assert status["not_mirrored"]["too_large"] == 1  # its length was declared
    assert status["dropped"]["too_large"] == 1


def test_the_queue_is_bounded_and_what_is_not_mirrored_is_counted(arms: Arms, tmp_path: Path) -> None:
    lines = f"drain = 1\n{SHARE}queue = 3\nconcurrency = 1\n"
    with mirror(write_config(tmp_path, arms, lines), Fixed()) as running:
        for _ in range(10):
            assert running.http.get("/x?stable=ok&next=hang&bounded").text == "stable"
            assert running.status()["queue"] <= 3
        assert running.status()["not_mirrored"]["queue_full"] == 7
    assert len(copies_of(arms, "bounded")) == 1
    # The one that was on its way must not arrive twice, and the two that waited for it are not sent any more.
    [copy] = take_copies(running.config.file("queue"))
    assert copy.mirrored is not None
    assert copy.mirrored.status is None


def test_the_queue_is_bounded_in_bytes(arms: Arms, tmp_path: Path) -> None:
    bounds = 'queue_bytes = 2500\nrepeat = ["* /*"]\n'
    with mirror(write_config(tmp_path, arms, f"drain = 1\n{SHARE}{bounds}"), Fixed()) as running:
        for _ in range(10):
            running.http.post("/x?stable=ok&next=hang&in-bytes", content=b"a" * 1000)
        status = running.status()
    assert status["not_mirrored"]["queue_full"] == 7
    assert status["queue_bytes"] == 3000  # no room was left after the third


def test_a_decision_that_may_not_explore_serves_and_is_not_mirrored(arms: Arms, tmp_path: Path) -> None:
    with mirror(write_config(tmp_path, arms, SHARE), Fixed(explore=None)) as running:
        answer = running.http.get("/ok?no-exploring")
        status = running.settled()
    assert answer.text == "stable"
    assert copies_of(arms, "no-exploring") == []
    assert status["not_mirrored"]["budget"] == 1
    assert status["repeated"] == 0


def test_the_share_of_mirrored_requests(arms: Arms, tmp_path: Path) -> None:
    with mirror(
        write_config(tmp_path, arms, "[mirror]\nshare = 0.25\n[experiment]\nseed = 3\n"), Fixed()
    ) as running:
        for _ in range(200):
            running.http.get("/ok")
        status = running.settled()
    mirrored = status["copied"]["next"] + status["not_mirrored"]["no_decision"]
    # Binomial(200, 1/4): outside 24 to 78 once in 10^5 runs; the seed makes it the same in each.
    assert 24 <= mirrored <= 78
    assert mirrored + status["not_mirrored"]["share"] == 200


def test_the_served_answer_stands_for_a_copy_to_the_same_arm(arms: Arms, tmp_path: Path) -> None:
    before = len(arms["stable"].seen())
    backend = Fixed(explore="stable")
    with mirror(write_config(tmp_path, arms, SHARE), backend) as running:
        running.http.get("/status:500")
        running.http.get("/ok")
        status = running.settled()
    assert len(arms["stable"].seen()) == before + 2
    assert [loss for _, loss in backend.losses.values()] == [1.0, 0.0]
    assert status["reused"] == {"stable": 2}


def test_a_duration_needs_a_copy_of_its_own(arms: Arms, tmp_path: Path) -> None:
    before = len(arms["stable"].seen())
    loss = "[loss]\nduration = { high = 10.0 }\n"
    with mirror(write_config(tmp_path, arms, SHARE + loss), Fixed(explore="stable")) as running:
        running.http.get("/ok")
        running.settled()
    assert len(arms["stable"].seen()) == before + 2


def test_what_a_restart_does_to_copies_does_not_depend_on_their_arm(arms: Arms, tmp_path: Path) -> None:
    """Those that were not sent are left out, with credentials or without; one that was sent has failed."""
    file = write_config(
        tmp_path, arms, f"drain = 1\n{SHARE}concurrency = 1\n", next='pass_credentials = ["Cookie"]'
    )
    backend = Fixed()
    with mirror(file, backend) as running:
        running.http.get("/x?stable=ok&next=hang&on-its-way", headers={"Cookie": "id=7"})
        eventually(lambda: copies_of(arms, "on-its-way"))
        running.http.get("/x?stable=ok&next=ok&waiting")
        running.http.get("/x?stable=ok&next=ok&waiting", headers={"Cookie": "id=7"})
    assert (backend.losses, backend.closed) == ({}, True)
    unused = backend.forgotten
    assert {"d-9", "d-10"} <= set(unused), (
        "the two that waited; four to serve and to mirror are drawn after eight"
    )
    queue = running.config.file("queue")
    assert queue.stat().st_mode & 0o777 == 0o600
    assert "id=7" not in queue.read_text()
    queue.write_text(queue.read_text() + "not JSON\n")
    with mirror(file, backend) as running:
        status = running.settled()
    assert backend.losses == {"d-8": ("next", 1.0)}
    assert status["learned"]["applied"] == 1
    assert take_copies(queue) == []
    assert (len(copies_of(arms, "on-its-way")), copies_of(arms, "waiting")) == (1, [])


@pytest.mark.parametrize("explore", ["stable", "next"])
def test_an_answer_counts_also_if_its_client_has_left(arms: Arms, tmp_path: Path, explore: str) -> None:
    """Whichever arm is explored: if slow answers of the one that serves did not count, it would gain by being slow."""
    backend = Fixed(explore=explore)
    lines = f"{SHARE}timeout = 0.5\n[loss]\nstatus = 1.0\nlatency = {{ weight = 3.0, high = 0.2 }}\n"

    def learned(count: int) -> bool:
        return len(backend.losses) == count

    with mirror(write_config(tmp_path, arms, lines), backend) as running:
        for count, path in enumerate(("/x?stable=slow:0.3&next=ok", "/x?stable=hang&next=ok"), 1):
            leaving = connected(running.url)
            leaving.sendall(f"GET {path}&leaving HTTP/1.1\r\nHost: a\r\n\r\n".encode())
            eventually(lambda: arms["stable"].open() == 1, "the request")
            leaving.close()
            eventually(partial(learned, count), "its loss")
        status = running.settled()
    losses = [loss for _, loss in backend.losses.values()]
    if explore == "stable":
        assert losses == [0.75, 1.0], "late, and never"
    else:
        assert max(losses) < 0.75
    assert status["served"]["stable"] == {"client gone": 2}
    assert sum(status["dropped"].values()) == 0


def test_an_answer_that_a_copy_would_not_have_waited_for_is_none(arms: Arms, tmp_path: Path) -> None:
    losses = {}
    for explore in ("stable", "next"):
        backend = Fixed(explore=explore)
        with mirror(write_config(tmp_path, arms, f"{SHARE}timeout = 0.1\n"), backend) as running:
            assert running.http.get("/slow:0.5").text == "stable"
            running.settled()
        [losses[explore]] = [loss for _, loss in backend.losses.values()]
    assert losses == {"stable": 1.0, "next": 1.0}


class Arm:
    """An upstream that answers when it is told to."""

    def __init__(self) -> None:
        self.asked, self.answers = 0, asyncio.Event()

    async def copy(self, request: Request) -> Answer:
        self.asked += 1
        await self.answers.wait()
        return Answer("any", 200)


def test_all_arms_share_the_slots_in_which_copies_are_sent() -> None:
    """Else the copies of a slow arm alone would wait, and which are dropped would depend on the arm."""

    async def scenario() -> None:
        arms, backend, asked = {"slow": Arm(), "quick": Arm()}, Fixed(), Request("GET", "/")
        arms["quick"].answers.set()
        loss = CopyLoss(LossConfig(status=1.0))
        copies = Copies(arms, CopyConfig(concurrency=2, queue=4), loss, backend, MirrorCounts())
        for number, arm in enumerate(["slow", "slow", "quick", "quick"]):
            assert copies.reserve() is None
            copies.start(Copy(f"d-{number}", arm, asked, asked, None))
        for _ in range(50):
            await asyncio.sleep(0)
        assert (arms["slow"].asked, arms["quick"].asked, backend.losses) == (2, 0, {})
        assert copies.reserve() == "queue_full"
        arms["slow"].answers.set()
        while len(copies):
            await asyncio.sleep(0)
        assert len(backend.losses) == 4

    asyncio.run(scenario())


def test_no_copy_is_so_slow_that_verdicts_leave_it_out(tmp_path: Path, arms: Arms) -> None:
    """A verdict waits for a loss until many newer decisions were made, so these must not be made."""

    async def scenario() -> None:
        both, asked = {"slow": Arm(), "quick": Arm()}, Request("GET", "/")
        both["quick"].answers.set()
        config = CopyConfig(queue=3)
        copies = Copies(both, config, CopyLoss(LossConfig(status=1.0)), Fixed(), MirrorCounts())

        async def begin(arm: str) -> str | None:
            reason = copies.reserve()
            if reason is None:
                copies.start(Copy("d", arm, asked, asked, None))
                while arm == "quick" and len(copies) > 1:
                    await asyncio.sleep(0)
            return reason

        assert [await begin(arm) for arm in ["slow", *["quick"] * 40]] == [None] * 24 + ["queue_full"] * 17
        both["slow"].answers.set()
        while len(copies):
            await asyncio.sleep(0)
        assert await begin("slow") is None

    asyncio.run(scenario())
    settings = experiment_settings(read_config(write_config(tmp_path, arms, "[mirror]\nqueue = 3\n")))
    assert settings["patience"] > 24 + MOST


def test_two_hundred_streams_at_once(arms: Arms, tmp_path: Path) -> None:
    with mirror(
        write_config(tmp_path, arms, SHARE + 'headers = { X-Mirrored = "1" }\n'), Fixed()
    ) as running:
        port = int(running.url.rpartition(":")[2])
        answers = asyncio.run(streams(port, 200, "/events:5:0.1?copy=ok"))
        status = running.settled()
    for answer in answers:
        content = answer.partition(b"\r\n\r\n")[2]
        events = re.findall(rb"data: (?:stable|next) (\d)\n\n\r\n", content)
        assert events == [b"0", b"1", b"2", b"3", b"4"]
        assert content.endswith(b"0\r\n\r\n"), "the stream is whole"
    mirrored = sum(status["copied"].values()) + sum(status["reused"].values())
    assert mirrored + status["not_mirrored"]["no_decision"] == 200
    assert status["learned"]["applied"] == mirrored


async def streams(port: int, count: int, target: str) -> list[bytes]:
    """The answers to the same request from many connections that are open at once."""
    opened = [await asyncio.open_connection("127.0.0.1", port) for _ in range(count)]
    for _, writer in opened:
        writer.write(f"GET {target} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n".encode())
    answers = await asyncio.gather(*(reader.read() for reader, _ in opened))
    for _, writer in opened:
        writer.close()
    return answers
