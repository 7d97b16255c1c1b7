"""Arms with equal estimates are explored equally often, whatever their numbers."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import decoupled as dc
from decoupled.base.arrays import Floats
from support.centred_ftpl import CENTRED_FTPL
from support.saved import with_learned
from support.statistics import chi_square_p
from support.twins.ftpl import FTPLTwin, StrataTwin

SORTING, STRATA = (dc.FTPL(ranking=ranking) for ranking in ("sorting", "strata"))
FORMS: list[dc.FTPL | dc.CentredFTPL] = [
    dc.FTPL(),
    SORTING,
    STRATA,
    CENTRED_FTPL,
    CENTRED_FTPL.at(10_000),
]
every_form = pytest.mark.parametrize("policy", FORMS, ids=lambda policy: policy.label)

# The chance that some statistical test below fails on a sound program, over random seeds.
FALSE_ALARM = 1e-3


@pytest.mark.parametrize("policy", [*FORMS, dc.Ladder()], ids=lambda policy: policy.label)
@pytest.mark.parametrize("arms", [2, 4, 100])
def test_a_fresh_learner_explores_every_arm_equally(policy: dc.FTPL, arms: int) -> None:
    learner = policy.start(arms, seed=1)
    np.testing.assert_allclose(learner.exploration_probabilities(), 1 / arms, rtol=1e-12)
    propensities = {decision.propensity for decision in learner.decide(count=50)}
    assert all(p is None or p == pytest.approx(1 / arms, rel=1e-12) for p in propensities)


@every_form
def test_draws_have_the_law_that_ties_share(policy: dc.FTPL) -> None:
    # Three leaders, a tie of four behind them, and arms alone; the paper's rule read by arm numbers
    # would give the first leader 2.1 times what the third has, which this test notices at any
    # level.
    estimates = [0.0, 3.0, 0.0, 8.0, 3.0, 0.0, 3.0, 5.0, 3.0]
    learner = started_from(policy, estimates)
    law = learner.exploration_probabilities()
    np.testing.assert_allclose(law, twin_of(policy, estimates).exploration_law(), rtol=1e-12)
    decisions = learner.decide(count=60_000)
    counts = np.bincount([int(decision.explore) for decision in decisions], minlength=len(law))
    assert chi_square_p(counts, law) > FALSE_ALARM / len(FORMS) / 2
    # Each arm's indicator times its weight has mean 1, even if the weight belongs to a rank.
    weights = np.array([decision.weight for decision in decisions])
    explored = np.array([decision.explore for decision in decisions])
    for arm in range(len(law)):
        terms = np.where(explored == arm, weights, 0.0)
        error = terms.std() / len(terms) ** 0.5
        assert abs(terms.mean() - 1.0) < 5.0 * error  # 45 of them: once in 40,000 seeds


@given(
    estimates=st.lists(st.sampled_from([0.0, 0.5, 1.0, 7.25]), min_size=2, max_size=12),
    data=st.data(),
)
@settings(deadline=None, max_examples=60)
def test_the_law_is_free_of_the_numbers_of_arms(
    estimates: list[float], data: st.DataObject
) -> None:
    order = data.draw(st.permutations(range(len(estimates))))
    for policy in FORMS:
        law = started_from(policy, estimates).exploration_probabilities()
        permuted = started_from(
            policy, [estimates[arm] for arm in order]
        ).exploration_probabilities()
        np.testing.assert_allclose(permuted, law[list(order)], rtol=1e-12)


def started_from(policy: dc.FTPL | dc.CentredFTPL, estimates: list[float]) -> dc.Learner:
    """A learner with these estimates, in round 5 for any number of arms."""
    return with_learned(policy.start(len(estimates), seed=3), {"estimates": estimates}, round=5)


def twin_of(policy: dc.FTPL | dc.CentredFTPL, estimates: list[float]) -> FTPLTwin:
    twin = (StrataTwin if policy.ranking == "strata" else FTPLTwin)(
        len(estimates), policy.alpha, policy.c
    )
    twin.estimates = np.array(estimates)
    twin.observations = 0 if getattr(policy, "schedule", None) == "losses" else 4
    return twin


def test_ties_do_not_raise_regret_where_the_best_arm_has_the_last_number() -> None:
    """With ties broken by number, an arm's place in the list mattered.

    Now the two agree up to noise.
    """
    gap, arms, horizon = 0.25, 16, 2_000
    results: list[Floats] = []
    for best in (0, arms - 1):
        rewards = np.full(arms, 0.5)
        rewards[best] += gap
        world = dc.environments.Bernoulli(rewards.tolist())
        results.append(dc.simulate(dc.FTPL(), world, horizon, 400, seed=8).final_regret("FTPL"))
    first, last = results
    error = np.hypot(first.std(), last.std()) / 400**0.5
    assert (
        abs(first.mean() - last.mean()) < 4.0 * error
    )  # a sound program fails once in 16,000 seeds
