"""A sink: copies that another proxy makes, answered at once, explored and judged afterwards."""

import signal
from typing import Any

import pytest

from decoupled.client.errors import StoreError
from decoupled.errors import ParameterError
from decoupled_serve.mirror.config_file import explained
from decoupled_serve.mirror.copies import take_copies
from support.dropping import answering
from support.mirrors.running import Fixed, Start, asking, commanded, connected
from support.waiting import wait_for

SINK = "sink = true\n"


def accounted(status: dict[str, Any]) -> int:
    """How many of the copies that came are explained by a count."""
    found = (*status["not_mirrored"].values(), *status["dropped"].values(), *status["learned"].values())
    return sum(map(int, (*found, status["queue"])))


def test_a_copy_is_answered_at_once_and_explored_afterwards(start: Start) -> None:
    backend = Fixed()
    rules = '[mirror]\nrepeat = ["GET /*", "POST /chat"]\nheaders = { X-Mirrored = "1" }\n'
    with start(SINK + rules, backend) as running:
        before = len(start.arms["stable"].seen())
        answer = running.http.get(
            "/x?copy=status:503&sink-plain", headers={"Cookie": "id=7", "X-Tenant": "a"}
        )
        said = running.http.post("/chat?copy=echo&sink-said", content=b'{"model": "router"}')
        unsafe = running.http.post("/orders?sink-unsafe", content=b"{}")
        status = running.settled()
        assert len(start.arms["stable"].seen()) == before, "only the explored arm is asked"
    assert [each.status_code for each in (answer, said, unsafe)] == [202, 202, 202]
    assert (answer.content, answer.headers.get("date")) == (b"", None)
    [plain], [chat] = start.seen("sink-plain"), start.seen("sink-said")
    headers = dict(plain["headers"])
    assert "cookie" not in headers, "it was not allowed"
    assert headers["x-tenant"] == "a"
    assert headers["x-mirrored"] == "1"
    assert chat["body"] == "eyJtb2RlbCI6ICJyb3V0ZXIifQ=="
    assert not start.seen("sink-unsafe")
    assert sorted(backend.losses.values()) == [("next", 0.0), ("next", 1.0)]
    assert (status["received"], accounted(status)) == (3, 3)
    assert status["not_mirrored"]["not_repeatable"] == 1


def test_the_answer_waits_for_no_arm_and_what_is_not_explored_is_counted(start: Start) -> None:
    backend = Fixed()
    text = f'drain = 1\n{SINK}[mirror]\nqueue = 2\nconcurrency = 1\nbody_limit = 10\nrepeat = ["* /*"]\n'
    with start(text, backend) as running:
        post = running.http.post
        assert post("/x?next=ok&sink-large", content=b"a" * 11).status_code == 202
        assert post("/x?next=ok&sink-large", content=iter([b"a" * 6] * 2)).status_code == 202
        backend.explore = None
        assert post("/x?next=ok&sink-budget", content=b"a").status_code == 202
        wait_for(lambda: running.status()["not_mirrored"]["budget"] == 1, "a budget")
        backend.explore = "next"
        for _ in range(5):
            assert post("/x?next=hang&sink-hangs", content=b"a").status_code == 202
        wait_for(lambda: accounted(running.status()) == 8, "every copy accounted for")
        status = running.status()
        assert {"queue_full": 3, "too_large": 1, "budget": 1}.items() <= status["not_mirrored"].items()
        assert status["dropped"]["too_large"] == 1, "its length was not declared"
        assert (status["received"], status["queue"]) == (8, 2)
    # The one that was on its way must not arrive twice; the one that waited for it is sent later.
    [left] = take_copies(running.config.file("queue"))
    assert (left.arm, left.served) == ("next", None)


