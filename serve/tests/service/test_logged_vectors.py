"""Texts and embeddings in contexts: the log holds their numbers, and a replay learns the same from them."""

from typing import Any

import pytest

import decoupled as dc
from decoupled.client import Invalid
from decoupled_serve.service.experiment.records import Settings
from support.http_service import Service
from support.stores import faults, killed, quick_service, started

POLICY = dc.ContextualLadder(numbers=("tokens",), vectors=("prompt",), vector_numbers=3)


def test_a_service_logs_the_numbers_of_a_vector_and_replays_them(file: str, service: Service) -> None:
    settings = Settings(POLICY.to_dict(), ("small", "large"), (0.0, 1.0))
    here = started(file, settings)
    twin = POLICY.start(("small", "large"), here.experiments.get("me", "one").result().seed)
    for turn in range(30):
        given: dict[str, Any] = (
            {"tokens": turn, "prompt": f"zebra {turn % 3}" * 200} if turn % 4 else {"tokens": None}
        )
        [made] = here.decisions.decide("me", "one", context=given).result()
        expected = twin.decide(context=given)
        assert (made.exploit, made.explore, made.weight) == (
            expected.exploit,
            expected.explore,
            expected.weight,
        )
        here.decisions.feedback("me", made.id, loss=turn % 2).result()
        twin.observe(expected, loss=turn % 2)
    assert made.context == POLICY.spread("prompt", "zebra 2" * 200) | {"tokens": 29.0}
    told: Any = {"context": {"prompt": "zebra 1", "tokens": 3}}
    before = here.experiments.state("me", "one", **told).result()
    for wrong in ([0.1, 0.2], 7, {"a": 1}, True):
        with pytest.raises(Invalid, match=r"context.prompt: must be a string"):
            here.decisions.decide("me", "one", context={"prompt": wrong}).result()
    killed(here)
    again = quick_service(file)
    assert again.experiments.state("me", "one", **told).result() == before
    again.close()
    assert faults(file) == []
    policy = {"name": "ContextualLadder", "vectors": ["e"], "vector_length": 4_096, "vector_numbers": 2}
    service.create("embedded", arms=["a", "b"], policy=policy)
    made_there = service.decide("embedded", context={"e": [1.0] * 4_096})
    assert made_there["context"] == dict(zip(("e.0", "e.1"), dc.project([1.0] * 4_096, 2), strict=True))
    assert service.decide("embedded", context={"e.0": 0.5})["context"] == {"e.0": 0.5}
    answer = service.http.post("/v1/experiments/embedded/decisions", json={"context": {"e": [0.5]}})
    assert (answer.status_code, "has 1 numbers, and vector_length = 4096" in answer.text) == (422, True)
    answer = service.http.put("/v1/experiments/bad", json={"arms": ["a", "b"], "context": {"e": "vector"}})
    assert (answer.status_code, "needs a policy that learns from it" in answer.text) == (422, True)
