"""Gates: they open on evidence that always holds, close again without it, and speak the languages of hooks."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from decoupled.client.errors import Invalid
from decoupled.inference import Sequences, verdict
from decoupled.learner.losses import LossRange
from decoupled_serve.service.experiment.watched import WatchedExperiment, gate_of
from support.command_line import run
from support.http_service import Service

MEANS = {"current": 0.5, "next": 0.2, "bad": 0.9}
# What Flagger sends with its hooks.
HOOK = {"name": "checkout", "namespace": "shop", "phase": "WaitingPromotion", "checksum": "85d557f47b"}


def watched(
    seen: dict[str, float],
    rounds: int,
    *,
    incumbent: str | None = None,
    losses: tuple[float, float] = (0.0, 1.0),
) -> WatchedExperiment:
    """An experiment whose arms were explored in turn, with the same loss each time."""
    sequences = Sequences(arms=len(seen))
    law = [1.0 / len(seen)] * len(seen)
    for n in range(rounds * len(seen)):
        place = n % len(seen)
        sequences.update(place, float(len(seen)), list(seen.values())[place], law=law)
    names, scale = tuple(seen), LossRange(*losses)
    return WatchedExperiment("checkout", 7, sequences, names, scale, None, incumbent, None)


COMPARED = [
    ("next", "current", 0.0, "passed", "next is better than current"),
    ("next", "current", 0.1, "passed", "next is not worse than current by more than 0.1"),
    ("next", "current", -0.1, "passed", "next is better than current by more than 0.1"),
    ("next", "current", -0.5, "failed", "next is not better than current by more than 0.5"),
    ("next", None, 0.0, "passed", "next is better than current, bad"),
    ("bad", "current", 0.0, "failed", "bad is worse than current"),
    ("bad", None, 0.2, "failed", "bad is worse than next by more than 0.2"),
    ("bad", "current", 0.6, "passed", "bad is not worse than current by more than 0.6"),
]


@pytest.mark.parametrize(("arm", "against", "margin", "state", "text"), COMPARED)
def test_a_gate_has_a_margin(arm: str, against: str | None, margin: float, state: str, text: str) -> None:
    found = gate_of(watched(MEANS, 600), arm, against, margin)
    assert (found.state, found.text) == (state, f"{text} (95 %, as of round 1,800)")
    scaled = gate_of(watched(MEANS, 600, losses=(100.0, 300.0)), arm, against, 200.0 * margin)
    assert scaled.state == state, "the margin is on the scale of the losses"
    assert (found.observed, found.state_version, found.risk) == (1800, 7, 0.05)


def test_until_the_evidence_is_in_it_waits_and_an_incumbent_is_what_it_compares_with() -> None:
    found = gate_of(watched(MEANS, 5), "next", "current", 0.0)
    assert found.state == "waiting"
    assert found.text.startswith("too early: the difference of next must lie below 0 and is -")
    [only] = found.against
    assert only.difference.low < -0.3 < only.difference.high
    with_one = watched(MEANS, 600, incumbent="current")
    assert [each.arm for each in gate_of(with_one, "next", None, 0.0).against] == ["current"]
    assert [each.arm for each in gate_of(with_one, "current", None, 0.0).against] == ["next", "bad"]
    fresh = watched(MEANS, 1)
    for arm, against, wrong in (("nxt", None, "arm = 'nxt'"), ("next", "curent", "against = 'curent'")):
        with pytest.raises(Invalid, match=wrong):
            gate_of(fresh, arm, against, 0.0)
    with pytest.raises(Invalid, match="is the arm at the gate"):
        gate_of(fresh, "next", "next", 0.0)


def test_it_asks_about_now_and_closes_again() -> None:
    found = watched({"current": 0.5, "next": 0.2}, 300)
    assert gate_of(found, "next", None, 0.0).state == "passed"
    later = found.sequences.copy()
    for n in range(2_000):
        later.update(n % 2, 2.0, 1.0 if n % 2 else 0.5, law=[0.5, 0.5])
    assert later.difference(1, 0).high < 0.0, "what a verdict has decided stays so"
    closed = gate_of(replace(found, sequences=later), "next", None, 0.0)
    assert closed.state == "failed"
    at = verdict(later, ["current", "next"]).decided_at
    assert f"the verdict for next, decided at round {at:,}, stays" in closed.text
    assert "verdict" not in gate_of(replace(found, sequences=later), "current", None, 0.0).text


def test_a_gate_is_seldom_wrong_at_any_time() -> None:
    """An arm that is worse by exactly the margin: it may pass in a fifth of 20 runs, at any of 10 looks each.

    More than 9 passes have a probability of 0.003 if that holds (a binomial distribution of 20 and 0.2). A gate that went by
    the estimate alone would let nearly all of them pass.
    """
    passed = 0
    for seed in range(20):
        noise, sequences = np.random.default_rng(seed), Sequences(arms=2, risk=0.2)
        experiment = WatchedExperiment(
            "one", 0, sequences, ("a", "b"), LossRange(0.0, 1.0), None, None, None
        )
        for _ in range(10):
            for arm in noise.integers(2, size=20).tolist():
                loss = float(noise.random() < (0.3, 0.4)[arm])
                sequences.update(arm, 2.0, loss, law=[0.5, 0.5])
            if gate_of(experiment, "b", "a", 0.1).state == "passed":
                passed += 1
                break
    assert passed <= 9


# Over HTTP


SERVED = {"open_to_all": False}


def prepare(service: Service) -> None:
    service.http.headers.update(service.key("admin"))
    service.create("checkout", arms=list(MEANS), seed=7)
    for _ in range(3):
        made = service.decide("checkout", count=300)["decisions"]
        items = [{"decision": each["id"], "loss": MEANS[each["explore"]]} for each in made]
        assert service.http.post("/v1/feedback", json={"items": items}).status_code == 200


def ask(service: Service, method: str = "GET", **query: Any) -> Any:
    body = HOOK if method == "POST" else None
    return service.http.request(method, "/v1/experiments/checkout/gate", params=query, json=body)


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_the_status_says_whether_it_is_open(service: Service, method: str) -> None:
    opened = ask(service, method, arm="next", against="current", margin=0.02)
    assert opened.status_code == 200
    assert opened.json()["open"] is True
    for query in ({"arm": "bad"}, {"arm": "next", "when": "failed"}, {"arm": "next", "margin": -0.9}):
        refused = ask(service, method, **query)
        assert refused.status_code == 409, query
        assert refused.json()["open"] is False
    rolled_back = ask(service, method, arm="bad", against="current", when="failed")
    assert (rolled_back.status_code, rolled_back.json()["state"]) == (200, "failed")
    for_programs = ask(service, method, arm="bad", closed="200")
    assert (for_programs.status_code, for_programs.json()["state"]) == (200, "failed")
    for query in (
        {},
        {"arm": "nobody"},
        {"arm": "next", "margin": "nan"},
        {"arm": "next", "when": "waiting"},
    ):
        assert ask(service, method, **query).status_code == 422, query


def test_the_command_has_the_status_in_its_exit_status(service: Service, tmp_path: Path) -> None:
    file = tmp_path / "key"
    file.write_text(service.key("read")["Authorization"].removeprefix("Bearer "))
    reached = ["--url", service.url, "--key-file", str(file)]
    said = run("client", "gate", "checkout", "next", "--against", "current", "--margin", "0.02", *reached)
    assert (said.exit_code, said.stdout) == (
        0,
        "next is not worse than current by more than 0.02 (95 %, as of round 900)\n",
    )
    said = run("client", "gate", "checkout", "bad", "--json", *reached)
    assert said.exit_code == 1
    assert '"state": "failed"' in said.stdout
