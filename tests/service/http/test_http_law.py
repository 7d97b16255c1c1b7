"""Decisions fetched over HTTP follow the exact law that the state names."""

from pathlib import Path

import numpy as np
from scipy import stats

from support.http_service import served

ARMS = ["a", "b", "c", "d", "e"]
DRAWS = 4_000


def test_decisions_over_http_follow_the_distribution_in_the_state(tmp_path: Path) -> None:
    # Seeded, so this passes or fails for good. Both laws are tested at 1e-4: with another seed or another
    # stream a false alarm comes once in 5,000 changes. A law that were off by 4 points on one arm of 5 would
    # be found with more than 99 % power (non-centrality about 30 at 4 degrees of freedom).
    with served(tmp_path) as service:
        service.create("law", arms=ARMS, seed=20261115)
        rng = np.random.default_rng(0)
        for _ in range(20):
            decision = service.decide("law")
            loss = 0.3 + 0.05 * ARMS.index(decision["explore"]) + 0.1 * rng.random()
            answer = service.http.put(f"/v1/decisions/{decision['id']}/feedback", json={"loss": loss})
            assert answer.status_code == 200
        state = service.http.get("/v1/experiments/law/state").json()
        made = [each for _ in range(DRAWS // 500) for each in service.decide("law", count=500)["decisions"]]
        after = service.http.get("/v1/experiments/law/state").json()
    assert {each["state_version"] for each in made} == {state["state_version"]}
    assert after["exploration"] == state["exploration"], "deciding does not change the law"
    exploration = dict(zip(state["arms"], state["exploration"], strict=True))
    for each in made:  # each carries the very probability of what it explores
        assert each["propensity"] == exploration[each["explore"]]
    for kind, law in (("exploit", state["exploitation"]), ("explore", state["exploration"])):
        counts = [sum(each[kind] == arm for each in made) for arm in state["arms"]]
        expected = DRAWS * np.array(law)
        assert expected.min() > 5, "chi-square needs five of each"
        assert stats.chisquare(counts, expected * (DRAWS / expected.sum())).pvalue > 1e-4, kind
