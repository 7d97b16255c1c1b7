"""A judge that fails is loud: at the check, in the log, in the counts, in the metrics and beside the verdict."""

import json
import logging

import pytest
from typer.testing import CliRunner

from decoupled.cli.main import app
from decoupled.client import Retries
from decoupled_serve.mirror import judges
from decoupled_serve.mirror.counts import Judgements
from support.dropping import Answer as Said
from support.dropping import answering
from support.mirrors.running import Start, asking, commanded
from support.waiting import wait_for

ALL = '[mirror]\nshare = 1.0\nrepeat = ["* /*"]\n'
JUDGES = """
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


def test_an_error_of_a_judge_is_logged_once_and_counted(
    start: Start, caplog: pytest.LogCaptureFixture
) -> None:
    (start.folder / "failing_judge.py").write_text(JUDGES)
    caplog.set_level(logging.WARNING, "decoupled.mirror")
    with start(f'{ALL}[loss.judge]\npython = "failing_judge:compare"\nconcurrency = 1\n') as running:
        for _ in range(12):
            running.http.get("/ok")
            status = running.settled()
        metrics = running.http.get(f"{running.console}/mirror/metrics").text
        running.http.get("/calls")
        judged = running.settled()["judge"]
    assert status["judge"]["failed"] == {"AttributeError": 12}
    assert (status["judge"]["problem"], status["dropped"]["judge_failed"]) == (FAILED.format(12), 12)
    assert running.losses == [0.13], "nobody's bug is tried again"
    assert (judged["judgements"], judged["spent"], judged["position"]) == (13, 0.25, None)
    assert 'decoupled_mirror_judge_failed_total{kind="AttributeError"} 12.0' in metrics
    assert "decoupled_mirror_judgements_total 12.0" in metrics
    first, tenth = [each.getMessage() for each in caplog.records if "judge" in each.getMessage()]
    assert 'failing_judge.py", line 14, in compare\n    return served.no_such_thing' in first
    assert tenth == FAILED.format(10)


def test_it_is_said_beside_the_verdict(start: Start) -> None:
    (start.folder / "failing_judge.py").write_text(JUDGES)
    file = start.file(f'{ALL}[loss.judge]\npython = "failing_judge:compare"\n')
    with commanded(file) as (_, console, url):
        assert asking.get(f"{url}/ok").text in ("stable", "next")
        wait_for(lambda: asking.get(f"{console}/mirror").json()["judge"]["failed"], "a failure")
        shown = CliRunner().invoke(app, ["client", "verdict", "mirror", "--url", console])
        assert FAILED.format(1) in shown.output
        remark = asking.get(f"{console}/v1/experiments/mirror/verdict").json()[
            "remark"
        ]  # the console shows it
        assert remark.endswith(f"; {FAILED.format(1)}")


def test_what_may_pass_is_tried_again_and_what_will_not_is_not(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(judges, "_RETRIES", Retries(first=0.01))
    (start.folder / "failing_judge.py").write_text(JUDGES)
    with start(f'{ALL}[loss.judge]\npython = "failing_judge:compare"\nconcurrency = 1\n') as running:
        running.http.get("/late")
        running.settled()
    assert running.losses == [0.5]
    answers: list[Said] = [
        (429, {}, {}),
        (503, {}, {}),
        (200, {}, {"loss": 0.75, "cost": 0.5}),
        (404, {}, {}),
    ]
    with answering(*answers) as (url, asked):
        with start(f'{ALL}[loss.judge]\nurl = "{url}"\n') as running:
            for _ in range(2):
                running.http.get("/ok")
                status = running.settled()
        assert (running.losses, len(asked)) == ([0.75], 4)
    assert status["judge"]["failed"] == {"status 404": 1}
    assert status["judge"]["spent"] == 0.5


def test_the_check_has_a_sample_judged(start: Start) -> None:
    (start.folder / "checked_judge.py").write_text(JUDGES)
    sample = {"request": {"method": "GET", "target": "/calls", "headers": [], "body": ""}}
    answer = {"arm": "a", "status": 200, "headers": [], "body": "hi"}
    (start.folder / "sample.json").write_text(json.dumps({**sample, "served": answer, "mirrored": answer}))

    def check(lines: str) -> tuple[int, str]:
        said = CliRunner().invoke(app, ["mirror", "--check", str(start.file(f"[loss.judge]\n{lines}\n"))])
        return said.exit_code, said.output

    python = 'python = "checked_judge:compare"'
    code, said = check(python)
    assert (code, "no_such_thing" in said, 'checked_judge.py", line 14, in compare' in said) == (
        1,
        True,
        True,
    )
    assert check(f'{python}\nsample = "sample.json"')[0] == 0
    code, said = check(f'{python}\nsample = "none.json"')
    assert (code, "loss.judge.sample = 'none.json': cannot be read (FileNotFoundError" in said) == (1, True)
    answers: list[Said] = [(200, {}, {"loss": 0.25}), (202, {}, b""), (500, {}, b"")]
    with answering(*answers) as (url, asked):
        found = [check(f'url = "{url}"') for _ in answers]
    assert [code for code, _ in found] == [0, 0, 1]
    assert "judged a sample pair: loss 0.25" in found[0][1]
    assert ("status 500" in found[2][1], len(asked)) == (True, 3), "a check is one attempt"


def test_kinds_of_failures_are_bounded_and_tell_the_most_frequent() -> None:
    counts = Judgements()
    loud = [
        number for number in range(1, 1001) if counts.failed(f"Kind{min(number, 30)}: {'x' * 500}", 0.0)
    ]
    assert loud == [1, 10, 100, 1000]
    assert (len(counts.failures), counts.failures["other"]) == (21, 980)
    assert len(str(counts.problem)) < 300
