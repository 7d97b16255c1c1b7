"""Decisions as text: byte for byte what the encoder makes of their dictionary."""

from typing import Any

import pytest

from decoupled.decision import Mode
from decoupled.learner.budget import Budget
from decoupled.learner.guardrails import Guardrails
from decoupled_serve.service.experiment.live import LiveExperiment
from decoupled_serve.service.experiment.records import Decided, DecisionRecord, Feedback, Settings, Settled
from decoupled_serve.service.http.models.decisions import decision_out, decision_text
from decoupled_serve.service.http.models.fields import encoded
from support.stores import Clock, quick_service

SETTINGS: dict[str, dict[str, Any]] = {
    "plain": {},
    "recommended": {"policy": {"name": "FTPL", "ranking": "auto"}},
    "no propensity": {"policy": {"name": "FTPL", "ranking": "strata"}},
    "names": {"arms": ('"', "\\", "é", "\u2028", 1, -7, 2**53, "1", "</script>")},
    "deadline": {"deadline": 1.5, "expired_loss": 0.5},
    "range": {"loss_range": (-1e-7, 1e22)},
    "pinned": {"guardrails": Guardrails(pinned="b")},
    "limited": {"budget": Budget(cost=1.0, total=6.0)},
    "coupled": {"policy": {"name": "CoupledExp3"}},
}


@pytest.mark.parametrize("name", SETTINGS)
def test_a_decision_as_text(name: str, file: str, clock: Clock) -> None:
    settings = Settings(**{"policy": {"name": "FTPL"}, "arms": ("a", "b", "c"), **SETTINGS[name]})
    service = quick_service(file, clock=clock)
    service.experiments.put("me", "one", settings, seed=7).result()
    seen: list[DecisionRecord] = []

    def both(running: LiveExperiment, row: Decided, settled: Settled | None) -> str:
        seen.append(running.record(row, settled))
        assert decision_text(running, row, settled).encode() == encoded(decision_out(seen[-1]))
        return seen[-1].id

    low, high = settings.loss_range
    modes: tuple[Mode, ...] = ("both",) if name == "coupled" else ("both", "exploit", "explore")
    for number in range(8):
        clock.now += 1.0 / 3.0
        for mode in modes:
            key = f"{mode} {number}"
            [id] = service.decisions.decide_as(both, "me", "one", mode=mode, idempotency_key=key).result()  # noqa: A001
            if seen[-1].explore is not None and number % 2:
                given = Feedback(id, low + (high - low) * number / 8)
                service.decisions.feedback_as(both, "me", given).result()
            service.decisions.decide_as(both, "me", "one", mode=mode, idempotency_key=f"{mode} 0").result()
    statuses = {each.status for each in seen}
    assert {"pending", "applied"} <= statuses
    assert ("unobserved" in statuses) == (name != "coupled")
    assert ("expired" in statuses) == (name == "deadline")
    assert any(each.guard for each in seen) == (name == "pinned")
    assert any(each.limited_by for each in seen) == (name == "limited")
    assert any(each.explore and each.propensity is None for each in seen) == (name == "no propensity")