def test_without_decisions_copies_are_counted(start: Start, caplog: pytest.LogCaptureFixture) -> None:
    backend = Fixed(failing=StoreError("the disk is full"))
    with start(SINK, backend) as running:
        assert running.http.get("/x?sink-failing").status_code == 202
        wait_for(lambda: running.status()["not_mirrored"]["no_decision"] == 1, "a count")
        backend.failing = ZeroDivisionError("a mistake")
        wait_for(
            lambda: running.http.get("/x?sink-failing") and "a mistake" in caplog.text, "what went wrong"
        )
        wait_for(lambda: accounted(found := running.status()) == found["received"], "every copy counted")
        assert running.status()["queue"] == 0


JUDGE = (
    "def rate(request, mirrored):\n    return 0.25 if request.json()['right'] in mirrored.text else 1.0\n"
)


def test_a_judge_of_the_copy_alone_works_in_a_sink_and_others_are_refused_by_name(start: Start) -> None:
    (start.folder / "rating.py").write_text(JUDGE)
    judge = '[loss.judge]\npython = "rating:rate"\nalone = true\n'
    with start(f'{SINK}[mirror]\nrepeat = ["* /*"]\n{judge}') as running:
        running.http.post("/x?next=ok", json={"right": "next"})
        running.http.post("/x?next=ok", json={"right": "else"})
        running.settled()
    assert sorted(running.losses) == [0.25, 1.0]
    assert explained(running.config).startswith("takes copies on 127.0.0.1:0")

    def refused(text: str) -> str:
        with pytest.raises(ParameterError) as caught:
            explained(start.config(text))
        return str(caught.value)

    by_name = "'rating:rate': compares with the served answer, which a sink does not see; judge the answer"
    assert by_name in refused(SINK + judge.replace("true", "false"))
    by_name = "loss.judge.url = 'http://127.0.0.1:1': compares with the served answer"
    assert by_name in refused(f'{SINK}[loss.judge]\nurl = "http://127.0.0.1:1"\n')
    assert "sticky: a sink serves nobody" in refused(f'{SINK}[sticky]\nheader = "X-User"\n')
    assert "cannot be called with (request, served, mirrored)" in refused(judge.replace("true", "false"))


def test_a_judge_over_http_that_judges_alone_gets_one_answer(start: Start) -> None:
    with answering((200, {}, {"loss": 0.5})) as (url, asked):
        judge = f'[loss.judge]\nurl = "{url}"\nalone = true\n'
        with start(SINK + judge) as running:
            running.http.get("/x?next=ok")
            running.settled()
    assert running.losses == [0.5]
    assert asked[0].body.keys() == {"decision", "request", "mirrored"}


def test_a_copy_that_does_not_come_whole_is_counted(start: Start) -> None:
    text = f'client_timeout = 0.2\n{SINK}[mirror]\nrepeat = ["* /*"]\n'
    begun = b"POST /x?sink-part HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nabc"
    with start(text) as running:
        with connected(running.url) as connection:
            connection.sendall(begun)  # and nothing more
            assert connection.recv(100).startswith(b"HTTP/1.1 408 ")
        with connected(running.url) as connection:
            connection.sendall(begun)
        status = running.until(lambda status: status["dropped"]["client_gone"] == 2)
    assert (status["received"], status["queue"]) == (2, 0)
    assert not start.seen("sink-part")


def test_the_command_takes_copies_and_learns(start: Start) -> None:
    file = start.file('[experiment]\npolicy = "FTPL"\n')
    with commanded(file, "--sink") as (process, console, url):
        for _ in range(40):
            assert asking.get(f"{url}/x?stable=status:503&next=ok").status_code == 202
        status = wait_for(
            lambda: (now := asking.get(f"{console}/mirror").json())["learned"]["applied"] == 40 and now
        )
        state = asking.get(f"{console}/v1/experiments/mirror/state").json()
        process.send_signal(signal.SIGTERM)
        ended, said = process.wait(60), file.with_suffix(".log").read_text()
    assert (ended, "Traceback" in said) == (0, False), said
    assert state["applied"] == sum(status["copied"].values()) == 40, status
    assert status["served"] == {}
