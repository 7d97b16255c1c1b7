"""Losses: what is measured, and what judges say, quickly, slowly or wrongly."""

import asyncio
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from decoupled.cli.main import app
from decoupled.client import Retries
from decoupled.errors import ParameterError
from decoupled_serve.mirror import judges
from decoupled_serve.mirror.config import JudgeConfig, LossConfig, TermConfig
from decoupled_serve.mirror.exchange import Answer, Request
from decoupled_serve.mirror.loss import CopyLoss
from decoupled_serve.mirror.verdict import BadVerdict, loss_of
from support.dropping import Answer as Said
from support.dropping import answering
from support.mirrors.running import Fixed, UpstreamProcess, eventually, mirror, write_config

Arms = dict[str, UpstreamProcess]
ALL = '[mirror]\nshare = 1.0\nrepeat = ["* /*"]\n'
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
    assert loss == pytest.approx((1.0 * 0.5 + 1.0 * 0.25 + 0.5 * 0.5 + 0.5 * 0.25) / 5.0)


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
    assert asyncio.run(CopyLoss(config, None).of("d", Request("GET", "/"), GOOD, answer)) == 1.0


@pytest.mark.parametrize(
    "verdict",
    [
        1.5,
        -0.1,
        float("nan"),
        "better",
        {},
        {"loss": 1, "preference": "tie"},
        {"preference": 1},
        [0.5],
        {"loss": "0.5"},
    ],
)
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
def judged(arms: Arms, folder: Path, lines: str) -> Iterator[tuple[Any, Fixed]]:
    (folder / "judges_of_tests.py").write_text(JUDGES)
    backend = Fixed()
    text = f"{ALL}[loss.judge]\n{lines}\n"
    with mirror(write_config(folder, arms, text, next='pass_credentials = ["Cookie"]'), backend) as running:
        yield running, backend


def test_a_judge_in_python(arms: Arms, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(judges, "_RETRIES", Retries(first=0.01))
    options = "attempts = 2\ntimeout = 1.0"
    with judged(arms, tmp_path, f'python = "judges_of_tests:compare"\n{options}') as (running, backend):
        headers = {"Cookie": "id=7", "X-Some": "thing"}
        for function, loss in VERDICTS.items():
            answer = running.http.get(
                f"/x?stable=status:200&next=bytes:3&judge={function}", headers=headers
            )
            assert answer.text == "stable"
            status = running.settled()
            assert [found for _, found in backend.losses.values()] == ([] if loss is None else [loss]), (
                function
            )
            backend.losses.clear()
    assert (status["learned"]["applied"], status["dropped"]["no_opinion"]) == (4, 1)
    assert status["dropped"]["judge_failed"] == 5


def test_judges_that_hang_do_not_end_learning(arms: Arms, tmp_path: Path) -> None:
    options = "timeout = 1.0\nattempts = 1\nconcurrency = 2\notherwise = 1.0"
    with judged(arms, tmp_path, f'python = "judges_of_tests:compare"\n{options}') as (running, backend):
        for function in ("stuck", "stuck", "stuck", "awaited"):
            assert running.http.get(f"/ok?judge={function}").text == "stable"
        running.settled()
    assert sorted(loss for _, loss in backend.losses.values()) == [0.25, 1.0, 1.0, 1.0]


@pytest.mark.parametrize(
    ("module", "words"), [("import argparse, sys\nsys.exit(2)\n", "SystemExit: 2"), ("oops", "NameError")]
)
def test_a_module_that_cannot_be_loaded_is_named_at_the_start(
    arms: Arms, tmp_path: Path, module: str, words: str
) -> None:
    (tmp_path / "judge_that_leaves.py").write_text(module)
    file = write_config(tmp_path, arms, '[loss.judge]\npython = "judge_that_leaves:compare"\n')
    with pytest.raises(ParameterError, match=words), mirror(file, Fixed()) as running:
        running.ended.wait(60)
    checked = CliRunner().invoke(app, ["mirror", "--check", str(file)])
    assert checked.exit_code == 1
    assert words in checked.output


def test_a_judge_over_http(arms: Arms, tmp_path: Path) -> None:
    said: list[Said] = [
        (200, {}, {"loss": 0.3}), (200, {}, {"preference": "tie"}), (200, {}, b"no JSON"),
        (500, {}, b""), (202, {}, b""), (204, {}, b""),
    ]  # fmt: skip
    with (
        answering(*said) as (url, asked),
        judged(arms, tmp_path, f'url = "{url}"\nattempts = 1') as (running, backend),
    ):
        for _ in said:
            running.http.post("/x?stable=ok&next=status:404", content=b"\xff", headers={"Cookie": "id=7"})
            status = running.settled()
    assert [loss for _, loss in backend.losses.values()] == [0.3, 0.5]
    assert (status["learned"]["applied"], status["learned"]["left_to_judge"]) == (2, 1)
    assert (status["dropped"]["judge_failed"], status["dropped"]["no_opinion"]) == (2, 1)
    sent = asked[0].body
    assert sent["decision"].startswith("d-")
    assert (sent["request"]["method"], sent["request"]["body_base64"]) == ("POST", "/w==")
    assert sent["served"]["body"] == "stable"
    assert (sent["mirrored"]["arm"], sent["mirrored"]["status"]) == ("next", 404)
    assert "id=7" not in json.dumps([each.body for each in asked])


def test_a_slow_judge_delays_no_client_and_outlives_a_restart(arms: Arms, tmp_path: Path) -> None:
    ready = threading.Event()

    def respond() -> Said:
        ready.wait(60.0)
        return 200, {}, {"loss": 0.75}

    with answering(respond) as (url, asked):
        with judged(arms, tmp_path, f'url = "{url}"') as (running, backend):
            file = tmp_path / "mirror.toml"
            file.write_text(file.read_text().replace("console =", "drain = 1\nconsole ="))
        with mirror(file, backend) as running:
            answers = [running.http.get("/ok?slow-judge").text for _ in range(3)]
            eventually(lambda: len(asked) == 3, "the judge's questions")
        assert answers == ["stable"] * 3
        assert backend.losses == {}
        before = len(arms["next"].seen())
        ready.set()
        with mirror(file, backend) as running:
            running.settled()
    assert [loss for _, loss in backend.losses.values()] == [0.75] * 3
    assert len(arms["next"].seen()) == before, (
        "copies that have their answer are judged again, not sent again"
    )
