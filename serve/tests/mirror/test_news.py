"""Who is told what was decided: the log, a file, the metrics, a webhook and the audit trail; each once."""

import json
import logging
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from decoupled.client import Retries
from decoupled.client.aio import AsyncClient
from decoupled_serve.mirror import mirror as mirror_module
from decoupled_serve.mirror import news
from decoupled_serve.mirror.backend import Embedded, Remote
from decoupled_serve.mirror.config_file import read_config
from decoupled_serve.mirror.counts import MirrorCounts
from decoupled_serve.mirror.news import Known
from decoupled_serve.service.service import open_service
from support.dropping import answering
from support.http_service import served
from support.mirrors.running import Fixed, Start, asking, mirror
from support.prometheus import RULES as ALERTS
from support.prometheus import promtool
from support.waiting import wait_for

DECIDED = Known("next is better than stable (99.9 %)", ("next", "stable"), "stable", True)


@pytest.fixture(autouse=True)
def _quickly(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mirror_module, "LOOK_EVERY", 0.02)
    monkeypatch.setattr(news, "_RETRIES", Retries(first=0.02))


def test_everybody_is_told_once(start: Start, caplog: pytest.LogCaptureFixture) -> None:
    backend = Fixed(verdict=Known("too early", incumbent="stable"))
    with answering((200, {}, b"")) as (url, asked):
        file = start.file(f'[webhook]\nurl = "{url}"\nheaders = {{ X-Team = "search" }}\n')
        with caplog.at_level(logging.INFO, "decoupled.mirror"), mirror(file, backend) as running:
            before = running.until(lambda status: status["verdict"] == "too early")
            backend.verdict = DECIDED
            after = running.until(lambda status: status["webhook"]["delivered"] == 2)
            metrics = asking.get(f"{running.console}/mirror/metrics").text
        with mirror(file, backend) as running:  # another start
            wait_for(lambda: running.status()["verdict"] == DECIDED.text)
            backend.verdict = Known("stable is better than next (99 %)", ("stable", "next"))
            running.until(lambda status: status["webhook"]["delivered"] == 1)
    told = [each.body for each in asked]
    assert (before["decided"], before["released"]) == (
        {"stable": False, "next": False},
        {"stable": False},
    )
    assert (after["decided"], after["released"]) == (
        {"stable": False, "next": True},
        {"stable": True},
    )
    assert 'decoupled_mirror_decided{arm="next"} 1.0' in metrics
    assert 'decoupled_mirror_released{arm="stable"} 1.0' in metrics
    assert 'decoupled_mirror_webhook_total{reason="delivered"} 2.0' in metrics
    events = [(each["event"], each["arm"]) for each in told]
    assert set(events[:2]) == {("decided", "next"), ("released", "stable")}
    assert events[2:] == [("decided", "stable")]
    assert ("mirror", DECIDED.text) in [(each["experiment"], each["text"]) for each in told]
    lines = running.config.file("events").read_text().splitlines()
    assert sorted(lines) == sorted(json.dumps(each) for each in told)
    assert caplog.text.count("decided: next is better than stable (99.9 %)") == 1
    assert caplog.text.count("released: stable was the incumbent") == 1


def test_failing_webhooks_are_retried_aside(start: Start, caplog: pytest.LogCaptureFixture) -> None:
    backend = Fixed(verdict=DECIDED._replace(incumbent=None))
    with answering((500, {}, b""), (302, {}, b""), (200, {}, b"")) as (url, told):
        file = start.file(f'[webhook]\nurl = "{url}"\nattempts = 2\n')
        with mirror(file, backend) as running:
            assert running.http.get("/ok").text == "stable"
            running.until(lambda status: status["webhook"]["failed"] == 1)
            assert len(told) == 2
        assert not running.config.file("events").exists()
        assert "decided was not delivered in 2 attempts (the status 302)" in caplog.text
        with mirror(file, backend) as running:  # the next start tries again
            running.until(lambda status: status["webhook"]["delivered"] == 1)
    assert [each.body["event"] for each in told] == ["decided"] * 3
    assert len(running.config.file("events").read_text().splitlines()) == 1


