"""Tsallis-INF with a general conic solver: the same policy by another method."""

import random
import subprocess
import sys

import numpy as np
import pytest

import decoupled as dc
from decoupled.policies.tsallis import TOLERANCE, conic_weights
from support.twins.tsallis import tsallis_law_by_brentq

pytest.importorskip("scs", reason="scs is not installed (the extra `conic`)")


@pytest.mark.parametrize("beta", [0.5, 2 / 3, 0.9])
@pytest.mark.parametrize("arms", [2, 5, 40])
def test_weights_are_those_of_the_twin(arms: int, beta: float) -> None:
    rng = np.random.default_rng(arms)
    for spread in (0.0, 1.0, 30.0):
        gaps = spread * rng.random(arms)
        gaps -= gaps.min()
        twin = tsallis_law_by_brentq(gaps, 1.0, beta)
        assert np.abs(conic_weights(gaps, beta) - twin).max() < 20 * TOLERANCE


def after(policy: dc.Policy, rounds: int) -> dc.Learner:
    learner, luck = policy.start(arms=6, seed=3), random.Random(0)
    for _ in range(rounds):
        decision = learner.decide()
        learner.observe(decision, loss=float(luck.random() < 0.3 + 0.1 * int(decision.explore)))
    return learner


def test_a_learner_plays_as_with_newton() -> None:
    conic, newton = after(dc.TsallisINF(solver="scs"), 100), after(dc.TsallisINF(), 100)
    assert (
        np.abs(conic.exploitation_probabilities() - newton.exploitation_probabilities()).max()
        < 1e-5
    )
    assert (
        np.abs(conic.exploration_probabilities() - newton.exploration_probabilities()).max() < 1e-5
    )
    assert [conic.decide().explore for _ in range(50)] == [
        newton.decide().explore for _ in range(50)
    ]


def test_a_solver_that_fails_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    learner = after(dc.TsallisINF(solver="scs"), 5)
    decision = learner.decide()
    before = learner.to_json()

    def failing(gaps: object, beta: object) -> None:
        raise dc.StateError("solver = 'scs': ended with 'failed'; use solver='newton'")

    monkeypatch.setattr("decoupled.policies.tsallis.conic_weights", failing)
    with pytest.raises(dc.StateError, match="newton"):
        learner.observe(decision, loss=1.0)
    assert learner.to_json() == before


def test_what_the_solver_cannot_do_is_said() -> None:
    script = (
        "import sys; sys.modules['scs'] = None\nimport decoupled as dc\ndc.TsallisINF(solver='scs')"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert "pip install 'decoupled-bandits[conic]'" in done.stderr
    with pytest.raises(dc.ParameterError, match="did you mean 'newton'"):
        dc.TsallisINF(solver="newtn")
    environment = dc.environments.Alternating(arms=4, gap=0.1)
    with pytest.raises(dc.UnsupportedError, match="runs in a learner only"):
        dc.simulate(dc.TsallisINF(solver="scs"), environment, horizon=10, runs=1)
