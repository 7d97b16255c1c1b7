"""A sink: copies that another proxy makes, answered at once, explored and judged afterwards."""

import json
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from decoupled.client.errors import StoreError
from decoupled.errors import ParameterError
from decoupled_serve.mirror.config_file import explained, read_config
from decoupled_serve.mirror.copies import take_copies
from support.dropping import answering
from support.mirrors.running import (
    Fixed,
    UpstreamProcess,
    asking,
    connected,
    eventually,
    mirror,
    write_config,
)

Arms = dict[str, UpstreamProcess]
SINK = "sink = true\n"


def copies_of(arms: Arms, mark: str) -> list[dict[str, Any]]:
    """The requests that the explored arm got with this mark in their target."""
    return [each for each in arms["next"].seen() if mark in each["target"]]


def accounted(status: dict[str, Any]) -> int:
    """How many of the copies that came are explained by a count."""
    found = (*status["not_mirrored"].values(), *status["dropped"].values(), *status["learned"].values())
    return sum(map(int, (*found, status["queue"])))


def test_a_copy_is_answered_at_once_and_explored_afterwards(arms: Arms, tmp_path: Path) -> None:
    backend = Fixed()
    rules = '[mirror]\nrepeat = ["GET /*", "POST /chat"]\nheaders = { X-Mirrored = "1" }\n'
    with mirror(write_config(tmp_path, arms, SINK + rules), backend) as running:
        before = len(arms["stable"].seen())
        answer = running.http.get(
            "/x?copy=status:503&sink-plain", headers={"Cookie": "id=7", "X-Tenant": "a"}
        )
        said = running.http.post("/chat?copy=echo&sink-said", content=b'{"model": "router"}')
        unsafe = running.http.post("/orders?sink-unsafe", content=b"{}")
        status = running.settled()
        assert len(arms["stable"].seen()) == before, "only the explored arm is asked"
    assert [each.status_code for each in (answer, said, unsafe)] == [202, 202, 202]
    assert (answer.content, answer.headers.get("date")) == (b"", None)
    [plain], [chat] = copies_of(arms, "sink-plain"), copies_of(arms, "sink-said")
    headers = dict(plain["headers"])
    assert "cookie" not in headers, "it was not allowed"
    assert headers["x-tenant"] == "a"
    assert headers["x-mirrored"] == "1"
    assert chat["body"] == "eyJtb2RlbCI6ICJyb3V0ZXIifQ=="
    assert not copies_of(arms, "sink-unsafe")
    assert sorted(backend.losses.values()) == [("next", 0.0), ("next", 1.0)]
    assert (status["received"], accounted(status)) == (3, 3)
    assert status["not_mirrored"]["not_repeatable"] == 1


def test_the_answer_waits_for_no_arm_and_what_is_not_explored_is_counted(
    arms: Arms, tmp_path: Path
) -> None:
    backend = Fixed()
    text = f'drain = 1\n{SINK}[mirror]\nqueue = 2\nconcurrency = 1\nbody_limit = 10\nrepeat = ["* /*"]\n'
    with mirror(write_config(tmp_path, arms, text), backend) as running:
        post = running.http.post
        assert post("/x?next=ok&sink-large", content=b"a" * 11).status_code == 202
        assert post("/x?next=ok&sink-large", content=iter([b"a" * 6] * 2)).status_code == 202
        backend.explore = None
        assert post("/x?next=ok&sink-budget", content=b"a").status_code == 202
        eventually(lambda: running.status()["not_mirrored"]["budget"] == 1, "a budget")
        backend.explore = "next"
        for _ in range(5):
            assert post("/x?next=hang&sink-hangs", content=b"a").status_code == 202
        eventually(lambda: accounted(running.status()) == 8, "every copy accounted for")
        status = running.status()
        assert (
            status["not_mirrored"] | {"queue_full": 3, "too_large": 1, "budget": 1}
            == status["not_mirrored"]
        )
        assert status["dropped"]["too_large"] == 1, "its length was not declared"
        assert (status["received"], status["queue"]) == (8, 2)
    # The one that was on its way must not arrive twice; the one that waited for it is sent later.
    [left] = take_copies(running.config.file("queue"))
    assert (left.arm, left.served) == ("next", None)