def test_a_webhook_that_hangs_does_not_hold_up_the_end(start: Start) -> None:
    file = start.file(f'[webhook]\nurl = "{start.arms["next"].url}/hang"\n')
    with mirror(file, Fixed(verdict=DECIDED)) as running:
        wait_for(lambda: start.arms["next"].open() == 2)
    assert not running.config.file("events").exists()


RULES = """
[mirror]
share = 1.0
[guardrails]
incumbent = "stable"
[experiment]
seed = 5
"""


def trail(entries: list[Any]) -> dict[str, Any]:
    """The entries of the audit trail about what was found, by their action."""
    found = [each for each in entries if each["caller"] == "service"]
    assert len({each["action"] for each in found}) == len(found)
    return {each["action"]: each for each in found}


@pytest.mark.parametrize("elsewhere", [False, True])
def test_what_is_learned_is_told_and_recorded(
    start: Start, tmp_path: Path, elsewhere: bool
) -> None:
    with served(tmp_path) as service:
        place = f'service = "{service.url}"\n' if elsewhere else ""
        config = read_config(start.file(place + RULES))
        embedded = open_service(tmp_path / "store.db")
        backend = (
            Remote(AsyncClient(service.url), config) if elsewhere else Embedded(embedded, config)
        )
        with mirror(config, backend) as running:

            def decided() -> bool:
                for _ in range(50):
                    running.http.get("/x?stable=status:503&next=status:200")
                found = running.settled()
                return bool(found["decided"]["next"] and found["released"]["stable"])

            wait_for(decided, "a verdict")
            status = running.status()
            if elsewhere:
                entries = service.http.get("/v1/audit").json()["entries"]
            else:
                entries = [each._asdict() for each in embedded.audit.read().result()]
        if elsewhere:
            embedded.close()
    found = trail(entries)
    assert set(found) == {"incumbent.release", "verdict.decide"}
    assert found["incumbent.release"]["old"] == "stable"
    assert found["verdict.decide"]["new"]["decided"] == ["next", "stable"]
    assert status["verdict"].startswith("next is better than stable")
    events = [json.loads(line) for line in config.file("events").read_text().splitlines()]
    assert {each["event"] for each in events} == {"decided", "released"}


def test_the_alerts_are_sound_and_about_metrics_that_there_are(start: Start) -> None:
    [group] = yaml.safe_load((ALERTS / "decoupled-mirror-alerts.yml").read_text())["groups"]
    with start() as running:
        text = asking.get(f"{running.console}/mirror/metrics").text
    exported = set(re.findall(r"^# TYPE (\w+) ", text, re.MULTILINE))
    named = {name for rule in group["rules"] for name in re.findall(r"decoupled_\w+", rule["expr"])}
    assert named <= exported
    tests = yaml.safe_load((ALERTS / "decoupled-mirror-alerts-test.yml").read_text())["tests"]
    asked = [each for test in tests for each in test["promql_expr_test"]]
    for fires in (True, False):
        tested = {
            re.search(r'alertname="(\w+)"', each["expr"])[1]  # type: ignore[index]
            for each in asked
            if bool(each["exp_samples"]) == fires
        }
        assert tested == {rule["alert"] for rule in group["rules"]}
    assert f"{len(group['rules'])} rules found" in promtool(
        "check", "rules", "decoupled-mirror-alerts.yml"
    )
    promtool("test", "rules", "decoupled-mirror-alerts-test.yml")


def test_a_warning_of_the_judge_is_told_once_until_it_is_gone(tmp_path: Path) -> None:
    file = tmp_path / "events.jsonl"
    warned = DECIDED._replace(warning="the judge alone would choose stable")
    known = news.News("mirror", file, None, MirrorCounts())
    for each in (DECIDED, warned, warned, DECIDED, warned):
        known.learn(each, 0.0)
    told = [json.loads(line) for line in file.read_text().splitlines()]
    assert [each["event"] for each in told] == ["decided", "released", "judge", "judge"]
    assert (told[2]["arm"], told[2]["text"]) == ("next", warned.warning)
