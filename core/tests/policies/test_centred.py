"""Centred losses: unbiased at any delay, bounded from below by their gate, and with less regret."""

from typing import Any

import numpy as np
import pytest

import decoupled as dc
from decoupled.base.arrays import Floats
from decoupled.extend import diagnostics
from decoupled.testing import state_of
from support.exactly import explored
from support.twins.centred import CentredStrataTwin, centred_twin

ARMS = 5
LOSSES = np.array([0.1, 0.35, 0.6, 0.9, 1.0])
# A high gate, so that some arms are covered and others are not.
GATED: list[dc.Policy] = [
    dc.FTPL(c=1.0, c_exploit=2.0, estimator="centred", kappa=0.6, lam=0.2),
    dc.TsallisINF(c=3.0, c_exploit=6.0, estimator="centred", kappa=0.2, lam=0.2),
    dc.Exp3(c=2.0, c_exploit=4.0, estimator="centred", kappa=0.8, lam=0.2),
]
STRATA = dc.FTPL(c=0.5, c_exploit=3.0, estimator="centred", kappa=0.5, lam=0.2, ranking="strata")


@pytest.mark.parametrize(
    ("policy", "arms"), [*((each, ARMS) for each in GATED), (STRATA, 200)], ids=repr
)
def test_feedback_in_any_order_teaches_what_the_twin_learns(policy: dc.Policy, arms: int) -> None:
    twin = CentredStrataTwin(arms, policy) if policy == STRATA else centred_twin(arms, policy)
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
@pytest.mark.parametrize(("kind", "c"), [(dc.FTPL, 0.5), (dc.TsallisINF, 1.5), (dc.Exp3, 1.5)])
def test_the_gate_bounds_how_far_an_estimate_falls(kind: Any, c: float, arms: int) -> None:
    # eta * hat_l >= -B / kappa, whatever arm is drawn and whatever it costs.
    learner = kind(c=c, c_exploit=3.0, estimator="centred", kappa=0.25).start(arms, seed=2)
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


def test_a_policy_knows_whether_it_is_the_published_one() -> None:
    assert dc.FTPL().published
    assert dc.FTPL(c=2.0, c_exploit=2.0).published
    assert not dc.FTPL(c_exploit=3.0).published
    assert not dc.FTPL(schedule="losses").published
    assert repr(dc.FTPL()) == "FTPL(alpha=3.0, c=2.0, ranking='improved')"
    for kind in (dc.TsallisINF, dc.Exp3):
        assert kind(c=2.0, c_exploit=2.0).published
        assert not kind(c_exploit=3.0).published
        assert not kind(estimator="centred").published
        assert not kind(schedule="losses").published
        assert "kappa" not in repr(kind())


def test_a_conic_solver_has_no_second_form() -> None:
    for options in ({"estimator": "centred"}, {"c_exploit": 3.0}):
        with pytest.raises(
            dc.ParameterError, match="solver = 'scs': takes only the published options"
        ):
            dc.TsallisINF(solver="scs", **options)


def test_one_law_has_one_code_whatever_the_options() -> None:
    for kind in (dc.FTPL, dc.TsallisINF, dc.Exp3):
        options = ({"estimator": "centred"}, {"c_exploit": 3.0}, {"schedule": "losses"})
        forms: list[Any] = [kind(), *(kind(**each) for each in options)]
        assert len({each.functions for each in forms}) == 1
        assert len({dc.Forgetting(each, period=9).params_type for each in forms}) == 1
        # Rows that an option does not need take no memory.
        rows = [len(each.layout.floats) for each in forms]
        assert rows[0] == rows[3] < rows[1] == rows[2]


@pytest.mark.slow
def test_regret_is_far_below_the_papers() -> None:
    # Not luck: the ratio of the means is near 0.25 with a standard error below 0.03.
    world = dc.environments.Alternating(arms=6, gap=0.15)
    policies = [dc.FTPL(), dc.Ladder()]
    results = dc.simulate(policies, world, horizon=5_000, runs=300, seed=0, checkpoints=1)
    paper, ours = (results.final_regret(policy).mean() for policy in policies)
    assert ours < 0.4 * paper