def test_without_decisions_copies_are_counted_as_such(
    arms: Arms, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    backend = Fixed(failing=StoreError("the disk is full"))
    with mirror(write_config(tmp_path, arms, SINK), backend) as running:
        assert running.http.get("/x?sink-failing").status_code == 202
        eventually(lambda: running.status()["not_mirrored"]["no_decision"] == 1, "a count")
        backend.failing = ZeroDivisionError("a mistake")
        eventually(
            lambda: running.http.get("/x?sink-failing") and "a mistake" in caplog.text, "what went wrong"
        )
        eventually(lambda: accounted(found := running.status()) == found["received"], "every copy counted")
        assert running.status()["queue"] == 0


JUDGE = (
    "def rate(request, mirrored):\n    return 0.25 if request.json()['right'] in mirrored.text else 1.0\n"
)


def test_a_judge_of_the_copy_alone_works_in_a_sink_and_others_are_refused_by_name(
    arms: Arms, tmp_path: Path
) -> None:
    (tmp_path / "rating.py").write_text(JUDGE)
    judge = '[loss.judge]\npython = "rating:rate"\nalone = true\n'
    file = write_config(tmp_path, arms, f'{SINK}[mirror]\nrepeat = ["* /*"]\n{judge}')
    backend = Fixed()
    with mirror(file, backend) as running:
        running.http.post("/x?next=ok", json={"right": "next"})
        running.http.post("/x?next=ok", json={"right": "else"})
        running.settled()
    assert sorted(backend.losses.values()) == [("next", 0.25), ("next", 1.0)]
    assert explained(read_config(file)).startswith("takes copies on 127.0.0.1:0")

    def refused(text: str) -> str:
        with pytest.raises(ParameterError) as caught:
            explained(read_config(write_config(tmp_path, arms, text)))
        return str(caught.value)

    by_name = "'rating:rate': compares with the served answer, which a sink does not see; judge the answer"
    assert by_name in refused(SINK + judge.replace("true", "false"))
    by_name = "loss.judge.url = 'http://127.0.0.1:1': compares with the served answer"
    assert by_name in refused(f'{SINK}[loss.judge]\nurl = "http://127.0.0.1:1"\n')
    assert "sticky: a sink serves nobody" in refused(f'{SINK}[sticky]\nheader = "X-User"\n')
    assert "cannot be called with (request, served, mirrored)" in refused(judge.replace("true", "false"))


def test_a_judge_over_http_that_judges_alone_gets_one_answer(arms: Arms, tmp_path: Path) -> None:
    backend = Fixed()
    with answering((200, {}, {"loss": 0.5})) as (url, asked):
        judge = f'[loss.judge]\nurl = "{url}"\nalone = true\n'
        with mirror(write_config(tmp_path, arms, SINK + judge), backend) as running:
            running.http.get("/x?next=ok")
            running.settled()
    assert list(backend.losses.values()) == [("next", 0.5)]
    assert asked[0].body.keys() == {"decision", "request", "mirrored"}


def test_a_copy_that_does_not_come_whole_is_counted(arms: Arms, tmp_path: Path) -> None:
    text = f'client_timeout = 0.2\n{SINK}[mirror]\nrepeat = ["* /*"]\n'
    begun = b"POST /x?sink-part HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nabc"
    with mirror(write_config(tmp_path, arms, text), Fixed()) as running:
        with connected(running.url) as connection:
            connection.sendall(begun)  # and nothing more
            assert connection.recv(100).startswith(b"HTTP/1.1 408 ")
        with connected(running.url) as connection:
            connection.sendall(begun)
        status = eventually(lambda: (found := running.status())["dropped"]["client_gone"] == 2 and found)
    assert (status["received"], status["queue"]) == (2, 0)
    assert not copies_of(arms, "sink-part")


def test_the_command_takes_copies_and_learns(arms: Arms, tmp_path: Path) -> None:
    file = write_config(tmp_path, arms, '[experiment]\npolicy = "FTPL"\n')
    command = [sys.executable, "-m", "decoupled", "mirror", str(file), "--sink"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None
    lines = [process.stdout.readline() for _ in range(2)]
    console, url = (re.search(r"http://\S+", line)[0] for line in lines)  # type: ignore[index]
    assert lines[1].startswith("Taking copies on ")
    for _ in range(40):
        assert asking.get(f"{url}/x?stable=status:503&next=ok").status_code == 202
    status = eventually(
        lambda: (found := asking.get(f"{console}/mirror").json())["learned"]["applied"] == 40 and found
    )
    state = asking.get(f"{console}/v1/experiments/mirror/state").json()
    process.send_signal(signal.SIGTERM)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 0, errors
    assert "Traceback" not in errors
    assert state["applied"] == sum(status["copied"].values()) == 40, json.dumps(status)
    assert status["served"] == {}
