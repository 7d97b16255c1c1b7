"""`decoupled client pin`, `unpin`, `down`, `guardrails` and `budget`, as a user calls them."""

import json
import shlex
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from decoupled.cli.main import app
from support.http_service import served
from support.pages import ROOT, commands


def shown(*words: str) -> Any:
    done = CliRunner().invoke(app, ["client", *words])
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout)


def refused(*words: str) -> str:
    done = CliRunner().invoke(app, ["client", *words])
    assert done.exit_code != 0
    return done.output


def test_the_kill_switch_and_the_budget_from_a_shell(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with served(tmp_path) as service:
        monkeypatch.setenv("DECOUPLED_URL", service.url)
        service.create("numbered", arms=[1, 2, "3"])
        assert shown("pin", "numbered", "2")["guardrails"]["pinned"] == 2, "the arm is a number"
        assert shown("decide", "numbered")["guard"] == "pinned"
        assert shown("unpin", "numbered")["guardrails"]["pinned"] is None
        assert shown("down", "numbered", "1", "3")["guardrails"]["down"] == [1, "3"]
        assert shown("decide", "numbered")["explore"] == 2
        assert shown("down", "numbered")["guardrails"]["down"] == []
        changed = shown("guardrails", "numbered", '{"floors": {"1": 0.2}, "holdout": 0.1, "control": 2}')
        assert changed["guardrails"]["floors"] == {"1": 0.2}
        assert shown("guardrails", "numbered", '{"floors": null}')["guardrails"]["holdout"] == 0.1
        assert shown("budget", "numbered", '{"share": 0}')["budget"]["share"] == 0
        limited = shown("decide", "numbered")
        assert (limited["mode"], limited["limited_by"]) == ("exploit", "share")
        assert shown("budget", "numbered", "{}")["budget"]["share"] is None
        shown("create", "compared", "a", "b", "--feedback", "preference", "--guardrails", '{"pinned": "a"}')
        made = shown("decide", "compared")
        assert shown("feedback", made["id"], "--preference", "tie")["loss"] == 0.5

        assert "is not an arm" in refused("pin", "numbered", "9")
        assert "CHANGES = '{': is not JSON" in refused("guardrails", "numbered", "{")
        assert "must be a JSON object" in refused("budget", "numbered", "[]")
        assert "both given" in refused("feedback", made["id"], "--preference", "tie", "--loss", "1")


def test_the_commands_of_the_page_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = list(commands(ROOT / "docs" / "guardrails.md"))
    assert len(lines) == 6
    with served(tmp_path) as service:
        monkeypatch.setenv("DECOUPLED_URL", service.url)
        for line in lines:
            found = shown(*shlex.split(line)[2:])
        assert (found["budget"]["allowance"], found["guardrails"]["incumbent"]) == (
            [50.0, 86400.0],
            "medium",
        )
