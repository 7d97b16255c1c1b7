"""`decoupled client`, as a user calls it: tags, lists, deleting, moving learners and logs, guardrails and budgets."""

import json
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

import decoupled as dc
from decoupled.cli import client, verdict
from support import command_line
from support.command_line import run
from support.http_service import served


def said(*words: str, text: str | None = None) -> str:
    return command_line.said("client", *words, input=text)


def shown(*words: str) -> Any:
    return json.loads(said(*words))


def refused(*words: str) -> str:
    done = run("client", *words)
    assert done.exit_code != 0
    return done.output


def refused_as_usage(*words: str) -> str:
    """What a command says of a wrong command line, for which docs/commands.md promises the exit
    status 2.
    """
    done = run("client", *words)
    assert done.exit_code == 2
    return done.output


def test_tags_lists_and_deleting_from_a_shell(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with served(tmp_path, delete_after=0.0) as service:
        monkeypatch.setenv("DECOUPLED_URL", service.url)
        service.create("colours")
        service.create("other", policy={"name": "Exp3"})
        tags = ("--tag", "country:de", "--tag", "page:a:b")
        made = shown("decide", "colours", *tags, "--baseline", '{"red": 0.2}')
        assert (made["tags"], made["baseline"]) == ({"country": "de", "page": "a:b"}, {"red": 0.2})
        shown("decide", "colours", "--tag", "country:fr")
        kept = [shown("decide", "colours", "--key", "session-17") for _ in range(4)]
        assert len({(each["exploit"], each["key"]) for each in kept}) == 1
        assert "session-17" not in json.dumps(kept)
        assert "key: has 0 bytes" in refused("decide", "colours", "--key", "")
        [line] = said("decisions", "colours", *tags).splitlines()
        assert json.loads(line)["id"] == made["id"]
        assert len(said("decisions", "colours", "--most", "1").splitlines()) == 1
        said("log", "colours", str(tmp_path / "log.csv"), "--tag", "country:de")
        assert len((tmp_path / "log.csv").read_text().splitlines()) == 2
        assert shown("evaluate", "colours", "--tag", "country:de")["decisions"] == 1
        assert "NAME:VALUE" in refused("decide", "colours", "--tag", "country")

        fields = (
            "--context",
            '{"subject": "text"}',
            "--unknown-context",
            "ignore",
            "--log-context",
            "hashed",
        )
        assert (
            shown("create", "known", "a", "b", "--policy", "FTPL", *fields)["log_context"]
            == "hashed"
        )
        made = shown("decide", "known", "--context", '{"subject": "law", "tokens": 3}')
        assert (list(made["context"]), made["context"] != {"subject": "law"}) == (["subject"], True)
        table = said("segments", "known", "--by", "subject")
        assert "too early: no segment is decided" in table
        assert f"{made['context']['subject']}  1          0" in table
        [law] = shown("segments", "known", "--json")["segments"]
        assert law["segment"] == made["context"]
        assert "takes none" in refused("decide", "known", "--advice", '{"router": "a"}')
        assert shown("decide", "known", "--why")["why"] is None
        assert shown("show", "known", "--context", '{"subject": "law"}')["exploration"] == [
            0.5,
            0.5,
        ]
        assert "must be a JSON object" in refused("show", "known", "--context", "[]")

        assert said("list", "--policy", "Exp3").split()[0] == "other"
        assert [line.split()[0] for line in said("list", "--sort", "-name").splitlines()] == [
            "other",
            "known",
            "colours",
        ]
        assert "sort" in refused("list", "--sort", "size")

        assert "archive it first" in refused("delete", "other", "--confirm", "other")
        shown("archive", "other")
        assert "must be the name" in refused("delete", "other", "--confirm", "otter")
        assert '"deleted_at"' in said("delete", "other", text="other\n")
        assert said("list").split()[0] == "colours"


def test_learners_and_logs_move_from_a_shell(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with served(tmp_path) as service:
        monkeypatch.setenv("DECOUPLED_URL", service.url)
        learner = dc.FTPL().start(["a", "b"], seed=7, loss_range=(0, 5))
        learner.replay([("a", 0.5, 1.0), ("b", 0.5, 4.0)])
        saved, back, log = (tmp_path / name for name in ("saved.json", "back.json", "log.jsonl"))
        learner.save(saved)
        created = shown("create", "moved", "--learner", str(saved))
        assert (created["arms"], created["loss_range"]) == (["a", "b"], [0.0, 5.0])
        assert created["imported"] is not None
        said("learner", "moved", str(back))
        assert dc.Learner.load(back).decide() == learner.decide()
        assert "exists already" in refused("learner", "moved", str(back))
        log.write_text('{"explore": "a", "propensity": 0.5, "loss": 3}\n')
        assert shown("replay", "moved", str(log))["learned"] == 1
        assert shown("replay", "moved", str(log))["already"] == 1
        assert "suffix" in refused("replay", "moved", str(saved))
        assert "--learner" in refused("create", "nothing")
        back.write_bytes(bytes(range(128, 256)))
        assert "is not text; give what Learner.save wrote" in refused(
            "create", "x", "--learner", str(back)
        )
        assert "--learner" in refused("create", "both", "a", "b", "--learner", str(saved))


def test_the_kill_switch_and_budget_from_a_shell(
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
        changed = shown(
            "guardrails", "numbered", '{"floors": {"1": 0.2}, "holdout": 0.1, "control": 2}'
        )
        assert changed["guardrails"]["floors"] == {"1": 0.2}
        assert shown("guardrails", "numbered", '{"floors": null}')["guardrails"]["holdout"] == 0.1
        assert shown("budget", "numbered", '{"share": 0}')["budget"]["share"] == 0
        limited = shown("decide", "numbered")
        assert (limited["mode"], limited["limited_by"]) == ("exploit", "share")
        assert shown("budget", "numbered", "{}")["budget"]["share"] is None
        shown(
            "create",
            "compared",
            "a",
            "b",
            "--feedback",
            "preference",
            "--guardrails",
            '{"pinned": "a"}',
        )
        made = shown("decide", "compared")
        assert shown("feedback", made["id"], "--preference", "tie")["loss"] == 0.5

        assert "is not an arm" in refused("pin", "numbered", "9")
        assert "CHANGES = '{': is not JSON" in refused_as_usage("guardrails", "numbered", "{")
        assert "must be a JSON object" in refused_as_usage("budget", "numbered", "[]")
        assert "both given" in refused("feedback", made["id"], "--preference", "tie", "--loss", "1")


class Deciding:
    """A service whose experiment is decided at the fourth look."""

    def __init__(self) -> None:
        self.states = ["open", "open", "narrowed", "decided"]

    def verdict(self, name: str) -> dict[str, Any]:
        state = self.states.pop(0)
        return {"state": state, "text": f"{name} is {state}"}


def test_a_verdict_is_waited_for_until_it_is_decided(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verdict, "LOOK_EVERY", 0.0)
    monkeypatch.setattr(client, "connected", lambda url, key_file: nullcontext(Deciding()))
    said = run("client", "verdict", "models", "--wait", "--json")
    assert said.exit_code == 0
    assert '"models is decided"' in said.stdout
    assert said.stderr == "models is open\nmodels is narrowed\n"


def test_judged_and_labelled_from_a_shell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with served(tmp_path) as service:
        monkeypatch.setenv("DECOUPLED_URL", service.url)
        made = shown(
            "create",
            "one",
            "a",
            "b",
            "--policy",
            "FTPL",
            "--labels",
            '{"share": 0.1, "deadline": 50}',
        )
        assert (made["labels"]["share"], made["patience"]) == (0.1, 50)
        one, two = (shown("decide", "one")["id"] for _ in range(2))
        assert shown("feedback", one, "--judged", "2.5e-1", "--position", "1")["judged"] == 0.25
        assert shown("labels", "one")["awaiting"] == 1
        assert shown("label", one, "--loss", "1")["status"] == "applied"
        assert shown("feedback", two, "--judged", "1", "--loss", "0")["status"] == "applied"
        assert "this experiment takes the loss" in refused("feedback", two, "--judged", "tie")
        text = said("verdict", "one")
        assert "The judge alone would say: too early" in text
        assert "2 labels, 0 missing, 0 awaited; the judge counts" in text


@pytest.mark.parametrize(("sure", "high"), [(0.999, 0.3), (0.8, 0.5)])
def test_a_verdict_says_why_a_gate_may_differ_and_intervals_overlap(
    sure: float, high: float
) -> None:
    def mean(arm: str, estimate: float, low: float, high: float, seen: int = 90) -> dict[str, Any]:
        return {
            "arm": arm,
            "observed": seen,
            "loss": {"estimate": estimate, "low": low, "high": high},
        }

    found = {
        "text": "b is better than a", "state": "decided", "best": "b", "out": ["a"], "sure": sure, "decided_at": 1234,
        "risk": 0.05, "drift": True, "since": None, "remark": None, "incumbent": None, "regret": None,
        "arms": [mean("a", 0.6, 0.4, 0.8), mean("b", 0.2, 0.1, high), mean("new", 0.5, 0.0, 1.0, seen=0)],
    }  # fmt: skip
    text = verdict.verdict_text(found)
    assert (
        f"Decided at round 1,234; the evidence now shows the same at a level of {100 * sure:.4g} %"
        in text
    )
    assert ("a gate goes by the evidence now, so it may not pass" in text) == (sure < 0.95)
    assert ("Intervals of means overlap" in text) == (high >= 0.4)
    assert next(line for line in text.splitlines() if line.startswith("new")).split() == [
        "new",
        *"---",
        "0",
    ]


def test_a_verdict_says_once_what_it_waits_for() -> None:
    waits = "3 losses wait for that of decision 1f2e-7, for at most 20 more decisions"
    found: dict[str, Any] = dict.fromkeys(("since", "regret", "incumbent", "sure", "decided_at"))
    found |= {"risk": 0.05, "drift": True, "arms": [], "remark": waits}
    for text, count in ((f"too early: {waits}", 1), ("too early: about 400 more observations", 2)):
        lines = verdict.verdict_text({**found, "text": text}).splitlines()
        assert lines[:count] == [text, waits][:count]
        assert sum(waits in line for line in lines) == 1
