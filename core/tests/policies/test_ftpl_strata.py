"""FTPL in strata: the regret of the dense round, and learners of very many arms."""

import dataclasses
import math

import numpy as np
import pytest

import decoupled as dc
from decoupled.extend import diagnostics
from decoupled.policies.ftpl import MANY_ARMS, MANY_CENTRED
from support.centred_ftpl import CENTRED_FTPL
from support.statistics import means_agree
from support.twins.ftpl import StrataTwin, cut_into_strata

STRATA = dc.FTPL(ranking="strata")


def learned(policy: dc.Policy, arms: int, rounds: int) -> dc.Learner:
    """A learner with a history in which arms with small numbers do better."""
    learner = policy.start(arms=arms, seed=5)
    losses = np.random.default_rng(3).random(rounds)
    for luck in losses:
        decision = learner.decide()
        assert isinstance(decision.explore, int)
        learner.observe(decision, loss=float(luck < 0.2 + 0.7 * decision.explore / arms))
    return learner


def test_weights_are_unbiased_and_independent_of_the_arm() -> None:
    arms, draws = 64, 100_000
    learner = learned(STRATA, arms, 400)
    twin = StrataTwin(arms)
    twin.estimates, twin.observations = learner.estimates(), 400
    strata, ranks, q = twin.strata(), twin.ranks(), twin.surrogates()
    cut = np.repeat(np.arange(len(strata)), [len(each) for each in strata])
    decisions = [d for _ in range(draws // 50_000) for d in learner.decide(count=50_000)]
    explored = np.array([d.explore for d in decisions])
    weights = np.array([d.weight for d in decisions])
    # Each arm's indicator times weight has mean 1; by stratum, the number of its arms. And sum q as a
    # decision sees it has one mean, whichever stratum the arm came from. 2 x 12 comparisons at 1e-5 each.
    stratum = cut[ranks[explored] - 1]
    whole = sum(each.sum() for each in strata)
    sums = weights * q[explored]
    for k, each in enumerate(strata):
        inside = np.where(stratum == k, weights, 0.0)
        error = inside.std() / math.sqrt(draws)
        assert means_agree(np.array([inside.mean()]), np.array([len(each)]), np.array([error]), 1e-5)
        own = sums[stratum == k]
        error = own.std() / math.sqrt(len(own))
        assert means_agree(np.array([own.mean()]), np.array([whole]), np.array([error]), 1e-5)


@pytest.mark.parametrize("auto", [dc.FTPL(ranking="auto"), CENTRED_FTPL], ids=str)
def test_auto_is_the_faster_of_the_two(auto: dc.FTPL) -> None:
    many = MANY_ARMS if auto.published else MANY_CENTRED
    few = many - 1
    for arms, ranking in ((few, "improved"), (many, "strata")):
        other = dataclasses.replace(auto, ranking=ranking)
        assert auto.at(arms) == other
        left, right = learned(auto, arms, 300), learned(other, arms, 300)
        assert left.decide() == right.decide()
        assert left.estimates().tolist() == right.estimates().tolist()
        assert left.exploration_probabilities().tolist() == right.exploration_probabilities().tolist()
    part = range(0, many, 9)
    assert (
        learned(auto, many, 3).decide(available=part).propensity is not None
    )  # a small subset of many arms


@pytest.mark.parametrize("policy", [STRATA, dataclasses.replace(CENTRED_FTPL, ranking="strata")], ids=str)
def test_it_continues_bit_for_bit_after_its_blocks_have_changed(policy: dc.FTPL) -> None:
    learner = learned(policy, 3000, 3000)
    learner.decide(count=3)  # pending, with everything their feedback will need
    again = dc.Learner.from_json(learner.to_json())
    for _ in range(300):
        ours, theirs = learner.decide(), again.decide()
        assert ours == theirs
        learner.observe(ours, loss=0.5)
        again.observe(theirs, loss=0.5)
    assert learner.estimates().tolist() == again.estimates().tolist()


def test_a_hundred_thousand_named_arms() -> None:
    names = [f"item {number}" for number in range(100_000)]
    learner = STRATA.start(arms=names, seed=2)
    for _ in range(2000):
        decision = learner.decide()
        learner.observe(decision, loss=float(str(decision.explore).endswith("7")))
    learner.replay([(names[-1], 0.5, 1.0)])
    assert learner.estimates()[-1] >= 2.0
    assert dc.Learner.from_json(learner.to_json()).decide() == learner.decide()
    twin = StrataTwin(len(names))
    twin.estimates, twin.observations = learner.estimates(), 2001
    np.testing.assert_allclose(learner.exploration_probabilities(), twin.exploration_law(), rtol=1e-11)
    with pytest.raises(dc.ArmError, match="did you mean 'item 7'"):
        learner.replay([("item_7", 0.5, 1.0)])


@pytest.mark.parametrize(("arms", "most"), [(64, 14), (200_000, 32), (1_000_000, 36)])
def test_the_strata_grow_in_number_with_the_logarithm(arms: int, most: int) -> None:
    strata = diagnostics(STRATA.start(arms=arms, seed=4))["strata"]
    assert strata == len(cut_into_strata(np.arange(arms, dtype=np.float64))) <= most
