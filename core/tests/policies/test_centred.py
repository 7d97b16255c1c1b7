"""Centred losses: unbiased at any delay, bounded from below by their gate, and with less regret."""

from typing import Any

import numpy as np
import pytest

import decoupled as dc
from decoupled.base.arrays import Floats
from decoupled.extend import diagnostics
from decoupled.testing import state_of
from support.exactly import explored
from support.twins.centred import centred_twin

ARMS = 5
LOSSES = np.array([0.1, 0.35, 0.6, 0.9, 1.0])
# A high gate, so that some arms are covered and others are not.
GATED = [
    dc.CentredFTPL(c=1.0, exploit_c=2.0, gate=0.6, mean_rate=0.2),
    dc.CentredFTPL(c=1.0, exploit_c=2.0, gate=0.6, mean_rate=0.2, ranking="sorting"),
    dc.CentredFTPL(alpha=1.5, c=1.0, gate=0.6, mean_rate=0.2, schedule="losses"),
]
STRATA = dc.CentredFTPL(c=0.5, exploit_c=3.0, gate=0.5, mean_rate=0.2, ranking="strata")


@pytest.mark.parametrize(
    ("policy", "arms"), [*((each, ARMS) for each in GATED), (STRATA, 200)], ids=repr
)
def test_feedback_in_any_order_teaches_what_the_twin_learns(
    policy: dc.CentredFTPL, arms: int
) -> None:
    twin: Any = centred_twin(policy, arms)
    learner, generator = policy.start(arms, seed=1), np.random.default_rng(0)
    waiting: list[tuple[dc.Decision, Floats]] = []
    covered = set()
    for step in range(600):
        waiting.append((learner.decide(), twin.baseline()))
        covered.add(np.count_nonzero(waiting[-1][1]))
        if len(waiting) > 8 or generator.random() < 0.3:
            decision, b = waiting.pop(int(generator.integers(len(waiting))))
            arm = explored(decision)
            loss = float(
                generator.random() < np.interp(arm / (arms - 1), np.linspace(0, 1, ARMS), LOSSES)
            )
            learner.observe(decision, loss=loss)
            twin.learn(arm, decision.weight, loss, b)
            if arms == ARMS or step % 10 == 0:  # the twin of many arms is slow
                law = learner.exploration_probabilities()
                np.testing.assert_allclose(
                    learner.estimates(), twin.estimates, rtol=1e-11, atol=1e-11
                )
                np.testing.assert_allclose(
                    law, twin.exploration_law(), rtol=1e-11 if arms == ARMS else 1e-9
                )
    # The gate must let some arms pass and not others.
    assert covered - {0, ARMS} if arms == ARMS else len(covered) > 10


@pytest.mark.parametrize("arms", [2, 8, 60])
def test_the_gate_bounds_how_far_an_estimate_falls(arms: int) -> None:
    # eta * hat_l >= -B / gate, whatever arm is drawn and whatever it costs.
    learner = dc.CentredFTPL(c=0.5, exploit_c=3.0, gate=0.25).start(arms, seed=2)
    deepest, generator = 0.0, np.random.default_rng(3)
    baselines = learner.policy.baselines
    assert baselines is not None
    for _ in range(500):
        law, seen = learner.exploration_probabilities(), diagnostics(learner)
        places, values = baselines.read(state_of(learner).to_state())
        b = np.zeros(arms)
        b[places] = values
        falls = seen["eta"] * (b - b / law)  # if the drawn arm has loss 0
        assert (falls >= -(0.5 + seen["rise"]) / 0.25 - 1e-12).all()
        deepest = min(deepest, float(falls.min()))
        decision = learner.decide()
        learner.observe(
            decision, loss=float(generator.random() < 0.3 + 0.6 * (explored(decision) > 0))
        )
    assert deepest < -0.25  # the bound was tested


def test_a_policy_prints_what_differs_from_its_defaults() -> None:
    assert repr(dc.FTPL()) == "FTPL(alpha=3.0, c=2.0, ranking='auto')"
    assert repr(dc.TsallisINF(c=3.0)).endswith("c=3.0, solver='newton')")
    assert repr(dc.Exp3()) == "Exp3(c=2.0)"
    assert repr(dc.CentredFTPL(gate=0.5)) == "CentredFTPL(gate=0.5)"


def test_one_law_has_one_code_whatever_the_options() -> None:
    options: tuple[dict[str, Any], ...] = (
        {},
        {"exploit_c": 3.0},
        {"schedule": "losses"},
        {"ranking": "sorting"},
    )
    forms: list[Any] = [dc.CentredFTPL(**each) for each in options]
    assert len({each.functions for each in forms}) == 1
    assert len({dc.Forgetting(each, period=9).params_type for each in forms}) == 1
    in_strata = [kind(ranking="strata") for kind in (dc.FTPL, dc.CentredFTPL)]
    assert len({each.functions for each in in_strata}) == 1


def test_without_baselines_and_with_one_rate_it_is_ftpl() -> None:
    # Nothing passes so high a gate, so every baseline is 0.
    for ranking, arms in (("improved", 6), ("sorting", 6), ("strata", 200)):
        left = dc.FTPL(ranking=ranking).start(arms, seed=3)
        right = dc.CentredFTPL(gate=1e9, ranking=ranking).start(arms, seed=3)
        for step in range(300):
            ours, theirs = left.decide(), right.decide()
            assert (ours.exploit, ours.explore, ours.weight) == (
                theirs.exploit,
                theirs.explore,
                theirs.weight,
            )
            for learner, decision in ((left, ours), (right, theirs)):
                learner.observe(decision, loss=(step % 3) / 2)
        assert left.estimates().tolist() == right.estimates().tolist()


@pytest.mark.slow
def test_regret_is_far_below_the_papers() -> None:
    # Not luck: the ratio of the means is near 0.25 with a standard error below 0.03.
    world = dc.environments.Alternating(arms=6, gap=0.15)
    policies = [dc.FTPL(), dc.Ladder()]
    results = dc.simulate(policies, world, horizon=5_000, runs=300, seed=0, checkpoints=1)
    paper, ours = (results.final_regret(policy).mean() for policy in policies)
    assert ours < 0.4 * paper
