"""Who is told what was decided: the log, a file, the metrics, a webhook and the audit trail; each once."""

import json
import logging
from pathlib import Path
from typing import Any

import pytest

from decoupled.client import Retries
from decoupled.client.aio import AsyncClient
from decoupled_serve.mirror import mirror as mirror_module
from decoupled_serve.mirror import news
from decoupled_serve.mirror.backend import Embedded, Remote
from decoupled_serve.mirror.config_file import read_config
from decoupled_serve.mirror.news import Known
from decoupled_serve.service.service import open_service
from support.dropping import answering
from support.http_service import served
from support.mirrors.running import Fixed, UpstreamProcess, asking, eventually, mirror, write_config

Arms = dict[str, UpstreamProcess]
DECIDED = Known("next is better than stable (99.9 %)", ("next", "stable"), "stable", True)


@pytest.fixture(autouse=True)
def _quickly(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mirror_module, "LOOK_EVERY", 0.02)
    monkeypatch.setattr(news, "_RETRIES", Retries(first=0.02))


def test_everybody_is_told_once(arms: Arms, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    backend = Fixed(verdict=Known("too early", incumbent="stable"))
    with answering((200, {}, b"")) as (url, asked):
        file = write_config(
            tmp_path, arms, f'[webhook]\nurl = "{url}"\nheaders = {{ X-Team = "search" }}\n'
        )
        with caplog.at_level(logging.INFO, "decoupled.mirror"), mirror(file, backend) as running:
            before = eventually(lambda: (found := running.status())["verdict"] == "too early" and found)
            backend.verdict = DECIDED
            after = eventually(lambda: (found := running.status())["webhook"]["delivered"] == 2 and found)
            metrics = asking.get(f"{running.console}/mirror/metrics").text
        with mirror(file, backend) as running:  # another start
            eventually(lambda: running.status()["verdict"] == DECIDED.text)
            backend.verdict = Known("stable is better than next (99 %)", ("stable", "next"))
            eventually(lambda: running.status()["webhook"]["delivered"] == 1)
    told = [each.body for each in asked]
    assert (before["decided"], before["released"]) == ({"stable": False, "next": False}, {"stable": False})
    assert (after["decided"], after["released"]) == ({"stable": False, "next": True}, {"stable": True})
    assert 'decoupled_mirror_decided{arm="next"} 1.0' in metrics
    assert 'decoupled_mirror_released{arm="stable"} 1.0' in metrics
    assert 'decoupled_mirror_webhook_total{reason="delivered"} 2.0' in metrics
    assert {(each["event"], each["arm"]) for each in told[:2]} == {
        ("decided", "next"),
        ("released", "stable"),
    }
    assert [(each["event"], each["arm"]) for each in told[2:]] == [("decided", "stable")]
    assert ("mirror", DECIDED.text) in [(each["experiment"], each["text"]) for each in told]
    lines = running.config.file("events").read_text().splitlines()
    assert sorted(lines) == sorted(json.dumps(each) for each in told)
    assert caplog.text.count("decided: next is better than stable (99.9 %)") == 1
    assert caplog.text.count("released: stable was the incumbent") == 1


def test_a_webhook_that_fails_is_asked_again_and_delays_nobody(
    arms: Arms, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    backend = Fixed(verdict=DECIDED._replace(incumbent=None))
    with answering((500, {}, b""), (302, {}, b""), (200, {}, b"")) as (url, told):
        file = write_config(tmp_path, arms, f'[webhook]\nurl = "{url}"\nattempts = 2\n')
        with mirror(file, backend) as running:
            assert running.http.get("/ok").text == "stable"
            eventually(lambda: running.status()["webhook"]["failed"] == 1)
            assert len(told) == 2
        assert not running.config.file("events").exists()
        assert "decided was not delivered in 2 attempts (the status 302)" in caplog.text
        with mirror(file, backend) as running:  # the next start tries again
            eventually(lambda: running.status()["webhook"]["delivered"] == 1)
    assert [each.body["event"] for each in told] == ["decided"] * 3
    assert len(running.config.file("events").read_text().splitlines()) == 1


def test_a_webhook_that_hangs_does_not_hold_up_the_end(arms: Arms, tmp_path: Path) -> None:
    file = write_config(tmp_path, arms, f'[webhook]\nurl = "{arms["next"].url}/hang"\n')
    with mirror(file, Fixed(verdict=DECIDED)) as running:
        eventually(lambda: arms["next"].open() == 2)
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
def test_what_is_learned_is_told_and_recorded(arms: Arms, tmp_path: Path, elsewhere: bool) -> None:
    with served(tmp_path) as service:
        place = f'service = "{service.url}"\n' if elsewhere else ""
        file = write_config(tmp_path, arms, place + RULES)
        config = read_config(file)
        embedded = open_service(tmp_path / "store.db")
        backend = Remote(AsyncClient(service.url), config) if elsewhere else Embedded(embedded, config)
        with mirror(config, backend) as running:

            def decided() -> bool:
                for _ in range(50):
                    running.http.get("/x?stable=status:503&next=status:200")
                found = running.settled()
                return bool(found["decided"]["next"] and found["released"]["stable"])

            eventually(decided, "a verdict")
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
